"""What every task hands to the world: data by agent, a loss, a test set and what is publicly known."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..losses import Loss

Metric = Literal["accuracy", "rmse"]


@dataclass(frozen=True)
class Shard:
    """One agent's own data.

    Parameters
    ----------
    features : (m, p) float64
    labels : (m,) float64
        In {-1, +1} for classification, real for regression.
    """

    features: NDArray[np.float64]
    labels: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Table:
    """The shards of all agents, packed row after row in agent order.

    Parameters
    ----------
    features : (M, p) float64
    labels : (M,) float64
    offsets : (n + 1,) int64
        Agent i owns rows ``offsets[i]`` to ``offsets[i + 1] - 1``; an agent may own none.
    """

    features: NDArray[np.float64]
    labels: NDArray[np.float64]
    offsets: NDArray[np.int64]

    @classmethod
    def from_owners(
        cls, features: NDArray[np.float64], labels: NDArray[np.float64], owners: NDArray[np.int64], agents: int
    ) -> Table:
        """Pack rows by owner, keeping each owner's rows in the order given."""
        order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=agents)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(
            np.ascontiguousarray(features[order], dtype=np.float64),
            np.ascontiguousarray(labels[order], dtype=np.float64),
            offsets,
        )

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(n,) rows of each agent."""
        return np.diff(self.offsets)

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """(M,) owner of each row."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.counts)

    def shard(self, agent: int) -> Shard:
        """An agent's own rows, as views."""
        rows = slice(int(self.offsets[agent]), int(self.offsets[agent + 1]))
        return Shard(self.features[rows], self.labels[rows])


@dataclass(frozen=True)
class Task:
    """A learning problem spread over n agents, each with a linear model of dimension p.

    Parameters
    ----------
    name : str
        For titles and manifests; a stand-in for real data says so here.
    ids : (n,) list of int or str
        The user's names of the agents: what random draws are keyed by.
    train, test : Table
    loss : Loss
    regularisation : (n,) float64
        lambda_i of the term lambda_i |theta|^2.
    metric : {"accuracy", "rmse"}
        How test predictions are judged.
    bounds : dict
        Publicly known bounds on the norm of every admissible feature row, ``{"l1": ..., "l2": ...}``; a norm
        without an a-priori bound is absent. Only the definition of the data domain may enter here, never the data.
    profiles : (n, k) array or scipy sparse array, optional
        What similarity graphs compare (target models, rating vectors).
    assumed_public : tuple of str
        Inputs computed from private data that the task hands out as if they were public.
    notes : dict
        Anything for the manifest: source, checksum, choices.
    """

    name: str
    ids: list[int] | list[str]
    train: Table
    test: Table
    loss: Loss
    regularisation: NDArray[np.float64]
    metric: Metric
    bounds: dict[str, float] = field(default_factory=dict)
    profiles: Any = None
    assumed_public: tuple[str, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def agents(self) -> int:
        """Number of agents n."""
        return len(self.train.offsets) - 1

    @property
    def dimension(self) -> int:
        """Model dimension p."""
        return self.train.features.shape[1]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the data's content, for run ids and caches."""
        digest = hashlib.blake2s(digest_size=16)
        for array in (
            self.train.features,
            self.train.labels,
            self.train.offsets,
            self.test.features,
            self.test.labels,
            self.test.offsets,
            self.regularisation,
        ):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(repr((self.loss.name, self.metric, self.ids)).encode())
        return digest.hexdigest()
