"""Synthetic linear classification with similar, never equal, target models (Bellet et al. 2018, section 5.1), or one.

Each agent has a target model whose first two coordinates are standard normal and whose others are 0. A point's label
is the sign of its score under the target; training labels are flipped with a small probability, test labels are clean.
With one common target, what agents learn together is right for each of them; with targets of their own, who agrees most
is not who is right most. The paper draws points "uniformly around the origin"; the cube [-1, 1]^p is our reading, with
two alternatives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ..errors import FieldError
from ..losses import LOSSES, LossName
from ..parameters import MOST, NotNegative, Size
from ..tables import Table
from .extent import Extent, Files
from .outline import Outline
from .splits import SplitParameters, check_count, dealt_anew, inverse_counts, split_notes
from .task import Task
from .task_registry import TASKS, TaskKind

Points = Literal["cube", "ball", "gaussian"]


@final
@TASKS.register
class LinearClassification(TaskKind):
    """Synthetic linear classification: each agent has its own target in a common plane, or all have one."""

    kind: Literal["linear_classification"]
    draws_data: ClassVar[bool] = True
    target: ClassVar[str] = "personal, or common by targets"
    agents: Size = Field(examples=[40])
    """Number of agents n."""
    dimension: int = Field(ge=2, le=MOST, examples=[10])
    """Dimension p of points and models."""
    samples: list[Annotated[int, Field(ge=0, le=MOST)]] = Field(default=[10, 100], min_length=2, max_length=2)
    """Smallest and largest number of training points; each agent's is uniform between them, both included."""
    targets: Literal["personal", "common"] = "personal"
    """Whether each agent has a target of its own, or all have one."""
    split: SplitParameters | None = None
    """Rule that deals the training points of all agents to as many agents; by default each has those that were drawn
    for it. Only with a common target: other agents' points say nothing about a target of one's own."""
    points: Points = "cube"
    """Distribution of the points: uniform on [-1, 1]^p, uniform in the unit ball, or normal with covariance I/2."""
    label_noise: float = Field(default=0.05, ge=0, lt=0.5)
    """Probability that a training label is flipped."""
    test_samples: Size = 100
    """Test points of each agent, with clean labels."""
    precision: Literal["float64", "float32"] = "float64"
    """How points are kept; models and arithmetic are in float64 either way, and float32 halves the memory."""
    loss: LossName = "logistic"
    """Loss of a score; one of real labels regresses on the labels -1 and +1."""
    regularisation: NotNegative | Literal["1/m"] = "1/m"
    """lambda_i: one number for all agents, or 1 over the agent's number of training points."""

    @model_validator(mode="after")
    def _ordered(self) -> LinearClassification:
        low, high = self.samples
        if low > high or high < 1:
            raise FieldError("must be ordered, the largest at least 1", "samples")
        if self.split is not None and self.targets == "personal":
            raise FieldError(
                "needs targets: common; points are labelled by the target of the agent that has them", "split"
            )
        check_count(self.split, self.agents)
        return self

    def outline(self) -> Outline:
        """Return the outline of the task, which the parameters alone determine."""
        regularised = self.regularisation == "1/m" or self.regularisation > 0
        bounded = tuple(_bounds(self.points, self.dimension))
        return Outline(
            self.kind, self.loss, agents=self.agents, profiles=True, regularised=regularised, bounded=bounded
        )

    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Draw the data, with the (n, p) targets as profiles.

        Agent i's data depend on the generator's state, i and the fields above, but not on the number of agents.
        """
        common = rng.standard_normal(2) if self.targets == "common" else None
        p, seeds = self.dimension, rng.integers(2**63, size=self.agents).tolist()
        targets = np.zeros((self.agents, p))
        counts = np.zeros(self.agents, dtype=np.int64)
        for agent, seed in enumerate(seeds):
            own, counts[agent] = self._target_and_count(np.random.default_rng(seed))
            targets[agent, :2] = own if common is None else common
        tests = np.full(self.agents, self.test_samples)
        train, test = _empty_table(counts, p, self.precision), _empty_table(tests, p, self.precision)
        for agent, seed in enumerate(seeds):
            own = np.random.default_rng(seed)
            self._target_and_count(own)
            for table, noise in ((train, self.label_noise), (test, 0.0)):
                shard = table.shard(agent)
                shard.stored[:], shard.labels[:] = self._draw(own, len(shard), targets[agent], noise)
        notes: dict[str, Any] = {}
        if self.split is not None:
            train = dealt_anew(train, self.split, rng=rng)
            counts, notes = train.counts, {"split": split_notes(train, 2)}
        given = self.regularisation
        return Task(
            name="linear classification",
            ids=list(range(self.agents)),
            train=train,
            test=test,
            loss=LOSSES[self.loss],
            regularisation=inverse_counts(counts) if given == "1/m" else np.full(self.agents, float(given)),
            metric="accuracy",
            bounds=_bounds(self.points, p),
            profiles=targets,
            profiles_are="target models",
            notes={
                "source": "synthetic, Bellet et al. 2018, section 5.1",
                "points": self.points,
                "targets": self.targets,
                **notes,
            },
        )

    def extent(self, files: Files | None) -> Extent:
        """Estimate the size of the task from its parameters."""
        rows = sum(self.samples) / 2 + self.test_samples
        point = np.dtype(self.precision).itemsize * self.dimension
        data = self.agents * (rows * (point + 8) + 8 * self.dimension)
        return Extent(self.agents, self.dimension, data, profile=self.dimension, around=True, known=True)

    def _target_and_count(self, rng: np.random.Generator) -> tuple[NDArray[np.float64], int]:
        """The first draws of an agent's stream: two coordinates of its target, and its number of points."""
        return rng.standard_normal(2), int(rng.integers(self.samples[0], self.samples[1], endpoint=True))

    def _draw(
        self, rng: np.random.Generator, count: int, target: NDArray[np.float64], noise: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(count, p) points and their (count,) labels, flipped with probability `noise`."""
        features = _points(self.points, rng, count, self.dimension)
        if self.precision == "float32":
            features = _shortened(features)
        labels = np.where(features @ target >= 0.0, 1.0, -1.0)
        return features, np.where(rng.random(count) < noise, -labels, labels)


def _points(kind: Points, rng: np.random.Generator, count: int, dimension: int) -> NDArray[np.float64]:
    if kind == "cube":
        return rng.uniform(-1.0, 1.0, size=(count, dimension))
    normal = rng.standard_normal((count, dimension))
    if kind == "gaussian":
        return normal / np.sqrt(2.0)
    radii = rng.random((count, 1)) ** (1.0 / dimension)
    return normal * (radii / np.linalg.norm(normal, axis=1, keepdims=True))


def _shortened(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points with the digits that float32 keeps, rounded towards 0: no norm grows, and bounds on norms still hold."""
    nearest = points.astype(np.float32)
    beyond = np.abs(nearest) > np.abs(points)
    return np.where(beyond, np.nextafter(nearest, np.float32(0.0)), nearest).astype(np.float64)


def _bounds(kind: Points, dimension: int) -> dict[str, float]:
    """Norm bounds of every admissible point; a normal point has none."""
    if kind == "cube":
        return {"l1": float(dimension), "l2": float(np.sqrt(dimension))}
    if kind == "ball":
        return {"l1": float(np.sqrt(dimension)), "l2": 1.0}
    return {}


def _empty_table(counts: NDArray[np.int64], dimension: int, precision: str) -> Table:
    """Rows to be filled in place, so that no second copy of the data is ever held."""
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Table(np.empty((int(offsets[-1]), dimension), dtype=precision), np.empty(int(offsets[-1])), offsets)
