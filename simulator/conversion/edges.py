"""Graphs of other programs: GraphML, GML, edge lists, adjacency lists and matrices."""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...agents.errors import InputError
from ...agents.input_files import parse_number, shown
from .cells import Cells, cells_of, read_text

SOURCES, TARGETS = (
    ("source", "from", "src", "u", "node1", "i"),
    ("target", "to", "dst", "destination", "dest", "v", "node2", "j"),
)
WEIGHTS = ("weight", "w", "value")
EITHER = "edges have no direction here: add --undirected if each counts for both"
Edge = tuple[str, str, float, str]
"""Two ends, a weight, and where it is listed."""


def read_edges(path: Path, weight: str | None, notes: list[str], *, either: bool) -> Iterator[Edge]:
    """Read the edges of a graph as they are listed, and note what the file was taken for.

    The suffix names GraphML, GML and adjacency lists; anything else is found out from what the file has. Without a name
    of the weights it is one that is usual, and 1 without any. Raises `InputError` if the file cannot be read, or has
    directions and edges do not count for either one.
    """
    kinds = {".graphml": _graphml, ".gml": _gml}
    suffix = next((one for one in reversed(path.suffixes) if one not in (".gz", ".bz2", ".xz")), "").lower()
    if suffix in kinds:
        graph = kinds[suffix](path, notes)
        yield from _of_networkx(graph, path, weight, notes, either)
        return
    text = read_text(path, notes)
    if text.lstrip().startswith("{"):
        yield from _of_networkx(_of_json(path, text, notes), path, weight, notes, either)
        return
    _refuse_others(path, text)
    table = cells_of(path, text)
    notes += table.notes
    widths = {len(row) for row in table.rows}
    if suffix == ".adjlist" or (len(widths) > 1 and table.header is None and not _has_attributes(table)):
        notes.insert(0, "an adjacency list: a node, then its neighbours")
        found = {cell for row in table.rows if len(row) > 1 for cell in row}
        if alone := [node for node, *others in table.rows if not others and node not in found]:
            notes.append(_without(alone))
        for k, (node, *others) in enumerate(table.rows):
            yield from ((node, other, 1.0, table.at(k)) for other in others)
    elif is_matrix(table):
        yield from _of_matrix(table, notes)
    else:
        yield from _of_list(table, weight, notes)


OTHERS = {
    "gexf": r"<(\?xml|gexf)",
    "pajek": r"\*(vertices|network)",
    "sparse6": r">>sparse6|:\S+\s*\Z",
    "graph6": r">>graph6|[?-~]+\s*\Z",
    "Matrix Market": r"%%MatrixMarket",
    "DOT": r"(strict\s+)?(di)?graph\b[^{\n]*\{",
    "multiline_adjlist": r"(#.*\n)*(\S+) \d+\n(\S+ \{.*\n)",
}
"""Beginnings of other formats that networkx or SciPy read, by the end of the name of what reads them, or their own."""


def _is_metis(text: str) -> bool:
    """True if the first line has numbers of nodes and edges, and the others the neighbours of a node each."""
    head, *lines = [line.split() for line in text.splitlines() if not line.startswith("%")] or [[]]
    named = {one for line in lines for one in line}
    if len(head) != 2 or not all(map(str.isdecimal, [*head, *named])) or len({*map(len, lines)}) < 2:
        return False
    nodes, edges = map(int, head)
    return len(lines) == nodes and sum(map(len, lines)) == 2 * edges


def _refuse_others(path: Path, text: str) -> None:
    """Refuse formats that would be taken for tables, with the command that turns them into what is read."""
    shell = ""
    if re.match(r"(c.*\n)*p (\w+ )?\d+ \d+\s*\n", text):
        name, shell = "DIMACS", f"grep '^[ea] ' {path} | cut -d' ' -f2- > {path.stem}.txt"
    elif _is_metis(text):
        name, shell = "METIS", f"tail -n +2 {path} | awk '{{print NR, $0}}' > {path.stem}.adjlist"
    if shell:
        raise InputError(f"{path}: looks like {name}; turn it into a list first: {shell}")
    for name, beginning in OTHERS.items():
        if re.match(beginning, text.lstrip(), re.IGNORECASE):
            made, read = path.with_suffix(".graphml").name, f"nx.read_{name}({str(path)!r})"
            if name == "Matrix Market":
                read = f"nx.from_scipy_sparse_array(scipy.io.mmread({str(path)!r}))"
            elif name == "DOT":
                read = f"nx.nx_pydot.read_dot({str(path)!r})"
            packages = "networkx as nx, scipy" if name == "Matrix Market" else "networkx as nx"
            line = f"import {packages}; nx.write_graphml({read}, {made!r})"
            raise InputError(f'{path}: looks like {name}; turn it into GraphML first: python3 -c "{line}"')


def _of_json(path: Path, text: str, notes: list[str]) -> Any:
    import networkx as nx

    try:
        data: Any = json.loads(text)
        if "adjacency" in data:
            graph = nx.adjacency_graph(data)
        else:
            graph = nx.node_link_graph(data, edges="links" if "links" in data else "edges")
    except Exception as error:  # whatever networkx raises
        words = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{path}: is no graph of networkx's node_link_data or adjacency_data ({words}); one of cytoscape_data is "
            "read by networkx's cytoscape_graph and written again by node_link_data"
        ) from None
    notes.append("JSON of networkx")
    return graph


def is_matrix(table: Cells) -> bool:
    """Tell whether a table is square and has more than three columns, or numbers alone whose diagonal is zero.

    A list of edges that has as many columns as edges is none, if its header names both ends.
    """
    count = len(table.rows)
    if count < 2 or any(len(row) != count for row in table.rows):
        return False
    if table.column(SOURCES) is not None and table.column(TARGETS) is not None:
        return False
    numbers = [[parse_number(cell) for cell in row] for row in table.rows]
    return count > 3 or all(row[k] == 0 for k, row in enumerate(numbers))


def names_of_matrix(table: Cells) -> list[str]:
    """Return the names of a matrix's nodes; their places where it has none.

    Raises `InputError` if rows are named, and neither counted nor in the order of the columns.
    """
    counted = [[str(k + first) for k in range(len(table.rows))] for first in (0, 1)]
    names = table.header or counted[0]
    if table.row_names in (None, names, *counted):
        return names
    k = next(k for k, name in enumerate(table.row_names) if name != names[k])
    raise InputError(
        f"{table.at(k)}: row {k + 1} of the matrix is called {shown(table.row_names[k])}, and column {k + 1} "
        f"{shown(names[k])}; put both in one order, or write a list"
    )


def _has_attributes(table: Cells) -> bool:
    return any(row[-1].startswith("{") for row in table.rows)


def _graphml(path: Path, notes: list[str]) -> Any:
    import networkx as nx

    text = read_text(path, notes)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError(f"{path}: declares a document type or entities, which GraphML needs none of; delete that part")
    notes.append("GraphML")
    try:
        return nx.read_graphml(io.BytesIO(text.encode()))
    except Exception as error:  # whatever a parser of XML or networkx raises
        raise InputError(f"{path}: cannot be read as GraphML ({error})") from None


def _gml(path: Path, notes: list[str]) -> Any:
    import networkx as nx

    notes.append("GML")
    text = read_text(path, notes)
    try:
        return nx.parse_gml(text)
    except Exception as first:  # without labels, nodes are called by their ids
        try:
            return nx.parse_gml(text, label="id")
        except Exception:
            raise InputError(f"{path}: cannot be read as GML ({first})") from None


def _of_networkx(graph: Any, path: Path, weight: str | None, notes: list[str], either: bool) -> Iterator[Edge]:
    names = (weight,) if weight else WEIGHTS
    listed = list(graph.edges(data=True))
    name = next((one for one in names if any(one in data for *_, data in listed)), None)
    bare = sum(name not in data for *_, data in listed)
    if weight and bare:
        raise InputError(f"{path}: --weight is {weight!r}, which not every edge has")
    some = f"; without one, and so 1: {bare} of {len(listed)} edges" if bare else ""
    notes.append(f"weights as {name!r}{some}" if name else "no weights: every edge weighs 1")
    if alone := [str(node) for node, degree in graph.degree() if degree == 0]:
        notes.append(_without(alone))
    for k, (source, target, data) in enumerate(listed):
        value = parse_number(str(data.get(name, 1.0)))
        if graph.is_directed() and not either and not graph.has_edge(target, source):
            raise InputError(f"{path}: the edge from {source} to {target} has a direction; {EITHER}")
        yield str(source), str(target), value, f"{path}: edge {k + 1}"


def _without(names: list[str]) -> str:
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"nodes without an edge, which a list of edges leaves out: {len(names)} ({shown})"


def _of_matrix(table: Cells, notes: list[str]) -> Iterator[Edge]:
    names = names_of_matrix(table)
    notes.insert(0, f"an adjacency matrix of {len(names)} nodes, whose zeros are no edges")
    met: set[str] = set()
    for i in range(len(names)):
        for j in range(len(names)):
            value = table.number(i, j)
            if value:
                met |= {names[i], names[j]}
                yield names[i], names[j], value, table.at(i)
    if alone := [name for name in names if name not in met]:
        notes.append(_without(alone))


def _of_list(table: Cells, weight: str | None, notes: list[str]) -> Iterator[Edge]:
    first, second = table.column(SOURCES), table.column(TARGETS)
    if table.header is None or first is None or second is None:
        first, second = 0, 1
    third = table.column((weight,) if weight else WEIGHTS)
    if weight and third is None:
        raise InputError(
            f"{table.path}: --weight is {weight!r}, and the columns are {', '.join(table.header or ['unnamed'])}"
        )
    if third is None and table.header is None and len(table.rows[0]) > 2:
        third = 2
    weights = "no weights: every edge weighs 1" if third is None else f"weight in column {third + 1}"
    unread = [name for place, name in enumerate(table.header or ()) if place not in (first, second, third)]
    if third is None and unread:
        weights += f" (--weight {unread[0]} takes that column)"
    notes.insert(0, f"a list of edges: ends in columns {first + 1} and {second + 1}, {weights}")
    for k, row in enumerate(table.rows):
        value = 1.0
        if third is not None and table.cell(k, third).startswith("{"):
            value = _attribute(row[third], weight, table.at(k))
        elif third is not None:
            value = table.number(k, third)
        yield table.cell(k, first), table.cell(k, second), value, table.at(k)


def _attribute(text: str, weight: str | None, where: str) -> float:
    """Return the weight in the attributes of an edge that networkx has written as a dictionary."""
    try:
        data = ast.literal_eval(text)
        names = (weight,) if weight else WEIGHTS
        return float(next((data[name] for name in names if name in data), 1.0))
    except (ValueError, SyntaxError, TypeError, AttributeError, MemoryError, RecursionError):
        raise InputError(f"{where}: {shown(text)} is no dictionary of an edge's attributes") from None


def undirected(edges: Iterator[Edge], either: bool) -> dict[tuple[str, str], float]:
    """Return the weight of each edge once, by its ends in the order in which they were met.

    With ``either``, an edge that is listed in one direction counts for both, also where others are listed in both.
    Raises `InputError` for loops, weights that are not positive, edges with two weights, and where some have a
    direction.
    """
    listed: dict[tuple[str, str], tuple[float, str]] = {}
    for source, target, weight, where in edges:
        if source == target:
            raise InputError(f"{where}: {shown(source)} cannot be its own neighbour; delete this edge")
        if not 0 < weight < float("inf"):
            raise InputError(f"{where}: the weight {weight!r} of {source} - {target} must be greater than 0")
        if (source, target) in listed and listed[source, target][0] != weight:
            raise InputError(f"{where}: {source} - {target} has another weight in {listed[source, target][1]}")
        back = listed.get((target, source))
        if back is not None and back[0] != weight:
            raise InputError(
                f"{where}: {source} - {target} weighs {weight!r}, and {back[0]!r} the other way in {back[1]}"
            )
        listed[source, target] = weight, where
    one_way = [edge for edge in listed if edge[::-1] not in listed]
    if one_way and len(one_way) < len(listed) and not either:
        where, ends = listed[one_way[0]][1], " - ".join(one_way[0])
        raise InputError(f"{where}: {ends} is listed in one direction while others are in both; {EITHER}")
    kept: dict[tuple[str, str], float] = {}
    for (source, target), (weight, _) in listed.items():
        if (target, source) not in kept:
            kept[source, target] = weight
    return kept
