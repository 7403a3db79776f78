"""Neighbouring data sets on which a protocol is attacked: one record, or one agent's data, changed to the worst.

Records are those of `hushnet.simulator.contract.neighbours`, at the agent's first row. What moves a release furthest
depends on the loss and on the norm of the noise: noise for the l1 norm hides least where all coordinates move, or where
a clipped row moves a single one. Turning a row leaves X'X as it is, so that step sizes, which runs may take from the
spectrum as if it were public, stay the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...agents.tasks.task import Task
from ...protocols.algorithms.split_features import CENTRE
from ..contract.neighbours import Domain, domain_of, replaced, with_records, worst_pairs
from ..contract.transcript import Recording
from ..world.world import World

FAR = 8.0
"""Size of a row, in clipping thresholds, where nothing else bounds it."""
BLOCKS = (1, 2, 3)
"""Which blocks of columns a party's are replaced by."""


@dataclass(frozen=True)
class Pair:
    """Two neighbouring data sets."""

    agent: int
    """Whose data differ."""
    name: str
    """How, in words."""
    data: Task
    neighbour: Task
    """`data` and `neighbour`: D and D'."""


def attacked_domain(world: World, recording: Recording) -> Domain:
    """Records that are put into data to attack a protocol, of whose run there is a recording.

    They are clipped, and seldom far off a loss's slopes.
    """
    task, clip = world.setting.task, getattr(world.protocol.privacy, "clip", None)
    domain = domain_of(task, world.protocol, recording)
    bounds, size = dict(domain.bounds), domain.sizes[0]
    if clip is not None:
        size = FAR * clip
        bounds["l1"] = min(bounds.get("l1", math.inf), size)
    elif "l1" in bounds:
        # Norms alone do not tell a cube from a ball; a row whose coordinates are no larger than this lies in both.
        bounds["linf"] = bounds["l1"] / task.dimension
    return replace(domain, bounds=bounds, sizes=(size,))


def pairs(task: Task, agent: int, domain: Domain, *, whole: bool = False) -> Iterator[Pair]:
    """Candidates for the worst pair about an agent, those that usually are it first.

    If `whole`, all of the agent's rows change, to the same one.
    """
    if task.columns is not None:
        for number in BLOCKS if agent != CENTRE else ():
            how = {"number": number, "whole": True}
            data, neighbour = (replaced(task, {agent: 0}, domain, None, side=side, **how) for side in (0, 1))
            yield Pair(agent, f"other columns altogether ({number})", data, neighbour)
        return
    worst = worst_pairs(task, agent, domain, None) if task.train.counts[agent] else []
    for one, other in sorted(worst, key=lambda pair: -np.count_nonzero(pair[0][0])):
        if other[0].any():
            what = "label turned" if np.array_equal(one[0], other[0]) else "row turned"
            data, neighbour = (
                with_records(task, {agent: 0}, {agent: record}, domain, whole=whole) for record in (one, other)
            )
            yield Pair(
                agent,
                f"{'all rows' if whole else 'a row'} along {np.count_nonzero(one[0])} coordinates, {what}",
                data,
                neighbour,
            )


def alone(pair: Pair) -> tuple[Task, Task, Task]:
    """A pair for sampled rows, nothing but the changed row of which has features; three tasks.

    In the first it has none either; in the others all rows are the changed one as on D, and as on D', so that a step
    draws it for certain.
    """
    sides = ((pair.data, 0.0), (pair.data, 1.0), (pair.neighbour, 1.0))
    without, with_it, changed = (_with_others(task, pair.agent, 0, factor) for task, factor in sides)
    return without, with_it, changed


def bare(pair: Pair) -> Pair:
    """The same pair with all other rows of the agent without features."""
    data, neighbour = (_with_others(task, pair.agent, 1, 0.0) for task in (pair.data, pair.neighbour))
    return Pair(pair.agent, f"{pair.name}, other rows 0", data, neighbour)


def _with_others(task: Task, agent: int, after: int, factor: float) -> Task:
    """A task in which an agent's rows from one on are a multiple of its first row, and have its label."""
    first, last = task.train.offsets[agent : agent + 2].tolist()
    features, labels = task.train.features.copy(), task.train.labels.copy()
    features[first + after : last], labels[first + after : last] = factor * features[first], labels[first]
    return replace(task, train=replace(task.train, features=features, labels=labels))
