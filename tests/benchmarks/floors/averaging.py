"""The floors of dual averaging: in rounds, and by running totals (push-sum)."""

from __future__ import annotations

import math

import numpy as np
from hushnet.agents.streams import choose
from hushnet.simulator.world.world import World

from .base import Floor, Plan, begin_stream, inner, loop


class AveragingFloor(Floor):
    """Updates (2) to (5) of Liu et al. 2022, in rounds; duals are what was sent, and start at 0."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._sent, self._put_in, self._average = self.block("sent"), self.block("put_in"), self.block("average")
        self._round = 0

    def run(self, plan: Plan) -> None:
        """See `Floor.run`."""
        self._round = mix(
            plan.agents,
            plan.rows,
            self._round,
            self._sent,
            self._put_in,
            self._average,
            *self.graph,
            np.ascontiguousarray(self.constants["mixing"]),
            *self.data,
            *_weights(self),
            plan.itself,
            self.streams["sampling"],
            self.numbers,
        )

    def models(self) -> np.ndarray:
        """See `Floor.models`."""
        return self._average


class PushSumFloor(Floor):
    """Running totals over edges, steps weighted by time."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._arrays = tuple(self.block(name) for name in ("mass", "put_in", "average", "progress", "given", "taken"))
        self._ticks = np.zeros(len(self.numbers), dtype=np.int64)

    def run(self, plan: Plan) -> None:
        """See `Floor.run`."""
        luck = (plan.itself, self.streams["sampling"], self.numbers, self._ticks)
        arrays = (*self._arrays, *self.graph, self.reverse, *self.data, *_weights(self), *luck)
        push(plan.agents, plan.times, plan.rows, *arrays)

    def models(self) -> np.ndarray:
        """See `Floor.models`."""
        return self._arrays[2]


def _weights(floor: Floor) -> tuple[bool, float, float, float]:
    given = floor.parameters
    return given.step_weights == "linear", given.mu, given.gamma, float(floor.constants["growth"])


@inner
def total_weight(linear, t):  # pragma: no cover - compiled
    """A(t)."""
    return t * (t + 1.0) / 2.0 if linear else t


@inner
def learn(
    i, t, since, dual, drawn, average, features, labels, rows, linear, mu, gamma, growth, model, gain
):  # pragma: no cover - compiled
    """Model of a dual and its share of the average; fills the gain, the weighted gradient at the model."""
    p = len(model)
    total = total_weight(linear, t)
    weight = total - total_weight(linear, since)
    scale = -1.0 / (mu * total + gamma + growth * math.sqrt(t))
    for d in range(p):
        model[d] = dual[d] * scale
        average[i, d] += weight / total * (model[d] - average[i, d])
    gain[:] = 0.0
    first = rows[i]
    count = len(drawn) if len(drawn) > 0 else rows[i + 1] - first
    for k in range(count):
        row = first + (drawn[k] if len(drawn) > 0 else k)
        score = 0.0
        for d in range(p):
            score += features[row, d] * model[d]
        factor = weight * -labels[row] / (1.0 + math.exp(labels[row] * score)) / count
        for d in range(p):
            gain[d] += factor * features[row, d]


@loop
def mix(
    order, drawn, rounds, sent, put_in, average, offsets, heads, mixing, features, labels, rows, linear, mu, gamma,
    growth, itself, stream, numbers,
):  # pragma: no cover - compiled  # fmt: skip
    """Rounds, from the duals that were sent in the round before; how many there were by the end."""
    agents, p = sent.shape
    before, dual, model, gain = sent.copy(), np.empty(p), np.empty(p), np.empty(p)
    batch, taken_rows = drawn.shape[1], np.empty(drawn.shape[1], dtype=np.int64)
    for k in range(len(order)):
        if k % agents == 0:
            before[:] = sent
            rounds += 1
        i, own = order[k], 1.0
        dual[:] = 0.0
        for e in range(offsets[i], offsets[i + 1]):
            own -= mixing[e]
            for d in range(p):
                dual[d] += mixing[e] * before[heads[e], d]
        for d in range(p):
            dual[d] += own * before[i, d]
        own_rows = drawn[k]
        if itself and batch > 0:
            own_rows = taken_rows[: min(batch, rows[i + 1] - rows[i])]
            begin_stream(stream, rounds - 1, numbers[i])
            choose(stream.rng, rows[i + 1] - rows[i], own_rows)
        learn(i, float(rounds), rounds - 1.0, dual, own_rows, average, features, labels, rows, linear, mu, gamma,
              growth, model, gain)  # fmt: skip
        for d in range(p):
            put_in[i, d] += gain[d]
            sent[i, d] = dual[d] + gain[d]
    return rounds


@loop
def push(
    order, times, drawn, mass, put_in, average, since, given, taken, offsets, heads, reverse, features, labels, rows,
    linear, mu, gamma, growth, itself, stream, numbers, ticks,
):  # pragma: no cover - compiled  # fmt: skip
    """Wake-ups: take in, step, and give to those that have given since."""
    p = average.shape[1]
    dual, model, gain = np.empty(p), np.empty(p), np.empty(p)
    batch, taken_rows = drawn.shape[1], np.empty(drawn.shape[1], dtype=np.int64)
    for k in range(len(order)):
        i, now = order[k], times[k]
        ticks[i] += 1
        degree = offsets[i + 1] - offsets[i]
        answered = 0
        for e in range(offsets[i], offsets[i + 1]):
            total = given[reverse[e]]
            if total[p] > taken[e, p] or given[e, p] == 0.0:
                answered += 1
        if answered == 0 and degree > 0:
            continue
        to = np.zeros(degree, dtype=np.bool_)
        for e in range(offsets[i], offsets[i + 1]):
            total = given[reverse[e]]
            more = total[p] > taken[e, p]
            to[e - offsets[i]] = more or given[e, p] == 0.0
            if more:
                for d in range(p + 1):
                    mass[i, d] += total[d] - taken[e, d]
                    taken[e, d] = total[d]
        if now != since[i, 0]:
            for d in range(p):
                dual[d] = mass[i, d] / mass[i, p]
            own_rows = drawn[k]
            if itself and batch > 0:
                own_rows = taken_rows[: min(batch, rows[i + 1] - rows[i])]
                begin_stream(stream, ticks[i] - 1, numbers[i])
                choose(stream.rng, rows[i + 1] - rows[i], own_rows)
            learn(i, now, since[i, 0], dual, own_rows, average, features, labels, rows, linear, mu, gamma, growth,
                  model, gain)  # fmt: skip
            since[i, 0] = now
            for d in range(p):
                mass[i, d] += gain[d]
                put_in[i, d] += gain[d]
        share = 1.0 / (1.0 + degree)
        for rank in range(degree):
            if to[rank]:
                for d in range(p + 1):
                    given[offsets[i] + rank, d] += share * mass[i, d]
        kept = 1.0 - answered * share
        for d in range(p + 1):
            mass[i, d] *= kept
