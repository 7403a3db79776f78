"""Dealing rows to agents, and holding some of each agent's rows out for testing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from ..errors import FieldError, InputError
from ..losses.cross_entropy import class_of
from ..parameters import MOST, Parameters, Positive, Size
from ..suggestions import require
from ..tables import Table
from .task import Task


class Dealt(NamedTuple):
    """Rows that are dealt to agents."""

    features: NDArray[np.float64]
    """(M, p)."""
    labels: NDArray[np.float64]
    """(M,)."""
    classes: bool
    """Whether labels are classes."""
    names: Sequence[str] = ()
    """Names of the features, where they have some."""


class Split(Parameters, ABC):
    """Common to all kinds: rows go to agents 0 to n - 1."""

    @abstractmethod
    def owners(self, rows: Dealt, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Deal rows to agents: the (M,) owners, -1 for a row that is left out; raises `InputError` where it cannot."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of agents n."""


class SplitAmong(Split):
    """Common to all kinds that deal to a given number of agents."""

    agents: Size = Field(examples=[20])
    """Number of agents; kinds that leave nobody without rows have at most as many agents as rows."""

    @property
    @override
    def count(self) -> int:
        return self.agents


@final
class Even(SplitAmong):
    """Rows in random order, sizes that differ by at most one."""

    kind: Literal["even"]

    @override
    def owners(self, rows: Dealt, *, rng: np.random.Generator) -> NDArray[np.int64]:
        return rng.permutation(_cut(len(rows.labels), self.agents))


@final
class Dirichlet(SplitAmong):
    """Each class is shared out in Dirichlet proportions: the smaller the concentration, the more skewed.

    An agent may end up without rows. See Hsu, Qi and Brown 2019, "Measuring the effects of non-identical data
    distribution for federated visual classification", whose roles of classes and agents are swapped here so that
    every row is dealt exactly once.
    """

    kind: Literal["dirichlet"]
    concentration: Positive = Field(examples=[0.3])
    """Parameter of the symmetric Dirichlet distribution."""

    @override
    def owners(self, rows: Dealt, *, rng: np.random.Generator) -> NDArray[np.int64]:
        if not rows.classes:
            raise InputError(
                "dirichlet needs classes, which a loss of real labels does not have; choose by_feature, say",
                field=("task", "split", "kind"),
            )
        owners = np.empty(len(rows.labels), dtype=np.int64)
        for label in np.unique(rows.labels):
            own = rng.permutation(np.flatnonzero(rows.labels == label))
            owners[own] = _in_shares(len(own), self.agents, self.concentration, rng)
        return owners


@final
class BySize(Split):
    """Rows in random order, a given number for each agent; rows beyond the sum are left out."""

    kind: Literal["by_size"]
    sizes: list[Annotated[int, Field(ge=0, le=MOST)]] = Field(min_length=1, examples=[[10, 20, 30]])
    """Rows of each agent, with a sum of at most the number of rows; 0 makes an agent without data."""

    @property
    @override
    def count(self) -> int:
        return len(self.sizes)

    @override
    def owners(self, rows: Dealt, *, rng: np.random.Generator) -> NDArray[np.int64]:
        total, count = sum(self.sizes), len(rows.labels)
        if not 0 < total <= count:
            raise InputError(
                f"sizes sum to {total}; the sum must be from 1 to the number of rows, {count}",
                field=("task", "split", "sizes"),
            )
        owners = np.full(count, -1, dtype=np.int64)
        owners[:total] = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return rng.permutation(owners)


@final
class Shards(SplitAmong):
    """Rows in the order of their labels are cut into shards, of which each agent gets a few at random.

    See McMahan, Moore, Ramage, Hampson and Arcas 2017, "Communication-efficient learning of deep networks from
    decentralized data", section 3.
    """

    kind: Literal["shards"]
    shards: Size = 2
    """Shards of each agent; all shards together are at most as many as rows."""

    @override
    def owners(self, rows: Dealt, *, rng: np.random.Generator) -> NDArray[np.int64]:
        dealt = rng.permutation(np.repeat(np.arange(self.agents), self.shards))
        owners = np.empty(len(rows.labels), dtype=np.int64)
        cut = _cut(len(owners), len(dealt), what=f"agents times shards, {len(dealt)},")
        owners[np.lexsort((rng.random(len(owners)), rows.labels))] = dealt[np.sort(cut)]
        return owners


@final
class QuantitySkew(SplitAmong):
    """Rows in random order, sizes in Dirichlet proportions: the smaller the concentration, the more they differ.

    An agent may end up without rows. See Li, Diao, Chen and He 2022, "Federated learning on non-IID data silos: an
    experimental study", section 4.3.
    """

    kind: Literal["quantity"]
    concentration: Positive = Field(examples=[0.5])
    """Parameter of the symmetric Dirichlet distribution."""

    @override
    def owners(self, rows: Dealt, *, rng: np.random.Generator) -> NDArray[np.int64]:
        return rng.permutation(_in_shares(len(rows.labels), self.agents, self.concentration, rng))


@final
class ByFeature(SplitAmong):
    """Rows in the order of a feature, sizes that differ by at most one: agents differ in what they have seen."""

    kind: Literal["by_feature"]
    feature: Annotated[int, Field(ge=0)] | str = Field(examples=[0])
    """Index of the feature from 0, or its name where features have names; equal values are in random order."""

    @override
    def owners(self, rows: Dealt, *, rng: np.random.Generator) -> NDArray[np.int64]:
        names, field = rows.names, ("task", "split", "feature")
        if isinstance(self.feature, str):
            require(self.feature, names, f"there is no feature {self.feature!r}", field)
        place = names.index(self.feature) if isinstance(self.feature, str) else self.feature
        if place >= rows.features.shape[1]:
            raise InputError(f"{place} must be below the number of features, {rows.features.shape[1]}", field=field)
        if np.ptp(rows.features[:, place]) == 0:
            raise InputError("has one value in all rows; choose a feature whose values differ", field=field)
        owners = np.empty(len(rows.labels), dtype=np.int64)
        order = np.lexsort((rng.random(len(owners)), rows.features[:, place]))
        owners[order] = np.sort(_cut(len(owners), self.agents))
        return owners


SplitParameters = Annotated[Even | Dirichlet | Shards | QuantitySkew | ByFeature | BySize, Field(discriminator="kind")]


def check_count(split: Split | None, agents: int) -> None:
    """Raise a `FieldError` if a rule deals to another number of agents than the task has."""
    if split is not None and split.count != agents:
        raise FieldError(f"deals to {split.count} agents; the task has {agents} by its field agents", "split")


def dealt_anew(table: Table, split: Split, *, rng: np.random.Generator) -> Table:
    """Deal the rows of all agents by another rule; their labels are classes.

    Raises `InputError` if the rows cannot be dealt in this way.
    """
    owners = split.owners(Dealt(table.features, table.labels, classes=True), rng=rng)
    kept = owners >= 0
    return Table.from_owners(table.features[kept], table.labels[kept], owners[kept], split.count)


def _cut(count: int, parts: int, what: str = "") -> NDArray[np.int64]:
    """(count,) parts in turn, as many rows in each to within one; refuse more parts than rows."""
    if parts > count:
        raise InputError(
            f"{what or parts} must be at most the number of rows, {count}", field=("task", "split", "agents")
        )
    return np.arange(count) % parts


def _in_shares(count: int, parts: int, concentration: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """(count,) parts in ascending order, in Dirichlet proportions."""
    shares = rng.dirichlet(np.full(parts, concentration))
    cuts = np.rint(np.cumsum(shares)[:-1] * count).astype(np.int64)
    return np.repeat(np.arange(parts), np.diff(cuts, prepend=0, append=count))


def split_notes(table: Table, classes: int) -> dict[str, Any]:
    """Return notes for the manifest on what agents hold of rows that were dealt to them.

    They are ``rows``: the smallest, median and largest number of an agent's rows; of classes, if there are any, also
    ``classes``, the same of how many occur among them, and ``label_skew``: the mean over agents of the total variation
    distance, in [0, 1], of their labels from all labels.
    """
    notes: dict[str, Any] = {"rows": _spread(table.counts)}
    held = table.counts > 0
    if classes and held.any():
        labels = class_of(table.labels, classes)
        counts = np.stack([table.sums((labels == one).astype(np.float64)) for one in range(classes)], axis=1)[held]
        shares, overall = counts / counts.sum(axis=1, keepdims=True), counts.sum(axis=0) / counts.sum()
        notes["classes"] = _spread((counts > 0).sum(axis=1))
        notes["label_skew"] = float(np.round(np.abs(shares - overall).sum(axis=1).mean() / 2, 4))
    return notes


def _spread(counts: NDArray[np.int64]) -> list[float]:
    return [float(counts.min()), float(np.median(counts)), float(counts.max())]


def hold_out(owners: NDArray[np.int64], agents: int, share: float, *, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose the (M,) test rows by their owners: a share in [0, 1) of each agent's, rounded, but never its last row."""
    counts = np.bincount(owners, minlength=agents)
    order = np.lexsort((rng.random(len(owners)), owners))
    first = np.concatenate([[0], np.cumsum(counts)])
    rank = np.empty(len(owners), dtype=np.int64)
    rank[order] = np.arange(len(owners)) - first[owners[order]]
    held = np.minimum(np.rint(share * counts).astype(np.int64), np.maximum(counts - 1, 0))
    return rank < held[owners]


def validation_part(task: Task, share: float, *, rng: np.random.Generator) -> Task:
    """The task with some of every agent's training rows in the place of its test rows, which nobody sees then.

    They are a share in (0, 1), rounded; an agent keeps one row at least. Everything else (regularisation, bounds,
    profiles) is the whole task's.
    """
    table = task.train
    held = hold_out(table.owners, task.agents, share, rng=rng)
    return replace(
        task,
        name=f"{task.name}, validation",
        train=_rows(table, ~held, task.agents),
        test=_rows(table, held, task.agents),
        notes={**task.notes, "validation": share},
    )


def _rows(table: Table, chosen: NDArray[np.bool_], agents: int) -> Table:
    counts = np.bincount(table.owners[chosen], minlength=agents)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Table(table.features[chosen], table.labels[chosen], offsets)


def inverse_counts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,) lambda_i = 1/m_i, and 0 for an agent without data, whose local objective is 0."""
    return np.where(counts > 0, 1.0 / np.maximum(counts, 1), 0.0)
