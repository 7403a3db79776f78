"""Base of all topologies: a graph, packed and checked, and numbers about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ...agents.authors import place_of, returned
from ...agents.errors import InputError
from ...agents.graph import Graph, one_way
from ...agents.kinds import KindOf
from ...agents.parameters import Parameters
from ...agents.tasks.extent import Extent, Files
from ...agents.tasks.outline import Outline
from ...agents.tasks.task import Task
from .graph_changes import ChangeParameters, FixedGraph, Opening

if TYPE_CHECKING:
    import networkx as nx

BYTES_PER_EDGE = 300
"""An undirected edge in networkx, with its attribute, both ways."""
BYTES_PER_PACKED_EDGE = 80
"""An undirected edge of a `Graph`, both ways, with what sorting takes."""


HandDrawn = Literal["", "circle", "star", "grid"]


class Topology(Parameters, ABC):
    """Common to all kinds: what is refused unless it is allowed."""

    allow_isolated: bool = False
    """Accept agents without neighbours; they work alone."""
    allow_disconnected: bool = False
    """Accept a graph of several components."""
    changes: ChangeParameters = Field(default_factory=lambda: FixedGraph(kind="fixed"))
    """Over which of its edges agents send when; by default over all, always."""

    from_profiles: ClassVar[bool] = False
    """Whether graph and weights are computed from the agents' profiles."""
    may_be_star: ClassVar[bool] = False
    """Whether it may be a star around agent 0, as far as that is known before the graph is made."""
    drawn_as: ClassVar[HandDrawn] = ""
    """How it is drawn by hand; a grid has ``rows``, and what nobody draws is laid out by its edges."""

    @property
    def one_way(self) -> bool:
        """Whether messages go one way along its edges, as far as that is known before the graph is made."""
        return False

    def assumed_public(self, task: Task) -> tuple[str, ...]:
        """Private inputs that the graph gives away, or may."""
        return (f"graph and weights (similarity of the agents' {task.profiles_are})",) if self.from_profiles else ()

    def check_size(self, agents: int) -> None:
        """Refuse a number of agents that there is no such graph of; by default none.

        Raises `InputError` with the field to change.
        """
        return

    def check_task(self, outline: Outline) -> None:
        """Refuse a task that the graph cannot be made for, as far as that is known without its data.

        Raises `InputError` with the field to change.
        """
        if self.from_profiles and not outline.profiles:
            raise InputError(
                f"needs profiles of the agents, which the task {outline.kind!r} does not have", field=("topology",)
            )
        if outline.agents is not None:
            self.check_size(outline.agents)

    @abstractmethod
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        """Undirected edges of the graph, in expectation, or at least where the data decide it, which files may tell."""

    def making(self, extent: Extent, edges: float) -> float:
        """Bytes that making a graph of so many edges takes at its peak: by default networkx's, and what is packed."""
        return edges * BYTES_PER_EDGE

    def connected(self, extent: Extent) -> float:
        """Edges that there are at least, since nobody may be left alone unless this is allowed."""
        return 0.0 if self.allow_isolated else extent.agents / 2

    @abstractmethod
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> nx.Graph | Graph:
        """The graph over 0..n-1, not yet checked: packed, or networkx's with the edge attribute ``weight``."""

    def build(self, task: Task, *, rng: np.random.Generator, base: Path | None = None) -> Graph:
        """The graph over the task's agents, checked.

        Raises `InputError` if an agent is isolated or the graph is disconnected, and this is not allowed.
        """
        self.check_size(task.agents)
        made: Any = self.edges(task, rng=rng, base=base)
        built = made if isinstance(made, Graph) else _packed(made, self.edges)
        if built.agents != task.agents:
            raise InputError(f"makes {built.agents} agents where the task has {task.agents}", field=("topology",))
        self._check(built, task)
        self.changes.check(built)
        return built

    def _check(self, graph: Graph, task: Task) -> None:
        if not np.all((graph.weights >= 0) & (graph.weights <= LARGEST_WEIGHT)):  # nor NaN
            raise no_weight()
        _check_both_ways(graph)
        isolated = np.flatnonzero(graph.degrees == 0)
        if len(isolated) and not (self.allow_isolated or task.agents == 1):
            raise InputError(
                f"leaves {len(isolated)} of {task.agents} agents without a neighbour "
                f"(first: {task.ids[isolated[0]]!r}); choose a denser graph or set allow_isolated: true",
                field=("topology",),
            )
        parts = components(graph) - (len(isolated) if self.allow_isolated else 0)
        if parts > 1 and not self.allow_disconnected:
            strong = " that do not all hear of each other, if messages go one way" if graph.directed else ""
            raise InputError(
                f"falls into {parts} components{strong}; choose a denser graph or set allow_disconnected: true",
                field=("topology",),
            )


LARGEST_WEIGHT = 1e100
"""Of an edge: sums and squares of weights stay finite."""

TOPOLOGIES = KindOf("topology", Topology)
TopologyParameters = Annotated[Topology, TOPOLOGIES]


def pairs_of(agents: int) -> float:
    """Pairs of so many agents."""
    return agents * (agents - 1) / 2


def _packed(graph: Any, made_by: Callable[..., Any]) -> Graph:
    import networkx

    graph = returned(graph, networkx.Graph, made_by)
    if set(graph) != set(range(len(graph))):
        raise InputError(f"{place_of(made_by)}: must return a graph over 0..n-1, not over {list(graph)[:3]!r} ...")
    edges = [(u, v, w) for u, v, w in graph.edges(data="weight", default=1.0) if w != 0]
    tails, heads, weights = zip(*edges, strict=True) if edges else ((), (), ())
    make = Graph.from_directed_edges if graph.is_directed() else Graph.from_edges
    try:
        numbers = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise no_weight() from None
    return make(graph.number_of_nodes(), np.array(tails, dtype=np.int64), np.array(heads, dtype=np.int64), numbers)


def no_weight() -> InputError:
    """Error about an edge whose weight is too large, below 0 or no number."""
    return InputError(f"makes a weight that is not a number from 0 to {LARGEST_WEIGHT:g}", field=("topology",))


def _check_both_ways(graph: Graph) -> None:
    """Refuse a graph with an edge from an agent to itself, twice, in one direction alone, or with a weight for each.

    Of a directed graph the directions may differ.
    """
    tails, heads, weights = graph.tails, graph.heads, graph.weights
    for agent in tails[tails == heads][:1]:
        raise InputError(f"makes agent {agent} its own neighbour; leave that edge out", field=("topology",))
    within = tails[1:] == tails[:-1]
    for place in np.flatnonzero(within & (heads[1:] <= heads[:-1]))[:1]:
        tail, first, second = tails[place], heads[place], heads[place + 1]
        wrong = f"two edges between agents {tail} and {first}; make one of them"
        if first != second:
            wrong = f"agent {tail} a neighbour of {first} and then of {second}; neighbours must be in ascending order"
        raise InputError(f"makes {wrong}", field=("topology",))
    back = graph.reverse
    if np.array_equal(tails[back], heads) and np.array_equal(heads[back], tails):
        returned, wrong = weights[back], weights != weights[back]
    else:
        returned = np.zeros(len(weights))
        wrong = ~np.isin(tails * graph.agents + heads, heads * graph.agents + tails)
    if wrong.any() and not graph.directed:
        tail, head, there, other = (each[np.argmax(wrong)].item() for each in (tails, heads, weights, returned))
        raise one_way(tail, head, there, other)


def components(graph: Graph) -> int:
    """Number of connected components; of a directed graph strongly connected ones."""
    return _components(graph, graph.opened, directed=graph.directed)


def _components(graph: Graph, is_open: NDArray[np.bool_], *, directed: bool) -> int:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    shape, ends = (graph.agents, graph.agents), (graph.tails[is_open], graph.heads[is_open])
    matrix = csr_array((np.ones(len(ends[0])), ends), shape=shape)
    return int(connected_components(matrix, directed=directed, connection="strong", return_labels=False))


LARGEST = 300
"""Number of agents up to which it is computed how far and how well a graph connects them."""
TICKS, MOST_EDGES = 50, 100_000
"""Ticks at which it is looked which edges of a graph that changes are open, and edges that are looked at in all."""


def describe(graph: Graph, opening: Opening | None = None) -> dict[str, Any]:
    """Numbers about a graph for summaries and manifests; degrees of a directed one are of edges that go out.

    The opening is that of a graph that changes, whose ``changes`` are then among the numbers.
    """
    degrees, weights = graph.out_degrees, graph.weights[graph.opened]
    return {
        "agents": graph.agents,
        "edges": int(graph.opened.sum()) if graph.directed else len(graph.heads) // 2,
        **({"directed": True} if graph.directed else {}),
        "components": components(graph),
        **_reach(graph),
        **({} if opening is None else _changes(graph, opening)),
        "isolated": int(np.sum(graph.degrees == 0)),
        "degree": {"min": int(degrees.min()), "mean": float(degrees.mean()), "max": int(degrees.max())},
        "weight": {
            "min": float(weights.min(initial=np.inf)) if len(weights) else 0.0,
            "mean": float(weights.mean()) if len(weights) else 0.0,
            "max": float(weights.max(initial=0.0)),
        },
    }


def _reach(graph: Graph) -> dict[str, float]:
    """Diameter and spectral gap of a connected graph that is not too large to compute them."""
    if not 1 < graph.agents <= LARGEST or components(graph) > 1:
        return {}
    return {"diameter": graph.diameter, "spectral_gap": graph.spectral_gap}


def _changes(graph: Graph, opening: Opening) -> dict[str, Any]:
    """How well a graph that changes connects its agents, if they all wake at times 0, 1, 2, ...

    It is B-connected if the edges that are open at any B ticks in a row together connect all agents strongly (Nedic,
    Olshevsky 2015, assumption 1): ``connected_in`` is the smallest B, 0 if it is none of the ``ticks`` looked at.
    """
    ticks = min(TICKS, MOST_EDGES // max(len(graph.heads), 1))
    if ticks < 2 or graph.agents > LARGEST:
        return {}
    each = [[opening(agent, tick, float(tick)) for agent in range(graph.agents)] for tick in range(ticks)]
    is_open = np.array([np.concatenate(one) for one in each])
    connected = [_components(graph, one, directed=True) == 1 for one in is_open]

    def connects(length: int) -> bool:
        """Whether the edges of any so many ticks in a row connect all agents; if they do, so do those of more."""
        windows: NDArray[np.bool_] = np.lib.stride_tricks.sliding_window_view(is_open, length, axis=0)
        return all(_components(graph, one.any(axis=1), directed=True) == 1 for one in windows)

    found = bisect_left(range(1, ticks + 1), True, key=connects) + 1
    share, degree = float(np.mean(connected)), float(is_open.sum() / ticks / graph.agents)
    within = found if found <= ticks else 0
    return {"changes": {"ticks": ticks, "open_degree": degree, "connected": share, "connected_in": within}}


def graph_line(numbers: Mapping[str, Any]) -> str:
    """Agents, degrees, weights and components of a graph in one line."""
    degree, weight = numbers["degree"], numbers["weight"]
    parts, directed = numbers["components"], numbers.get("directed", False)
    far = ""
    if "spectral_gap" in numbers:
        far = f", diameter {numbers['diameter']:g}, spectral gap {numbers['spectral_gap']:.3g}"
    if changes := numbers.get("changes"):
        within, ticks = changes["connected_in"], changes["ticks"]
        joint = f"by any {within} ticks in a row" if within else f"by no {ticks} ticks in a row"
        far += (
            f"; of these edges {changes['open_degree']:.3g} an agent are open at a tick, which connect all agents at "
            f"{changes['connected']:.0%} of {ticks} ticks, and {joint}"
        )
    edges, out = ("directed edges", "out-degree") if directed else ("edges", "degree")
    return (
        f"graph: {numbers['agents']} agents, {numbers['edges']} {edges}, {out} {degree['min']} to {degree['max']} "
        f"(mean {degree['mean']:.1f}), weights {weight['min']:.3g} to {weight['max']:.3g}, "
        f"{parts} component{'' if parts == 1 else 's'}{far}"
    )
