"""Global objectives over all agents' models, with exact minimisers.

The recorder reports an objective's gap to its minimum, so the minimum has to be known to far more digits than a run
reaches: `minimise` goes on until the gradient is down to rounding.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..errors import InputError
from ..graph import Graph
from ..losses import Loss, local_gradient, local_loss
from ..models.predictor import Predictor
from ..optimisation.compiled_sums import read_only, scores_of_rows, squared_gaps, weighted_rows
from ..optimisation.newton import conjugate_gradients, newton
from ..optimisation.solvers import minimise_local
from ..quantity import OWN, Quantity
from ..tables import Shard, Table
from ..tasks.task import Task

Models = NDArray[np.float64]
"""(n, p): row i is agent i's model."""
MeanLosses = Callable[[Task, Models], NDArray[np.float64]]
"""Gives `losses_at` of a task at some models."""


class Objective(ABC):
    """A function of all agents' models, convex unless it has no `has_minimum`.

    Its ``minimum_over`` says which models its minimum bounds: ``all``, whatever models agents have, or ``agreeing``,
    only models that are all equal (a sum of what agents minimise each for itself lies below it until they agree).
    """

    minimum_over: ClassVar[Literal["all", "agreeing"]] = "all"

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of everything that the objective depends on."""

    @property
    def has_minimum(self) -> bool:
        """True if `minimise` finds its minimum; by default it does."""
        return True

    @property
    def quantity(self) -> Quantity:
        """Quantity that its values measure; by default they are comparable only with those of an equal fingerprint."""
        return Quantity(type(self).__name__, "unknown", "training rows", OWN, self.fingerprint)

    @abstractmethod
    def value_and_gradient(self, models: Models) -> tuple[float, Models]:
        """Value and (n, p) gradient at the (n, p) models."""

    @abstractmethod
    def value(self, models: Models) -> float:
        """Value at the (n, p) models."""

    def values_from(self, instants: Models, losses: MeanLosses) -> list[float]:
        """Values at (k, n, p) models of k instants, with mean losses from who may know them, by default nobody.

        Those are what `losses_at` gives, to every bit.
        """
        del losses
        return [self.value(models) for models in instants]

    @abstractmethod
    def minimise(self) -> tuple[Models, float]:
        """The (n, p) minimiser and the minimum, to rounding."""

    def over(self, agents: NDArray[np.bool_]) -> Objective | None:
        """The same objective over some of (n,) agents alone, whatever the others have; None if there is no such."""
        return None

    def gradient(self, models: Models) -> Models:
        """(n, p) gradient at the (n, p) models."""
        return self.value_and_gradient(models)[1]

    def is_minimum(self, models: Models) -> bool:
        """True if no models near the given (n, p) ones, along the gradient, have a value lower by more than rounding.

        Steps from far below to far above a Newton step's length are tried, so that it holds for kinked losses as well;
        models that pass are within some 1e-8 of the minimum along it.
        """
        if not np.isfinite(models).all():
            return False
        value, gradient = self.value_and_gradient(models)
        if self.minimum_over == "agreeing":
            if not np.array_equal(models, np.broadcast_to(models[:1], models.shape)):
                return False
            gradient = np.broadcast_to(gradient.mean(axis=0), models.shape)
        squared = float(np.vdot(gradient, gradient))
        if not (np.isfinite(value) and np.isfinite(squared)):
            return False
        slack = 1e-8 * (1.0 + abs(value))
        steps = 10.0 ** np.arange(-8, 9)
        return all(self.value(models - step * gradient) >= value - slack for step in steps if step * squared > slack)


@final
@dataclass(frozen=True)
class GraphRegularised(Objective):
    """Q = 1/2 sum_{i<j} W_ij |theta_i - theta_j|^2 + mu sum_i D_ii c_i L_i(theta_i) (Bellet et al. 2018, (2)).

    Q does not depend on the model of an agent without neighbours (D_ii = 0); such an agent works alone, so the
    minimiser gives it its purely local model. The data term of an agent without data is 0 whatever its confidence.
    """

    task: Task
    graph: Graph
    """Over the task's n agents."""
    mu: float
    """Weight of the data against the graph, > 0."""
    confidence: NDArray[np.float64]
    """(n,) float64: c_i >= 0."""

    @cached_property
    def data_weights(self) -> NDArray[np.float64]:
        """(n,) mu D_ii c_i, the weight of each agent's L_i; 0 without data."""
        return np.where(self.task.train.counts > 0, self.mu * self.graph.strengths * self.confidence, 0.0)

    @cached_property
    @override
    def fingerprint(self) -> str:
        graph = self.graph
        digest = hashlib.blake2s(f"GraphRegularised {self.task.fingerprint} {self.mu!r}".encode(), digest_size=16)
        for array in (graph.offsets, graph.heads, graph.weights, np.asarray(self.confidence, dtype=np.float64)):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    @property
    @override
    def quantity(self) -> Quantity:
        words = f"objective (2) of Bellet et al. 2018 with mu {self.mu:.6g}"
        return Quantity(words, "sum over agents", "training rows", OWN, self.fingerprint)

    @override
    def value(self, models: Models) -> float:
        return self.values_from(models[None], losses_at)[0]

    @override
    def values_from(self, instants: Models, losses: MeanLosses) -> list[float]:
        """Sum over edges, for the Laplacian's quadratic form cancels."""
        weights = self.data_weights
        edges = [read_only(array) for array in (self.graph.offsets, self.graph.heads, self.graph.weights)]
        gaps = [squared_gaps(*edges, models) for models in read_only(instants)]
        sums = zip(gaps, penalties(self.task, instants), losses(self.task, instants), strict=True)
        return [0.5 * gap + float(weights @ penalty) + float(weights @ mean) for gap, penalty, mean in sums]

    @override
    def value_and_gradient(self, models: Models) -> tuple[float, Models]:
        return self.value(models), self.gradient(models)

    @override
    def gradient(self, models: Models) -> Models:
        """The gradient (D - W) Theta + mu D c grad L."""
        return self.graph.laplacian @ models + self.data_weights[:, None] * local_gradients(self.task, models)

    @override
    def minimise(self) -> tuple[Models, float]:
        """Minimise by Newton's method, each step by conjugate gradients."""
        start = np.zeros((self.task.agents, self.task.dimension))
        models = newton(start, self.value_and_gradient, partial(_newton_step, self))
        alone = np.flatnonzero(self.graph.degrees == 0)
        models[alone] = local_models(self.task, alone)
        return models, self.value(models)


@final
@dataclass(frozen=True)
class LocalOnly(Objective):
    """sum_i L_i(theta_i): every agent for itself."""

    task: Task

    @property
    @override
    def fingerprint(self) -> str:
        return hashlib.blake2s(f"LocalOnly {self.task.fingerprint}".encode(), digest_size=16).hexdigest()

    @property
    @override
    def quantity(self) -> Quantity:
        return Quantity("agents' own objectives", "sum over agents", "training rows", OWN, self.fingerprint)

    @override
    def value(self, models: Models) -> float:
        return self.values_from(models[None], losses_at)[0]

    @override
    def values_from(self, instants: Models, losses: MeanLosses) -> list[float]:
        return [float(each.sum()) for each in losses(self.task, instants) + penalties(self.task, instants)]

    @override
    def value_and_gradient(self, models: Models) -> tuple[float, Models]:
        return self.value(models), local_gradients(self.task, models)

    @override
    def minimise(self) -> tuple[Models, float]:
        models = local_models(self.task)
        return models, self.value(models)


def mean_losses(task: Task, models: Models) -> NDArray[np.float64]:
    """(n,) L_i(theta_i) without the regulariser, at the (n, p) models; 0 for agents without data."""
    table = task.train
    scores = row_scores(table, models, task.model)
    return table.sums(task.loss.value(scores, table.labels)) / np.maximum(table.counts, 1)


def losses_at(task: Task, instants: Models) -> NDArray[np.float64]:
    """(k, n) `mean_losses` at each of the (k, n, p) models."""
    return np.array([mean_losses(task, models) for models in instants])


def local_losses(task: Task, models: Models) -> NDArray[np.float64]:
    """(n,) L_i(theta_i) at the (n, p) models; 0 for agents without data."""
    return mean_losses(task, models) + penalties(task, models)


def penalties(task: Task, models: Models) -> NDArray[np.float64]:
    """(..., n) lambda_i |theta_i|^2 at (..., n, p) models, the regulariser of each L_i; 0 for agents without data."""
    squares = task.regularisation * np.einsum("...p,...p->...", models, models)
    return np.where(task.train.counts > 0, squares, 0.0)


def local_gradients(task: Task, models: Models) -> Models:
    """(n, p) gradients of L_i at theta_i; 0 for agents without data."""
    slopes = task.loss.slope(row_scores(task.train, models), task.train.labels)
    return _combine(task.train, task.regularisation, slopes, models)


def row_scores(table: Table, models: Models, model: Predictor | None = None) -> NDArray[np.float64]:
    """(M,) or (M, K) scores of every row of a table at its owner's of the (n, p) models; x . theta of the linear."""
    expected = (len(table.offsets) - 1, table.features.shape[1] if model is None else model.width)
    if models.shape != expected:
        raise ValueError(f"models must have the shape {expected}, got {models.shape}")
    if model is not None:
        return model.scores(models, table.features, table.offsets)
    return scores_of_rows(*map(read_only, (table.features, table.offsets, models, np.arange(expected[0]))))


def local_models(task: Task, agents: NDArray[np.int64] | None = None) -> Models:
    """(k, p) exact minimisers of some or all agents' own L_i, to a gradient norm of 1e-10 or rounding; 0 without data.

    Raises `InputError` if the loss has no gradient and nothing else makes a minimiser unique.
    """
    chosen = np.arange(task.agents) if agents is None else agents
    models = np.zeros((len(chosen), task.dimension))
    for row, agent in enumerate(chosen):
        shard = task.train.shard(int(agent))
        if len(shard):
            models[row] = _kept(shard, task.loss, float(task.regularisation[agent]))
    return models


_KEPT: dict[tuple[Loss, bytes], NDArray[np.float64]] = {}
_MOST_KEPT = 2**24
"""Bytes of local minimisers that are kept for the next run on the same rows."""


def _kept(shard: Shard, loss: Loss, regularisation: float) -> NDArray[np.float64]:
    """The minimiser of one L_i, computed once for the same rows: protocols and points of a sweep share them."""
    digest = hashlib.blake2b(repr((shard.stored.dtype.str, shard.stored.shape, regularisation)).encode())
    for array in (shard.stored, shard.labels):
        digest.update(np.ascontiguousarray(array).data)
    key = loss, digest.digest()
    if key not in _KEPT:
        model = _minimiser(shard, loss, regularisation)
        while _KEPT and (len(_KEPT) + 1) * model.nbytes > _MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)))
        _KEPT[key] = model
    return _KEPT[key]


def _minimiser(shard: Shard, loss: Loss, regularisation: float) -> NDArray[np.float64]:
    if len(shard) >= shard.stored.shape[1]:
        return _local_model(shard, loss, regularisation)
    # The minimiser is in the span of the m rows: solve in m coordinates instead of p.
    basis = np.linalg.qr(shard.features.T)[0]
    return basis @ _local_model(Shard(shard.features @ basis, shard.labels), loss, regularisation)


def _combine(
    table: Table,
    regularisation: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    models: Models,
    *,
    squared: bool = False,
) -> Models:
    """(n, p): (1/m_i) sum_k coefficient_k x_k + 2 lambda_i theta_i for each agent with data, 0 for the others.

    With ``squared``, x_k^2 elementwise stands for x_k.
    """
    sums = weighted_rows(*map(read_only, (table.features, table.offsets, coefficients)), squared)
    sums /= np.maximum(table.counts, 1)[:, None]
    sums += np.where(table.counts > 0, 2.0 * regularisation, 0.0)[:, None] * models
    return sums


def _newton_step(objective: GraphRegularised, models: Models, gradient: Models, tolerance: float) -> Models:
    """An approximate solution of Hessian @ step = -gradient."""
    task, table, regularisation = objective.task, objective.task.train, objective.task.regularisation
    laplacian, weights = objective.graph.laplacian, objective.data_weights[:, None]
    bends = task.loss.second_slope(row_scores(table, models), table.labels)

    def apply(direction: Models) -> Models:
        bent = bends * row_scores(table, direction)
        return laplacian @ direction + weights * _combine(table, regularisation, bent, direction)

    diagonal = weights * _combine(table, regularisation, bends, np.ones_like(models), squared=True)
    diagonal += objective.graph.strengths[:, None]
    return conjugate_gradients(apply, -gradient, diagonal, tolerance=tolerance)


def _local_model(shard: Shard, loss: Loss, regularisation: float) -> NDArray[np.float64]:
    count, dimension = shard.features.shape
    if not loss.smooth:
        return _without_gradient(shard, loss, regularisation)

    def evaluate(model: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        return local_loss(model, shard, loss, regularisation), local_gradient(model, shard, loss, regularisation)

    def direction(model: NDArray[np.float64], gradient: NDArray[np.float64], _: float) -> NDArray[np.float64]:
        bends = loss.second_slope(shard.features @ model, shard.labels)
        hessian = (shard.features.T * (bends / count)) @ shard.features
        hessian[np.diag_indices(dimension)] += 2.0 * regularisation
        return np.linalg.solve(hessian, -gradient)

    return newton(np.zeros(dimension), evaluate, direction, floor=1e-13)


def check_unique(loss: Loss, *, regularised: bool) -> None:
    """Raise an `InputError` if an agent's own loss has kinks and nothing else makes its minimiser unique."""
    if not (loss.smooth or regularised):
        raise InputError(
            f"the loss {loss.name!r} without regularisation has no unique minimiser for the data of one agent; set a "
            "regularisation above 0, or use solitary models of a few gradient steps",
            field=("task", "regularisation"),
        )


def _without_gradient(shard: Shard, loss: Loss, regularisation: float) -> NDArray[np.float64]:
    """The minimiser of one L_i whose loss has kinks."""
    check_unique(loss, regularised=regularisation > 0)
    zero = np.zeros(shard.features.shape[1])
    return minimise_local(
        shard, loss, weight=1.0, curvature=2.0 * regularisation, linear=zero, start=zero, tolerance=1e-10
    )[0]
