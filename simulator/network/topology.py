"""Who talks to whom: similarity graphs, classical random graphs, or an edge list."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from ...agents.errors import InputError
from ...agents.files import beside, number, read_rows, shown
from ...agents.parameters import MOST, Size
from ...agents.tasks.base import Task
from ...agents.tasks.extent import Extent, Files, head_of
from .graphs import BYTES_PER_EDGE, LARGEST_WEIGHT, TOPOLOGIES, HandDrawn, Topology, TopologyParameters, pairs_of
from .similarity import AngularSimilarity, GaussianKernel, NearestNeighbours

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "TOPOLOGIES",
    "AngularSimilarity",
    "GaussianKernel",
    "NearestNeighbours",
    "Topology",
    "TopologyParameters",
]

PATH = ("topology", "path")
BYTES_PER_LINE = 500
"""A line of an edge list as it is read: its number, and a dictionary of its cells."""


@TOPOLOGIES.register
class Complete(Topology):
    """Everybody talks to everybody."""

    drawn_as: ClassVar[HandDrawn] = "circle"

    kind: Literal["complete"]

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        return pairs_of(extent.agents)

    @override
    def least_degree(self, agents: int) -> int:
        return agents - 1

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
    def least_degree(self, agents: int) -> int:
        return min(2 * self.reach, agents - 1)

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        import networkx as nx

        return nx.circulant_graph(task.agents, list(range(1, self.reach + 1)))


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
    def least_degree(self, agents: int) -> int:
        return self.degree

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        import networkx as nx

        return nx.random_regular_graph(self.degree, task.agents, seed=_seed(rng))


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


@TOPOLOGIES.register
class EdgeList(Topology):
    """Undirected edges from a CSV file with the columns source, target, weight: each once, for messages both ways."""

    may_be_star: ClassVar[bool] = True

    kind: Literal["edge_list"]
    path: str = Field(examples=["edges.csv"])
    """CSV file with a header line and the columns source, target, weight; which end of an edge is the source is all the
    same."""

    @override
    def assumed_public(self, task: Task) -> tuple[str, ...]:
        return (f"graph and weights, as given by {self.path}",)

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        if files is None:
            return self.connected(extent)
        return head_of(beside(files.base, self.path), PATH).count

    @override
    def making(self, extent: Extent, edges: float) -> float:
        """Memory that making takes: all lines are read before the first edge is made."""
        return edges * (BYTES_PER_EDGE + BYTES_PER_LINE)

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        import networkx as nx

        where = PATH
        position = {str(name): index for index, name in enumerate(task.ids)}
        graph = nx.empty_graph(task.agents)
        for line, row in read_rows(beside(base, self.path), ("source", "target", "weight"), where):
            for name in (row["source"], row["target"]):
                if name not in position:
                    raise InputError(f"{line}: {shown(name)} is not the id of an agent of this task", field=where)
            weight = number(row["weight"], line, "weight", where)
            if weight <= 0:
                raise InputError(f"{line}: weight {weight!r} must be greater than 0", field=where)
            if weight > LARGEST_WEIGHT:
                raise InputError(f"{line}: weight {weight!r} must be at most {LARGEST_WEIGHT:g}", field=where)
            source, target = position[row["source"]], position[row["target"]]
            if source == target:
                raise InputError(f"{line}: agent {row['source']!r} cannot be its own neighbour", field=where)
            if graph.has_edge(source, target):
                raise InputError(
                    f"{line}: the edge {row['source']} - {row['target']} is listed twice; edges have no direction "
                    "here, so list each once",
                    field=where,
                )
            graph.add_edge(source, target, weight=weight)
        return graph


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**32))
