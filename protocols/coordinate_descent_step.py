"""The compiled step of non-private coordinate descent: update (4) of Bellet et al. 2018, for every loss."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..agents.blocks import State
from ..agents.compiled import REASSOCIATED, compiled, compiled_callback
from ..agents.graph import Graph
from ..agents.losses import LOSSES
from ..agents.tables import Shard
from ..agents.tasks.base import Task
from .kernel import STEP, Kernel

LOSS_CODES = {"logistic": 0, "squared": 1, "smoothed_hinge": 2}
MANY = 1e100
"""A product of factors between 1 and 2 that can take some more without overflow."""


@compiled(fastmath=REASSOCIATED)
def add_gradient(features, labels, begin, end, loss, scale, model, out, scores):  # pragma: no cover - compiled
    """Add a multiple of the summed loss gradients of some rows, in one pass over each for its score and its share.

    The scores are left in the first places of ``scores``.
    """
    p = len(model)
    for row in range(begin, end):
        x = features[row * p : (row + 1) * p]
        score = 0.0
        for k in range(p):
            score += x[k] * model[k]
        scores[row - begin] = score
        y = labels[row]
        if loss == 0:
            slope = -y / (1.0 + math.exp(y * score))
        elif loss == 1:
            slope = 2.0 * (score - y)
        else:
            slope = -y * min(max(1.0 - y * score, 0.0), 1.0)
        share = scale * slope
        for k in range(p):
            out[k] += share * x[k]


@compiled(fastmath=REASSOCIATED)
def summed_losses(scores, labels, begin, end, loss):  # pragma: no cover - compiled
    """Sum of the losses of some rows, whose scores are in the first places of ``scores``."""
    total, factor = 0.0, 1.0
    for row in range(begin, end):
        score, y = scores[row - begin], labels[row]
        if loss == 0:
            # log(1 + exp(-z)) = log(1 + exp(-|z|)) - min(z, 0); one logarithm of a product serves many rows.
            factor *= 1.0 + math.exp(-abs(y * score))
            total -= min(y * score, 0.0)
            if factor > MANY:
                total += math.log(factor)
                factor = 1.0
        elif loss == 1:
            total += (score - y) ** 2
        else:
            gap = 1.0 - y * score
            within = min(max(gap, 0.0), 1.0)
            total += within * (gap - 0.5 * within)
    return total + math.log(factor)


@compiled_callback(STEP, fastmath=REASSOCIATED)
def step(agent, updates, first, last, known, pool, own, message, reals, wholes, singles):  # pragma: no cover - compiled
    """Update (4) of one agent; the message is its new model."""
    models, alphas, pulls, features, labels, weights, regularisation, scores, noted = reals
    offsets, limits, _, _ = wholes
    p = len(message)
    model = models[agent * p : (agent + 1) * p]
    alpha, pull, begin, end = alphas[agent], pulls[agent], offsets[agent], offsets[agent + 1]
    message[:] = 0.0
    total, missing = 0.0, 0.0
    for e in range(first, last):
        total += weights[e]
        if known[e] < 0:
            missing += weights[e]
            continue
        heard = pool[known[e]]
        weight = weights[e]
        for k in range(p):
            message[k] += weight * heard[k]
    if not own:
        missing = 0.0
    scale = 1.0
    if last > first:
        scale = missing / total
        for k in range(p):
            message[k] /= total
    # message = around - pull * gradient
    rows = end - begin
    decay = scale - (pull * 2.0 * regularisation[agent] if rows > 0 else 0.0)
    for k in range(p):
        message[k] += decay * model[k]
    if rows > 0 and len(singles[0]) > 0:
        add_gradient(singles[0], labels, begin, end, limits[1], -pull / rows, model, message, scores)
    elif rows > 0:
        add_gradient(features, labels, begin, end, limits[1], -pull / rows, model, message, scores)
    if len(noted) > 0 and math.isnan(noted[agent]):
        noted[agent] = summed_losses(scores, labels, begin, end, limits[1]) / max(rows, 1)
    for k in range(p):
        message[k] = (1.0 - alpha) * model[k] + alpha * message[k]
        model[k] = message[k]
    return updates + 1 >= limits[0]


def make_kernel(task: Task, graph: Graph, state: State, shards: list[Shard] | None, limit: int | None) -> Kernel | None:
    """The kernel of a run; None for a loss without compiled form.

    Parameters
    ----------
    task : Task
    graph : Graph
    state : State
        With the blocks ``model``, ``alpha`` and ``pull``.
    shards : list of Shard, optional
        The agents' rows, where they are not the task's own.
    limit : int, optional
        An agent falls silent after so many updates.
    """
    # A loss of somebody's own may have any name.
    if task.loss.name not in LOSS_CODES or type(task.loss) is not type(LOSSES[task.loss.name]):
        return None
    features, noted = task.train.features, np.zeros(task.agents)
    if shards is not None:
        features, noted = np.concatenate([shard.features for shard in shards]), np.empty(0)
    singles = ()
    if features.dtype == np.float32:
        features, singles = np.empty(0), (np.ascontiguousarray(features, dtype=np.float32).reshape(-1),)
    blocks = state.agent
    code = LOSS_CODES[task.loss.name]
    return Kernel(
        step,
        (
            blocks["model"].values,
            blocks["alpha"].values,
            blocks["pull"].values,
            _flat(features),
            _flat(task.train.labels),
            _flat(graph.weights),
            _flat(task.regularisation),
            np.empty(int(task.train.counts.max())),
            noted,
        ),
        (task.train.offsets, np.array([np.iinfo(np.int64).max if limit is None else limit, code])),
        blocks["model"].rows,
        task.train.counts > 0,
        "no noise",
        singles,
        noted,
    )


def _flat(array: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.ascontiguousarray(array, dtype=np.float64).reshape(-1)
