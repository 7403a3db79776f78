"""Dealing rows to agents, and holding some of each agent's rows out for testing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Annotated, Literal, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from ..errors import InputError
from ..parameters import MOST, Parameters, Positive, Size
from ..tables import Table
from .base import Task


class Split(Parameters, ABC):
    """Common to all kinds: rows go to agents 0 to n - 1."""

    @abstractmethod
    def owners(self, labels: NDArray[np.float64], classes: bool, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Deal rows to agents.

        Parameters
        ----------
        labels : (M,) float64
        classes : bool
            Whether labels are classes.
        rng : numpy.random.Generator

        Returns
        -------
        (M,) int64
            The agent that owns each row; -1 for a row that is left out.

        Raises
        ------
        InputError
            If the rows cannot be dealt in this way.
        """

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of agents n."""


@final
class Even(Split):
    """Rows in random order, sizes that differ by at most one."""

    kind: Literal["even"]
    agents: Size
    """Number of agents, at most the number of rows."""

    @property
    @override
    def count(self) -> int:
        return self.agents

    @override
    def owners(self, labels: NDArray[np.float64], classes: bool, *, rng: np.random.Generator) -> NDArray[np.int64]:
        if self.agents > len(labels):
            raise InputError(
                f"{self.agents} must be at most the number of rows, {len(labels)}", field=("task", "split", "agents")
            )
        return rng.permutation(np.arange(len(labels)) % self.agents)


@final
class Dirichlet(Split):
    """Each class is shared out in Dirichlet proportions: the smaller the concentration, the more skewed.

    An agent may end up without rows. See Hsu, Qi and Brown 2019, "Measuring the effects of non-identical data
    distribution for federated visual classification", whose roles of classes and agents are swapped here so that
    every row is dealt exactly once.
    """

    kind: Literal["dirichlet"]
    agents: Size
    """Number of agents."""
    concentration: Positive
    """Parameter of the symmetric Dirichlet distribution."""

    @property
    @override
    def count(self) -> int:
        return self.agents

    @override
    def owners(self, labels: NDArray[np.float64], classes: bool, *, rng: np.random.Generator) -> NDArray[np.int64]:
        if not classes:
            raise InputError(
                "dirichlet needs classes, which a loss of real labels does not have; choose even or by_size",
                field=("task", "split", "kind"),
            )
        owners = np.empty(len(labels), dtype=np.int64)
        for label in np.unique(labels):
            rows = rng.permutation(np.flatnonzero(labels == label))
            shares = rng.dirichlet(np.full(self.agents, self.concentration))
            cuts = np.rint(np.cumsum(shares)[:-1] * len(rows)).astype(np.int64)
            for agent, part in enumerate(np.split(rows, cuts)):
                owners[part] = agent
        return owners


@final
class BySize(Split):
    """Rows in random order, a given number for each agent; rows beyond the sum are left out."""

    kind: Literal["by_size"]
    sizes: list[Annotated[int, Field(ge=0, le=MOST)]] = Field(min_length=1)
    """Rows of each agent, with a sum of at most the number of rows; 0 makes an agent without data."""

    @property
    @override
    def count(self) -> int:
        return len(self.sizes)

    @override
    def owners(self, labels: NDArray[np.float64], classes: bool, *, rng: np.random.Generator) -> NDArray[np.int64]:
        total = sum(self.sizes)
        if not 0 < total <= len(labels):
            raise InputError(
                f"sizes sum to {total}; the sum must be from 1 to the number of rows, {len(labels)}",
                field=("task", "split", "sizes"),
            )
        owners = np.full(len(labels), -1, dtype=np.int64)
        owners[:total] = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return rng.permutation(owners)


SplitParameters = Annotated[Even | Dirichlet | BySize, Field(discriminator="kind")]


def hold_out(owners: NDArray[np.int64], agents: int, share: float, *, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose the test rows: a share of each agent's rows, rounded, but never an agent's last row.

    Parameters
    ----------
    owners : (M,) int64
        The agent that owns each row.
    agents : int
        Number of agents n.
    share : float
        In [0, 1).
    rng : numpy.random.Generator

    Returns
    -------
    (M,) bool
        True for test rows.
    """
    counts = np.bincount(owners, minlength=agents)
    order = np.lexsort((rng.random(len(owners)), owners))
    first = np.concatenate([[0], np.cumsum(counts)])
    rank = np.empty(len(owners), dtype=np.int64)
    rank[order] = np.arange(len(owners)) - first[owners[order]]
    held = np.minimum(np.rint(share * counts).astype(np.int64), np.maximum(counts - 1, 0))
    return rank < held[owners]


def validation_part(task: Task, share: float, *, rng: np.random.Generator) -> Task:
    """The task with some of every agent's training rows in the place of its test rows, which nobody sees then.

    Parameters
    ----------
    task : Task
    share : float
        In (0, 1), of each agent's training rows, rounded; an agent keeps one row at least.
    rng : numpy.random.Generator

    Returns
    -------
    Task
        Everything else (regularisation, bounds, profiles) is the whole task's.
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
