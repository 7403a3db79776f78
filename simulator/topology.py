"""Who talks to whom: similarity graphs, classical random graphs, or an edge list; all through networkx."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ..agents.errors import InputError
from ..agents.files import number, read_rows
from ..agents.graph import Graph
from ..agents.parameters import Parameters
from ..agents.tasks.base import Task


class Topology(Parameters, ABC):
    """Common to all kinds: what is refused unless it is allowed."""

    allow_isolated: bool = False
    """Accept agents without neighbours; they work alone."""
    allow_disconnected: bool = False
    """Accept a graph of several components."""

    from_profiles: ClassVar[bool] = False
    """Whether graph and weights are computed from the agents' profiles."""

    def assumed_public(self, task: Task) -> tuple[str, ...]:
        """Private inputs that the graph gives away."""
        return (f"graph and weights (similarity of the agents' {task.profiles_are})",) if self.from_profiles else ()

    @abstractmethod
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        """An undirected networkx graph over 0..n-1 with the edge attribute ``weight``."""

    def build(self, task: Task, *, rng: np.random.Generator, base: Path | None = None) -> Graph:
        """The graph over the task's agents, checked.

        Raises
        ------
        InputError
            If an agent is isolated or the graph is disconnected, and this is not allowed.
        """
        graph = self.edges(task, rng=rng, base=base)
        if graph.number_of_nodes() != task.agents:
            raise InputError(
                f"makes {graph.number_of_nodes()} agents where the task has {task.agents}", field=("topology",)
            )
        edges = [(u, v, w) for u, v, w in graph.edges(data="weight", default=1.0) if u != v and w > 0]
        tails, heads, weights = zip(*edges, strict=True) if edges else ((), (), ())
        built = Graph.from_edges(
            task.agents, np.array(tails, dtype=np.int64), np.array(heads, dtype=np.int64), np.array(weights)
        )
        self._check(built, task)
        return built

    def _check(self, graph: Graph, task: Task) -> None:
        isolated = np.flatnonzero(graph.degrees == 0)
        if len(isolated) and not (self.allow_isolated or task.agents == 1):
            raise InputError(
                f"leaves {len(isolated)} of {task.agents} agents without a neighbour "
                f"(first: {task.ids[isolated[0]]!r}); choose a denser graph or set allow_isolated: true",
                field=("topology",),
            )
        parts = components(graph) - (len(isolated) if self.allow_isolated else 0)
        if parts > 1 and not self.allow_disconnected:
            raise InputError(
                f"falls into {parts} components; choose a denser graph or set allow_disconnected: true",
                field=("topology",),
            )


class AngularSimilarity(Topology):
    """W_ij = exp((cos phi_ij - 1) / gamma) between the task's profiles (Bellet et al. 2018, section 5.1)."""

    from_profiles: ClassVar[bool] = True

    kind: Literal["angular_similarity"]
    gamma: float = Field(default=0.1, gt=0)
    """Width of the kernel."""
    cutoff: float = Field(default=0.01, ge=0, lt=1)
    """Weights below this are dropped."""

    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        """See `Topology.edges`."""
        unit = _unit_rows(_profiles(task))
        weights = np.exp((np.clip(unit @ unit.T, -1.0, 1.0) - 1.0) / self.gamma)
        weights[weights < self.cutoff] = 0.0
        np.fill_diagonal(weights, 0.0)
        weights = np.maximum(weights, weights.T)
        return _from_pairs(task.agents, *np.nonzero(np.triu(weights, 1)), matrix=weights)


class NearestNeighbours(Topology):
    """Each agent with its k nearest others by the task's profiles."""

    from_profiles: ClassVar[bool] = True

    kind: Literal["knn"]
    k: int = Field(default=10, ge=1)
    """Neighbours that each agent chooses."""
    metric: Literal["cosine", "euclidean"] = "cosine"
    """What is compared between profiles."""
    join: Literal["union", "mutual"] = "union"
    """An edge where either (union) or both (mutual) choose the other."""

    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        """See `Topology.edges`; ties go to the lower index."""
        if self.k >= task.agents:
            raise InputError(f"must be below the number of agents, {task.agents}", field=("topology", "k"))
        chosen = np.zeros((task.agents, task.agents), dtype=bool) if task.agents <= 4096 else None
        pairs: set[tuple[int, int]] = set()
        for agent, nearest in _nearest(_profiles(task), self.k, self.metric):
            if chosen is not None:
                chosen[agent, nearest] = True
            else:
                pairs.update((agent, int(other)) for other in nearest)
        if chosen is not None:
            pairs = set(zip(*(axis.tolist() for axis in np.nonzero(chosen)), strict=True))
        keep = pairs if self.join == "union" else {(u, v) for u, v in pairs if (v, u) in pairs}
        undirected = sorted({(min(u, v), max(u, v)) for u, v in keep})
        tails, heads = np.array(undirected, dtype=np.int64).reshape(-1, 2).T
        return _from_pairs(task.agents, tails, heads)


class Complete(Topology):
    """Everybody talks to everybody."""

    kind: Literal["complete"]

    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        """See `Topology.edges`."""
        return nx.complete_graph(task.agents)


class Ring(Topology):
    """A ring; each agent talks to the nearest ones on both sides."""

    kind: Literal["ring"]
    reach: int = Field(default=1, ge=1)
    """Neighbours on each side."""

    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        """See `Topology.edges`."""
        return nx.circulant_graph(task.agents, list(range(1, self.reach + 1)))


class Torus(Topology):
    """A grid whose opposite borders are joined."""

    kind: Literal["torus"]
    rows: int = Field(ge=1)
    """Rows of the grid; must divide the number of agents."""

    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        """See `Topology.edges`."""
        if task.agents % self.rows:
            raise InputError(
                f"{self.rows} does not divide the number of agents, {task.agents}", field=("topology", "rows")
            )
        grid = nx.grid_2d_graph(self.rows, task.agents // self.rows, periodic=True)
        return nx.convert_node_labels_to_integers(grid, ordering="sorted")


class ErdosRenyi(Topology):
    """Every pair is joined independently with the same probability."""

    kind: Literal["erdos_renyi"]
    probability: float = Field(gt=0, le=1)
    """Probability of each edge."""

    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        """See `Topology.edges`."""
        return nx.fast_gnp_random_graph(task.agents, self.probability, seed=_seed(rng))


class WattsStrogatz(Topology):
    """A ring lattice with randomly rewired edges: a small world."""

    kind: Literal["watts_strogatz"]
    neighbours: int = Field(default=4, ge=2, multiple_of=2)
    """Ring neighbours of each agent before rewiring (an even number)."""
    rewire: float = Field(default=0.1, ge=0, le=1)
    """Probability that an edge is rewired."""

    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        """See `Topology.edges`."""
        if self.neighbours >= task.agents:
            raise InputError(f"must be below the number of agents, {task.agents}", field=("topology", "neighbours"))
        return nx.watts_strogatz_graph(task.agents, self.neighbours, self.rewire, seed=_seed(rng))


class BarabasiAlbert(Topology):
    """Preferential attachment: a few hubs, many leaves."""

    kind: Literal["barabasi_albert"]
    links: int = Field(default=3, ge=1)
    """Edges that each new agent brings."""

    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        """See `Topology.edges`."""
        if self.links >= task.agents:
            raise InputError(f"must be below the number of agents, {task.agents}", field=("topology", "links"))
        return nx.barabasi_albert_graph(task.agents, self.links, seed=_seed(rng))


class RandomRegular(Topology):
    """A random graph in which every agent has the same degree."""

    kind: Literal["random_regular"]
    degree: int = Field(default=4, ge=1)
    """Neighbours of every agent; degree times agents must be even."""

    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        """See `Topology.edges`."""
        if self.degree >= task.agents or self.degree * task.agents % 2:
            raise InputError(
                f"{self.degree} must be below the number of agents ({task.agents}), and their product even",
                field=("topology", "degree"),
            )
        return nx.random_regular_graph(self.degree, task.agents, seed=_seed(rng))


class EdgeList(Topology):
    """Edges from a CSV file with the columns source, target, weight."""

    kind: Literal["edge_list"]
    path: str
    """CSV file with a header line and the columns source, target, weight."""

    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph:
        """See `Topology.edges`."""
        where = ("topology", "path")
        position = {str(name): index for index, name in enumerate(task.ids)}
        graph = nx.empty_graph(task.agents)
        for line, row in read_rows((base or Path()) / self.path, ("source", "target", "weight"), where):
            for name in (row["source"], row["target"]):
                if name not in position:
                    raise InputError(f"{line}: {name!r} is not the id of an agent of this task", field=where)
            weight = number(row["weight"], line, "weight", where)
            if weight <= 0:
                raise InputError(f"{line}: weight {weight:g} must be greater than 0", field=where)
            source, target = position[row["source"]], position[row["target"]]
            if source == target:
                raise InputError(f"{line}: agent {row['source']!r} cannot be its own neighbour", field=where)
            if graph.has_edge(source, target):
                raise InputError(f"{line}: the edge {row['source']} - {row['target']} is listed twice", field=where)
            graph.add_edge(source, target, weight=weight)
        return graph


TOPOLOGIES: dict[str, type[Parameters]] = {
    "angular_similarity": AngularSimilarity,
    "knn": NearestNeighbours,
    "complete": Complete,
    "ring": Ring,
    "torus": Torus,
    "erdos_renyi": ErdosRenyi,
    "watts_strogatz": WattsStrogatz,
    "barabasi_albert": BarabasiAlbert,
    "random_regular": RandomRegular,
    "edge_list": EdgeList,
}
TopologyParameters = Annotated[
    AngularSimilarity
    | NearestNeighbours
    | Complete
    | Ring
    | Torus
    | ErdosRenyi
    | WattsStrogatz
    | BarabasiAlbert
    | RandomRegular
    | EdgeList,
    Field(discriminator="kind"),
]


def components(graph: Graph) -> int:
    """Number of connected components."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    matrix = csr_array((np.ones(len(graph.heads)), graph.heads, graph.offsets), shape=(graph.agents, graph.agents))
    return int(connected_components(matrix, directed=False, return_labels=False))


def describe(graph: Graph) -> dict[str, Any]:
    """Numbers about a graph for summaries and manifests."""
    degrees, weights = graph.degrees, graph.weights
    return {
        "agents": graph.agents,
        "edges": len(graph.heads) // 2,
        "components": components(graph),
        "isolated": int(np.sum(degrees == 0)),
        "degree": {"min": int(degrees.min()), "mean": float(degrees.mean()), "max": int(degrees.max())},
        "weight": {
            "min": float(weights.min(initial=np.inf)) if len(weights) else 0.0,
            "mean": float(weights.mean()) if len(weights) else 0.0,
            "max": float(weights.max(initial=0.0)),
        },
    }


def graph_line(numbers: Mapping[str, Any]) -> str:
    """Agents, degrees, weights and components of a graph in one line."""
    degree, weight = numbers["degree"], numbers["weight"]
    parts = numbers["components"]
    return (
        f"graph: {numbers['agents']} agents, {numbers['edges']} edges, degree {degree['min']} to {degree['max']} "
        f"(mean {degree['mean']:.1f}), weights {weight['min']:.3g} to {weight['max']:.3g}, "
        f"{parts} component{'' if parts == 1 else 's'}"
    )


def _profiles(task: Task) -> Any:
    if task.profiles is None:
        raise InputError(
            f"needs profiles of the agents, which the task {task.name!r} does not have", field=("topology",)
        )
    return task.profiles


def _unit_rows(profiles: Any) -> NDArray[np.float64]:
    dense = profiles.toarray() if hasattr(profiles, "toarray") else np.asarray(profiles, dtype=np.float64)
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    return dense / np.where(norms > 0, norms, 1.0)


def _nearest(profiles: Any, k: int, metric: str):
    """Yield (agent, its k nearest others), in blocks of rows to bound memory."""
    rows = _unit_rows(profiles) if metric == "cosine" else np.asarray(_dense(profiles), dtype=np.float64)
    squares = np.sum(rows**2, axis=1)
    for start in range(0, len(rows), 1024):
        block = rows[start : start + 1024]
        products = block @ rows.T
        far = -products if metric == "cosine" else squares[None, :] - 2 * products
        far[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        for offset, distances in enumerate(far):
            yield start + offset, np.argsort(distances, kind="stable")[:k]


def _dense(profiles: Any) -> Any:
    return profiles.toarray() if hasattr(profiles, "toarray") else profiles


def _from_pairs(
    agents: int, tails: NDArray[Any], heads: NDArray[Any], matrix: NDArray[np.float64] | None = None
) -> nx.Graph:
    graph = nx.empty_graph(agents)
    weights = np.ones(len(tails)) if matrix is None else matrix[tails, heads]
    graph.add_weighted_edges_from(zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True))
    return graph


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**32))
