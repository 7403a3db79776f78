"""Sources from which a step's record reads received vectors and takes random draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.tables import Shard

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
NO_RANKS = np.zeros(0, dtype=np.int64)
SAMPLING, OWN = "sampling", "own draws"
"""Streams from which rows are drawn, and what authors draw for themselves."""


class StepSource(ABC):
    """Source of what one step, of one agent or of a batch of agents, reads beside its blocks."""

    @abstractmethod
    def heard_at(self, kind: str, width: int) -> tuple[Any, Ranks, Ranks, Ranks]:
        """A pool of vectors, and where in it what was heard over each edge is (-1: nothing).

        These are indices, and (B,) where each agent's begin among them and (B,) how many they are.
        """

    @abstractmethod
    def run_kernel(self, kernel: Any, *arguments: Any) -> Any:
        """Call a kernel whose arguments have the same types at every step of a run."""

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
    def run_kernel(self, kernel: Any, *arguments: Any) -> Any:
        return self._whole.run_kernel(kernel, *arguments)

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
