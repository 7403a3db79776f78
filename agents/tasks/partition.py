"""Rows that belong together, spread over agents: by rows, or by columns of the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Annotated, Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, Field, Tag

from ..errors import FieldError, InputError
from ..losses import LOSSES
from ..parameters import Parameters, Size
from ..tables import Table
from .outline import Outline
from .splits import Dealt, Even, Split, SplitParameters, inverse_counts, split_notes
from .task import Task

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


def _told_apart_by(given: Any) -> str:
    """The kind of split: a rule that deals rows, which has a ``kind``, or a partition, told apart by ``by``."""
    named = isinstance(given, Split) or (isinstance(given, Mapping) and "kind" in given)
    return "rule" if named else "partition"


Whole = ByRows | ByColumns | Split
Partition = Annotated[
    Annotated[Annotated[ByRows | ByColumns, Field(discriminator="by")], Tag("partition")]
    | Annotated[SplitParameters, Tag("rule")],
    Discriminator(_told_apart_by),
]
Rows = tuple[NDArray[np.float64], NDArray[np.float64]]
"""(M, p) features and (M,) labels."""


def check_split(split: Whole, rows: int | None, columns: int) -> None:
    """Raise a `FieldError` if so many rows or columns cannot be dealt; None rows are not known yet."""
    if isinstance(split, ByColumns) and sum(split.parts) > columns:
        raise FieldError(f"sums to {sum(split.parts)}; there are {columns} columns", "split", "parts")
    if isinstance(split, ByRows | Even) and rows is not None and split.agents > rows:
        raise FieldError(f"must be at most the number of rows, {rows}", "split", "agents")


def split_outline(kind: str, loss: str, split: Whole) -> Outline:
    """Return the outline of a classification task that splits one data set, with rows bounded in l1 and l2 norm."""
    agents, columns = split_size(split, 1)[0], isinstance(split, ByColumns)
    return Outline(kind, loss, agents=agents, columns=columns, bounded=("l1", "l2"))


def split_size(split: Whole, columns: int) -> tuple[int, int]:
    """Agents, and features of the rows, where there are so many columns."""
    if isinstance(split, ByColumns):
        return 1 + len(split.parts), sum(split.parts)
    return split.agents if isinstance(split, ByRows) else split.count, columns


def partitioned(
    train: Rows,
    test: Rows,
    split: Whole,
    *,
    name: str,
    loss: str,
    bounds: dict[str, float],
    notes: dict[str, Any],
    rng: np.random.Generator,
    classes: int = 2,
) -> Task:
    """A classification task from common training and test rows; test rows are dealt evenly, whatever the split.

    Raises `InputError` if there are fewer rows than agents, or fewer columns than are asked for.
    """
    agents, columns = split_size(split, 0)[0], None
    if isinstance(split, ByRows):
        if agents > len(train[1]):
            raise InputError(f"{agents} must be at most the number of rows, {len(train[1])}", field=(*PLACE, "agents"))
    elif isinstance(split, ByColumns):
        used = sum(split.parts)
        if used > train[0].shape[1]:
            raise InputError(f"sums to {used}; there are {train[0].shape[1]} columns", field=(*PLACE, "parts"))
        train, test = (train[0][:, :used], train[1]), (test[0][:, :used], test[1])
        held = [np.arange(start, end) for start, end in pairwise([0, *accumulate(split.parts)])]
        columns = (np.empty(0, dtype=np.int64), *held)
    if isinstance(split, Split):
        owners = split.owners(Dealt(*train, classes=True), rng=rng)
        kept = owners >= 0
        train, dealt = (train[0][kept], train[1][kept]), [owners[kept], _evenly(len(test[1]), agents, rng)]
    elif columns is None:
        dealt = [_evenly(len(labels), agents, rng) for _, labels in (train, test)]
    else:
        dealt = [np.zeros(len(labels), dtype=np.int64) for _, labels in (train, test)]
    packed = [Table.from_owners(*rows, owners, agents) for rows, owners in zip((train, test), dealt, strict=True)]
    if columns is None:
        notes = {**notes, "split": split_notes(packed[0], classes)}
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
        classes=classes,
    )


def _evenly(count: int, agents: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(count,) owners in random order, each with as many rows as the others to within one."""
    return rng.permutation(np.arange(count) % agents)
