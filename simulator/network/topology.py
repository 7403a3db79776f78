"""Topologies drawn as classical random graphs; similarity graphs and edge lists have files of their own."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from ...agents.errors import InputError
from ...agents.parameters import MOST, Size
from ...agents.tasks.extent import Extent, Files
from ...agents.tasks.task import Task
from . import edge_list, similarity  # noqa: F401 - register theirs
from .graphs import TOPOLOGIES, HandDrawn, Topology, TopologyParameters, pairs_of

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["TOPOLOGIES", "Topology", "TopologyParameters"]


@TOPOLOGIES.register
class Complete(Topology):
    """Everybody talks to everybody."""

    drawn_as: ClassVar[HandDrawn] = "circle"

    kind: Literal["complete"]

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        return pairs_of(extent.agents)

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        import networkx as nx

        return nx.complete_graph(task.agents)


@TOPOLOGIES.register
class Ring(Topology):
    """A ring; each agent talks to the nearest ones on both sides."""

    drawn_as: ClassVar[HandDrawn] = "circle"

    kind: Literal["ring"]
    reach: Size = 1
    """Neighbours on each side."""

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        return min(self.reach * extent.agents, pairs_of(extent.agents))

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        import networkx as nx

        return nx.circulant_graph(task.agents, list(range(1, min(self.reach, task.agents // 2) + 1)))


@TOPOLOGIES.register
class Torus(Topology):
    """A grid whose opposite borders are joined."""

    drawn_as: ClassVar[HandDrawn] = "grid"

    kind: Literal["torus"]
    rows: Size = Field(examples=[4])
    """Rows of the grid; must divide the number of agents."""

    @override
    def check_size(self, agents: int) -> None:
        if agents % self.rows:
            raise InputError(f"{self.rows} does not divide the number of agents, {agents}", field=("topology", "rows"))

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        return 2 * extent.agents

    @override
    def making(self, extent: Extent, edges: float) -> float:
        """Memory that making takes: the grid is numbered in a copy."""
        return 2 * super().making(extent, edges)

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        import networkx as nx

        grid = nx.grid_2d_graph(self.rows, task.agents // self.rows, periodic=True)
        return nx.convert_node_labels_to_integers(grid, ordering="sorted")


@TOPOLOGIES.register
class ErdosRenyi(Topology):
    """Every pair is joined independently with the same probability."""

    kind: Literal["erdos_renyi"]
    probability: float = Field(gt=0, le=1, examples=[0.2])
    """Probability of each edge."""

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        return self.probability * pairs_of(extent.agents)

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        import networkx as nx

        return nx.fast_gnp_random_graph(task.agents, self.probability, seed=_seed(rng))


@TOPOLOGIES.register
class WattsStrogatz(Topology):
    """A ring lattice with randomly rewired edges: a small world."""

    drawn_as: ClassVar[HandDrawn] = "circle"

    kind: Literal["watts_strogatz"]
    neighbours: int = Field(default=4, ge=2, le=MOST, multiple_of=2)
    """Ring neighbours of each agent before rewiring (an even number)."""
    rewire: float = Field(default=0.1, ge=0, le=1)
    """Probability that an edge is rewired."""

    @override
    def check_size(self, agents: int) -> None:
        if self.neighbours >= agents:
            raise InputError(f"must be below the number of agents, {agents}", field=("topology", "neighbours"))

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        return self.neighbours * extent.agents / 2

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        import networkx as nx

        return nx.watts_strogatz_graph(task.agents, self.neighbours, self.rewire, seed=_seed(rng))


@TOPOLOGIES.register
class BarabasiAlbert(Topology):
    """Preferential attachment: a few hubs, many leaves."""

    kind: Literal["barabasi_albert"]
    links: Size = 3
    """Edges that each new agent brings."""

    @override
    def check_size(self, agents: int) -> None:
        if self.links >= agents:
            raise InputError(f"must be below the number of agents, {agents}", field=("topology", "links"))

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        return self.links * max(extent.agents - self.links, 0)

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        import networkx as nx

        return nx.barabasi_albert_graph(task.agents, self.links, seed=_seed(rng))


@TOPOLOGIES.register
class RandomRegular(Topology):
    """A random graph in which every agent has the same degree."""

    kind: Literal["random_regular"]
    degree: Size = 4
    """Neighbours of every agent; degree times agents must be even."""

    @override
    def check_size(self, agents: int) -> None:
        if self.degree >= agents or self.degree * agents % 2:
            raise InputError(
                f"{self.degree} must be below the number of agents ({agents}), and their product even",
                field=("topology", "degree"),
            )
        if self.degree == 1 and agents > 2 and not self.allow_disconnected:
            raise InputError("makes pairs; choose a denser graph or set allow_disconnected: true", field=("topology",))

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        return self.degree * extent.agents / 2

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        import networkx as nx

        return nx.random_regular_graph(self.degree, task.agents, seed=_seed(rng))


class OneWay(Topology, ABC):
    """Common to all kinds whose edges have a direction."""

    @property
    @override
    def one_way(self) -> bool:
        return True


@TOPOLOGIES.register
class DirectedRing(OneWay):
    """A ring whose messages go one way; each agent sends to the next ones."""

    drawn_as: ClassVar[HandDrawn] = "circle"

    kind: Literal["directed_ring"]
    reach: Size = 1
    """Agents that each one sends to."""

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        return min(self.reach, extent.agents - 1) * extent.agents

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        return _sending_to(task.agents, range(1, min(self.reach, task.agents - 1) + 1))


@TOPOLOGIES.register
class ExponentialGraph(OneWay):
    """Directed: agent i sends to the agents 1, 2, 4, 8, ... places behind it (Assran et al. 2019, all at once)."""

    drawn_as: ClassVar[HandDrawn] = "circle"

    kind: Literal["exponential"]

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        return extent.agents * math.ceil(math.log2(max(extent.agents, 1)))

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        return _sending_to(task.agents, [2**k for k in range(math.ceil(math.log2(task.agents)))])


@TOPOLOGIES.register
class DirectedRandom(OneWay):
    """Every agent sends to any other independently with the same probability."""

    kind: Literal["directed_random"]
    probability: float = Field(gt=0, le=1, examples=[0.2])
    """Probability of each directed edge."""

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        return 2 * self.probability * pairs_of(extent.agents)

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        import networkx as nx

        return nx.fast_gnp_random_graph(task.agents, self.probability, seed=_seed(rng), directed=True)


@TOPOLOGIES.register
class Star(Topology):
    """Agent 0 with everybody else, with weight 1."""

    may_be_star: ClassVar[bool] = True
    drawn_as: ClassVar[HandDrawn] = "star"

    kind: Literal["star"]

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        return extent.agents - 1

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        import networkx as nx

        return nx.star_graph(task.agents - 1)


def _sending_to(agents: int, places: Iterable[int]) -> nx.DiGraph:
    """The directed graph in which everybody sends to the agents so many places behind."""
    import networkx as nx

    graph = nx.empty_graph(agents, create_using=nx.DiGraph)
    graph.add_edges_from((agent, (agent + place) % agents) for agent in range(agents) for place in places)
    return graph


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**32))
