"""Changes of a graph over time: over which of its edges an agent sends at a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from ...agents.errors import InputError
from ...agents.graph import Graph
from ...agents.kinds import KindOf
from ...agents.parameters import LONGEST, Parameters, Size
from ...agents.table_files import TimesFile

if TYPE_CHECKING:
    from .randomness import Draws

Opening = Callable[[int, int, float], NDArray[np.bool_]]
"""``(agent, tick, now)`` -> (degree,) over which of its edges an agent sends at a step that its clock's tick begins."""
WHERE = ("topology", "changes")


class GraphChanges(Parameters, ABC):
    """Common to all kinds: an agent sends over edges of the graph that are open, and hears over all."""

    def check(self, graph: Graph) -> None:
        """Raise an `InputError` if this graph cannot change so; by default any can."""
        return

    @abstractmethod
    def build(
        self, graph: Graph, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None
    ) -> Opening | None:
        """Open edges of one run; None where all of them always are.

        The agents' stable (n,) numbers key the draws, and file names are relative to the base.
        """


GRAPH_CHANGES = KindOf("change of the graph", GraphChanges)
ChangeParameters = Annotated[GraphChanges, GRAPH_CHANGES]


@GRAPH_CHANGES.register
class FixedGraph(GraphChanges):
    """No changes."""

    kind: Literal["fixed"]

    @override
    def build(
        self, graph: Graph, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None
    ) -> None:
        return None


@GRAPH_CHANGES.register
class PeerSampling(GraphChanges):
    """Every agent draws some of its neighbours, uniformly, and sends to them alone (EL-Local, de Vos et al. 2023)."""

    kind: Literal["sample"]
    peers: Size = Field(examples=[2])
    """Neighbours that an agent sends to; all where it has fewer."""
    every: Size = 1
    """Wake-ups of an agent after which it draws anew."""

    @override
    def build(
        self, graph: Graph, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None
    ) -> Opening:
        def opened(agent: int, tick: int, _: float) -> NDArray[np.bool_]:
            own = graph.opened[graph.edges_of(agent)].copy()
            out = np.flatnonzero(own)
            if len(out) > self.peers:
                rng = draws.generator("peers", int(numbers[agent]), tick // self.every)
                own[:] = False
                own[rng.choice(out, self.peers, replace=False)] = True
            return own

        return opened


@GRAPH_CHANGES.register
class RegularSampling(GraphChanges):
    """Random directed graphs, one at every tick, in which all send to and hear as many (EL-Oracle, de Vos et al. 2023).

    Agents are put on a ring in random order, which is the same for all at their ticks of one number, and each sends to
    the next ones. It needs a complete graph.
    """

    kind: Literal["regular"]
    peers: Size = Field(examples=[2])
    """Agents that each one sends to, fewer than there are others."""

    @override
    def check(self, graph: Graph) -> None:
        n = graph.agents
        if len(graph.heads) != n * (n - 1):
            raise InputError("needs kind: complete, for anybody may be drawn; or take sample", field=(*WHERE, "kind"))
        if self.peers >= n:
            raise InputError(f"must be below the number of agents, {n}", field=(*WHERE, "peers"))

    @override
    def build(
        self, graph: Graph, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None
    ) -> Opening:
        @lru_cache(maxsize=64)
        def order_at(tick: int) -> NDArray[np.int64]:
            return draws.generator("regular", tick).permutation(graph.agents)

        def opened(agent: int, tick: int, _: float) -> NDArray[np.bool_]:
            order = order_at(tick)
            place = int(np.flatnonzero(order == agent)[0])
            chosen = order[(place + 1 + np.arange(self.peers)) % graph.agents]
            return np.isin(graph.heads[graph.edges_of(agent)], chosen)

        return opened


@GRAPH_CHANGES.register
class InTurn(GraphChanges):
    """Out-edges in turn, one at each tick, the nearest around the ring first.

    With ``exponential`` it is the one-peer exponential graph (Ying et al. 2021).
    """

    kind: Literal["in_turn"]

    @override
    def build(
        self, graph: Graph, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None
    ) -> Opening:
        def opened(agent: int, tick: int, _: float) -> NDArray[np.bool_]:
            edges = graph.edges_of(agent)
            out, own = np.flatnonzero(graph.opened[edges]), np.zeros(edges.stop - edges.start, dtype=bool)
            if len(out):
                ahead = (graph.heads[edges][out] - agent) % graph.agents
                own[out[np.argsort(ahead)[tick % len(out)]]] = True
            return own

        return opened


@GRAPH_CHANGES.register
class Matchings(GraphChanges):
    """Matchings in turn: edges are coloured so that no agent has two of one, and each tick opens the next colour."""

    kind: Literal["matchings"]

    @override
    def check(self, graph: Graph) -> None:
        if graph.directed:
            raise InputError("needs an undirected graph; use in_turn or sample", field=(*WHERE, "kind"))

    @override
    def build(
        self, graph: Graph, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None
    ) -> Opening:
        colours = _edge_colours(graph)
        count = int(colours.max(initial=0)) + 1
        return lambda agent, tick, _: colours[graph.edges_of(agent)] == tick % count


@GRAPH_CHANGES.register
class Mobility(GraphChanges):
    """Agents that move in the unit square by random waypoints (Johnson, Maltz 1996), and send to whoever is near.

    An agent begins anywhere, goes straight to a point that it draws uniformly, and from there to the next, without
    pauses. Of a complete graph, the edges that are open at a time are a random geometric graph.
    """

    kind: Literal["mobility"]
    radius: float = Field(gt=0, le=1.5, examples=[0.3])
    """Distance up to which an edge is open; the square's diagonal is 1.41."""
    speed: float = Field(gt=0, le=1000, examples=[0.05])
    """Distance that an agent goes in a time unit."""

    @override
    def build(
        self, graph: Graph, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None
    ) -> Opening:
        place = self.places(numbers, draws)

        def opened(agent: int, _: int, now: float) -> NDArray[np.bool_]:
            edges = graph.edges_of(agent)
            others = np.array([place(other, now) for other in graph.heads[edges].tolist()]).reshape(-1, 2)
            near = np.hypot(*(others - place(agent, now)).T) <= self.radius
            return graph.opened[edges] & near

        return opened

    def places(self, numbers: NDArray[np.uint64], draws: Draws) -> Callable[[int, float], NDArray[np.float64]]:
        """``(agent, now)`` -> (2,) where an agent is at a time >= 0."""
        streams = [draws.generator("mobility", int(number)) for number in numbers]
        points = [[rng.random(2)] for rng in streams]
        times = [[0.0] for _ in streams]

        def place(agent: int, now: float) -> NDArray[np.float64]:
            own, at = points[agent], times[agent]
            while at[-1] <= now:
                own.append(streams[agent].random(2))
                at.append(at[-1] + float(np.hypot(*(own[-1] - own[-2]))) / self.speed)
            leg = bisect_right(at, now) - 1
            return own[leg] + (own[leg + 1] - own[leg]) * (now - at[leg]) / (at[leg + 1] - at[leg])

        return place


@GRAPH_CHANGES.register
class EdgeTimes(TimesFile, GraphChanges):
    """Edges that are open for some time, from a CSV file with the columns source, target, from, until."""

    kind: Literal["times"]
    path: str = Field(examples=["contacts.csv"])
    """CSV file with a header line and the columns source, target, from, until (time units): an edge is open from each
    ``from`` on and before ``until``, both ways unless the graph is directed; one that is not listed always is."""

    @override
    def build(
        self, graph: Graph, ids: Sequence[int | str], numbers: NDArray[np.uint64], draws: Draws, base: Path | None
    ) -> Opening:
        listed = self._listed(graph, ids, base)
        times: dict[int, list[float]] = {}
        for edge, stretches in listed.items():
            flat = [time for stretch in sorted(stretches) for time in stretch]
            if flat != sorted(flat):
                tail, head = ids[int(graph.tails[edge])], ids[int(graph.heads[edge])]
                raise InputError(f"{self.path} opens the edge from {tail!r} to {head!r} twice at a time", field=WHERE)
            times[edge] = flat

        def opened(agent: int, _: int, now: float) -> NDArray[np.bool_]:
            edges = graph.edges_of(agent)
            own = graph.opened[edges].copy()
            for rank, edge in enumerate(range(edges.start, edges.stop)):
                if edge in times:
                    own[rank] = bisect_right(times[edge], now) % 2 == 1
            return own

        return opened

    def _listed(
        self, graph: Graph, ids: Sequence[int | str], base: Path | None
    ) -> dict[int, list[tuple[float, float]]]:
        from .randomness import quantise  # loads the compiler, which reading results does without

        where = (*WHERE, "path")
        ends = zip(graph.tails.tolist(), graph.heads.tolist(), strict=True)
        place: dict[tuple[int, ...], int] = {link: edge for edge, link in enumerate(ends)}
        listed: dict[int, list[tuple[float, float]]] = {}
        for line, link, (first, last) in self.rows(base, ids, ("source", "target"), ("from", "until"), WHERE):
            if not 0 <= first < last <= LONGEST:
                raise InputError(
                    f"{line}: from {first!r} must be at least 0 and below until, {last!r}, at most {LONGEST}",
                    field=where,
                )
            edge = place.get(link)
            if edge is None or not graph.opened[edge]:
                source, target = (str(ids[agent]) for agent in link)
                raise InputError(f"{line}: the graph has no edge from {source!r} to {target!r}", field=where)
            for one in (edge,) if graph.directed else (edge, int(graph.reverse[edge])):
                listed.setdefault(one, []).append((quantise(first), quantise(last)))
        if not listed:
            raise InputError(f"{self.path} lists no edge; list at least one", field=where)
        return listed


def _edge_colours(graph: Graph) -> NDArray[np.int64]:
    """(E,) colours from 0 on of undirected edges: at each agent all differ; greedily, in the order of edges."""
    colours = np.full(len(graph.heads), -1)
    used: list[set[int]] = [set() for _ in range(graph.agents)]
    for edge, (tail, head) in enumerate(zip(graph.tails.tolist(), graph.heads.tolist(), strict=True)):
        if tail < head:
            colour = 0
            while colour in used[tail] or colour in used[head]:
                colour += 1
            colours[[edge, graph.reverse[edge]]] = colour
            used[tail].add(colour)
            used[head].add(colour)
    return colours
