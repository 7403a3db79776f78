"""The floor: what the arithmetic and the memory traffic of a run cost in compiled code, without clocks or network.

An engine cannot be quicker than this, so its time is given as a multiple of it. Sums may be reassociated, because a
compiled step may do so too.
"""

from __future__ import annotations

import math
import time

import numba
import numpy as np
from hushnet.simulator.network.setting import Setting

from .cases import SEED, STEP_SIZE, Family, step_constants

FAST = {"reassoc", "contract", "nsz", "arcp"}


class Floor:
    """The compiled loop of one setting; `run` may be called again and again.

    Parameters
    ----------
    setting : Setting
    family : str
    wake_ups : int
        How many updates one call makes.
    """

    def __init__(self, setting: Setting, family: Family, wake_ups: int) -> None:
        rng = np.random.default_rng(SEED)
        task, graph = setting.task, setting.graph
        self.family, self.wake_ups = family, wake_ups
        self.order = rng.integers(0, task.agents, wake_ups)
        self.models = np.zeros((task.agents, task.dimension))
        self.graph = (graph.offsets, graph.heads, graph.weights)
        self.data = (task.train.features, task.train.labels, task.train.offsets, task.regularisation)
        self.constants = step_constants(task)
        self.partners = rng.random(wake_ups) if family == "gossip" else np.empty(0)

    def run(self) -> tuple[float, int]:
        """Seconds, and the number of updates made."""
        began = time.process_time()
        if self.family == "broadcast":
            made = descend(self.order, self.models, *self.graph, *self.data, *self.constants)
        elif self.family == "gossip":
            made = meet(self.order, self.partners, self.models, *self.graph[:2], *self.data, STEP_SIZE)
        else:
            made = synchronous(self.wake_ups, self.models, *self.graph, *self.data, *self.constants)
        return time.process_time() - began, made


@numba.njit(fastmath=FAST)
def add_gradient(model, features, labels, first, last, regularisation, scale, out):  # pragma: no cover - compiled
    """Add a multiple of the gradient of the mean logistic loss over an agent's rows to a vector."""
    p = len(model)
    for k in range(first, last):
        row = features[k]
        score = 0.0
        for d in range(p):
            score += row[d] * model[d]
        factor = scale * -labels[k] / (1.0 + math.exp(labels[k] * score)) / (last - first)
        for d in range(p):
            out[d] += factor * row[d]
    for d in range(p):
        out[d] += scale * 2.0 * regularisation * model[d]


@numba.njit(fastmath=FAST)
def update(
    i, before, model, target, offsets, heads, weights, features, labels, rows, regularisation, alpha, mu_c
):  # pragma: no cover - compiled
    """Step of coordinate descent by one agent, from the given models of its neighbours."""
    p = len(model)
    target[:] = 0.0
    total = 0.0
    for e in range(offsets[i], offsets[i + 1]):
        total += weights[e]
    for e in range(offsets[i], offsets[i + 1]):
        share = weights[e] / total
        other = before[heads[e]]
        for d in range(p):
            target[d] += share * other[d]
    add_gradient(model, features, labels, rows[i], rows[i + 1], regularisation[i], -mu_c[i], target)
    for d in range(p):
        model[d] += alpha[i] * (target[d] - model[d])


@numba.njit(fastmath=FAST)
def descend(
    order, models, offsets, heads, weights, features, labels, rows, regularisation, alpha, mu_c
):  # pragma: no cover - compiled
    """Coordinate descent by agents in the given order; everybody reads its neighbours' present models."""
    target = np.empty(models.shape[1])
    made = 0
    for i in order:
        update(
            i, models, models[i], target, offsets, heads, weights, features, labels, rows, regularisation, alpha, mu_c
        )
        made += 1
    return made


@numba.njit(fastmath=FAST)
def synchronous(
    updates, models, offsets, heads, weights, features, labels, rows, regularisation, alpha, mu_c
):  # pragma: no cover - compiled
    """Rounds of coordinate descent until so many updates are made; everybody reads models of the round before."""
    target = np.empty(models.shape[1])
    before = models.copy()
    made = 0
    while made < updates:
        i = made % len(models)
        if i == 0:
            before[:] = models
        update(
            i, before, models[i], target, offsets, heads, weights, features, labels, rows, regularisation, alpha, mu_c
        )
        made += 1
    return made


@numba.njit(fastmath=FAST)
def meet(
    order, partners, models, offsets, heads, features, labels, rows, regularisation, step_size
):  # pragma: no cover - compiled
    """Exchanges of agents in the given order with random neighbours: both ends average and take a gradient step."""
    p = models.shape[1]
    target = np.empty(p)
    made = 0
    for k in range(len(order)):
        i = order[k]
        j = heads[offsets[i] + int(partners[k] * (offsets[i + 1] - offsets[i]))]
        for d in range(p):
            mean = 0.5 * (models[i, d] + models[j, d])
            models[i, d] = mean
            models[j, d] = mean
        for end in (i, j):
            target[:] = models[end]
            add_gradient(
                models[end], features, labels, rows[end], rows[end + 1], regularisation[end], -step_size, target
            )
            models[end] = target
        made += 1
    return made
