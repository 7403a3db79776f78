"""Squared error of models against the average of vectors that agents hold."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from typing_extensions import override

from ..quantity import OWN, Quantity
from .objectives import Models, Objective


@final
@dataclass(frozen=True)
class SquaredErrorOfAverage(Objective):
    """F(Theta) = (1/n) sum_i |theta_i - mean_j v_j|^2, what an averaging protocol is judged by."""

    values: Models
    """(n, p) float64: v_i, the vector that agent i holds."""

    @cached_property
    @override
    def fingerprint(self) -> str:
        values = np.ascontiguousarray(self.values)
        return hashlib.blake2s(b"SquaredErrorOfAverage" + values.tobytes(), digest_size=16).hexdigest()

    @property
    @override
    def quantity(self) -> Quantity:
        words = "squared error against the average of the agents' values"
        return Quantity(words, "mean over agents", "training rows", OWN, self.fingerprint)

    @cached_property
    def _average(self) -> Models:
        return np.tile(self.values.mean(axis=0), (len(self.values), 1))

    @override
    def value(self, models: Models) -> float:
        return float(((models - self._average) ** 2).sum()) / len(models)

    @override
    def value_and_gradient(self, models: Models) -> tuple[float, Models]:
        return self.value(models), 2.0 * (models - self._average) / len(models)

    @override
    def minimise(self) -> tuple[Models, float]:
        return self._average.copy(), 0.0
