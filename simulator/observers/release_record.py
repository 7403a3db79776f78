"""Releases of a run, agent by agent in order: the step that drew each, and what a first part of them costs.

A ledger counts releases and does not say when each was made. They are laid out from the protocol's own schedule of
releases: step k draws at most one, that of its stage. Where steps decide, they are noted as they are charged. What the
ledger has beyond that stands at the agent's start, so that at every step at least as many releases are there as were
made by then, and bounds that compose them stay bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...protocols.linear_map import START
from ...protocols.privacy.accounting import Charge, evaluate
from ...protocols.privacy.ledger import charge_of
from ...protocols.privacy.mechanisms import Release
from ...protocols.steps.step_charges import StagedAgent, Unreadable
from .deliveries import AT_START, Deliveries

if TYPE_CHECKING:
    from ..storage.files import Frame
    from ..world.world import World

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class ReleaseRecord:
    """Charges of every agent in order.

    Parameters
    ----------
    charges : list of list of Charge
        By agent, in order.
    at_start : (n,) int64
        How many of them stand at the agent's start.
    steps : list of list of int
        Steps that the others were drawn at: the agent's steps, from 0.
    drawn : list of list of Release
        Those others.
    everyone : (n,) float64
        Verified epsilon against everyone on the wire.
    refused : (n,) bool
        Agents about whom nothing can be verified, whatever is heard of them.
    delta : float
    unplaced : str
        Why it is not known at which steps releases were drawn; empty if it is.
    """

    charges: list[list[Charge]]
    at_start: NDArray[np.int64]
    steps: list[list[int]]
    drawn: list[list[Release]]
    everyone: Array
    refused: NDArray[np.bool_]
    delta: float
    unplaced: str = ""

    def after_steps(self, agent: int) -> list[int]:
        """Return the number of an agent's releases after its start, and after each of its steps that draws one."""
        first = int(self.at_start[agent])
        return [first + k for k in range(len(self.steps[agent]) + 1)]

    @cached_property
    def _known(self) -> dict[frozenset[tuple[Charge, int]], float]:
        return {}

    def epsilon(self, agent: int, count: int) -> float:
        """Verified epsilon of the first releases of an agent: 0 of none, never above that against everyone."""
        if self.refused[agent]:
            return math.inf
        if count == 0:
            return 0.0
        charges, whole = self.charges[agent], float(self.everyone[agent])
        if count >= len(charges) or whole == 0.0:
            return whole
        part = Counter(charges[:count])
        key = frozenset(part.items())
        if key not in self._known:
            self._known[key] = evaluate("verified", part, self.delta, "verified")
        return min(self._known[key], whole)

    def table(self, world: World, deliveries: Deliveries, starts: Mapping[int, Sequence[Release]] = {}) -> Frame:
        """Return the releases as a table, all of which the ledger has charged.

        Parameters
        ----------
        world : World
        deliveries : Deliveries
        starts : mapping of int to sequence of Release
            What agents have released at their starts.

        Returns
        -------
        DataFrame
            Columns ``release`` (from 0), ``agent``, ``step`` (the agent's, from 0; -1 for its start), ``time`` (NaN for
            the start), ``mechanism``, ``multiplier`` (noise scale over proved sensitivity), ``scale``, ``sensitivity``
            (proved; NaN, both, where the ledger alone knows of the release), ``sampling``, ``dimension`` (0 where noise
            is not added to a vector) and ``parents``: the last releases of every agent that the releasing one had read
            by then, its own among them, without those that are behind others of the list; none known (None) where
            agents answer arrivals.
        """
        sizes = [len(charges) for charges in self.charges]
        agent = np.repeat(np.arange(len(sizes)), sizes)
        numbers = [[START] * int(first) + steps for first, steps in zip(self.at_start, self.steps, strict=True)]
        step = np.array(list(chain.from_iterable(numbers)), dtype=np.int64)
        place = self._places(deliveries)[agent, step + 1] if len(step) else step
        charges = list(chain.from_iterable(self.charges))
        known = [one for k in range(len(sizes)) for one in self._releases_of(k, starts.get(k, ()))]
        parents = self._parents(deliveries)
        return pd.DataFrame(
            {
                "release": np.arange(len(charges)),
                "agent": pd.Categorical.from_codes(agent, [str(one) for one in world.setting.task.ids]),
                "step": step,
                "time": np.append(deliveries.step_time, math.nan)[place],
                "mechanism": pd.Categorical([one.mechanism for one in charges]),
                "multiplier": [one.multiplier for one in charges],
                "scale": [math.nan if one is None else one.scale for one in known],
                "sensitivity": [math.nan if one is None else one.verified_sensitivity for one in known],
                "sampling": [one.sampling for one in charges],
                "dimension": [0 if one is None else one.dimension for one in known],
                "parents": _lists(*parents) if parents is not None else pd.Series([None] * len(charges), dtype=object),
            }
        )

    def _releases_of(self, agent: int, starts: Sequence[Release]) -> Iterator[Release | None]:
        """Yield what is known of an agent's releases, in order."""
        begun: dict[Charge, list[Release]] = {}
        for one in starts:
            begun.setdefault(charge_of(one), []).append(one)
        for charge in self.charges[agent][: int(self.at_start[agent])]:
            yield begun[charge].pop() if begun.get(charge) else None
        yield from self.drawn[agent]

    def _places(self, deliveries: Deliveries) -> NDArray[np.int64]:
        """(n, most + 1) place of each step of each agent, from its start on, which has none (-1)."""
        most = int(deliveries.number.max(initial=-1)) + 2
        places = np.full((len(self.charges), most), -1, dtype=np.int64)
        places[deliveries.agent, deliveries.number + 1] = np.arange(len(deliveries.agent))
        return places

    def _parents(self, deliveries: Deliveries) -> tuple[Ranks, Ranks] | None:
        """Releases that each release may depend on and that are not behind others; None if it is not known.

        A step depends on its agent's step before and on the makers of what it reads, and so on the releases of these,
        or where one of them has none, on what that one depends on.

        Returns
        -------
        starts : (R + 1,) int64
        parents : (K,) int64
            Those of release r, sorted, from ``starts[r]`` to ``starts[r + 1]``.
        """
        if not deliveries.in_steps:
            return None
        firsts, of_steps = self._firsts, self.of_steps(deliveries)
        steps = len(of_steps)
        begun = np.where(self.at_start > 0, firsts[:-1] + self.at_start - 1, -1)
        # Sources are the steps, and behind them the agents' starts.
        released = np.concatenate([of_steps, begun])
        own = self._places(deliveries)[deliveries.agent, deliveries.number]
        before = np.where(own >= 0, own, steps + deliveries.agent)
        reads = deliveries.read_by >= 0
        made = np.where(deliveries.made_by == AT_START, steps + deliveries.sender, deliveries.made_by)
        child = np.concatenate([np.arange(steps), deliveries.read_by[reads]])
        source = np.concatenate([before, made[reads]])
        depends = _through_silent(child, source, released, steps) @ np.array([firsts[-1], 1])
        sizes = np.diff(firsts)
        rank = np.arange(firsts[-1]) - np.repeat(firsts[:-1], sizes)
        chain = np.flatnonzero((rank > 0) & (rank < np.repeat(self.at_start, sizes)))
        count = int(firsts[-1])
        keys = np.unique(np.concatenate([depends, chain * count + chain - 1]))
        return np.searchsorted(keys, np.arange(count + 1) * count), keys % max(count, 1)

    @cached_property
    def _firsts(self) -> NDArray[np.int64]:
        """(n + 1,) number of the first release of each agent."""
        return np.concatenate([[0], np.cumsum([len(own) for own in self.charges])]).astype(np.int64)

    def of_steps(self, deliveries: Deliveries) -> NDArray[np.int64]:
        """(W,) release that each step has drawn, -1 for none, as `table` numbers them."""
        places, found = self._places(deliveries), np.full(len(deliveries.agent), -1, dtype=np.int64)
        for agent, numbers in enumerate(self.steps):
            first = int(self._firsts[agent] + self.at_start[agent])
            found[places[agent, np.array(numbers, dtype=np.int64) + 1]] = np.arange(first, first + len(numbers))
        return found


def _lists(starts: Ranks, values: Ranks) -> Any:
    """Column of lists, the k-th from ``starts[k]`` to ``starts[k + 1]`` of the values."""
    import pyarrow as pa

    return pd.Series(pd.arrays.ArrowExtensionArray(pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values)))


def _through_silent(child: Ranks, source: Ranks, released: Ranks, steps: int) -> Ranks:
    """Releases that each releasing step depends on, where steps without one stand for what they depend on.

    Parameters
    ----------
    child, source : (K,) int64
        Steps, and what each depends on directly: a step, or an agent's start after all steps.
    released : (steps + n,) int64
        Release of each step and start; -1 for none.
    steps : int

    Returns
    -------
    (P, 2) int64
        Pairs of a release and one that it depends on.
    """
    order = np.argsort(child, kind="stable")
    behind, bounds = source[order], np.searchsorted(child[order], np.arange(steps + 1))
    known = released[child] >= 0
    whose, at, found = released[child][known], source[known], [np.zeros((0, 2), dtype=np.int64)]
    while len(at):
        made = released[at]
        found.append(np.stack([whose, made], axis=1)[made >= 0])
        silent = (made < 0) & (at < steps)
        whose, at = whose[silent], at[silent]
        counts = bounds[at + 1] - bounds[at]
        places = np.repeat(bounds[at] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        keys = np.unique(np.repeat(whose, counts) * len(released) + behind[places])
        whose, at = np.divmod(keys, len(released))
    return np.concatenate(found)


def release_record(world: World, deliveries: Deliveries | None, delta: float) -> ReleaseRecord:
    """Return the releases of a run so far.

    Parameters
    ----------
    world : World
        At a record instant or at its end.
    deliveries : Deliveries or None
        Without them all releases stand at the start.
    delta : float
        Where epsilon is read, in [0, 1).
    """
    agents, ledger = world.setting.graph.agents, world.ledger
    everyone = ledger.epsilon("verified", delta)
    in_steps = deliveries is not None and deliveries.in_steps
    made = np.bincount(deliveries.agent if deliveries is not None else [], minlength=agents).astype(np.int64)
    charges, steps, at_start = list[list[Charge]](), list[list[int]](), np.zeros(agents, dtype=np.int64)
    drawn = list[list[Release]]()
    refused, unplaced = np.zeros(agents, dtype=bool), ""
    schedule = _schedule_of(world) if in_steps else None
    journal = _journal_of(world, deliveries) if deliveries is not None and in_steps else None
    for agent in range(agents):
        left = ledger.histogram(agent)
        refused[agent] = math.isinf(everyone[agent]) and all(charge.multiplier > 0 for charge in left)
        try:
            if journal is not None:
                scheduled = journal.get(agent, [])
            else:
                scheduled = [] if schedule is None else schedule(agent, int(made[agent]))
        except Unreadable as missing:
            name = type(world.protocol).__name__
            scheduled, unplaced = [], f"{name}: its release reads me.{missing}, which is not known of past steps"
        mine, releases, numbers = list[Charge](), list[Release](), list[int]()
        for number, charge, release in scheduled:
            if left[charge] > 0:
                left[charge] -= 1
                mine.append(charge)
                releases.append(release)
                numbers.append(number)
        first = list(left.elements())
        at_start[agent] = len(first)
        charges.append([*first, *mine])
        drawn.append(releases)
        steps.append(numbers)
    return ReleaseRecord(charges, at_start, steps, drawn, everyone, refused, delta, unplaced)


Scheduled = list[tuple[int, Charge, Release]]
Schedule = Callable[[int, int], Scheduled]


def _journal_of(world: World, deliveries: Deliveries) -> dict[int, Scheduled] | None:
    """Return the steps and releases of each agent, as they were charged; None where nobody kept a journal.

    What was charged at no step's time stands at the agent's start.
    """
    if world.ledger.journal is None:
        return None
    of_time = zip(deliveries.agent.tolist(), deliveries.step_time.tolist(), strict=True)
    numbers = dict(zip(of_time, deliveries.number.tolist(), strict=True))
    found: dict[int, Scheduled] = {}
    for release in world.ledger.journal:
        number = numbers.get((release.agent, release.time))
        if number is not None:
            found.setdefault(release.agent, []).append((number, charge_of(release), release))
    return found


def _schedule_of(world: World) -> Schedule | None:
    """Return the schedule of a protocol's releases, if it has one.

    ``schedule(agent, steps)`` gives the number, charge and release of an agent's first steps, and raises `Unreadable`
    if they depend on more than its agent, its data and its step.
    """
    protocol, noise, graph = world.protocol, world.protocol.step_noise, world.setting.graph
    if noise is None or noise.mechanism is None:
        return None
    stages = max(noise.scales().shape[1], noise.every) if noise.growth is None else None

    def schedule(agent: int, steps: int) -> Scheduled:
        data = protocol.local_data(agent, protocol.problem.task.shard(agent))
        if not len(data):
            return []
        seen = agent, 0.0, data, graph.neighbours(agent)
        different = range(steps if stages is None else min(steps, stages))
        releases = [protocol.release(StagedAgent(*seen, stage)) for stage in different]
        found = [(charge_of(release), release) for release in releases]
        for number in range(len(found), steps):
            found.append(found[number - noise.every])
        return [(number, *one) for number, one in enumerate(found)]

    return schedule
