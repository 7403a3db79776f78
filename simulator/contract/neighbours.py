"""Neighbouring data sets that move what is released as far as can be: worst records, within the domain of the data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.tables import Table
from ...agents.tasks.base import Task
from ...protocols.base import Protocol
from .transcript import Recording

Array = NDArray[np.float64]
Record = tuple[Array, float]
"""Features and label."""

EXTREMES = (1e6, 1e300)
"""Sizes of records that clipping has to cope with."""
ORDINARY = 10.0
"""How far beyond the largest row a record may lie where nothing is said about the domain and nothing is clipped."""
STRIDE = 7
"""Pairs that lie between those of an agent in two consecutive runs."""


@dataclass(frozen=True)
class Domain:
    """Which records are admissible.

    Parameters
    ----------
    bounds : mapping of str to float
        Bounds on the l1 and l2 norm of a row.
    sizes : tuple of float
        l2 norms to try; the bounds cut them.
    labels : tuple of float
        Labels to try.
    shared : tuple of str
        Parts that neighbouring records have in common.
    """

    bounds: Mapping[str, float]
    sizes: tuple[float, ...]
    labels: tuple[float, ...]
    shared: tuple[str, ...] = ()


def domain_of(task: Task, protocol: Protocol, recording: Recording) -> Domain:
    """What records a run's sensitivities are to hold for: any where all are clipped, else those within the bounds.

    Parameters
    ----------
    task : Task
    protocol : Protocol
    recording : Recording
        Of a run on the task.
    """
    noisy = [draw.release for draws in recording.draws.values() for draw in draws]
    clipped = bool(noisy) and all(release.sensitivity_source == "clip" for release in noisy)
    rows, labels = task.train.features, task.train.labels
    largest = float(np.linalg.norm(rows, axis=1).max(initial=0.0)) if len(rows) else 0.0
    usual = ORDINARY * max(largest, 1.0)
    bounds, sizes = dict(task.bounds), (usual,)
    if clipped:
        most = 1e30 if rows.dtype == np.float32 else math.inf
        bounds, sizes = {}, (usual, *(min(size, most) for size in EXTREMES))
    radius = getattr(protocol.privacy, "radius", None)
    if radius is not None:
        norm = getattr(protocol.privacy, "norm", "l2")
        bounds |= {name: min(bounds.get(name, math.inf), radius) for name in {norm, "l2"}}
    if np.isin(labels, (-1.0, 1.0)).all():
        values: tuple[float, ...] = (1.0, -1.0)
    else:
        most = float(np.abs(labels).max(initial=1.0))
        values = (most, -most, *((EXTREMES[0], -EXTREMES[-1]) if clipped else ()))
    return Domain(bounds, sizes, values, protocol.shared_parts)


def opposites(domain: Domain, width: int, model: Array | None) -> list[tuple[Record, Record]]:
    """Pairs of worst records of so many features, whose gradients are as far apart as can be.

    Parameters
    ----------
    domain : Domain
    width : int
    model : (width,) float64, optional
        An agent's model; along it scores are extreme, across it slopes are largest.
    """
    found: list[tuple[Record, Record]] = []
    first, last = domain.labels[0], domain.labels[-1]
    for direction in _directions(width, model):
        for size in domain.sizes:
            row = _within(domain, direction, size)
            found += [((row, domain.labels[1]), (row, first)), ((row, first), (-row, last))]
            found += [((-row, label), (row, first)) for label in domain.labels[2:]]
    nothing = np.zeros(width), first
    return [found[0], (found[0][0], nothing), *found[1:]]


def _directions(width: int, model: Array | None) -> Iterator[Array]:
    first = np.zeros(width)
    first[:1] = 1.0
    yield first
    if model is not None and len(model) == width and np.isfinite(model).all() and np.linalg.norm(model) > 0:
        yield model / np.abs(model).max()
    yield np.ones(width)


def _within(domain: Domain, direction: Array, size: float) -> Array:
    """The longest admissible row of a direction, at most so long."""
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        return direction
    most = size / length
    for norm, bound in domain.bounds.items():
        most = min(most, bound / float(np.linalg.norm(direction, ord=1 if norm == "l1" else 2)))
    return direction * (most * (1 - 1e-12))


def replaced(
    task: Task, agents: Iterable[int], domain: Domain, models: Any, *, number: int, side: int, whole: bool
) -> Task:
    """A task in which some agents have another record, or all of their data are others.

    Parameters
    ----------
    task : Task
    agents : iterable of int
        Those without data keep none.
    domain : Domain
    models : (n, p) array or None
        Along which the worst records lie.
    number : int
        Chooses, with the agent's place among them, one of the pairs of `opposites`, and which row is replaced.
    side : int
        Which record of a pair, 0 or 1.
    whole : bool
        Whether all of an agent's data are replaced.
    """
    features, labels = task.train.features.copy(), task.train.labels.copy()
    for place, agent in enumerate(agents):
        rows, columns = _held(task, agent)
        if not len(rows):
            continue
        worst = opposites(domain, len(columns), models[agent, columns] if models is not None else None)
        labelled = "labels" not in domain.shared and (task.columns is None or agent == 0)
        if not labelled:
            worst = [pair for pair in worst if not np.array_equal(pair[0][0], pair[1][0])] or worst
        record, label = worst[(STRIDE * number + place) % len(worst)][side]
        changed = rows if whole else rows[[_place(number, len(rows))]]
        if "features" not in domain.shared:
            signs = _signs(number, agent, len(changed)) if task.columns is not None and side == 1 else 1.0
            features[np.ix_(changed, columns)] = np.multiply.outer(np.broadcast_to(signs, len(changed)), record)
        if labelled:
            labels[changed] = label
    return replace(task, train=replace(task.train, features=features, labels=labels))


def _signs(number: int, agent: int, rows: int) -> Array:
    """(rows,) signs that columns change by, in two pairs of three: columns turned round as a whole say the same."""
    if number % 3 == 0:
        return np.ones(rows)
    return np.random.default_rng([number, agent]).choice([-1.0, 1.0], rows)


def _place(turn: int, count: int) -> int:
    """Which of so many rows, in turn: the first, the last, the second, ..."""
    turn %= count
    return turn // 2 if turn % 2 == 0 else count - 1 - turn // 2


def shortened(task: Task, agents: Iterable[int]) -> Task:
    """A task in which some agents have lost their last record."""
    kept, offsets = np.ones(len(task.train.labels), dtype=bool), task.train.offsets.copy()
    for agent in agents:
        if task.train.counts[agent]:
            kept[task.train.offsets[agent + 1] - 1] = False
            offsets[agent + 1 :] -= 1
    return replace(task, train=Table(task.train.features[kept], task.train.labels[kept], offsets))


def _held(task: Task, agent: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the table that are an agent's."""
    if task.columns is not None:
        return np.arange(len(task.train.labels)), np.asarray(task.columns[agent], dtype=np.int64)
    first, last = task.train.offsets[agent : agent + 2].tolist()
    return np.arange(first, last), np.arange(task.dimension)


def some_agents(
    able: Sequence[int], degrees: NDArray[np.int64], roles: Sequence[str], *, count: int, seed: int
) -> list[int]:
    """Agents to look at one by one: of every role, of the least and the most neighbours, and some at random."""
    chosen: dict[int, None] = {}
    for role in dict.fromkeys(roles[agent] for agent in able):
        chosen[next(agent for agent in able if roles[agent] == role)] = None
    if able:
        chosen[min(able, key=lambda agent: (degrees[agent], agent))] = None
        chosen[max(able, key=lambda agent: (degrees[agent], agent))] = None
    for agent in np.random.default_rng(seed).permutation(np.asarray(able, dtype=np.int64)).tolist():
        if len(chosen) >= count:
            break
        chosen[agent] = None
    return list(chosen)
