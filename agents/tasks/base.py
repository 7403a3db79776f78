"""What every task hands to the world: data by agent, a loss, a test set and what is publicly known."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..losses import Loss
from ..tables import Table

Metric = Literal["accuracy", "rmse"]


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
    profiles_are : str
        What the profiles are, in words; a graph made from them treats them as public.
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
    profiles_are: str = ""
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
