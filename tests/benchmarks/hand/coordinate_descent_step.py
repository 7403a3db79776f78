"""The compiled step of non-private coordinate descent: update (4) of Bellet et al. 2018, for every loss."""

from __future__ import annotations

import math

import numpy as np
from hushnet.agents.blocks import State
from hushnet.agents.compilation.callbacks import compiled_callback
from hushnet.agents.compilation.compiled import REASSOCIATED, compiled
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES
from hushnet.agents.tasks.base import Task
from hushnet.protocols.kernel import PLAIN, SILENT, UNBOUNDED, Kernel, PlainCharges
from hushnet.protocols.steps.signatures import STEP

from .arrays import ranks, table_of, vector

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
def step(agent, tick, now, updates, first, last, known, pool, rows, table):  # pragma: no cover - compiled
    """Update (4) of one agent; the message is its new model."""
    message = pool[rows[0]]
    models, alphas, pulls, features = vector(table, 0), vector(table, 1), vector(table, 2), vector(table, 3)
    labels, weights, regularisation = vector(table, 4), vector(table, 5), vector(table, 6)
    scores, cached_losses = vector(table, 7), vector(table, 8)
    offsets, limits = ranks(table, 9), ranks(table, 10)
    p = len(message)
    model = models[agent * p : (agent + 1) * p]
    alpha, mu_c, begin, end = alphas[agent], pulls[agent], offsets[agent], offsets[agent + 1]
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
    scale = 1.0
    if last > first:
        scale = missing / total
        for k in range(p):
            message[k] /= total
    # message = around - pull * gradient
    rows = end - begin
    decay = scale - (mu_c * 2.0 * regularisation[agent] if rows > 0 else 0.0)
    for k in range(p):
        message[k] += decay * model[k]
    if rows > 0:
        add_gradient(features, labels, begin, end, limits[1], -mu_c / rows, model, message, scores)
    if len(cached_losses) > 0 and math.isnan(cached_losses[agent]):
        cached_losses[agent] = summed_losses(scores, labels, begin, end, limits[1]) / max(rows, 1)
    bad = 0.0
    for k in range(p):
        message[k] = (1.0 - alpha) * model[k] + alpha * message[k]
        model[k] = message[k]
        bad += model[k] * 0.0
    code = PLAIN if rows > 0 else 0
    if updates + 1 >= limits[0]:
        code |= SILENT
    return code | UNBOUNDED if bad != 0.0 else code


def make_kernel(task: Task, graph: Graph, state: State, limit: int | None) -> Kernel:
    """The kernel of a run with one of hushnet's own smooth losses; neighbours that were never heard count as own.

    Parameters
    ----------
    task : Task
    graph : Graph
    state : State
        With the blocks ``model``, ``alpha`` and ``pull``.
    limit : int, optional
        An agent falls silent after so many updates.
    """
    assert type(task.loss) is type(LOSSES[task.loss.name])
    cached_losses, blocks = np.zeros(task.agents), state.agent
    arrays = (
        blocks["model"].values,
        blocks["alpha"].values,
        blocks["mu_c"].values,
        np.asarray(task.train.features, dtype=np.float64),
        task.train.labels,
        graph.weights,
        task.regularisation,
        np.empty(int(task.train.counts.max())),
        cached_losses,
        task.train.offsets,
        np.array([np.iinfo(np.int64).max if limit is None else limit, LOSS_CODES[task.loss.name]]),
    )
    return Kernel(step, table_of(arrays), PlainCharges("no noise"), cached_losses)
