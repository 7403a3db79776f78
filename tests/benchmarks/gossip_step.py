"""The compiled exchange of the benchmarks' gossip: what `hushnet.simulator.fast.exchanges` can make of a protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np
from hushnet.agents.compiled import REASSOCIATED
from hushnet.protocols.coordinate_descent_step import LOSS_CODES, add_gradient
from hushnet.protocols.kernel import EXCHANGE, OFFER, PairKernel

if TYPE_CHECKING:
    from hushnet.agents.blocks import State
    from hushnet.agents.tasks.base import Task

LOGISTIC = LOSS_CODES["logistic"]


# Not cached: tests and the command import this file under different names, which the cache does not survive.
@numba.cfunc(EXCHANGE, fastmath=REASSOCIATED)  # pragma: no cover - compiled
def step(phase, agent, edge, updates, first, last, known, pool, own, heard, message, reals, wholes, singles):
    """Say the own model; on hearing the other's, average and step down the own gradient."""
    models, features, labels, regularisation, constants, gradient, scores, _, _ = reals
    offsets = wholes[0]
    p = len(gradient)
    model = models[agent * p : (agent + 1) * p]
    for k in range(len(message)):
        message[k] = model[k]
    if phase == OFFER:
        return
    begin, end = offsets[agent], offsets[agent + 1]
    for k in range(p):
        model[k] += (heard[k] - model[k]) / 2.0
        gradient[k] = 2.0 * regularisation[agent] * model[k]
    if end > begin:
        add_gradient(features, labels, begin, end, LOGISTIC, 1.0 / (end - begin), model, gradient, scores)
        for k in range(p):
            model[k] -= constants[0] * gradient[k]


def make_kernel(task: Task, state: State, step_size: float) -> PairKernel:
    """The kernel of a run on a logistic loss."""
    model = state.agent["model"]
    return PairKernel(
        step,
        (
            model.values,
            task.train.features.reshape(-1),
            task.train.labels,
            task.regularisation,
            np.array([step_size]),
            np.empty(task.dimension),
            np.empty(int(task.train.counts.max())),
        ),
        (task.train.offsets,),
        model.rows,
        np.ones(task.agents, dtype=bool),
        "no noise",
    )
