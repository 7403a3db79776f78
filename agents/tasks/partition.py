"""Rows that belong together, spread over agents: by rows, or by columns of the same rows."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Annotated, Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ..errors import FieldError, InputError
from ..losses import LOSSES
from ..parameters import Parameters, Size
from ..tables import Table
from .base import Task
from .outline import Outline
from .splits import inverse_counts

PLACE = ("task", "split")


@final
class ByRows(Parameters):
    """Each agent gets as many rows as the others, to within one, in random order; test rows likewise."""

    by: Literal["rows"] = "rows"
    agents: Size = 20
    """Number of agents, at most the number of rows."""


@final
class ByColumns(Parameters):
    """Agent 0 is the centre: it holds the labels, of training and of testing; each other agent holds columns."""

    by: Literal["columns"]
    parts: list[Size] = Field(min_length=1)
    """Number of columns of each party, from the first column on; columns beyond their sum are left out."""


Partition = Annotated[ByRows | ByColumns, Field(discriminator="by")]
Rows = tuple[NDArray[np.float64], NDArray[np.float64]]
"""(M, p) features and (M,) labels."""


def check_split(split: ByRows | ByColumns, rows: int | None, columns: int) -> None:
    """Raise a `FieldError` if so many rows or columns cannot be dealt; None rows are not known yet."""
    if isinstance(split, ByColumns) and sum(split.parts) > columns:
        raise FieldError(f"sums to {sum(split.parts)}; there are {columns} columns", "split", "parts")
    if isinstance(split, ByRows) and rows is not None and split.agents > rows:
        raise FieldError(f"must be at most the number of rows, {rows}", "split", "agents")


def split_outline(kind: str, loss: str, split: ByRows | ByColumns) -> Outline:
    """Return the outline of a classification task that splits one data set, with rows bounded in l1 and l2 norm."""
    bounded = ("l1", "l2")
    if isinstance(split, ByRows):
        return Outline(kind, loss, agents=split.agents, bounded=bounded)
    return Outline(kind, loss, agents=1 + len(split.parts), columns=True, bounded=bounded)


def split_size(split: ByRows | ByColumns, columns: int) -> tuple[int, int]:
    """Agents, and dimension of the model, where there are so many columns."""
    return (split.agents, columns) if isinstance(split, ByRows) else (1 + len(split.parts), sum(split.parts))


def partitioned(
    train: Rows,
    test: Rows,
    split: ByRows | ByColumns,
    *,
    name: str,
    loss: str,
    bounds: dict[str, float],
    notes: dict[str, Any],
    rng: np.random.Generator,
) -> Task:
    """A classification task from common training and test rows.

    Parameters
    ----------
    train, test : pair of (M, p) and (M,) float64
    split : ByRows or ByColumns
    name, loss, bounds, notes
        See `Task`.
    rng : numpy.random.Generator
        Deals rows.

    Raises
    ------
    InputError
        If there are fewer rows than agents, or fewer columns than are asked for.
    """
    agents, columns = 1, None
    if isinstance(split, ByRows):
        agents = split.agents
        if agents > len(train[1]):
            raise InputError(f"{agents} must be at most the number of rows, {len(train[1])}", field=(*PLACE, "agents"))
    else:
        agents, used = 1 + len(split.parts), sum(split.parts)
        if used > train[0].shape[1]:
            raise InputError(f"sums to {used}; there are {train[0].shape[1]} columns", field=(*PLACE, "parts"))
        train, test = (train[0][:, :used], train[1]), (test[0][:, :used], test[1])
        held = [np.arange(start, end) for start, end in pairwise([0, *accumulate(split.parts)])]
        columns = (np.empty(0, dtype=np.int64), *held)
    dealt = [
        rng.permutation(np.arange(len(labels)) % agents) if columns is None else np.zeros(len(labels), dtype=np.int64)
        for _, labels in (train, test)
    ]
    packed = [Table.from_owners(*rows, owners, agents) for rows, owners in zip((train, test), dealt, strict=True)]
    return Task(
        name=name,
        ids=list(range(agents)),
        train=packed[0],
        test=packed[1],
        loss=LOSSES[loss],
        regularisation=inverse_counts(packed[0].counts),
        metric="accuracy",
        bounds=bounds,
        notes=notes,
        columns=columns,
    )
