"""Neighbouring data sets on which a protocol is attacked: one record, or one agent's data, changed to the worst.

What moves a release furthest depends on the loss and on the norm of the noise. Gradients of linear models are multiples
of the row, so a row of the largest admissible norm whose label is turned moves a gradient there and back; noise for the
l1 norm hides that least where all coordinates move, or where a clipped row moves a single one. Rows that are themselves
released (local differential privacy), whose labels are not protected, are turned round instead. Turning a row leaves
X'X as it is, so that step sizes, which runs may take from the spectrum as if it were public, stay the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...agents.tables import Table
from ...agents.tasks.base import Task
from ...protocols.algorithms.split_features import CENTRE
from .worlds import Subject

Array = NDArray[np.float64]

FAR = 8.0
"""Size of a row, in clipping thresholds, where nothing else bounds it."""
LARGE_LABEL = 1e3
"""A regression label that squared losses feel at every model."""


@dataclass(frozen=True)
class Pair:
    """Two neighbouring data sets.

    Parameters
    ----------
    agent : int
        Whose data differ.
    name : str
        How, in words.
    data, neighbour : Task
        D and D'.
    """

    agent: int
    name: str
    data: Task
    neighbour: Task


def pairs(subject: Subject, agent: int, *, rng: np.random.Generator) -> Iterator[Pair]:
    """Candidates for the worst pair about an agent, those that usually are it first."""
    if subject.task.columns is not None:
        yield from _of_columns(subject, agent, rng)
    elif subject.task.train.counts[agent]:
        yield from _of_records(subject, agent)


def _of_records(subject: Subject, agent: int) -> Iterator[Pair]:
    """One row of the agent's changed; the rest stays as it is."""
    task, size, shared = subject.task, _size(subject), subject.protocol.shared_parts
    place = int(task.train.offsets[agent])
    dimension = task.dimension
    own = task.train.features[_longest(task, agent)].astype(np.float64)
    along, single = np.ones(dimension), np.zeros(dimension)
    single[0] = 1.0
    rows = {
        "a row along all coordinates": _within(along, size, task),
        "a row along one coordinate": _within(single, size, task),
        "the agent's own longest row": own,
    }
    turned = (1.0, -1.0) if task.loss.labels == "classes" else (LARGE_LABEL, -LARGE_LABEL)
    own_label = float(task.train.labels[place])
    for name, row in rows.items():
        if "labels" not in shared:
            data, neighbour = (_with_row(task, place, row, label) for label in turned)
            yield Pair(agent, f"{name}, label turned", data, neighbour)
        if "features" not in shared:
            data, neighbour = (_with_row(task, place, sign * row, own_label) for sign in (1.0, -1.0))
            yield Pair(agent, f"{name}, row turned", data, neighbour)


def _of_columns(subject: Subject, agent: int, rng: np.random.Generator) -> Iterator[Pair]:
    """All that a party holds, replaced by columns whose scores are clipped, and by others."""
    task = subject.task
    assert task.columns is not None
    if agent == CENTRE:
        return
    held, rows = task.columns[agent], len(task.train.labels)
    size = FAR * max(1.0, float(np.linalg.norm(task.train.features[:, held])))
    for number in range(3):
        both = [size * rng.normal(size=(rows, len(held))) for _ in range(2)]
        data, neighbour = (_with_columns(task, held, block) for block in both)
        yield Pair(agent, f"other columns altogether ({number + 1})", data, neighbour)


def alone(pair: Pair) -> tuple[Task, Task, Task]:
    """A pair for sampled rows: nothing but the changed row has features.

    Returns
    -------
    without : Task
        The row has none either.
    with_it, changed : Task
        All rows are the changed one as on D, and as on D', so that a step draws it for certain.
    """
    found = []
    for task in (pair.data, pair.data, pair.neighbour):
        first, last = (int(task.train.offsets[pair.agent + end]) for end in (0, 1))
        features, labels = task.train.features.copy(), task.train.labels.copy()
        features[first:last] = features[first] if found else 0.0
        labels[first:last] = labels[first]
        found.append(_with_table(task, features, labels))
    return found[0], found[1], found[2]


def bare(pair: Pair) -> Pair:
    """The same pair with all other rows of the agent without features."""
    made = []
    for task in (pair.data, pair.neighbour):
        first, last = (int(task.train.offsets[pair.agent + end]) for end in (0, 1))
        features = task.train.features.copy()
        features[first + 1 : last] = 0.0
        made.append(_with_table(task, features, task.train.labels))
    return Pair(pair.agent, f"{pair.name}, other rows 0", *made)


def _size(subject: Subject) -> float:
    """How long a row is made: some clipping thresholds, or what bounds rows."""
    given = subject.parameters
    privacy = getattr(given, "privacy", None)
    bounds = [getattr(privacy, "radius", None), getattr(given, "radius", None)]
    sizes = [bound for bound in bounds if bound is not None]
    clip = getattr(privacy, "clip", None)
    if clip is not None:
        sizes.append(FAR * clip)
    return min(sizes, default=math.inf)


def _within(direction: Array, size: float, task: Task) -> Array:
    """The longest admissible row along a direction, of at most some size in both norms."""
    lengths = {"l1": float(np.abs(direction).sum()), "l2": float(np.linalg.norm(direction))}
    factors = [size / max(lengths.values())] if math.isfinite(size) else []
    factors += [task.bounds[norm] / length for norm, length in lengths.items() if norm in task.bounds]
    if not math.isfinite(size) and "l1" in task.bounds:
        # Norms alone do not tell a cube from a ball; a row whose coordinates are no larger than this lies in both.
        factors.append(task.bounds["l1"] / task.dimension / float(np.abs(direction).max()))
    largest = float(np.linalg.norm(task.train.features, axis=1).max(initial=1.0))
    return direction * min(factors, default=largest / lengths["l2"])


def _longest(task: Task, agent: int) -> int:
    first, last = (int(task.train.offsets[agent + end]) for end in (0, 1))
    return first + int(np.argmax(np.linalg.norm(task.train.features[first:last], axis=1)))


def _with_row(task: Task, place: int, row: Array, label: float) -> Task:
    features, labels = task.train.features.copy(), task.train.labels.copy()
    features[place], labels[place] = row, label
    return _with_table(task, features, labels)


def _with_columns(task: Task, held: NDArray[np.int64], block: Array) -> Task:
    features = task.train.features.copy()
    features[:, held] = block
    return _with_table(task, features, task.train.labels)


def _with_table(task: Task, features: Array, labels: Array) -> Task:
    return replace(task, train=Table(features, labels, task.train.offsets))
