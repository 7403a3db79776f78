"""The compiled steps of model propagation without noise, in sessions, in rounds or by broadcast.

Updates (5) and (6) of Vanhaesebrouck et al. 2017, and (16) of Bellet et al. 2018.
"""

from __future__ import annotations

import numpy as np
from hushnet.agents.blocks import State
from hushnet.agents.compilation.callbacks import compiled_callback
from hushnet.agents.compilation.compiled import REASSOCIATED, compiled
from hushnet.agents.graph import Graph
from hushnet.agents.tasks.base import Task
from hushnet.protocols.kernel import PLAIN, REQUESTING, UNBOUNDED, Kernel, PairKernel, PlainCharges
from hushnet.protocols.steps.signatures import EXCHANGE, STEP
from numpy.typing import NDArray

from .arrays import table_of, vector


@compiled(fastmath=REASSOCIATED)
def add_known(weight, row, pool, out):  # pragma: no cover - compiled
    """Add a neighbour's weighted model, as it was heard; the weight that is missing if it never was."""
    if row < 0:
        return weight
    for k in range(len(out)):
        out[k] += weight * pool[row, k]
    return 0.0


@compiled(fastmath=REASSOCIATED)
def update(agent, around, missing, table):  # pragma: no cover - compiled
    """Let a model follow the weighted sum of its neighbours'; those who are missing show its own."""
    models, solitary, pulls, strengths = vector(table, 0), vector(table, 1), vector(table, 2), vector(table, 3)
    begin, mu_c, strength = agent * len(around), pulls[agent], strengths[agent]
    for k in range(len(around)):
        mean = (around[k] + missing * models[begin + k]) / strength
        models[begin + k] = (mean + mu_c * solitary[begin + k]) / (1.0 + mu_c)


@compiled_callback(STEP, fastmath=REASSOCIATED)  # pragma: no cover - compiled
def broadcast(agent, tick, now, updates, first, last, known, pool, rows, table):
    """Update on the newest of all neighbours; the message is the new model."""
    message = pool[rows[0]]
    models, weights = vector(table, 0), vector(table, 4)
    p, missing = len(message), 0.0
    if last > first:
        message[:] = 0.0
        for e in range(first, last):
            missing += add_known(weights[e], known[e], pool, message)
        update(agent, message, missing, table)
    bad = 0.0
    for k in range(p):
        message[k] = models[agent * p + k]
        bad += message[k] * 0.0
    return PLAIN | UNBOUNDED if bad != 0.0 else PLAIN


@compiled_callback(EXCHANGE, fastmath=REASSOCIATED)  # pragma: no cover - compiled
def gossip(phase, agent, tick, now, updates, edge, first, last, known, pool, heard, message, table):
    """Show the own model; on hearing the partner's, keep it and update."""
    models, weights, copies, met = vector(table, 0), vector(table, 4), vector(table, 5), vector(table, 6)
    around = vector(table, 7)
    p, missing = len(around), 0.0
    for k in range(len(message)):
        message[k] = models[agent * p + k]
    if phase == REQUESTING:
        return PLAIN
    met[edge] = 1.0
    for k in range(p):
        copies[edge * p + k] = heard[k]
        around[k] = 0.0
    for e in range(first, last):
        weight = weights[e]
        if met[e] == 0.0:
            missing += add_known(weight, known[e], pool, around)
            continue
        for k in range(p):
            around[k] += weight * copies[e * p + k]
    update(agent, around, missing, table)
    bad = 0.0
    for k in range(p):
        bad += models[agent * p + k] * 0.0
    return PLAIN | UNBOUNDED if bad != 0.0 else PLAIN


def broadcast_kernel(task: Task, graph: Graph, state: State, mu_c: NDArray[np.float64]) -> Kernel:
    """The compiled step of rounds and broadcasts.

    Parameters
    ----------
    task : Task
    graph : Graph
    state : State
        With the blocks ``model`` and ``solitary``.
    pull : (n,) float64
        mu c_i >= 0.
    """
    assert (task.train.counts > 0).all()
    return Kernel(broadcast, table_of(_arrays(graph, state, mu_c)), PlainCharges("models without noise"))


def gossip_kernel(
    task: Task, graph: Graph, state: State, mu_c: NDArray[np.float64], law: NDArray[np.float64]
) -> PairKernel:
    """The compiled exchange of gossip.

    Parameters
    ----------
    task, graph, pull
        As of `broadcast_kernel`.
    state : State
        With the blocks ``model`` and ``solitary``, and ``copy`` and ``met`` of the edges.
    law : (E,) float64
        As of `PairKernel`.
    """
    assert (task.train.counts > 0).all()
    arrays = _arrays(graph, state, mu_c)
    arrays += (state.edge["copy"].values, state.edge["met"].values, np.empty(task.dimension))
    return PairKernel(gossip, table_of(arrays), PlainCharges("models without noise"), law=law)


def _arrays(graph: Graph, state: State, mu_c: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    blocks = state.agent
    arrays = (blocks["model"].values, blocks["solitary"].values, mu_c, graph.strengths, graph.weights)
    return tuple(np.ascontiguousarray(array, dtype=np.float64) for array in arrays)
