"""Where a step's record reads what was heard and draws from: an agent's view."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.losses import Loss, local_gradient
from ...agents.tables import Shard
from ..privacy.mechanisms import Release
from ..view import View
from .tables import StepTables, read_only

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
NO_RANKS = np.zeros(0, dtype=np.int64)
SAMPLING, OWN = "sampling", "own draws"
"""Streams from which rows are drawn, and what authors draw for themselves."""


class StepSource(ABC):
    """What one step of one agent, or of a batch of agents, reads beside its blocks."""

    @abstractmethod
    def heard_at(self, kind: str, width: int) -> tuple[Any, Ranks, Ranks, Ranks]:
        """A pool of vectors, and where in it what was heard over each edge is (-1: nothing).

        These are indices, and (B,) where each agent's begin among them and (B,) how many they are.
        """

    def run_kernel(self, kernel: Any, *arguments: Any) -> Any:
        """Call a kernel whose arguments have the same types at every step of a run."""
        return kernel(*arguments)

    @abstractmethod
    def sent_at(self, kind: str) -> Array:
        """(R,) when what was heard over each edge was sent; minus infinity where nothing was."""

    @abstractmethod
    def is_new(self, kind: str) -> NDArray[np.bool_]:
        """(R,) whether what was heard over each edge was not at the agent's last step."""

    @abstractmethod
    def rows(self) -> tuple[Any, Array, Ranks, Ranks]:
        """Features, labels and offsets of packed rows, read-only, and (B,) which of their owners the agents are."""

    def rows_of(self, agents: Ranks) -> tuple[Any, Array, Ranks, Ranks]:
        """`rows` of some agents, whatever step is being made."""
        return self.rows()

    @abstractmethod
    def shard(self, agent: int) -> Shard:
        """An agent's own rows."""

    @abstractmethod
    def perturb(self, values: Array) -> Array:
        """(B, width) values with the noise of the step's release."""

    @abstractmethod
    def perturb_objective(
        self, weights: Array, curvatures: Array, linear: Array, influences: Array, minimise: Callable[[Array], Array]
    ) -> Array:
        """(B, p) minimisers by ``minimise(linear)`` with the noise of the step's release in the linear term."""

    @abstractmethod
    def uniforms(self, count: int) -> Array:
        """(B, count) numbers of [0, 1) from each agent's own draws."""

    @abstractmethod
    def normals(self, count: int) -> Array:
        """(B, count) standard normal numbers from each agent's own draws."""

    @abstractmethod
    def choose(self, purpose: str, populations: Ranks, counts: Ranks) -> tuple[Ranks, Ranks]:
        """So many of each agent's first integers from 0, without replacement, and (B + 1,) where each agent's begin."""

    @abstractmethod
    def choose_each(self, shares: Array) -> tuple[Ranks, Ranks]:
        """Ranks of rows, each drawn with its agent's share, and (B + 1,) where each agent's begin."""

    @abstractmethod
    def affords(self) -> bool:
        """Set budget aside for the step's release; false if an agent cannot afford it."""

    @abstractmethod
    def follow(self) -> None:
        """Note that what the step sends follows from what was released and heard before."""

    @abstractmethod
    def part(self, rows: Ranks) -> StepSource:
        """The same for some of the agents, by their places in the batch."""


@final
class ViewSource(StepSource):
    """A step of one agent, by its view.

    Parameters
    ----------
    tables : StepTables
    view : View
    """

    def __init__(self, tables: StepTables, view: View) -> None:
        self.tables, self.view = tables, view
        self.release: Release | None = None
        self.reserve: Callable[[Release], bool] | None = None
        self.follows = False
        self._known = self._known_before = dict.fromkeys(tables.names.kinds, np.int64(-1))

    def look(self) -> None:
        """Note what is known at a step, and what was at the step before."""
        if self.tables.protocol.asks_what_is_new:
            self._known_before, self._known = self._known, {kind: self.view.orders(kind) for kind in self._known}

    def begin(self, release: Release | None, reserve: Callable[[Release], bool] | None) -> None:
        """Begin a step."""
        self.release, self.reserve, self.follows = release, reserve, False

    @override
    def heard_at(self, kind: str, width: int) -> tuple[Any, Ranks, Ranks, Ranks]:
        pool, index = self.view.heard_at(kind)
        if not isinstance(pool, np.ndarray):
            vectors, pool = pool, np.zeros((len(pool), width))
            for row, vector in zip(pool, vectors, strict=True):
                row[: len(vector)] = vector
        return pool, index, np.zeros(1, dtype=np.int64), np.array([len(index)])

    @override
    def sent_at(self, kind: str) -> Array:
        return self.view.sent_at(kind)

    @override
    def is_new(self, kind: str) -> NDArray[np.bool_]:
        return self._known[kind] != self._known_before[kind]

    @override
    def rows(self) -> tuple[Any, Array, Ranks, Ranks]:
        return self._rows

    @cached_property
    def _rows(self) -> tuple[Any, Array, Ranks, Ranks]:
        data = self.view.data
        return (
            read_only(data.stored),
            read_only(data.labels),
            read_only(np.array([0, len(data)])),
            np.zeros(1, np.int64),
        )

    @override
    def shard(self, agent: int) -> Shard:
        return self.view.data

    @property
    def _given(self) -> Release:
        assert self.release is not None, "a step without a release draws no noise"
        return self.release

    @override
    def perturb(self, values: Array) -> Array:
        if not self._given.noisy:
            return values
        return self._given.perturb(values[0], rng=self.view.stream("noise"))[None]

    @override
    def perturb_objective(
        self, weights: Array, curvatures: Array, linear: Array, influences: Array, minimise: Callable[[Array], Array]
    ) -> Array:
        weight, curvature, influence = float(weights[0]), float(curvatures[0]), float(influences[0])
        implied, log_jacobian = inverse_of(self.view.data, self.tables.loss, weight, curvature, linear[0], influence)
        found = self._given.perturb_objective(
            lambda noise: minimise(linear - influence * noise[None])[0],
            implied,
            size=linear.shape[1],
            rng=self.view.stream("noise"),
            log_jacobian=log_jacobian,
        )
        return found[None]

    @override
    def uniforms(self, count: int) -> Array:
        return self.view.stream(OWN).random((1, count))

    @override
    def normals(self, count: int) -> Array:
        return self.view.stream(OWN).normal(size=(1, count))

    @override
    def choose(self, purpose: str, populations: Ranks, counts: Ranks) -> tuple[Ranks, Ranks]:
        stream, population, count = self.view.stream(purpose), int(populations[0]), int(counts[0])
        ranks = np.array([stream.integers(population)]) if count == 1 else stream.choice(population, count, False)
        return ranks.astype(np.int64), np.array([0, count])

    @override
    def choose_each(self, shares: Array) -> tuple[Ranks, Ranks]:
        ranks = np.flatnonzero(self.view.stream(SAMPLING).random(len(self.view.data.labels)) < shares[0])
        return ranks, np.array([0, len(ranks)])

    @override
    def affords(self) -> bool:
        assert self.reserve is not None
        return self.reserve(self._given)

    @override
    def follow(self) -> None:
        self.follows = True

    @override
    def part(self, rows: Ranks) -> StepSource:
        return self if len(rows) else Nobody(self)


@final
class Nobody(StepSource):
    """A part of a batch without agents.

    Parameters
    ----------
    whole : StepSource
    """

    def __init__(self, whole: StepSource) -> None:
        self._whole = whole

    @override
    def heard_at(self, kind: str, width: int) -> tuple[Any, Ranks, Ranks, Ranks]:
        return self._whole.heard_at(kind, width)[0], NO_RANKS, NO_RANKS, NO_RANKS

    @override
    def sent_at(self, kind: str) -> Array:
        return np.zeros(0)

    @override
    def is_new(self, kind: str) -> NDArray[np.bool_]:
        return np.zeros(0, dtype=bool)

    @override
    def rows(self) -> tuple[Any, Array, Ranks, Ranks]:
        return *self._whole.rows()[:3], NO_RANKS

    @override
    def shard(self, agent: int) -> Shard:
        return self._whole.shard(agent)

    @override
    def perturb(self, values: Array) -> Array:
        return values

    @override
    def perturb_objective(
        self, weights: Array, curvatures: Array, linear: Array, influences: Array, minimise: Callable[[Array], Array]
    ) -> Array:
        return linear

    @override
    def uniforms(self, count: int) -> Array:
        return np.zeros((0, count))

    @override
    def normals(self, count: int) -> Array:
        return np.zeros((0, count))

    @override
    def choose(self, purpose: str, populations: Ranks, counts: Ranks) -> tuple[Ranks, Ranks]:
        return NO_RANKS, np.zeros(1, dtype=np.int64)

    @override
    def choose_each(self, shares: Array) -> tuple[Ranks, Ranks]:
        return NO_RANKS, np.zeros(1, dtype=np.int64)

    @override
    def affords(self) -> bool:
        return True

    @override
    def follow(self) -> None:
        return

    @override
    def part(self, rows: Ranks) -> StepSource:
        return self


def inverse_of(
    shard: Shard, loss: Loss, weight: float, curvature: float, linear: Array, influence: float
) -> tuple[Callable[[Array], Array], Callable[[Array], float]]:
    """The noise that has a model as its `perturbed_minimiser`, and log abs det of its derivative, up to a constant.

    Parameters
    ----------
    shard : Shard
    loss : Loss
    weight, curvature, linear, influence
        As of `hushnet.protocols.steps.operators.perturbed_minimiser`.
    """

    def implied(model: Array) -> Array:
        gradient = weight * local_gradient(model, shard, loss, 0.0) + curvature * model - linear
        return -gradient / influence

    def log_jacobian(model: Array) -> float:
        rows = shard.features
        bends = weight / max(1, len(rows)) * loss.second_slope(rows @ model, shard.labels)
        return float(np.linalg.slogdet(rows.T @ (bends[:, None] * rows) + curvature * np.eye(len(model)))[1])

    return implied, log_jacobian
