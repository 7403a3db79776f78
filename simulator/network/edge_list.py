"""Edges that a file lists, for messages both ways."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from pydantic import Field
from typing_extensions import override

from ...agents.errors import InputError
from ...agents.input_files import beside
from ...agents.table_files import TableFile
from ...agents.tasks.extent import Extent, Files, head_of
from ...agents.tasks.task import Task
from .graphs import BYTES_PER_EDGE, LARGEST_WEIGHT, TOPOLOGIES, Topology

if TYPE_CHECKING:
    import networkx as nx
    import numpy as np

PATH = ("topology", "path")
BYTES_PER_LINE = 500
"""A line of an edge list as it is read: its number, and a dictionary of its cells."""
UNDIRECTED = "edges have no direction here: list each once, or each both ways with one weight, or set directed: true"


@TOPOLOGIES.register
class EdgeList(TableFile, Topology):
    """Edges from a CSV file with the columns source, target, weight, for messages both ways or, if directed, one way.

    Every undirected edge is listed once, or every one in both directions with the same weight. A file with the columns
    source and target alone has weights of 1.
    """

    may_be_star: ClassVar[bool] = True

    kind: Literal["edge_list"]
    path: str = Field(examples=["edges.csv"])
    """CSV file with a header line and the columns source, target, weight; which end of an undirected edge is the source
    is all the same."""
    directed: bool = False
    """Whether messages go from source to target alone."""

    @property
    @override
    def one_way(self) -> bool:
        return self.directed

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

        edges = _read(self, base, task.ids)
        graph = nx.empty_graph(task.agents, create_using=nx.DiGraph if self.directed else nx.Graph)
        graph.add_weighted_edges_from((source, target, row.weight) for (source, target), row in edges.items())
        return graph


class _Row(NamedTuple):
    """Line of the file that lists an edge, and the edge's weight."""

    line: str
    weight: float


def _read(table: EdgeList, base: Path | None, ids: Sequence[int | str]) -> dict[tuple[int, int], _Row]:
    """Rows of an edge list by (source, target); refuse undirected ones that would have a direction, or two weights."""
    rows: dict[tuple[int, int], _Row] = {}
    directed = table.directed
    ends = ("source", "target")
    for line, (source, target), (weight,) in table.rows(base, ids, ends, ("weight",), PATH[:1], default=1.0):
        edge, first, second = (source, target), str(ids[source]), str(ids[target])
        if weight <= 0:
            raise InputError(f"{line}: weight {weight!r} must be greater than 0", field=PATH)
        if weight > LARGEST_WEIGHT:
            raise InputError(f"{line}: weight {weight!r} must be at most {LARGEST_WEIGHT:g}", field=PATH)
        if edge[0] == edge[1]:
            raise InputError(f"{line}: agent {first!r} cannot be its own neighbour", field=PATH)
        if edge in rows:
            raise InputError(
                f"{line}: the edge {first} - {second} is listed twice, first in line {_number(rows[edge])}", field=PATH
            )
        back = rows.get((edge[1], edge[0]))
        if back is not None and back.weight != weight and not directed:
            raise InputError(
                f"{line}: weight {weight!r} of {first} - {second} is {back.weight!r} in the other direction, in line "
                f"{_number(back)}; {UNDIRECTED}",
                field=PATH,
            )
        rows[edge] = _Row(line, weight)
    one_way = [edge for edge in rows if edge[::-1] not in rows]
    if one_way and len(one_way) < len(rows) and not directed:
        first, second = (ids[agent] for agent in one_way[0])
        raise InputError(
            f"{rows[one_way[0]].line}: the edge {first} - {second} is listed in one direction while others are in "
            f"both; {UNDIRECTED}",
            field=PATH,
        )
    return rows


def _number(row: _Row) -> str:
    return row.line.rpartition(":")[2]
