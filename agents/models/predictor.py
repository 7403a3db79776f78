"""What operators and metrics ask of a model that is not linear: its width, first parameters, scores and gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..clipping import Norm
from ..losses import Loss

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
Clip = tuple[Norm, float]
"""A norm, and the largest that the gradient of a row may have in it, > 0."""


class Predictor(ABC):
    """A model of rows with p features, whose parameters are one vector.

    Rows of A agents follow each other: agent a has the rows ``starts[a]`` to ``starts[a + 1] - 1``, perhaps none.
    What is computed for an agent has the same bits alone and among others.
    """

    precision: str
    """{"float32", "float64"}: type of the numbers of models, as agents keep and send them."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of parameters."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of scores of a row."""

    @property
    @abstractmethod
    def convex(self) -> bool:
        """True if its scores are linear in its parameters."""

    @abstractmethod
    def first(self, rng: np.random.Generator) -> Array:
        """(width,) parameters that all agents begin with; zeros only where learning can begin there."""

    @abstractmethod
    def scores(self, models: Array, features: Array, starts: Ranks) -> Array:
        """Scores of (S, p) rows at their owners' (A, width) models: (S, outputs), or (S,) if there is one output.

        There are (A + 1,) int64 starts. Models and rows are float64 or float32.
        """

    @abstractmethod
    def gradients(
        self,
        models: Array,
        features: Array,
        labels: Array,
        starts: Ranks,
        loss: Loss,
        weights: Array,
        clip: Clip | None = None,
    ) -> Array:
        """(A, width) weighted sums over each agent's rows of the gradients of their losses; zeros without rows.

        There are (A, width) models, (S, p) features, float64 or float32, (S,) labels and (A + 1,) starts. The loss is
        of the model's scores; (S,) weights are what the loss of each row counts, > 0 with ``clip``: a norm and a bound
        that the gradient of each row is scaled down to before it is weighted (Abadi et al. 2016, algorithm 1). A row
        whose gradient is not finite then counts as zero.
        """

    def mean_gradients(
        self, models: Array, features: Array, labels: Array, starts: Ranks, loss: Loss, clip: Clip | None = None
    ) -> Array:
        """(A, width) gradients of the mean losses over each agent's rows, see `gradients`."""
        counts = np.diff(starts)
        weights = np.repeat(1.0 / np.maximum(counts, 1), counts)
        return self.gradients(models, features, labels, starts, loss, weights, clip)


class Alike(NamedTuple):
    """Agents that have equally many rows, and which rows these are."""

    agents: Ranks
    """(B,) ranks of the agents."""
    rows: Ranks
    """(B, k) ranks of their rows, k > 0."""


def alike(starts: Ranks) -> Iterator[Alike]:
    """Agents by the number of their rows, so that each number is one product of stacked matrices; without rows, none.

    Stacks are multiplied matrix by matrix, so that an agent's product has the bits that it has alone.
    """
    counts = np.diff(starts)
    for count in np.unique(counts[counts > 0]).tolist():
        agents = np.flatnonzero(counts == count)
        yield Alike(agents, starts[agents][:, None] + np.arange(count))
