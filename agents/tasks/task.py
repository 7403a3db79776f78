"""A task as the simulation receives it: data by agent, a loss, a test set and public knowledge about the data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..losses import Loss
from ..models.predictor import Predictor
from ..tables import Shard, Table


@dataclass(frozen=True)
class Task:
    """A learning problem spread over n agents, each with a model of p parameters."""

    name: str
    """For titles and manifests; a stand-in for real data says so here."""
    ids: list[int] | list[str]
    """(n,) list of int or str: The user's names of the agents: what random draws are keyed by."""
    train: Table
    test: Table
    loss: Loss
    regularisation: NDArray[np.float64]
    """(n,) float64: lambda_i of the term lambda_i |theta|^2."""
    metric: str
    """How test predictions are judged, from `hushnet.agents.criteria.CRITERIA`; mse is an agent's mean squared error,
    rmse its root."""
    bounds: dict[str, float] = field(default_factory=dict)
    """Publicly known bounds on the norm of every admissible feature row, ``{"l1": ..., "l2": ...}``; a norm without an
    a-priori bound is absent. Only the definition of the data domain may enter here, never the data."""
    profiles: Any = None
    """(n, k) array or scipy sparse array: What similarity graphs compare (target models, rating vectors)."""
    profiles_are: str = ""
    """What the profiles are, in words; a graph made from them treats them as public."""
    places: Any = None
    """(n, 2) array: Where agents lie in the plane, for portraits."""
    assumed_public: tuple[str, ...] = ()
    """Inputs computed from private data that the task hands out as if they were public."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Anything for the manifest: source, checksum, choices."""
    columns: tuple[NDArray[np.int64], ...] | None = None
    """(n,) tuple of (p_i,) int64: The feature columns that each agent holds of the same rows, where features are split
    instead of rows: agent 0 owns all rows of the tables, has no column and alone knows the labels."""
    zero_is: str = "zero model"
    """What a zero model predicts, in words, where labels were centred."""
    classes: int = 2
    """Number of classes K, where labels are classes: -1 and +1 for two, 0 to K - 1 for more."""
    model: Predictor | None = None
    """The model; by default the linear one, whose scores are x . theta."""
    first: NDArray[np.float64] | None = None
    """(p,) float64: Public parameters that all agents begin with; zeros by default."""

    @property
    def agents(self) -> int:
        """Number of agents n."""
        return len(self.train.offsets) - 1

    @property
    def dimension(self) -> int:
        """Number of parameters p of a model."""
        return self.train.features.shape[1] if self.model is None else self.model.width

    @property
    def precision(self) -> np.dtype[Any]:
        """Type of the numbers that agents keep and send: float64, or float32."""
        return np.dtype(np.float64 if self.model is None else self.model.precision)

    def check(self) -> None:
        """Refuse a task whose parts do not belong together, such as owners of rows that are no agents.

        Raises `InputError` with what does not fit, and what would.
        """
        n = len(self.ids)
        for name, table in (("training", self.train), ("test", self.test)):
            if len(table.offsets) != n + 1:
                owned = f"the {name} rows are owned by agents 0 to {len(table.offsets) - 2}"
                raise InputError(f"{owned}; admissible: 0 to {n - 1}, for there are {n} ids")
            if not table.offsets[-1] == len(table.features) == len(table.labels):
                given = f"{len(table.features)} rows, {len(table.labels)} labels, {table.offsets[-1]} with an owner"
                raise InputError(f"the {name} table has {given}; these must be equal")
            if wrong := [label for label in np.unique(table.labels) if not self._admits(label)]:
                admissible = "numbers" if self.loss.labels == "real" else "-1 and +1"
                admissible = admissible if self.classes == 2 else f"0 to {self.classes - 1}"
                raise InputError(f"a {name} label is {wrong[0]:g}; admissible for {self.loss.name}: {admissible}")
        weights = np.shape(self.regularisation)
        if weights != (n,) or not bool(np.all(np.asarray(self.regularisation) >= 0)):
            given = f"of shape {weights}" if weights != (n,) else f"{np.min(self.regularisation):g} at least"
            raise InputError(f"regularisation is {given}; it must be {n} numbers >= 0, one for each id")

    def _admits(self, label: float) -> bool:
        if self.loss.labels == "real":
            return bool(np.isfinite(label))
        return label in (-1.0, 1.0) if self.classes == 2 else label in range(self.classes)

    def shard(self, agent: int) -> Shard:
        """Training data of an agent: its samples, or, where features are split, its columns of all samples.

        Read-only, because all runs of a seed share the task.
        """
        if self.columns is None:
            return self.train.shard(agent).read_only
        labels = self.train.labels if agent == 0 else self.train.labels[:0]
        return Shard(np.ascontiguousarray(self.train.features[:, self.columns[agent]]), labels).read_only

    def called(self, agent: int) -> str:
        """Return the name of an agent in error messages, made of its id; an agent without samples is marked as such."""
        empty = self.columns is None and not self.train.counts[agent]
        return f"agent {self.ids[agent]!r}{' (without rows)' if empty else ''}"

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
            digest.update(np.ascontiguousarray(array).data)
        digest.update(repr((self.loss.name, self.metric, self.ids)).encode())
        if self.model is not None:
            digest.update(b"" if self.precision == np.float64 else self.precision.name.encode())
            digest.update(repr((self.model, None if self.first is None else self.first.tolist())).encode())
        if self.columns is not None:
            digest.update(repr([held.tolist() for held in self.columns]).encode())
        return digest.hexdigest()
