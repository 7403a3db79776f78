"""Columns of a user's CSV file; every error names file, line, column and value."""

from __future__ import annotations

import csv
import difflib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..input_files import csv_problem, parse_number, read_lines, shown
from .cell_hints import MISSING, about_cell, about_header

FIELD = ("task", "path")
MOST_LINES = 8
"""Lines that a sentence about a column names beside the first."""


@dataclass(frozen=True)
class Columns:
    """The text of a CSV file by column."""

    file: Path
    names: list[str]
    """Distinct names from the header line."""
    cells: list[list[str]]
    """One list a column, each with M entries stripped of surrounding blanks."""
    lines: list[int]
    """The line of the file that each row starts at."""
    delimiter: str = ","
    """What separates its cells."""

    def position(self, name: str, field: str) -> int:
        """Index of a column, or an `InputError` with the nearest match; `field` is the task's field that names it."""
        if name in self.names:
            return self.names.index(name)
        near = difflib.get_close_matches(name, self.names, n=1, cutoff=0.5)
        separated = about_header(self.names, self.delimiter)
        hint = (
            separated or f"did you mean {near[0]!r}?"
            if separated or near
            else f"there are {', '.join(repr(known) for known in self.names)}"
        )
        if not separated and not near and any(map(_is_data, self.names)):
            names = self.delimiter.join(f"column{k + 1}" for k in range(len(self.names)))
            hint = (
                f"line 1 has data; put names of the columns above it, as by: sed -i '1i {names}' {self.file}, or set "
                "task.header to false and call them 1, 2, 3, ..."
            )
        raise InputError(f"{self.file}:1: there is no column {name!r}; {hint}", field=("task", field))

    def texts(self, name: str, field: str) -> list[str]:
        """(M,) cells of a column, none of them empty."""
        cells = self.cells[self.position(name, field)]
        if "" in cells:
            line = self.lines[cells.index("")]
            remedy = "fill it in, leave the column out by task.drop, or set task.missing to drop, median or indicator"
            raise InputError(
                f"{self.file}:{line}: column {name!r} is empty; a value is needed: {remedy}", field=("task", field)
            )
        return cells

    def missing(self, name: str, field: str) -> NDArray[np.bool_]:
        """(M,) True for cells of a column that are empty or say that there is no value."""
        return np.array([cell.lower() in MISSING for cell in self.cells[self.position(name, field)]])

    def present(self, name: str, field: str) -> list[str]:
        """Cells of a column that are not missing."""
        return [cell for cell in self.cells[self.position(name, field)] if cell.lower() not in MISSING]

    def kept(self, rows: NDArray[np.bool_]) -> Columns:
        """The same columns with some of the rows alone."""
        chosen = np.flatnonzero(rows).tolist()
        cells = [[column[row] for row in chosen] for column in self.cells]
        return replace(self, cells=cells, lines=[self.lines[row] for row in chosen])

    def numbers(self, name: str, field: str, parse: Callable[[str], float] = parse_number) -> NDArray[np.float64]:
        """(M,) cells of a column as finite numbers; the sentence about a wrong one names the lines of the others."""
        cells = self.texts(name, field)
        values = np.array([parse(cell) for cell in cells], dtype=np.float64)
        wrong = np.flatnonzero(~np.isfinite(values)).tolist()
        if wrong:
            row, *others = wrong
            remedy = about_cell(cells[row], categorical=field == "features")
            lines = ", ".join(str(self.lines[other]) for other in others[:MOST_LINES])
            more = f", and {len(others) - MOST_LINES} more" if len(others) > MOST_LINES else ""
            raise InputError(
                f"{self.file}:{self.lines[row]}: column {name!r} has {shown(cells[row])}, which must be a finite number"
                + remedy
                + (f" (as in line{'s' if len(others) > 1 else ''} {lines}{more})" if others else ""),
                field=("task", field),
            )
        return values


def _is_data(name: str) -> bool:
    """True if what stands in a header is a fraction or a missing value, which no column is called."""
    value = parse_number(name)
    return name in MISSING or (math.isfinite(value) and not value.is_integer())


def comma_number(text: str) -> float:
    """The number of a cell with a decimal comma, and points between thousands if at all; NaN if it is none.

    >>> comma_number("1.234,5"), comma_number("-2"), comma_number("01.02.2026")
    (1234.5, -2.0, nan)
    """
    if not re.fullmatch(r"\s*[-+]?(\d{1,3}(\.\d{3})+|\d*)(,\d*)?([eE][-+]?\d+)?\s*", text):
        return math.nan
    return parse_number(text.replace(".", "").replace(",", "."))


def day_of(text: str) -> float:
    """Days from 1970-01-01 to a date such as 2026-11-28, 2026-11-28T12:00 or 28.11.2026; NaN if it is none.

    >>> day_of("1970-01-02"), day_of("03.01.1970"), day_of("1970-01-01T12:00")
    (1.0, 2.0, 0.5)
    """
    german = re.fullmatch(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", text)
    try:
        date = datetime(int(german[3]), int(german[2]), int(german[1])) if german else datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    return (date.replace(tzinfo=date.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400


def read_columns(file: Path, delimiter: str = ",", *, header: bool = True) -> Columns:
    """Read a CSV file; blank lines are skipped, quoted cells may hold line breaks.

    Without a `header` line the columns are called 1, 2, 3, ... Raises `InputError` if the file cannot be read, has no
    row, names a column twice or not at all, or has a row of another length.
    """
    rows: list[list[str]] = []
    lines: list[int] = []
    start = 1
    texts = (line for _, line in read_lines(file, field=FIELD))
    try:
        reader = csv.reader(texts, delimiter=delimiter, strict=True)
        first = next(reader, [])
        names = [name.strip() for name in first] if header else numbered(len(first))
        _check_header(file, names, delimiter)
        start = reader.line_num + 1 if header else 1
        for row in reader if header else chain([first], reader):
            if row and len(row) != len(names):
                hint = about_header(names, delimiter)
                raise InputError(
                    f"{file}:{start}: has {len(row)} values; {len(names)} are needed, one a column"
                    + (f" ({hint})" if hint else ""),
                    field=FIELD,
                )
            if row:
                rows.append([cell.strip() for cell in row])
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{file}:{start}: is not a row of a CSV file ({csv_problem(error)})", field=FIELD) from error
    if not rows:
        raise InputError(f"{file}: has a header line only; at least one row is needed", field=FIELD)
    return Columns(file, names, [list(column) for column in zip(*rows, strict=True)], lines, delimiter)


def numbered(columns: int) -> list[str]:
    """Names of the columns of a file that does not name them: 1, 2, 3, ..."""
    return [str(rank) for rank in range(1, columns + 1)]


def _check_header(file: Path, names: list[str], delimiter: str) -> None:
    if not any(names):
        raise InputError(f"{file}:1: has no column names; a header line and rows are needed", field=FIELD)
    for index, name in enumerate(names):
        if not name:
            rows = "pandas and R write names of rows so, unless to_csv has index=False and write.csv row.names=FALSE"
            hint = about_header(names, delimiter) or (rows if index == 0 else "")
            raise InputError(
                f"{file}:1: column {index + 1} has no name; every column needs one" + (f"; {hint}" if hint else ""),
                field=FIELD,
            )
        if name in names[:index]:
            raise InputError(f"{file}:1: the column {name!r} occurs twice; names must differ", field=FIELD)
