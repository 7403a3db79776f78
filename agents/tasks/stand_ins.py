"""Synthetic stand-ins for epsilon and gisette, which are too large to ship; both say so in their names."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from pydantic import Field, model_validator

from ..losses import ClassLossName
from ..parameters import MOST, Size
from .extent import Extent, Files
from .outline import Outline
from .partition import ByRows, Partition, Rows, check_split, partitioned, split_outline, split_size
from .splits import SplitParameters, check_count
from .task import Task
from .task_names import STAND_IN
from .task_registry import TASKS, TaskKind


@final
@TASKS.register
class EpsilonLike(TaskKind):
    """Synthetic stand-in for LIBSVM epsilon: rows of norm 1 with a decaying spectrum, noisy linear labels.

    Before rows are scaled to norm 1, coordinate j is normal with variance j^-1/2. The label is the sign of the score
    under w_j = s_j j^-1/4 with random signs s_j, standardised, plus normal noise of deviation 0.3.
    """

    kind: Literal["epsilon_like"]
    draws_data: ClassVar[bool] = True
    agents: Size = 20
    """Number of agents n."""
    samples: Size = 2000
    """Training rows of each agent, on the average of all agents where a `split` deals them."""
    dimension: Size = 200
    """Number of features."""
    test_samples: Size = 100
    """Test rows of each agent, with labels of the same distribution."""
    loss: ClassLossName = "hinge"
    """Loss of a score."""
    split: SplitParameters | None = None
    """Rule that deals all training rows to as many agents; by default each has `samples` rows at random."""

    @model_validator(mode="after")
    def _dealt(self) -> EpsilonLike:
        check_count(self.split, self.agents)
        return self

    def outline(self) -> Outline:
        """Return the outline of the task, which the parameters alone determine."""
        return Outline(self.kind, self.loss, agents=self.agents, bounded=("l1", "l2"))

    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Draw the data; `data_dir` and `base` are not used."""
        count, p = self.agents * self.samples, self.dimension
        j = np.arange(1, p + 1)
        signs = np.where(rng.random(p) < 0.5, -1.0, 1.0)
        features = rng.standard_normal((count + self.agents * self.test_samples, p))
        features *= j**-0.25
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        scores = features @ (signs * j**-0.25)
        labels = np.where(scores / scores.std() + 0.3 * rng.standard_normal(len(scores)) >= 0, 1.0, -1.0)
        return partitioned(
            (features[:count], labels[:count]),
            (features[count:], labels[count:]),
            self.split or ByRows(agents=self.agents),
            name=f"{STAND_IN} epsilon",
            loss=self.loss,
            bounds={"l1": math.sqrt(p), "l2": 1.0},
            notes={"source": "synthetic stand-in for LIBSVM epsilon, which is not read"},
            rng=rng,
        )

    def extent(self, files: Files | None) -> Extent:
        """Estimate the size of the task from its parameters."""
        rows = self.agents * (self.samples + self.test_samples)
        return Extent(self.agents, self.dimension, 2 * 8 * rows * (self.dimension + 1), known=True)


@final
@TASKS.register
class GisetteLike(TaskKind):
    """Synthetic stand-in for LIBSVM gisette: many correlated features in [-1, 1], half of them without meaning.

    A row of either class has ``factors`` normal factors, whose means differ between the classes by 4 deviations in a
    random direction. Half of the columns mix the factors with normal weights of deviation factors^-1/2 and have normal
    noise of deviation 0.5; the other half are such columns of rows in another order. All are cut to [-1, 1].

    With ``density`` they become what gisette's pixel counts are: what is above a threshold, which a share of the
    entries is, and 0 elsewhere; every column is then scaled to [-1, 1], which puts its zeros at -1. Nearly all columns
    have that mean in common, so that problems on them are badly conditioned.
    """

    kind: Literal["gisette_like"]
    draws_data: ClassVar[bool] = True
    rows: int = Field(default=6000, ge=2, le=MOST)
    """Training rows."""
    test_rows: Size = 1000
    """Test rows, with labels of the same distribution."""
    dimension: int = Field(default=5000, ge=2, le=MOST)
    """Number of features."""
    factors: Size = 20
    """Number of factors behind the features."""
    density: float | None = Field(default=None, gt=0, le=1)
    """Share of entries other than 0 before columns are scaled to [-1, 1] (gisette's own is 0.13); by default columns
    are dense, and cut."""
    loss: ClassLossName = "logistic"
    """Loss of a score."""
    split: Partition = Field(default_factory=ByRows)
    """Rows to agents, or columns to parties (2000, 2000 and 1000 in Hu et al. 2019)."""

    @model_validator(mode="after")
    def _dealt(self) -> GisetteLike:
        check_split(self.split, self.rows, self.dimension)
        return self

    def outline(self) -> Outline:
        """Return the outline of the task, which the parameters alone determine."""
        return split_outline(self.kind, self.loss, self.split)

    def extent(self, files: Files | None) -> Extent:
        """Estimate the size of the task from its parameters."""
        agents, dimension = split_size(self.split, self.dimension)
        return Extent(agents, dimension, 3 * 8 * (self.rows + self.test_rows) * self.dimension, known=True)

    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Draw the data; `data_dir` and `base` are not used."""
        features, labels = self._draw(rng)
        return partitioned(
            (features[: self.rows], labels[: self.rows]),
            (features[self.rows :], labels[self.rows :]),
            self.split,
            name=f"{STAND_IN} gisette",
            loss=self.loss,
            bounds={"l1": float(self.dimension), "l2": math.sqrt(self.dimension)},
            notes={"source": "synthetic stand-in for LIBSVM gisette, which is not read"},
            rng=rng,
        )

    def _draw(self, rng: np.random.Generator) -> Rows:
        count, p, k = self.rows + self.test_rows, self.dimension, self.factors
        labels, direction = np.where(rng.random(count) < 0.5, 1.0, -1.0), rng.standard_normal(k)
        factors = rng.standard_normal((count, k)) + 2 * np.outer(labels, direction / np.linalg.norm(direction))
        features = factors @ (rng.standard_normal((k, p)) / math.sqrt(k))
        features += 0.5 * rng.standard_normal((count, p))
        idle = rng.permutation(p)[: p // 2]
        features[:, idle] = features[rng.permutation(count)][:, idle]
        if self.density is None:
            return np.clip(features, -1.0, 1.0), labels
        counts = np.maximum(features - np.quantile(features, 1 - self.density), 0.0)
        largest = counts.max(axis=0)
        return 2 * counts / np.where(largest > 0, largest, 1.0) - 1, labels
