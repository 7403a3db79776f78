"""A single model that all agents' rows judge together: what consensus and split-feature protocols minimise."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..losses import Hinge
from ..losses.cross_entropy import probabilities
from ..optimisation.newton import conjugate_gradients, newton
from ..optimisation.solvers import check_minimised
from ..optimisation.support_vectors import minimise_hinge
from ..quantity import AVERAGE, CENTRAL, Quantity, Scale, identified
from ..tasks.task import Task
from .objectives import Models, Objective

LARGEST_HESSIAN = 1000
"""Above this dimension Newton steps come from conjugate gradients instead of a factorised Hessian."""


@final
@dataclass(frozen=True)
class PooledObjective(Objective):
    """F(x) = sum_k w_k phi(x . x_k, y_k) + (ridge / 2) |x|^2 over all training rows, at x = sum_i m_i theta_i.

    Of a model that is not linear, its scores are in the place of x . x_k; perceptrons have no minimum that is computed.
    """

    task: Task
    row_weights: NDArray[np.float64]
    """(M,) float64: w_k >= 0 of each training row."""
    ridge: float
    """> 0."""
    mixture: NDArray[np.float64]
    """(n,) float64: m_i, summing to 1: how the judged model is made of the agents' models."""
    scale: Scale = "unknown"
    """Of `hushnet.agents.quantity.Quantity`."""
    times: float = 1.0
    """How many times a mean loss F is."""

    @classmethod
    def mean_of_agents(cls, task: Task, ridge: float) -> PooledObjective:
        """(1/n) sum_i (1/m_i) sum_k phi + (ridge/2) |x|^2 at the agents' average; without data, an agent adds 0."""
        owners, counts = task.train.owners, task.train.counts
        mixture = np.full(task.agents, 1.0 / task.agents)
        return cls(task, 1.0 / (task.agents * counts[owners]), ridge, mixture, "mean over agents")

    @classmethod
    def sum_of_rows(cls, task: Task, ridge: float, *, agent: int) -> PooledObjective:
        """sum_k phi + (ridge/2) |x|^2 at one agent's model."""
        mixture = np.zeros(task.agents)
        mixture[agent] = 1.0
        rows = len(task.train.labels)
        return cls(task, np.ones(rows), ridge, mixture, "sum over rows", float(max(rows, 1)))

    @property
    @override
    def fingerprint(self) -> str:
        digest = hashlib.blake2s(f"PooledObjective {self.task.fingerprint} {self.ridge!r}".encode(), digest_size=16)
        digest.update(np.ascontiguousarray(self.row_weights).tobytes())
        digest.update(np.ascontiguousarray(self.mixture).tobytes())
        return digest.hexdigest()

    @cached_property
    @override
    def quantity(self) -> Quantity:
        """The objective is so many times a weighted mean loss of rows with its ridge."""
        central = np.count_nonzero(self.mixture) == 1 < len(self.mixture)
        ridge = float(self.ridge / self.times)
        weights, mixture = ((self.row_weights / self.times).tobytes(), self.mixture.tobytes())
        return Quantity(
            f"mean loss plus {ridge:.6g} |x|^2 / 2",
            self.scale,
            "training rows",
            CENTRAL if central else AVERAGE,
            identified("PooledObjective", self.task.fingerprint, ridge, weights, mixture),
            self.times,
        )

    @override
    def over(self, agents: NDArray[np.bool_]) -> PooledObjective | None:
        """F of these agents' rows at the average of their models, each counting as much more as fewer share it."""
        share = float(self.mixture[agents].sum())
        if share == 0.0:
            return None
        kept, summed = agents[self.task.train.owners], self.scale == "sum over rows"
        times = float(max(kept.sum(), 1)) if summed else self.times
        mixture = np.where(agents, self.mixture, 0.0) / share
        return replace(self, row_weights=self.row_weights * kept / share, mixture=mixture, times=times)

    @override
    def value(self, models: Models) -> float:
        return self.at(self.mixture @ models)

    @override
    def value_and_gradient(self, models: Models) -> tuple[float, Models]:
        value, gradient = self._evaluate(self.mixture @ models)
        return value, np.outer(self.mixture, gradient)

    def at(self, model: NDArray[np.float64]) -> float:
        """F at one (p,) model."""
        table = self.task.train
        losses = self.task.loss.value(self._scores(model), table.labels)
        return float(self.row_weights @ losses + 0.5 * self.ridge * (model @ model))

    @property
    @override
    def has_minimum(self) -> bool:
        return self.task.model is None or self.task.model.convex

    @cached_property
    def _together(self) -> NDArray[np.int64]:
        """Where the rows begin and end that one model judges: all of them."""
        return np.array([0, len(self.task.train.labels)])

    def _scores(self, model: NDArray[np.float64]) -> NDArray[np.float64]:
        """(M,) or (M, K) scores of all training rows at one (p,) model."""
        features, kind = self.task.train.features, self.task.model
        return features @ model if kind is None else kind.scores(model[None], features, self._together)

    @override
    def minimise(self) -> tuple[Models, float]:
        """Minimise; a hinge loss to a relative duality gap of 1e-8, at best 1e-10."""
        model = self._minimiser
        return np.tile(model, (self.task.agents, 1)), self.at(model)

    @cached_property
    def _minimiser(self) -> NDArray[np.float64]:
        table = self.task.train
        check_minimised(self.task.loss)
        if isinstance(self.task.loss, Hinge):
            return minimise_hinge(table.features, table.labels, self.row_weights, self.ridge)
        return newton(np.zeros(self.task.dimension), self._evaluate, self._step)

    def _evaluate(self, model: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        table, loss, kind = self.task.train, self.task.loss, self.task.model
        scores = self._scores(model)
        value = float(self.row_weights @ loss.value(scores, table.labels) + 0.5 * self.ridge * (model @ model))
        if kind is not None:
            given = model[None], table.features, table.labels, self._together, loss, self.row_weights
            return value, kind.gradients(*given)[0] + self.ridge * model
        slopes = self.row_weights * loss.slope(scores, table.labels)
        return value, slopes @ table.features + self.ridge * model

    def _step(self, model: NDArray[np.float64], gradient: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
        """An approximate solution of Hessian @ step = -gradient."""
        features = self.task.train.features
        if self.task.model is not None:
            return self._step_of_classes(model, gradient, tolerance)
        bends = self.row_weights * self.task.loss.second_slope(features @ model, self.task.train.labels)
        if len(model) > LARGEST_HESSIAN:
            diagonal = bends @ features**2 + self.ridge

            def apply(direction: NDArray[np.float64]) -> NDArray[np.float64]:
                return (bends * (features @ direction)) @ features + self.ridge * direction

            return conjugate_gradients(apply, -gradient, diagonal, tolerance=tolerance)
        hessian = (features.T * bends) @ features
        hessian[np.diag_indices(len(model))] += self.ridge
        return np.linalg.solve(hessian, -gradient).astype(np.float64)

    def _step_of_classes(
        self, model: NDArray[np.float64], gradient: NDArray[np.float64], tolerance: float
    ) -> NDArray[np.float64]:
        """As `_step`, of softmax regression: a row's Hessian by its scores is diag(P) - P P'."""
        features, weights = self.task.train.features, self.row_weights[:, None]
        scores = self._scores(model)
        shares = probabilities(scores)
        diagonal = (features**2).T @ (weights * shares * (1.0 - shares)) + self.ridge

        def apply(direction: NDArray[np.float64]) -> NDArray[np.float64]:
            bent = shares * (features @ direction.reshape(diagonal.shape))
            bent -= shares * bent.sum(axis=1, keepdims=True)
            return (features.T @ (weights * bent)).reshape(-1) + self.ridge * direction

        return conjugate_gradients(apply, -gradient, diagonal.reshape(-1), tolerance=tolerance)
