"""Estimates of a task's size, made before anything is drawn or read as a whole: enough to refuse what cannot fit."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..input_files import MOST_STREAMED, open_text

HEAD = 2**20
"""Bytes of a file that are looked at; what follows is taken to be alike."""
CELL_BYTES = 65
"""A cell of a table that is read as text: a string, and two lists that know it."""


class Files(NamedTuple):
    """Folders in which a task may look for its files."""

    data_dir: Path | None
    """Data directory; None falls back on the environment variable HUSHNET_DATA."""
    base: Path | None
    """Folder that file names in the scenario are relative to."""


@dataclass(frozen=True)
class Extent:
    """Estimated size of a task."""

    agents: int
    """Number of agents n; at least so many where the data decide it."""
    dimension: int
    """Features of a row, likewise."""
    data: float
    """Bytes of the data at their peak, while they are made, to within a factor of about two; a lower bound if files
    decide it that were not read."""
    profile: int = 0
    """Numbers that similarity graphs compare of an agent."""
    around: bool = False
    """Whether profiles point evenly in all directions of a plane."""
    classes: int = 2
    """Number of classes, where labels are classes; likewise."""
    known: bool = False
    """Whether dimension and classes are those of the data, whatever these are."""


class Head(NamedTuple):
    """The beginning of a text."""

    lines: list[str]
    """Whole lines."""
    count: float
    """Lines of the whole file, if the others are as long."""

    def cells(self, split: Callable[[str], Sequence[str]]) -> list[Sequence[str]]:
        """The cells of every line that is not blank."""
        return [split(line) for line in self.lines if line.strip()]


def head_of(file: Path, field: tuple[str | int, ...]) -> Head:
    """The first megabyte of a text, and how many lines there are by that; none of it is checked.

    Raises `InputError` or `OutOfResources` if it is no regular file that can be read, see
    `hushnet.agents.input_files.open_text`.
    """
    with open_text(file, field=field, most=MOST_STREAMED) as (stream, share_of):
        begin = stream.read(HEAD)
        share = share_of()
        share = share if stream.read(1) else 1.0
    lines = begin.decode("utf-8-sig", errors="replace").split("\n")
    if share < 1 and len(lines) > 1:
        lines.pop()  # cut somewhere
    elif not lines[-1]:
        lines.pop()
    return Head(lines, len(lines) / share)


def parsed(head: Head, delimiter: str) -> list[list[str]]:
    """Cells of the lines of a CSV file, as far as they are some."""
    try:
        return [[cell.strip() for cell in row] for row in csv.reader(head.lines, delimiter=delimiter) if row]
    except csv.Error:  # reading says where and why
        return []


def distinct(rows: Sequence[Sequence[str]], column: int) -> int:
    """Different values of a column, of the rows that have it."""
    return len({row[column] for row in rows if column < len(row)})
