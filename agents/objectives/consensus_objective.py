"""The sum of what every agent minimises at its own model, while all of them have to agree in the end."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
from typing_extensions import override

from ..quantity import OWN, Quantity, identified
from ..tasks.task import Task
from .objectives import MeanLosses, Models, Objective, local_gradients, losses_at
from .pooled_objective import PooledObjective


@final
@dataclass(frozen=True)
class ConsensusObjective(Objective):
    """sum_i O(f_i, D_i) with O(f, D_i) = (C/B_i) sum_k phi(x_k . f, y_k) + (rho/N) |f|^2/2 (Zhang et al. 2018, (2)).

    The minimiser is that of problem (1), where all models are equal. As the value takes every agent's own model, it may
    lie below the minimum as long as the models differ. The task's lambda_i has no part in it: rho stands for it.
    """

    minimum_over = "agreeing"

    task: Task
    """Of N agents; one without rows adds its share of the regulariser alone."""
    weight: float
    """C > 0, what an agent's mean loss counts."""
    rho: float
    """Weight of the regulariser, > 0."""

    @property
    @override
    def fingerprint(self) -> str:
        text = f"ConsensusObjective {self.task.fingerprint} {self.weight!r} {self.rho!r}"
        return hashlib.blake2s(text.encode(), digest_size=16).hexdigest()

    @property
    @override
    def quantity(self) -> Quantity:
        """The objective is C N times the mean loss of agents with a ridge of rho / (C N)."""
        times = float(self.weight * self.task.agents)
        ridge = float(self.rho / times)
        words = f"mean loss of an agent plus {ridge:.6g} |f|^2 / 2 (problem (2) of Zhang et al. 2018)"
        identity = identified("ConsensusObjective", self.task.fingerprint, ridge)
        return Quantity(words, "sum over agents", "training rows", OWN, identity, times)

    @cached_property
    def bare(self) -> Task:
        """The task without its own regularisation."""
        return replace(self.task, regularisation=np.zeros(self.task.agents))

    @cached_property
    def pooled(self) -> PooledObjective:
        """Problem (1), at the agents' average model."""
        owners, counts = self.task.train.owners, self.task.train.counts
        mixture = np.full(self.task.agents, 1.0 / self.task.agents)
        return PooledObjective(self.task, self.weight / counts[owners], self.rho, mixture)

    @override
    def value(self, models: Models) -> float:
        return self.values_from(models[None], losses_at)[0]

    @override
    def values_from(self, instants: Models, losses: MeanLosses) -> list[float]:
        totals = [float(each.sum()) for each in losses(self.task, instants)]
        squares = [float(np.vdot(models, models)) for models in instants]
        return [self.weight * one + 0.5 * self._ridge * square for one, square in zip(totals, squares, strict=True)]

    @override
    def value_and_gradient(self, models: Models) -> tuple[float, Models]:
        return self.value(models), self.weight * local_gradients(self.bare, models) + self._ridge * models

    @override
    def minimise(self) -> tuple[Models, float]:
        """Minimise: N times the minimiser of (1) also minimises the sum over equal models."""
        return self.pooled.minimise()

    @property
    def _ridge(self) -> float:
        return self.rho / self.task.agents
