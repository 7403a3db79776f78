"""Releases of a run, agent by agent in order: the step that drew each, and what a first part of them costs.

A ledger counts releases and does not say when each was made. They are laid out from the protocol's own schedule of
releases: step k draws at most one, that of its stage. Where steps decide, they are noted as they are charged. What the
ledger has beyond that stands at the agent's start, so that at every step at least as many releases are there as were
made by then, and bounds that compose them stay bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...protocols.linear_map import START
from ...protocols.privacy.accounting import Charge, evaluate
from ...protocols.privacy.ledger import charge_of
from ...protocols.privacy.mechanisms import Release
from ...protocols.steps.declarations import StepNoise
from ...protocols.steps.step_charges import StagedAgent, Unreadable
from ..rules.copy_paths import distinct
from ..storage.files import Frame
from ..world.world import World
from .deliveries import AT_START, Deliveries

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class ReleaseRecord:
    """R releases of a run, agent by agent in order."""

    kinds: list[tuple[Charge, Release | None]]
    """list of (Charge, Release or None): Different ones; None where the ledger alone knows of the release."""
    agent: Ranks
    step: Ranks
    kind: Ranks
    """`agent`, `step` and `kind`: (R,) int64: Whose each is, the agent's step that drew it, from 0 or `START`, and its
    place among the kinds."""
    everyone: Array
    """(n,) float64: Verified epsilon against everyone on the wire."""
    refused: NDArray[np.bool_]
    """(n,) bool: Agents about whom nothing can be verified, whatever is heard of them."""
    delta: float
    unplaced: str = ""
    """Why it is not known at which steps releases were drawn; empty if it is."""

    @cached_property
    def at_start(self) -> Ranks:
        """(n,) how many releases stand at each agent's start."""
        return np.bincount(self.agent[self.step == START], minlength=len(self.everyone))

    @cached_property
    def firsts(self) -> Ranks:
        """(n + 1,) number of the first release of each agent, and of all."""
        return np.searchsorted(self.agent, np.arange(len(self.everyone) + 1))

    def charges(self, agent: int, count: int) -> list[Charge]:
        """Return those of the first releases of an agent."""
        first, last = self.firsts[agent : agent + 2].tolist()
        return [self.kinds[kind][0] for kind in self.kind[first : min(first + count, last)].tolist()]

    @cached_property
    def _known(self) -> dict[frozenset[tuple[Charge, int]], float]:
        return {}

    def epsilon(self, agent: int, count: int) -> float:
        """Verified epsilon of the first releases of an agent: 0 of none, never above that against everyone."""
        if self.refused[agent]:
            return math.inf
        if count == 0:
            return 0.0
        whole = float(self.everyone[agent])
        if count >= self.firsts[agent + 1] - self.firsts[agent] or whole == 0.0:
            return whole
        return min(self._epsilon_of(Counter(self.charges(agent, count))), whole)

    def _epsilon_of(self, charges: Counter[Charge]) -> float:
        key = frozenset(charges.items())
        if key not in self._known:
            self._known[key] = evaluate("verified", charges, self.delta, "verified")
        return self._known[key]

    def table(self, names: pd.CategoricalDtype, deliveries: Deliveries) -> Frame:
        """Return the releases as a table, by names of agents, all of which the ledger has charged.

        Columns are ``release`` (from 0), ``agent``, ``step`` (the agent's, from 0; -1 for its start), ``time`` (NaN for
        the start), ``mechanism``, ``multiplier`` (noise scale over proved sensitivity), ``scale``, ``sensitivity``
        (proved; NaN, both, where the ledger alone knows of the release), ``sampling``, ``charged`` (verified epsilon of
        this release alone), ``dimension`` (0 where noise is not added to a vector) and ``parents``: the last releases
        of every agent that the releasing one had read by then, its own among them, without those that are behind others
        of the list; none known (None) where agents answer arrivals.
        """
        charges, releases = [charge for charge, _ in self.kinds], [release for _, release in self.kinds]
        numbers = {
            "multiplier": [one.multiplier for one in charges],
            "scale": [math.nan if one is None else one.scale for one in releases],
            "sensitivity": [math.nan if one is None else one.verified_sensitivity for one in releases],
            "sampling": [one.sampling for one in charges],
            "charged": [self._epsilon_of(Counter([one])) for one in charges],
        }
        dimensions = np.array([0 if one is None else one.dimension for one in releases], dtype=np.int32)
        parents, place = self._parents(deliveries), self._places(deliveries)[self.agent, self.step + 1]
        return pd.DataFrame(
            {
                "release": np.arange(len(self.kind), dtype=np.int32),
                "agent": pd.Categorical.from_codes(self.agent, dtype=names),
                "step": self.step.astype(np.int32),
                "time": np.append(deliveries.step_time, math.nan)[place],
                "mechanism": pd.Categorical([one.mechanism for one in charges]).take(self.kind),
                **{name: np.array(values, dtype=np.float64)[self.kind] for name, values in numbers.items()},
                "dimension": dimensions[self.kind],
                "parents": pd.Series([None] * len(self.kind), dtype=object) if parents is None else _lists(*parents),
            }
        )

    def _places(self, deliveries: Deliveries) -> NDArray[np.int64]:
        """(n, most + 1) place of each step of each agent, from its start on, which has none (-1)."""
        most = int(deliveries.number.max(initial=-1)) + 2
        places = np.full((len(self.everyone), most), -1, dtype=np.int64)
        places[deliveries.agent, deliveries.number + 1] = np.arange(len(deliveries.agent))
        return places

    def _parents(self, deliveries: Deliveries) -> tuple[Ranks, Ranks] | None:
        """(R + 1,) bounds and (K,) releases that each may depend on, without those behind others; None if not known.

        A step depends on its agent's step before and on the makers of what it reads, and so on the releases of these,
        or where one of them has none, on what that one depends on.
        """
        if not deliveries.in_steps:
            return None
        firsts, of_steps = self.firsts, self.of_steps(deliveries)
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
        whose, on = _through_silent(child, source, released, steps)
        sizes = np.diff(firsts)
        rank = np.arange(firsts[-1]) - np.repeat(firsts[:-1], sizes)
        chain = np.flatnonzero((rank > 0) & (rank < np.repeat(self.at_start, sizes)))
        return distinct(np.concatenate([whose, chain]), np.concatenate([on, chain - 1]), int(firsts[-1]))

    def of_steps(self, deliveries: Deliveries) -> Ranks:
        """(W,) release that each step has drawn, -1 for none, as `table` numbers them."""
        found, drawn = np.full(len(deliveries.agent), -1, dtype=np.int64), np.flatnonzero(self.step != START)
        found[self._places(deliveries)[self.agent[drawn], self.step[drawn] + 1]] = drawn
        return found


def _lists(starts: Ranks, values: Ranks) -> Any:
    """Column of lists, the k-th from ``starts[k]`` to ``starts[k + 1]`` of the values."""
    import pyarrow as pa

    lists = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), pa.array(values, pa.int32()))
    return pd.Series(pd.arrays.ArrowExtensionArray(lists))


def _through_silent(child: Ranks, source: Ranks, released: Ranks, steps: int) -> Ranks:
    """(2, P) pairs of a release and one that it depends on, where steps without one stand for what they depend on.

    Of (K,) steps what each depends on directly is a step, or an agent's start after all ``steps``; (steps + n,)
    ``released`` has the release of each, -1 for none.
    """
    known = released[child] >= 0
    whose, at, found = released[child[known]], source[known], [np.zeros((2, 0), dtype=np.int64)]
    through = bool((released[at[at < steps]] < 0).any())
    order = np.argsort(child, kind="stable") if through else np.zeros(0, dtype=np.int64)
    behind, bounds = source[order], np.searchsorted(child[order], np.arange(steps + 1))
    while len(at):
        made = released[at]
        found.append(np.stack([whose, made])[:, made >= 0])
        silent = (made < 0) & (at < steps)
        whose, at = whose[silent], at[silent]
        counts = bounds[at + 1] - bounds[at]
        places = np.repeat(bounds[at] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        keys = _different(np.repeat(whose, counts) * len(released) + behind[places])
        whose, at = np.divmod(keys, len(released))
    return np.concatenate(found, axis=1)


def _different(keys: Ranks) -> Ranks:
    keys = np.sort(keys)
    return keys[np.diff(keys, prepend=-1) != 0]


def release_record(
    world: World, deliveries: Deliveries | None, delta: float, starts: Mapping[int, Sequence[Release]] = {}
) -> ReleaseRecord:
    """Return the releases of a run so far, at a record instant or its end, with epsilons at a delta in [0, 1).

    Without deliveries all stand at the start; `starts` has what agents have released at theirs, as far as it is known.
    """
    ledger, agents = world.ledger, world.setting.graph.agents
    everyone, charged = ledger.epsilon("verified", delta), [ledger.histogram(agent) for agent in range(agents)]
    noisy = np.array([all(charge.multiplier > 0 for charge in own) for own in charged], dtype=bool)
    drawn = _drawn(world, deliveries) if deliveries is not None and deliveries.in_steps else _Drawn()
    # Of equal charges an agent's first draws are there, as many as the ledger has; what it has beyond is at the start.
    ranks: dict[Charge, int] = {}
    rank = np.array([ranks.setdefault(charge_of(one), len(ranks)) for one in drawn.releases], dtype=np.int64)
    owner = np.repeat(np.arange(agents), [len(own) for own in charged])
    owned = np.array([ranks.setdefault(charge, len(ranks)) for own in charged for charge in own], dtype=np.int64)
    count = np.array([count for own in charged for count in own.values()], dtype=np.int64)
    keys, wanted = owner * len(ranks) + owned, drawn.agent * len(ranks) + rank[drawn.kind]
    of_charge = pd.Index(keys).get_indexer(wanted)
    there = (of_charge >= 0) & (_numbers(wanted) < np.append(count, 0)[of_charge])
    count -= np.bincount(of_charge[there], minlength=len(count))
    kinds: list[tuple[Charge, Release | None]] = [(charge_of(one), one) for one in drawn.releases]
    begun, firsts, first = _at_start(list(ranks), owner, owned, count, starts), len(kinds), np.repeat(owner, count)
    agent = np.concatenate([first, drawn.agent[there]])
    step = np.concatenate([np.full(len(first), START), drawn.step[there]])
    kind = np.concatenate([firsts + np.arange(len(first)), drawn.kind[there]])
    order = np.argsort(agent, kind="stable")
    return ReleaseRecord(
        [*kinds, *begun],
        agent[order],
        step[order],
        kind[order],
        everyone,
        np.isinf(everyone) & noisy,
        delta,
        drawn.unplaced,
    )


def _numbers(keys: Ranks) -> Ranks:
    """(k,) how many equal ones stand before each."""
    order = np.argsort(keys, kind="stable")
    firsts = np.searchsorted(keys[order], keys[order])
    found = np.empty(len(keys), dtype=np.int64)
    found[order] = np.arange(len(keys)) - firsts
    return found


def _at_start(
    charges: list[Charge], owner: Ranks, owned: Ranks, count: Ranks, starts: Mapping[int, Sequence[Release]]
) -> list[tuple[Charge, Release | None]]:
    """What stands at agents' starts, so many releases of each of their charges."""
    found: list[tuple[Charge, Release | None]] = []
    for k in np.flatnonzero(count).tolist():
        charge, known = charges[owned[k]], list(starts.get(int(owner[k]), ()))
        same = [one for one in known if charge_of(one) == charge]
        found += [(charge, same.pop() if same else None) for _ in range(count[k])]
    return found


@dataclass(frozen=True)
class _Drawn:
    """Draws of P steps, agent by agent, of which the ledger may have charged fewer."""

    releases: Sequence[Release] = ()
    agent: Ranks = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    step: Ranks = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    kind: Ranks = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """`agent`, `step` and `kind`: (P,) int64: Whose step it is, its number, and its place among the releases."""
    unplaced: str = ""
    """See `ReleaseRecord`."""


def _drawn(world: World, deliveries: Deliveries) -> _Drawn:
    """Return what steps have drawn: as it was charged, where somebody kept a journal, or by the protocol's schedule."""
    journal, noise = world.ledger.journal, world.protocol.step_noise
    if journal is None:
        return _Drawn() if noise is None or noise.mechanism is None else _scheduled(world, noise, deliveries)
    # What was charged at no step's time stands at the agent's start.
    of_time = zip(deliveries.agent.tolist(), deliveries.step_time.tolist(), strict=True)
    numbers = dict(zip(of_time, deliveries.number.tolist(), strict=True))
    releases = sorted((one for one in journal if (one.agent, one.time) in numbers), key=lambda one: one.agent)
    agent = np.array([one.agent for one in releases], dtype=np.int64)
    step = np.array([numbers[one.agent, one.time] for one in releases], dtype=np.int64)
    return _Drawn(releases, agent, step, np.arange(len(releases)))


def _scheduled(world: World, noise: StepNoise, deliveries: Deliveries) -> _Drawn:
    """Return what steps have drawn by the protocol's schedule: one release each, those of the last stages repeated.

    Agents who are alike share theirs.
    """
    protocol, graph, unplaced = world.protocol, world.setting.graph, ""
    made = np.bincount(deliveries.agent, minlength=graph.agents).astype(np.int64)
    most = int(made.max(initial=0))
    stages = most if noise.growth is not None else max(noise.scales().shape[1], noise.every)
    _, examples, group = np.unique(protocol.releases_alike, return_index=True, return_inverse=True)
    releases, (different, needed) = list[Release](), np.zeros((2, len(examples)), dtype=np.int64)
    np.maximum.at(needed, group, np.minimum(made, stages))
    for k, agent in enumerate(examples.tolist()):
        data = protocol.local_data(agent, protocol.problem.task.shard(agent))
        seen = agent, 0.0, data, graph.neighbours(agent)
        try:
            own = [protocol.release(StagedAgent(*seen, stage)) for stage in range(int(needed[k]) * (len(data) > 0))]
        except Unreadable as missing:
            name = type(protocol).__name__
            own, unplaced = [], f"{name}: its release reads me.{missing}, which is not known of past steps"
        releases += own
        different[k] = len(own)
    firsts, different = (np.cumsum(different) - different)[group], different[group]
    made[different == 0] = 0
    agent = np.repeat(np.arange(graph.agents), made)
    step = np.arange(len(agent)) - np.repeat(np.cumsum(made) - made, made)
    beyond = step - different[agent]
    stage = np.where(beyond < 0, step, different[agent] - noise.every + beyond % noise.every)
    return _Drawn(releases, agent, step, firsts[agent] + stage, unplaced)
