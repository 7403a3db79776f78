"""The floors of protocols over split columns: ADMM sharing, in rounds and stale, and minibatch gradients.

A party's columns are rows of one array, so that both products with them run along memory. The loss is logistic.
"""

from __future__ import annotations

import math

import numpy as np
from hushnet.agents.optimisation.splitting import TOLERANCE
from hushnet.protocols.algorithms.split_features import CENTRE
from hushnet.simulator.world.world import World
from scipy.linalg import cholesky

from .base import Floor, Plan, inner, loop


class ColumnsFloor(Floor):
    """What parties hold; agents by turns are the centre and the parties."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        assert world.setting.task.loss.name == "logistic"
        held = [world.peers[party].data.features.T for party in range(1, len(world.agents))]
        self.columns = np.ascontiguousarray(np.vstack(held))
        self.first = np.concatenate([[0], np.cumsum([len(one) for one in held])])
        self.labels = world.setting.task.train.labels
        self.x = np.zeros(len(self.columns))
        rows, parties = len(self.labels), len(held)
        self.sent, self.gap = np.zeros((parties, rows + 1)), np.zeros(rows)
        self.z, self.y = np.zeros(rows), np.zeros(rows)

    def factors(self, ratio: float) -> np.ndarray:
        """Lower factors of every party's D'D + ratio I, below one another."""
        widths = np.diff(self.first)
        out = np.zeros((len(self.x), widths.max()))
        for first, last in zip(self.first[:-1], self.first[1:], strict=True):
            own = self.columns[first:last]
            out[first:last, : last - first] = cholesky(own @ own.T + ratio * np.eye(len(own)), lower=True)
        return out

    def models(self) -> np.ndarray:
        """See `Floor.models`: the parts put together, in the centre's row."""
        models = np.zeros((len(self.first), len(self.x)))
        task = self.world.setting.task
        assert task.columns is not None
        models[CENTRE, np.concatenate(task.columns[1:])] = self.x
        return models


class SharingFloor(ColumnsFloor):
    """(6) to (8) of Hu et al. 2019, all parties at once; every second wake-up of anybody is idle."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._factors = self.factors(self.parameters.ridge / self.parameters.rho)

    def run(self, plan: Plan) -> None:
        """See `Floor.run`."""
        epochs = len(plan.agents) // (2 * len(self.first))
        share(epochs, self.parameters.rho, self.columns, self.first, self._factors, self.labels, self.x, self.sent,
              self.gap, self.z, self.y)  # fmt: skip


class StaleFloor(ColumnsFloor):
    """The same by wake-ups, with bounded staleness."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        given = self.parameters
        self._factors = self.factors(given.ridge / (given.rho * (1 + given.damping)))
        self._told, self._step = np.zeros_like(self.sent), np.zeros(1)
        self._limit = math.inf if given.staleness == "unbounded" else float(given.staleness)

    def run(self, plan: Plan) -> None:
        """See `Floor.run`."""
        given = self.parameters
        answer(plan.agents, given.rho, given.damping, self._limit, self.columns, self.first, self._factors, self.labels,
               self.x, self.sent, self._told, self.z, self.y, self._step)  # fmt: skip


class MinibatchFloor(ColumnsFloor):
    """Minibatches through the common order of rows; every second wake-up of anybody is idle."""

    def run(self, plan: Plan) -> None:
        """See `Floor.run`; from the beginning."""
        given, protocol = self.parameters, self.world.protocol
        batches = len(plan.agents) // (2 * len(self.first))
        self.x[:] = 0.0
        order, batch = getattr(protocol, "order"), getattr(protocol, "batch")  # noqa: B009 - of one protocol only
        descend(batches, order, batch, given.ridge, given.step_size, given.decay, self.columns, self.labels, self.x)


@inner
def fit(first, last, columns, factors, target, x):  # pragma: no cover - compiled
    """A party's part x = (D'D + ratio I)^-1 D' target, by its factor."""
    rows = columns.shape[1]
    for c in range(first, last):
        total = 0.0
        for k in range(rows):
            total += columns[c, k] * target[k]
        for j in range(c - first):
            total -= factors[c, j] * x[first + j]
        x[c] = total / factors[c, c - first]
    for c in range(last - 1, first - 1, -1):
        total = x[c]
        for other in range(c + 1, last):
            total -= factors[other, c - first] * x[other]
        x[c] = total / factors[c, c - first]


@inner
def scores(first, last, columns, x, out):  # pragma: no cover - compiled
    """D x."""
    out[:] = 0.0
    for c in range(first, last):
        for k in range(len(out)):
            out[k] += x[c] * columns[c, k]


@inner
def split(labels, rho, total, z, y):  # pragma: no cover - compiled
    """(7) and (8): a scalar problem a row, by Newton's method within a bracket, as `minimise_rows` has it."""
    for k in range(len(labels)):
        linear, label = y[k] + rho * total[k], labels[k]
        low, high, point, last = (linear - 1.0) / rho, (linear + 1.0) / rho, linear / rho, math.inf
        limit = TOLERANCE + 1e-14 * abs(linear)
        for _ in range(200):
            share = 1.0 / (1.0 + math.exp(label * point))
            residual = -label * share + rho * point - linear
            if abs(residual) <= limit:
                break
            if residual < 0.0:
                low = point
            else:
                high = point
            trial = point - residual / (share * (1.0 - share) + rho)
            slow = abs(residual) > 0.5 * last or trial < low or trial > high
            last = abs(residual)
            point = 0.5 * (low + high) if slow else trial
        z[k] = point
        y[k] += rho * (total[k] - point)


@loop
def share(epochs, rho, columns, first, factors, labels, x, sent, gap, z, y):  # pragma: no cover - compiled
    """Epochs: all parties, then the centre."""
    rows, parties = len(labels), len(first) - 1
    target, total = np.empty(rows), np.empty(rows)
    for _ in range(epochs):
        total[:] = 0.0
        for m in range(parties):
            for k in range(rows):
                target[k] = sent[m, k] - gap[k] - y[k] / rho
            fit(first[m], first[m + 1], columns, factors, target, x)
            scores(first[m], first[m + 1], columns, x, sent[m, :rows])
            for k in range(rows):
                total[k] += sent[m, k]
        split(labels, rho, total, z, y)
        for k in range(rows):
            gap[k] = total[k] - z[k]


@loop
def answer(
    order, rho, damping, limit, columns, first, factors, labels, x, sent, told, z, y, step
):  # pragma: no cover - compiled
    """Wake-ups of the centre (0) and of parties, each with the newest of the other side."""
    rows, parties = len(labels), len(first) - 1
    total = np.empty(rows)
    for agent in order:
        m = agent - 1
        if m >= 0:
            if told[m, rows] > sent[m, rows]:
                fit(first[m], first[m + 1], columns, factors, told[m, :rows], x)
                scores(first[m], first[m + 1], columns, x, sent[m, :rows])
                sent[m, rows] = told[m, rows]
            continue
        if step[0] - sent[:, rows].min() >= limit:
            continue
        total[:] = 0.0
        for m in range(parties):
            for k in range(rows):
                total[k] += sent[m, k]
        split(labels, rho, total, z, y)
        step[0] += 1.0
        for m in range(parties):
            for k in range(rows):
                told[m, k] = sent[m, k] - (total[k] - z[k] + y[k] / rho) / (1.0 + damping)
            told[m, rows] = step[0]


@loop
def descend(batches, order, batch, ridge, step_size, decay, columns, labels, x):  # pragma: no cover - compiled
    """Steps of all parties against the mean gradient of one batch after the other; the last batch is only scored."""
    rows = len(labels)
    total = np.empty(batch)
    for number in range(batches):
        total[:] = 0.0
        for c in range(len(x)):
            for k in range(batch):
                total[k] += x[c] * columns[c, order[(number * batch + k) % rows]]
        for k in range(batch):
            label = labels[order[(number * batch + k) % rows]]
            total[k] = -label / (1.0 + math.exp(label * total[k]))
        if number == batches - 1:
            break
        length = step_size / (1.0 + decay * number)
        for c in range(len(x)):
            gradient = 0.0
            for k in range(batch):
                gradient += total[k] * columns[c, order[(number * batch + k) % rows]]
            x[c] -= length * (gradient / batch + ridge / rows * x[c])
