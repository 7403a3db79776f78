"""Loaders of the values that a step names, for a batch and for the record of one agent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.graph import Graph
from .batch_record import Batch
from .record import One, column, fixed, segments
from .tables import StepTables

Array = NDArray[np.float64]


def loaders_of(tables: StepTables) -> dict[str, Callable[[Batch], Any]]:
    """Return the loaders by which a batch finds the values that a step may name, by name."""
    names, state, graph = tables.names, tables.state, tables.graph
    found: dict[str, Callable[[Batch], Any]] = {
        "degrees_": lambda me: graph.degrees.take(me.agents_),
        "decays_": lambda me: tables.decays.take(me.agents_),
        "data_": lambda me: me.source_.rows(),
        "edges_": lambda me: segments(graph.offsets[me.agents_], me.degrees_),
        "edge_starts_": lambda me: np.concatenate([[0], np.cumsum(me.degrees_)]),
        "partner_": lambda me: me.edge_starts_[:-1] + me.passing_["edge"] - graph.offsets[me.agents_],
        "here": lambda me: me.here_(),
        "updates": lambda me: me.passing_["updates"][:, None],
        "tick": lambda me: me.passing_["tick"][:, None],
        "round": lambda me: me.passing_["updates"][:, None] + 1,
        "now": lambda me: me.passing_["now"][:, None],
        "degree": lambda me: me.degrees_[:, None],
        "rows": lambda me: tables.counts[me.agents_][:, None],
        "regularisation": lambda me: tables.task.regularisation[me.agents_][:, None],
        "neighbours": lambda me: graph.heads[me.edges_][:, None],
        "weights": lambda me: graph.weights[me.edges_][:, None],
        "agent": lambda me: me.agents_[:, None],
        "role": lambda me: names.roles[me.agents_][:, None],
    }
    if "step" in tables.protocol.step_functions:
        del found["here"], found["partner_"]
    for name, value in names.parameters.items():
        known = np.float64(value) if isinstance(value, float) else value
        found[name] = partial(_constant, known)
    for name, array in names.run.items():
        found[name] = partial(_constant, fixed(array))
    for name, array in names.per_agent.items():
        found[name] = partial(_rows_of, column(array))
    for name, array in names.per_edge.items():
        found[name] = partial(_edges_of, column(array))
    for name, (what, kind) in names.heard.items():
        found[name] = partial(_heard_of, what, kind)
    found.update({name: partial(_block_of, name) for name in state.agent})
    found.update({name: partial(_edge_block_of, name) for name in state.edge})
    return found


def loaders_of_one(tables: StepTables) -> dict[str, Callable[[One], Any]]:
    """Return the loaders of values that depend on one agent, for its record, by name; blocks of vectors need none."""
    names, graph = tables.names, tables.graph
    found: dict[str, Callable[[One], Any]] = {
        "round": lambda me: me.updates + 1,
        "rows": lambda me: int(tables.counts[me.agent]),
        "regularisation": lambda me: np.float64(tables.task.regularisation[me.agent]),
        "weights": lambda me: fixed(graph.weights[graph.edges_of(me.agent)]),
        "role": lambda me: str(names.roles[me.agent]),
        "neighbours": lambda me: fixed(graph.heads[graph.edges_of(me.agent)]),
        "data": lambda me: me.source_.shard(me.agent),
        "features": lambda me: me.source_.shard(me.agent).read_only.features,
        "labels": lambda me: me.source_.shard(me.agent).read_only.labels,
    }
    for name, array in names.per_agent.items():
        found[name] = partial(_own_row, array)
    for name, array in names.per_edge.items():
        found[name] = partial(_own_edges, array, graph)
    for name, (what, kind) in names.heard.items():
        found[name] = partial(_heard, what, kind)
    return found


def _own_row(array: Array, me: One) -> Any:
    return fixed(array[me.agent])


def _own_edges(array: Array, graph: Graph, me: One) -> Any:
    return fixed(array[graph.edges_of(me.agent)])


def _heard(what: str, kind: str, me: One) -> Any:
    return fixed(me.of_heard_(what, kind))


def _constant(value: Any, _: Batch) -> Any:
    return value


def _rows_of(array: Array, me: Batch) -> Array:
    return array.take(me.agents_, 0)


def _edges_of(array: Array, me: Batch) -> Array:
    return array.take(me.edges_, 0)


def _heard_of(what: str, kind: str, me: Batch) -> Any:
    return me.of_heard_(what, kind)


def _block_of(name: str, me: Batch) -> Array:
    return me.block_(name)


def _edge_block_of(name: str, me: Batch) -> Array:
    return me.edge_block_(name)
