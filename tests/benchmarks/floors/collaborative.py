"""The floor of collaborative ADMM, in pairs and in rounds. Local problems are solved by the protocol's own solver."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from hushnet.agents.optimisation.compiled_newton import minimise
from hushnet.protocols.algorithms.collaborative_admm import PRECISION
from hushnet.simulator.world.world import World

from .base import Floor, Plan, inner, loop


class CollaborativeFloor(Floor):
    """Steps 1 to 3 of Vanhaesebrouck et al. 2017, section 4.2, exactly solved; who was not met shows its start."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._models, p = self.block("model"), self.block("model").shape[1]
        self._edges = tuple(self.block(name) for name in ("z_own", "z_peer", "dual_own", "dual_peer"))
        self._edges[1][:] = self._models[self.graph[1]]
        self._copies = np.zeros((len(self.graph[1]), p))
        strengths = np.add.reduceat(self.weights, self.graph[0][:-1])
        self._trust = self.constants["mu_c"] * strengths * self.constants["confidence"]
        self._round = 0

    def run(self, plan: Plan) -> None:
        """See `Floor.run`."""
        constants = tuple(np.ascontiguousarray(self.constants[name][:, 0]) for name in ("edge_weight", "kappa"))
        arrays = (self._models, self._copies, *self._edges, *self.graph, self.reverse, *constants, *self.data)
        numbers = (self._trust, self.regularisation, float(self.parameters.rho))
        rounds, sessions = loops()
        if self.pairwise:
            sessions(self.loss, plan.agents, plan.edges, *arrays, *numbers)
        else:
            self._round = rounds(self.loss, len(plan.agents), self._round, *arrays, *numbers)

    def models(self) -> np.ndarray:
        """See `Floor.models`."""
        return self._models


@inner
def offer(e, model, copies, z_peer, dual_peer, weight, rho):  # pragma: no cover - compiled
    """The copy of a neighbour's model."""
    for d in range(len(model)):
        copies[e, d] = (weight * model[d] + rho * z_peer[e, d] - dual_peer[e, d]) / (weight + rho)


@inner
def settle(e, back, own, other, models, copies, z_own, z_peer, dual_own, dual_peer, rho):  # pragma: no cover - compiled
    """Z and Lambda of an edge, at both of its ends."""
    for d in range(models.shape[1]):
        mine = 0.5 * ((dual_own[e, d] + dual_peer[back, d]) / rho + (models[own, d] + copies[back, d]))
        theirs = 0.5 * ((dual_peer[e, d] + dual_own[back, d]) / rho + (copies[e, d] + models[other, d]))
        dual_own[e, d] += rho * (models[own, d] - mine)
        dual_peer[e, d] += rho * (copies[e, d] - theirs)
        dual_own[back, d] += rho * (models[other, d] - theirs)
        dual_peer[back, d] += rho * (copies[back, d] - mine)
        z_own[e, d] = z_peer[back, d] = mine
        z_peer[e, d] = z_own[back, d] = theirs


@cache
def loops() -> tuple[Any, Any]:
    """The two loops: rounds, and sessions."""

    @inner
    def solve(
        loss,
        i, models, z_own, z_peer, dual_own, dual_peer, offsets, kappa, features, labels, rows, trust, regularisation,
        rho, linear,
    ):  # pragma: no cover - compiled  # fmt: skip
        """Step 1."""
        p, curvature = len(linear), 0.0
        linear[:] = 0.0
        for e in range(offsets[i], offsets[i + 1]):
            curvature += kappa[e] + rho
            for d in range(p):
                linear[d] += kappa[e] * (z_peer[e, d] - dual_peer[e, d] / rho) + rho * z_own[e, d] - dual_own[e, d]
        curvature += 2.0 * trust[i] * regularisation[i]
        first, last = rows[i], rows[i + 1]
        models[i] = minimise(
            features[first:last],
            labels[first:last],
            trust[i],
            curvature,
            linear,
            models[i],
            PRECISION * curvature,
            loss,
        )

    @loop
    def rounds(
        loss,
        updates, done, models, copies, z_own, z_peer, dual_own, dual_peer, offsets, heads, reverse, weights, kappa,
        features, labels, rows, trust, regularisation, rho,
    ):  # pragma: no cover - compiled  # fmt: skip
        """All edges settle what was offered in the round before, then all agents make step 1."""
        linear = np.empty(models.shape[1])
        for _ in range(updates // len(models)):
            if done > 0:
                for i in range(len(models)):
                    for e in range(offsets[i], offsets[i + 1]):
                        if i < heads[e]:
                            settle(e, reverse[e], i, heads[e], models, copies, z_own, z_peer, dual_own, dual_peer, rho)
            done += 1
            for i in range(len(models)):
                solve(loss,
                         i, models, z_own, z_peer, dual_own, dual_peer, offsets, kappa, features, labels, rows, trust,
                         regularisation, rho, linear)  # fmt: skip
                for e in range(offsets[i], offsets[i + 1]):
                    offer(e, models[i], copies, z_peer, dual_peer, weights[e], rho)
        return done

    @loop
    def sessions(
        loss,
        callers, edges, models, copies, z_own, z_peer, dual_own, dual_peer, offsets, heads, reverse, weights, kappa,
        features, labels, rows, trust, regularisation, rho,
    ):  # pragma: no cover - compiled  # fmt: skip
        """Both ends make step 1 and settle their edge."""
        linear = np.empty(models.shape[1])
        for k in range(len(callers)):
            i, e = callers[k], edges[k]
            for end, at in ((i, e), (heads[e], reverse[e])):
                solve(loss,
                         end, models, z_own, z_peer, dual_own, dual_peer, offsets, kappa, features, labels, rows,
                         trust, regularisation, rho, linear)  # fmt: skip
                offer(at, models[end], copies, z_peer, dual_peer, weights[at], rho)
            settle(e, reverse[e], i, heads[e], models, copies, z_own, z_peer, dual_own, dual_peer, rho)

    return rounds, sessions
