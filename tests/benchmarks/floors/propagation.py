"""The floor of model propagation, by broadcast, in rounds and in pairs."""

from __future__ import annotations

import numpy as np
from hushnet.simulator.world.world import World

from .base import Floor, Plan, inner, loop


class PropagationFloor(Floor):
    """Updates (5) and (6) of Vanhaesebrouck et al. 2017; who was never met shows its solitary model."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._models, self._solitary = self.block("model"), self.block("solitary")
        self._pull = np.ascontiguousarray(self.constants["mu_c"])
        self._copies = self._models[self.graph[1]] if self.pairwise else np.empty((0, 0))

    def run(self, plan: Plan) -> None:
        """See `Floor.run`."""
        own = (self._models, self._solitary, self._pull, *self.graph, self.weights)
        if self.pairwise:
            meet(plan.edges, plan.agents, self._copies, self.reverse, *own)
        else:
            follow(plan.agents, self.in_rounds, *own)

    def models(self) -> np.ndarray:
        """See `Floor.models`."""
        return self._models


@loop
def follow(order, barrier, models, solitary, mu_c, offsets, heads, weights):  # pragma: no cover - compiled
    """Updates on the neighbours' present models, or behind a barrier on those of the round before."""
    agents, p = models.shape
    before = models.copy() if barrier else models
    around = np.empty(p)
    for k in range(len(order)):
        if barrier and k % agents == 0:
            before[:] = models
        i = order[k]
        around[:] = 0.0
        total = 0.0
        for e in range(offsets[i], offsets[i + 1]):
            total += weights[e]
            other = before[heads[e]]
            for d in range(p):
                around[d] += weights[e] * other[d]
        for d in range(p):
            models[i, d] = (around[d] / total + mu_c[i] * solitary[i, d]) / (1.0 + mu_c[i])


@inner
def update(i, copies, models, solitary, mu_c, offsets, weights, around):  # pragma: no cover - compiled
    """Update (6) of one end."""
    p = len(around)
    around[:] = 0.0
    total = 0.0
    for e in range(offsets[i], offsets[i + 1]):
        total += weights[e]
        for d in range(p):
            around[d] += weights[e] * copies[e, d]
    for d in range(p):
        models[i, d] = (around[d] / total + mu_c[i] * solitary[i, d]) / (1.0 + mu_c[i])


@loop
def meet(
    edges, callers, copies, reverse, models, solitary, mu_c, offsets, heads, weights
):  # pragma: no cover - compiled
    """Sessions: both ends get the other's model as it is, then both update."""
    p = models.shape[1]
    around = np.empty(p)
    for k in range(len(edges)):
        e, i = edges[k], callers[k]
        j = heads[e]
        for d in range(p):
            copies[e, d] = models[j, d]
            copies[reverse[e], d] = models[i, d]
        update(i, copies, models, solitary, mu_c, offsets, weights, around)
        update(j, copies, models, solitary, mu_c, offsets, weights, around)
