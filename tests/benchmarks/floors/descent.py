"""The floor of coordinate descent, by broadcast and in rounds."""

from __future__ import annotations

import numpy as np
from hushnet.simulator.world.world import World

from ..floor import descend, synchronous
from .base import Floor, Plan


class DescentFloor(Floor):
    """Update (4) of Bellet et al. 2018."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._models = self.block("model")
        self._steps = tuple(self.block(name)[:, 0].copy() for name in ("alpha", "mu_c"))

    def run(self, plan: Plan) -> None:
        """See `Floor.run`."""
        arrays = (self._models, *self.graph, self.weights, *self.data, self.regularisation, *self._steps)
        if self.in_rounds:
            synchronous(len(plan.agents), *arrays)
        else:
            descend(plan.agents, *arrays)

    def models(self) -> np.ndarray:
        """See `Floor.models`."""
        return self._models
