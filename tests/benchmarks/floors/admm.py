"""The floors of consensus ADMM: in rounds, perturbed or not, and in pairs; with the protocol's own solver."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from hushnet.agents.optimisation.compiled_newton import minimise
from hushnet.protocols.algorithms.consensus_admm import EXACT
from hushnet.simulator.world.world import World

from .base import Floor, Plan, begin_stream, fill_spherical, loop


class ConsensusFloor(Floor):
    """Rounds (10) and (11) of Zhang et al. 2018; with noise in the penalty, (25), where the plan has some."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._models, self._duals, self._round = self.block("model"), self.block("dual"), 0
        noise = world.protocol.step_noise
        assert noise is None or noise.growth is None
        if noise is not None:
            self.scales = np.ascontiguousarray(noise.scales()[:, 0])

    def run(self, plan: Plan) -> None:
        """See `Floor.run`."""
        names = ("penalty", "penalty_growth", "dual_step", "dual_step_growth")
        steps = (np.ascontiguousarray(self.constants[name]) for name in names)
        share, weight = float(self.constants["share"]), float(self.parameters.loss_weight)
        luck = (np.ascontiguousarray(plan.noise), plan.itself, self.streams["noise"], self.numbers, self.scales)
        arrays = (self._models, self._duals, *self.graph, *self.data, *steps, share, weight, *luck)
        self._round = loops()[0](self.loss, len(plan.agents), self._round, *arrays)

    def models(self) -> np.ndarray:
        """See `Floor.models`."""
        return self._models


class EdgeFloor(Floor):
    """Randomised ADMM, two neighbours at a time."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._models, self._between, self._duals = self.block("model"), self.block("between"), self.block("dual")

    def run(self, plan: Plan) -> None:
        """See `Floor.run`."""
        given = self.parameters
        numbers = (float(given.penalty), float(self.constants["share"]), float(given.loss_weight))
        arrays = (self._models, self._between, self._duals, *self.graph, self.reverse, *self.data)
        loops()[1](self.loss, plan.agents, plan.edges, *arrays, *numbers)

    def models(self) -> np.ndarray:
        """See `Floor.models`."""
        return self._models


@cache
def loops() -> tuple[Any, Any]:
    """The two loops: rounds, and sessions."""

    @loop
    def rounds(
        loss,
        updates, done, models, duals, offsets, heads, features, labels, rows, penalty, penalty_growth, dual_step,
        dual_growth, share, weight, noise, itself, stream, numbers, scales,
    ):  # pragma: no cover - compiled  # fmt: skip
        """Everybody's (11) and (10) from the models of the round before; how many rounds there were by the end."""
        agents, p = models.shape
        before, linear, drawn = models.copy(), np.empty(p), np.empty(p)
        for k in range(updates):
            i = k % agents
            if i == 0:
                before[:] = models
                done += 1
            degree = offsets[i + 1] - offsets[i]
            step = 0.5 * dual_step[i] * dual_growth[i] ** (done - 2)
            eta = penalty[i] * penalty_growth[i] ** (done - 1)
            linear[:] = 0.0
            for e in range(offsets[i], offsets[i + 1]):
                for d in range(p):
                    linear[d] += before[heads[e], d]
            for d in range(p):
                duals[i, d] += step * (degree * before[i, d] - linear[d])
                linear[d] = eta * (degree * before[i, d] + linear[d]) - 2.0 * duals[i, d]
            if noise.shape[1] > 0:
                if itself:
                    begin_stream(stream, done - 1, numbers[i])
                    fill_spherical(stream, scales[i], drawn)
                else:
                    drawn[:] = noise[k]
                for d in range(p):
                    linear[d] -= 2.0 * eta * degree * drawn[d]
            first, last = rows[i], rows[i + 1]
            models[i] = minimise(
                features[first:last],
                labels[first:last],
                weight,
                share + 2.0 * eta * degree,
                linear,
                before[i],
                EXACT * weight,
                loss,
            )
        return done

    @loop
    def sessions(
        loss,
        callers,
        edges,
        models,
        between,
        duals,
        offsets,
        heads,
        reverse,
        features,
        labels,
        rows,
        penalty,
        share,
        weight,
    ):  # pragma: no cover - compiled
        """Both ends solve their own problem, then settle on the model and the duals of their edge."""
        p = models.shape[1]
        linear = np.empty(p)
        for k in range(len(callers)):
            e = edges[k]
            for i in (callers[k], heads[e]):
                linear[:] = 0.0
                for own in range(offsets[i], offsets[i + 1]):
                    for d in range(p):
                        linear[d] += 2.0 * (penalty * between[own, d] - duals[own, d])
                first, last = rows[i], rows[i + 1]
                curvature = share + 2.0 * penalty * (offsets[i + 1] - offsets[i])
                models[i] = minimise(
                    features[first:last], labels[first:last], weight, curvature, linear, models[i], EXACT * weight, loss
                )
            back = reverse[e]
            for d in range(p):
                ours, theirs = models[callers[k], d], models[heads[e], d]
                between[e, d] = between[back, d] = 0.5 * (ours + theirs)
                duals[e, d] += 0.5 * penalty * (ours - theirs)
                duals[back, d] += 0.5 * penalty * (theirs - ours)

    return rounds, sessions
