"""Neighbouring data sets that move what is released as far as can be: which rows change, and into which records."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.tables import Shard, Table
from ...agents.tasks.task import Task
from ...protocols.base import Protocol
from .transcript import Recording
from .violation import ContractViolation

Array = NDArray[np.float64]
Record = tuple[Array, float]
"""Features and label."""
Rows = Mapping[int, int]
"""Rank of a row by agent; none of agents without data."""

EXTREMES = (1e6, 1e300)
"""Sizes of records that clipping has to cope with."""
ORDINARY = 10.0
"""How far beyond the largest row a record may lie where nothing is said about the domain and nothing is clipped."""
NORMS = {"l1": 1, "l2": 2, "linf": np.inf}
STRIDE = 7
"""Pairs that lie between those of an agent in two consecutive runs."""


@dataclass(frozen=True)
class Domain:
    """Domain of the data: the records that neighbouring data sets may contain."""

    bounds: Mapping[str, float]
    """Bounds on the l1, l2 and max norm (``linf``) of a row."""
    sizes: tuple[float, ...]
    """l2 norms to try; the bounds cut them."""
    labels: tuple[float, ...]
    """Labels to try."""
    shared: tuple[str, ...] = ()
    """Parts that neighbouring records have in common."""
    flipped: bool = False
    """Whether two records that are compared differ by their labels alone, where these may differ."""

    @property
    def moderate(self) -> Domain:
        """Rows of length 1 and two labels: unlike of extreme ones, hardly any of these is without a slope."""
        return replace(self, sizes=(1.0,), flipped=True)


def domain_of(task: Task, protocol: Protocol, recording: Recording) -> Domain:
    """Return where a run's sensitivities must hold: anywhere if all clip, else within the data's bounds."""
    if {"features", "labels"} <= set(protocol.shared_parts):
        raise ContractViolation(
            "shared_parts names features and labels, so that neighbouring data sets are equal and nothing is protected"
        )
    noisy = [draw.release for draws in recording.draws.values() for draw in draws]
    clipped = bool(noisy) and all(release.sensitivity_source == "clip" for release in noisy)
    rows, labels = task.train.features, task.train.labels
    largest = float(np.linalg.norm(rows, axis=1).max(initial=0.0)) if len(rows) else 0.0
    reference = ORDINARY * max(largest, 1.0)
    bounds, sizes = dict(task.bounds), (reference,)
    if clipped:
        most = 1e30 if rows.dtype == np.float32 else math.inf
        clip = getattr(protocol.privacy, "clip", None)
        bounds, sizes = {}, (reference, *(min(size, most) for size in EXTREMES), 1.0, *([clip] if clip else []))
    radius = getattr(protocol.privacy, "radius", None)
    if radius is not None:
        norm = getattr(protocol.privacy, "norm", "l2")
        bounds |= {name: min(bounds.get(name, math.inf), radius) for name in {norm, "l2"}}
    if task.classes > 2:
        values: tuple[float, ...] = (task.classes - 1.0, 0.0)
    elif np.isin(labels, (-1.0, 1.0)).all():
        values = (1.0, -1.0)
    else:
        most = float(np.abs(labels).max(initial=1.0))
        values = (most, -most, *((EXTREMES[0], -EXTREMES[-1]) if clipped else ()))
    return Domain(bounds, sizes, values, protocol.shared_parts)


def opposites(domain: Domain, width: int, model: Array | None) -> list[tuple[Record, Record]]:
    """Pairs of worst records of so many features, whose gradients are as far apart as can be.

    Along an agent's model, if one is given, scores are extreme; across it slopes are largest.
    """
    found: list[tuple[Record, Record]] = []
    first = domain.labels[0]
    for direction in _directions(width, model):
        for size in domain.sizes:
            row = _within(domain, direction, size)
            found += [((row, domain.labels[1]), (row, first)), ((row, first), (-row, first))]
            found += [((-row, label), (row, first)) for label in domain.labels[2:]]
    nothing = np.zeros(width), first
    return [found[0], (found[0][0], nothing), *found[1:]]


def _directions(width: int, model: Array | None) -> Iterator[Array]:
    """An axis, the model's, the diagonal; then every other axis, and the diagonal without each coordinate."""
    axes = np.eye(width) if width else np.zeros((1, 0))
    yield axes[0]
    if model is not None and len(model) == width and np.isfinite(model).all() and np.linalg.norm(model) > 0:
        yield model / np.abs(model).max()
    yield np.ones(width)
    if width > 1:
        for axis in (*axes[1:], axes[0]):
            yield axis
            yield 1.0 - axis


def _within(domain: Domain, direction: Array, size: float) -> Array:
    """The longest admissible row of a direction, at most so long."""
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        return direction
    most = size / length
    for norm, bound in domain.bounds.items():
        most = min(most, bound / float(np.linalg.norm(direction, ord=NORMS[norm])))
    return direction * (most * (1 - 1e-12))


def replaced(task: Task, places: Rows, domain: Domain, models: Any, *, number: int, side: int, whole: bool) -> Task:
    """A task in which some agents have another record, at a row of theirs, or, as a whole, other data.

    With the agent, the number chooses one of the pairs of `opposites`, and the side one of its two records, 0 or 1; the
    worst records lie along (n, p) models.
    """
    records = {agent: _worst(task, agent, domain, models, number)[side] for agent in places}
    return with_records(task, places, records, domain, signs_of=number if side == 1 else 0, whole=whole)


def with_records(
    task: Task, places: Rows, records: Mapping[int, Record], domain: Domain, *, signs_of: int = 0, whole: bool = False
) -> Task:
    """A task in which some agents have these records at these rows, or in all of their rows.

    What neighbouring records share stays as it is; rows of columns differ by some signs, or by none (0).
    """
    features, labels = task.train.features.copy(), task.train.labels.copy()
    for agent, place in places.items():
        rows, columns = _held(task, agent)
        record, label = records[agent]
        changed = rows if whole else rows[[place]]
        if "features" not in domain.shared:
            signs = _signs(signs_of, agent, len(changed)) if task.columns is not None else 1.0
            features[np.ix_(changed, columns)] = np.multiply.outer(np.broadcast_to(signs, len(changed)), record)
        if _labelled(task, agent, domain):
            labels[changed] = label
    return replace(task, train=replace(task.train, features=features, labels=labels))


def _worst(task: Task, agent: int, domain: Domain, models: Any, number: int) -> tuple[Record, Record]:
    worst = worst_pairs(task, agent, domain, models)
    return worst[(STRIDE * number + agent) % len(worst)]


def worst_pairs(task: Task, agent: int, domain: Domain, models: Any) -> list[tuple[Record, Record]]:
    """Pairs of worst records of an agent, of which at least a part differs that neighbouring records may not share."""
    columns = _held(task, agent)[1]
    worst = opposites(domain, len(columns), models[agent, columns] if models is not None else None)
    if not _labelled(task, agent, domain):
        worst = [pair for pair in worst if not np.array_equal(pair[0][0], pair[1][0])] or worst
    if "features" in domain.shared:
        worst = [pair for pair in worst if pair[0][1] != pair[1][1]] or worst
    if domain.flipped and _labelled(task, agent, domain):
        worst = [pair for pair in worst if pair[0][1] != pair[1][1] and np.array_equal(pair[0][0], pair[1][0])]
    return worst


def _labelled(task: Task, agent: int, domain: Domain) -> bool:
    return "labels" not in domain.shared and (task.columns is None or agent == 0)


def crowded(task: Task, places: Rows, *, number: int) -> Task:
    """A task in which the record that is to be replaced is in special company, in three turns of four.

    The next row is its double, all other rows have no features, or all have its label.
    """
    features, labels = task.train.features.copy(), task.train.labels.copy()
    for agent, place in places.items() if task.columns is None else ():
        rows, _ = _held(task, agent)
        if len(rows) < 2:
            continue
        others = np.delete(rows, place)
        match (number + agent) % 4:
            case 1:
                double = rows[(place + 1) % len(rows)]
                features[double], labels[double] = features[rows[place]], labels[rows[place]]
            case 2:
                features[others] = 0.0
            case 3:
                labels[others] = labels[rows[place]]
            case _:
                pass
    return replace(task, train=replace(task.train, features=features, labels=labels))


def _signs(number: int, agent: int, rows: int) -> Array:
    """(rows,) signs that columns change by, in two pairs of three: columns turned round as a whole say the same."""
    if number % 3 == 0:
        return np.ones(rows)
    return np.random.default_rng([number, agent]).choice([-1.0, 1.0], rows)


def resized(task: Task, places: Rows, domain: Domain, models: Any, *, number: int, remove: bool) -> Task:
    """A task in which some agents have one record less, or a worst one more behind their last; others as of `replaced`.

    Regularisation that may be made of counts changes with them: what is 1/m stays so, and only what is the same for all
    agents whatever they hold is a constant. Where rows are sampled one by one, only without the last are the others
    drawn as before.
    """
    order, extra, counts = list(range(len(task.train.labels))), [], task.train.counts.copy()
    for agent, place in places.items():
        rows, _ = _held(task, agent)
        if remove:
            order.remove(int(rows[place]))
        else:
            order.insert(order.index(int(rows[-1])) + 1, len(task.train.labels) + len(extra))
            extra.append(_worst(task, agent, domain, models, number)[1])
        counts[agent] += -1 if remove else 1
    features = np.concatenate([task.train.features, *(row[None] for row, _ in extra)])[order]
    labels = np.concatenate([task.train.labels, [label for _, label in extra]])[order]
    table = Table(features.astype(task.train.features.dtype), labels, np.concatenate([[0], np.cumsum(counts)]))
    return replace(task, train=table, regularisation=_recounted(task, counts))


def _recounted(task: Task, counts: NDArray[np.int64]) -> Array:
    given, before = task.regularisation, np.maximum(task.train.counts, 1)
    if len(np.unique(given)) == 1 and not np.array_equal(given, 1 / before):
        return given
    return given * before / np.maximum(counts, 1)


def differing(one: Task, other: Task, agents: Iterable[int]) -> frozenset[int]:
    """Those agents that have other data in one task than in another."""
    return frozenset(agent for agent in agents if not _same(one.shard(agent), other.shard(agent)))


def _same(one: Shard, other: Shard) -> bool:
    return np.array_equal(one.features, other.features) and np.array_equal(one.labels, other.labels)


def _held(task: Task, agent: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if task.columns is not None:
        return np.arange(len(task.train.labels)), np.asarray(task.columns[agent], dtype=np.int64)
    first, last = task.train.offsets[agent : agent + 2].tolist()
    return np.arange(first, last), np.arange(task.train.features.shape[1])


def groups(agents: Sequence[int], *, most: int, seed: int) -> list[list[int]]:
    """Groups to change at once, so that of any two agents, in either order, one is in some group without the other.

    Every agent is in as many groups as every other, and no two are in the same ones: half as many groups as there are
    serve `math.comb` agents (Sperner 1928). There are so many at most, >= 1; more agents than these can keep apart
    share theirs. The seed says who is in which. Fewer than two agents, who can be changed only together, have none.
    """
    if len(agents) < 2:
        return []
    count = next(k for k in range(2, most + 1) if k == most or math.comb(k, k // 2) >= len(agents))
    words = list(combinations(range(count), count // 2))
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(words))
    mine = {agent: words[order[rank % len(words)]] for rank, agent in enumerate(rng.permutation(agents).tolist())}
    return [found for group in range(count) if (found := [agent for agent in agents if group in mine[agent]])]


def counts_of(task: Task, agents: Iterable[int]) -> dict[int, int]:
    """Return the number of records by agent, without agents that hold none."""
    whole = len(task.train.labels)
    counts = {agent: whole if task.columns is not None else int(task.train.counts[agent]) for agent in agents}
    return {agent: count for agent, count in counts.items() if count}


def in_turn(task: Task, agents: Iterable[int], number: int) -> Rows:
    """Each agent's turn: the first row, the last, the second, ..."""
    turns = {agent: ((number + agent) % count, count) for agent, count in counts_of(task, agents).items()}
    return {agent: count - 1 - turn // 2 if turn % 2 else turn // 2 for agent, (turn, count) in turns.items()}


def last(task: Task, agents: Iterable[int]) -> Rows:
    """The last row of each."""
    return {agent: count - 1 for agent, count in counts_of(task, agents).items()}


class Beside:
    """One row after the other of each agent, so that rows side by side are seen in the same samples.

    The number and the agent choose where each begins: at the first, third, fifth, ... row.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._taken: dict[int, int] = defaultdict(int)

    def next(self, task: Task, agents: Iterable[int]) -> Rows:
        """The next row of each of these agents."""
        rows: dict[int, int] = {}
        for agent, count in counts_of(task, agents).items():
            first = 2 * int(np.random.default_rng([self.number, agent]).integers((count + 1) // 2))
            rows[agent] = (first + self._taken[agent]) % count
            self._taken[agent] += 1
        return rows
