"""Epsilon of every agent against observers: the smallest of what is proved, with the reason."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...agents.errors import InputError
from ...agents.graph import Graph
from ...agents.suggestions import suggestion
from ...protocols.privacy.composition import gaussian_epsilons
from ...protocols.privacy.mechanisms import mechanism_of
from ..language.observer_parameters import (
    AGENTS,
    EAVESDROPPER,
    EVERYONE,
    NEIGHBOURS,
    ObserverParameters,
    ObservingParty,
)
from ..network.setting import Setting
from ..recording.message_log import few
from ..storage.files import Frame
from ..world.world import World
from .data_flow import releases_heard
from .deliveries import Deliveries
from .linear_check import mistake_of
from .linear_view import linear_view
from .release_record import ReleaseRecord
from .walk_bound import Walk

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
EVERYONE_HEARS, DATA_FLOW, LINEAR, CORRELATED = "everyone", "data flow", "linear Gaussian", "shared noise"
WALK = "noisy iteration"
"""Bounds on an epsilon: of whoever hears everything; of what can have reached the observer; of its exact view; of what
can have reached it, with the noise of seeds that it does not know, or with that of later visits of a token."""
BOUNDS = (EVERYONE_HEARS, DATA_FLOW, LINEAR, CORRELATED, WALK)
WORDS = {
    EVERYONE: "everyone on the wire",
    EAVESDROPPER: "an eavesdropper on all links",
    NEIGHBOURS: "all neighbours of an agent together",
    AGENTS: "each other agent by itself",
}


@dataclass(frozen=True)
class Party:
    """An observer."""

    group: str
    """What a scenario calls it."""
    name: str
    """Its own name within the group: that of an agent, or empty."""
    members: Flags
    """(n,) bool: Agents whose data it need not learn, for it is them."""
    slots: Flags
    """(E,) bool: Directed edges, by receiver, whose messages it hears."""
    source: int | None = None
    """The only agent that it is an observer of; None for all."""


@dataclass(frozen=True)
class Learned:
    """What observers can have learned of agents' data by some time."""

    parties: list[Party]
    epsilons: Array
    """(k, n) float64: Of agents against parties; NaN for members of a party, and where it does not observe."""
    bounds: NDArray[np.int64]
    """(k, n) int64: Rank of the bound that proves it, among `BOUNDS`."""
    delta: float
    reconstructed: NDArray[np.bool_]
    """(k, n) bool: Whether a value that an agent released without noise can be computed from what a party has heard."""
    mistake: str = ""
    """Why there is no linear bound although the protocol declares a linear map: where it differs from the run. Empty
    otherwise."""

    def table(self, world: World) -> Frame:
        """Return a table of all pairs.

        Columns are ``against`` (the group), ``observer`` (an agent's name or empty), ``agent``, ``distance`` (edges of
        the graph from the observer's nearest end; -1 where there is no path), ``epsilon``, ``delta``, ``bound``, and
        ``reconstructed``.
        """
        names = np.array([str(one) for one in world.setting.task.ids], dtype=object)
        place, agent = np.nonzero(~np.isnan(self.epsilons))
        distances = distances_of(world, self.parties)
        return pd.DataFrame(
            {
                "against": np.array([party.group for party in self.parties], dtype=object)[place],
                "observer": np.array([party.name for party in self.parties], dtype=object)[place],
                "agent": names[agent],
                "distance": distances[place, agent],
                "epsilon": self.epsilons[place, agent],
                "delta": self.delta,
                "bound": np.array(BOUNDS, dtype=object)[self.bounds[place, agent]],
                "reconstructed": self.reconstructed[place, agent],
            }
        )

    def _limited(self) -> Array:
        """(k, n) epsilons against observers other than everyone, if there are others; NaN elsewhere."""
        limited = np.array([party.group != WORDS[EVERYONE] for party in self.parties])
        return np.where((limited | (not limited.any()))[:, None], self.epsilons, math.nan)

    def of_agents(self) -> Array:
        """(n,) largest epsilon of each agent against observers, as of `summary`; NaN of whom nobody observes."""
        return np.fmax.reduce(self._limited(), axis=0, initial=math.nan)

    def summary(self, world: World) -> Iterator[tuple[str, float]]:
        """Yield statistics over pairs of protected agents and observers, other than everyone if there are others.

        These are the largest epsilon, the middle one and the 0.9 quantile.
        Then the largest by the distance of observer and agent, ``distance 1`` and so on.
        """
        values = np.where(world.protected, self._limited(), math.nan)
        there = np.sort(values[~np.isnan(values)])
        if not len(there):
            return
        yield "worst", float(there[-1])
        yield "median", float(there[math.ceil(0.5 * len(there)) - 1])
        yield "q90", float(there[math.ceil(0.9 * len(there)) - 1])
        distances = np.where(np.isnan(values), 0, distances_of(world, self.parties))
        for distance in range(1, int(distances.max()) + 1):
            at = values[distances == distance]
            if len(at):
                yield f"distance {distance}", float(at.max())

    def _worst(self, rows: list[int], names: Sequence[str], protected: Flags) -> dict[str, str]:
        """Return the names of the pair of observer and protected agent with the largest epsilon of some parties."""
        values = np.where(protected, self.epsilons[rows], math.nan)
        place, agent = np.unravel_index(np.nanargmax(values), values.shape)
        return {"observer": self.parties[rows[int(place)]].name, "agent": names[int(agent)]}

    def statements(self, protected: Flags, heard: str, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return statements on the epsilon of protected agents, one for each group of observers.

        Each has the largest and the middle epsilon, the bounds that prove them, and the pair with the largest.
        """
        found: list[dict[str, Any]] = []
        for group in dict.fromkeys(party.group for party in self.parties):
            rows = [k for k, party in enumerate(self.parties) if party.group == group]
            values, bounds = self.epsilons[rows][:, protected], self.bounds[rows][:, protected]
            there = ~np.isnan(values)
            if there.any():
                found.append(
                    {
                        "against": group,
                        "heard": "sent" if group in (WORDS[EVERYONE], WORDS[EAVESDROPPER]) else heard,
                        "worst": float(values[there].max()),
                        "median": float(np.sort(values[there])[(there.sum() - 1) // 2]),
                        "delta": self.delta,
                        "bounds": [BOUNDS[k] for k in np.unique(bounds[there]).tolist()],
                        **self._worst(rows, names, protected),
                    }
                )
        return found


def needs_log(observers: ObserverParameters | None) -> bool:
    """True if a run has to keep all of its messages: for observers that do not hear everything, or for its tables."""
    return observers is not None and (observers.record or any(one != EVERYONE for one in observers.against))


def learned(
    world: World,
    deliveries: Deliveries | None,
    record: ReleaseRecord,
    observers: ObserverParameters,
) -> Learned:
    """Return what observers can have learned, at a record instant or a run's end, at the delta of the record.

    There are no deliveries where nobody needs them (`needs_log`). Raises `InputError` if an observer names an agent or
    a link that there is not.
    """
    parties, delta = list(parties_of(observers, world.setting)), record.delta
    agents = world.setting.graph.agents
    everyone = np.tile(record.everyone, (len(parties), 1))
    epsilons, bounds = everyone.copy(), np.zeros((len(parties), agents), dtype=np.int64)
    reconstructed = np.zeros((len(parties), agents), dtype=bool)
    some, mistake = [k for k, party in enumerate(parties) if party.group != WORDS[EVERYONE]], ""
    if some and deliveries is not None and follows_data(world):
        copies = {k: _copies(deliveries, parties[k], observers.heard) for k in some}
        for k, counts in zip(some, releases_heard(deliveries, record, [copies[k] for k in some]), strict=True):
            flow = np.array([record.epsilon(agent, count) for agent, count in enumerate(counts.tolist())])
            epsilons[k], bounds[k] = np.minimum(flow, everyone[k]), BOUNDS.index(DATA_FLOW)
            shared = hidden_by_shared_noise(world, record, counts, parties[k].members)
            if shared is not None:
                less = (shared < epsilons[k]) & ~record.refused
                epsilons[k][less], bounds[k][less] = shared[less], BOUNDS.index(CORRELATED)
        walk = Walk.of(world, deliveries, record)
        for k in some if walk is not None else ():
            assert walk is not None
            less = (hidden := walk.epsilons(copies[k], parties[k].members, delta)) < epsilons[k]
            epsilons[k][less & ~record.refused] = hidden[less & ~record.refused]
            bounds[k][less & ~record.refused] = BOUNDS.index(WALK)
        view = linear_view(world, deliveries)
        mistake = "" if view is None else mistake_of(world, deliveries, view)
        pairs = [(copies[k], parties[k].members) for k in some]
        exact: list[Array] = []
        if view is not None and not mistake:
            exact, reconstructed[some] = view.epsilons(deliveries, pairs, delta), view.reconstructed(deliveries, pairs)
        for k, linear in zip(some if exact else (), exact, strict=True):
            smaller = (linear <= epsilons[k]) & ~record.refused
            epsilons[k][smaller] = linear[smaller]
            bounds[k][smaller] = BOUNDS.index(LINEAR)
    for k, party in enumerate(parties):
        epsilons[k, party.members] = math.nan
        if party.source is not None:
            epsilons[k, np.arange(agents) != party.source] = math.nan
    return Learned(parties, epsilons, bounds, delta, reconstructed, mistake)


def hidden_by_shared_noise(
    world: World, record: ReleaseRecord, counts: NDArray[np.int32], members: Flags
) -> Array | None:
    """Return the epsilon of agents' first releases where neighbours share noise at every release.

    At one step all agents' values are a Gaussian mechanism with correlated noise, of which each agent's data move one
    value; what is chosen by earlier ones is composed adaptively, as of one Gaussian mechanism (Denisov et al. 2022,
    arXiv 2202.08312, theorem 2.1). See `hushnet.protocols.linear_map.SharedNoise.remaining`; Allouah et al. (2024,
    theorem 2) bound the same number by the graph's algebraic connectivity.

    Of each of n agents so many releases can have reached the party, whose members' seeds it knows. None without shared
    noise, or where own noise is not Gaussian.
    """
    noise = world.protocol.step_noise
    if noise is None or noise.shared is None or noise.scales().shape[1] != 1:
        return None
    own = np.where(world.setting.task.train.counts > 0, noise.scales()[:, 0], 0.0)
    part, squares = noise.shared.remaining(own, members), np.zeros(len(own))
    for agent, count in enumerate(counts.tolist()):
        charges = record.charges(agent, count)
        if not all(mechanism_of(one.mechanism).gaussian and one.sampling == 1.0 for one in charges):
            return None
        squares[agent] = sum(one.multiplier**-2 if one.multiplier > 0 else math.inf for one in charges)
    return gaussian_epsilons(np.sqrt(part * squares), record.delta)


def follows_data(world: World) -> bool:
    """True if an agent's data reach others through its messages' contents alone.

    Not so where a protocol decides by numbers what it sends, when, or to whom: then silence tells something, too; nor
    where it has no messages, so that what it releases leaves in another way.
    """
    protocol, traits = world.protocol, world.traits
    chooses = protocol.decides and not protocol.decides_by_draws
    chooses = chooses or protocol.picks_partners or traits.trigger == "message"
    return bool(world.layout.messages) and not (chooses or traits.central)


def distances_of(world: World, parties: Sequence[Party]) -> NDArray[np.int64]:
    """(k, n) edges that messages take from agents to parties' nearest ends; -1 where there is no path."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    graph = world.setting.graph
    ends = [one.members if one.members.any() else _tails(graph, one.slots) for one in parties]
    near, apart = [end.all() or not end.any() for end in ends], np.zeros((0, 0))
    if not all(near):
        heard = graph.opened[graph.reverse]
        ways = graph.tails[heard], graph.heads[heard]
        links = csr_array((np.ones(len(ways[0])), ways), shape=(graph.agents, graph.agents))
        apart = shortest_path(links, unweighted=True)
    nearest = np.array(
        [np.zeros(graph.agents) if here else apart[end].min(axis=0) for end, here in zip(ends, near, strict=True)]
    )
    return np.where(np.isfinite(nearest), nearest, -1).astype(np.int64)


def _tails(graph: Graph, slots: Flags) -> Flags:
    """(n,) agents that some directed edges begin at."""
    ends = np.zeros(graph.agents, dtype=bool)
    ends[graph.tails[slots]] = True
    return ends


def _copies(deliveries: Deliveries, party: Party, heard: str) -> Flags:
    there = party.slots[deliveries.slot]
    return there if heard == "sent" or party.group == WORDS[EAVESDROPPER] else there & deliveries.heard


def parties_of(observers: ObserverParameters, setting: Setting) -> Iterator[Party]:
    """Return the observers of a run; raises `InputError` if one names an agent or a link that there is not."""
    graph, ids = setting.graph, setting.task.ids
    names = [str(one) for one in ids]
    nobody = np.zeros(graph.agents, dtype=bool)

    def of(group: str, name: str, members: list[int], source: int | None = None) -> Party:
        inside = nobody.copy()
        inside[members] = True
        return Party(group, name, inside, inside[graph.tails], source)

    for rank, one in enumerate(observers.against):
        if one in (EVERYONE, EAVESDROPPER):
            yield Party(WORDS[str(one)], "", nobody, np.ones(len(graph.heads), dtype=bool))
        elif one == AGENTS:
            yield from (of(WORDS[AGENTS], name, [agent]) for agent, name in enumerate(names))
        elif one == NEIGHBOURS:
            for agent, name in enumerate(names):
                yield of(WORDS[NEIGHBOURS], name, graph.neighbours(agent).tolist(), agent)
        elif isinstance(one, ObservingParty):
            yield _party(setting, one, names, rank, of)


def _party(setting: Setting, one: ObservingParty, names: list[str], rank: int, of: Any) -> Party:
    graph = setting.graph

    def index(name: int | str, *field: str | int) -> int:
        if str(name) not in names:
            raise InputError(
                f"there is no agent {name!r}{suggestion(str(name), names)} agents are called {few(names)}",
                field=("observers", "against", rank, *field),
            )
        return names.index(str(name))

    if one.agent is not None:
        return of(f"agent {one.agent}", str(one.agent), [index(one.agent, "agent")])
    if one.coalition is not None:
        members = [index(name, "coalition", k) for k, name in enumerate(one.coalition)]
        return of(f"coalition of {', '.join(map(str, one.coalition))}", "", members)
    if one.share is not None:
        count = max(1, round(one.share * graph.agents))
        drawn = np.argsort(setting.draws.generator("observers").random(graph.agents), kind="stable")[:count]
        return of(f"coalition of {one.share:g} of all agents", "", np.sort(drawn).tolist())
    assert one.link is not None
    a, b = (index(name, "link", k) for k, name in enumerate(one.link))
    ends = (graph.tails == a) & (graph.heads == b)
    if not ends.any():
        raise InputError(
            f"agents {one.link[0]!r} and {one.link[1]!r} have no link; neighbours of {one.link[0]!r}: "
            f"{few([names[k] for k in graph.neighbours(a).tolist()]) or 'none'}",
            field=("observers", "against", rank, "link"),
        )
    ends |= (graph.tails == b) & (graph.heads == a)
    return Party(f"link {one.link[0]} - {one.link[1]}", "", np.zeros(graph.agents, dtype=bool), ends)
