"""Rows of data: one agent's own, and everybody's packed by owner."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]
"""Rows of features in float64, or in float32. Type checkers need not know which: a product with float64 is float64."""


@dataclass(frozen=True)
class Shard:
    """One agent's own data."""

    stored: Rows
    """(m, p) float64 or float32: The rows as they are kept."""
    labels: NDArray[np.float64]
    """(m,) float64: In {-1, +1} for classification, real for regression."""

    @property
    def features(self) -> NDArray[np.float64]:
        """(m, p) float64, what is computed with: the rows as they are kept, or a copy if that is in float32."""
        return np.asarray(self.stored, dtype=np.float64)

    @property
    def read_only(self) -> Shard:
        """The same data, which nobody can change through it."""
        stored, labels = self.stored.view(), self.labels.view()
        stored.flags.writeable = labels.flags.writeable = False
        return Shard(stored, labels)

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Table:
    """The shards of all agents, packed row after row in agent order."""

    features: Rows
    """(M, p) float64 or float32."""
    labels: NDArray[np.float64]
    """(M,) float64."""
    offsets: NDArray[np.int64]
    """(n + 1,) int64: Agent i owns rows ``offsets[i]`` to ``offsets[i + 1] - 1``; an agent may own none."""

    @classmethod
    def from_owners(
        cls, features: NDArray[np.float64], labels: NDArray[np.float64], owners: NDArray[np.int64], agents: int
    ) -> Table:
        """Pack rows by owner, keeping each owner's rows in the order given; rows in float32 stay so."""
        order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=agents)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(
            np.ascontiguousarray(features[order], dtype=np.promote_types(features.dtype, np.float32)),
            np.ascontiguousarray(labels[order], dtype=np.float64),
            offsets,
        )

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(n,) rows of each agent."""
        return np.diff(self.offsets)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) sum of (M,) values over each agent's rows; 0 without rows."""
        sums, inhabited = np.zeros(len(self.counts)), self.counts > 0
        sums[inhabited] = np.add.reduceat(values, self.offsets[:-1][inhabited])
        return sums

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """(M,) owner of each row."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.counts)

    def shard(self, agent: int) -> Shard:
        """An agent's own rows, as views."""
        rows = slice(int(self.offsets[agent]), int(self.offsets[agent + 1]))
        return Shard(self.features[rows], self.labels[rows])
