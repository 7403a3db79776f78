"""The compiled exchange of the benchmarks' gossip, by hand."""

from __future__ import annotations

import numpy as np
from hushnet.agents.blocks import State
from hushnet.agents.compilation.callbacks import compiled_callback
from hushnet.agents.compilation.compiled import REASSOCIATED
from hushnet.agents.tasks.base import Task
from hushnet.protocols.kernel import PLAIN, REQUESTING, UNBOUNDED, PairKernel, PlainCharges
from hushnet.protocols.steps.signatures import EXCHANGE

from .arrays import ranks, table_of, vector
from .coordinate_descent_step import LOSS_CODES, add_gradient

LOGISTIC = LOSS_CODES["logistic"]


@compiled_callback(EXCHANGE, fastmath=REASSOCIATED)  # pragma: no cover - compiled
def step(phase, agent, tick, now, updates, edge, first, last, known, pool, heard, message, table):
    """Say the own model; on hearing the other's, average and step down the own gradient."""
    models, features, labels, regularisation = vector(table, 0), vector(table, 1), vector(table, 2), vector(table, 3)
    constants, gradient, scores, offsets = vector(table, 4), vector(table, 5), vector(table, 6), ranks(table, 7)
    p = len(gradient)
    model = models[agent * p : (agent + 1) * p]
    for k in range(len(message)):
        message[k] = model[k]
    if phase == REQUESTING:
        return PLAIN
    begin, end = offsets[agent], offsets[agent + 1]
    for k in range(p):
        model[k] += (heard[k] - model[k]) / 2.0
        gradient[k] = 2.0 * regularisation[agent] * model[k]
    if end > begin:
        add_gradient(features, labels, begin, end, LOGISTIC, 1.0 / (end - begin), model, gradient, scores)
        for k in range(p):
            model[k] -= constants[0] * gradient[k]
    bad = 0.0
    for k in range(p):
        bad += model[k] * 0.0
    return PLAIN | UNBOUNDED if bad != 0.0 else PLAIN


def make_kernel(task: Task, state: State, step_size: float) -> PairKernel:
    """The kernel of a run on a logistic loss, all of whose agents have rows."""
    arrays = (
        state.agent["model"].values,
        task.train.features,
        task.train.labels,
        task.regularisation,
        np.array([step_size]),
        np.empty(task.dimension),
        np.empty(int(task.train.counts.max())),
        task.train.offsets,
    )
    return PairKernel(step, table_of(arrays), PlainCharges("no noise"))
