"""Small CSV files about agents that a scenario names: which of their columns is what, and which unit times have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field
from typing_extensions import override

from .durations import Timed, seconds_in
from .errors import InputError
from .input_files import beside, csv_rows, parse_number, shown
from .parameters import Parameters, Positive

Column = str | Annotated[int, Field(ge=1, le=10_000)]


class TableFile(Parameters):
    """A CSV file, with columns in its own words or in those of this language."""

    path: str = Field(examples=["table.csv"])
    """The file, relative to the scenario file's folder."""
    columns: dict[str, Column] = Field(default={})
    """What the file calls a column, or its number from 1, by what it is called here, such as ``{weight: strength}``;
    other columns of the file are then left alone. By default it has the columns that are named here and no other."""
    header: bool = True
    """Whether the first line names the columns; else ``columns`` has their numbers, or they stand in the order in which
    they are named here."""

    def rows(
        self,
        base: Path | None,
        ids: Sequence[int | str],
        who: tuple[str, ...],
        columns: tuple[str, ...],
        field: tuple[str, ...],
        *,
        optional: bool = False,
        default: float | None = None,
        longest: float | None = None,
    ) -> Iterator[tuple[str, tuple[int, ...], list[float]]]:
        """Rows as ``path:line``, the indices of the agents that they name, and finite numbers, times in time units.

        Columns are of agents' ids, which may be optional, and of numbers, which all have a default where the file has
        no others; with `longest` the last number is a duration from 0 to that. Raises `InputError`, with the part of
        the scenario that names the file, if it cannot be read, or its header or a row is wrong, with the line.
        """
        file, where, position = beside(base, self.path), (*field, "path"), {str(name): k for k, name in enumerate(ids)}
        rows = csv_rows(file, where)
        forms = (*who, *columns), *([columns] if optional else ()), *([who] if default is not None else ())
        names = rows.pop(0)[1] if self.header and rows else self._unnamed(rows, forms)
        if optional and not any(name in self.columns or name in names for name in who):
            who = ()
        defaults = [] if default is None or len(names) > len(who) else [default] * len(columns)
        columns = columns[len(defaults) :]
        places = self._places(file, names, (*who, *columns), field)
        for line, row in rows:
            if len(row) != len(names):
                raise InputError(f"{line}: has {len(row)} values; {len(names)} are needed", field=where)
            agents = [row[places[name]] for name in who]
            for name in agents:
                if name not in position:
                    raise InputError(f"{line}: {shown(name)} is not the id of an agent of this task", field=where)
            values = [self._number(row[places[name]], line, name, where) for name in columns]
            values += defaults
            if longest is not None and not 0 <= values[-1] <= longest:
                said = f"{line}: {columns[-1]} {values[-1]!r} must be at least 0 and at most {longest}"
                raise InputError(said, field=where)
            yield line, tuple(position[name] for name in agents), values

    def _number(self, cell: str, line: str, column: str, field: tuple[str, ...]) -> float:
        value = parse_number(cell)
        if not math.isfinite(value):
            raise InputError(f"{line}: {column} {shown(cell)} must be a finite number", field=field)
        return value

    def _unnamed(self, rows: Sequence[tuple[str, list[str]]], forms: Sequence[tuple[str, ...]]) -> list[str]:
        """Names for the columns of a file without a header: numbers if it is said which is what, else by order."""
        width = len(rows[0][1]) if rows else 0
        if self.columns:
            return [str(rank) for rank in range(1, width + 1)]
        return [*next((form for form in forms if len(form) == width), forms[0])]

    def _places(
        self, file: Path, names: Sequence[str], asked: tuple[str, ...], field: tuple[str, ...]
    ) -> dict[str, int]:
        if not self.columns and sorted(names) != sorted(asked):
            said = f"{file}:1: the header {shown([*names])} must be {', '.join(asked)}"
            raise InputError(f"{said}, or columns has to say which is what", field=(*field, "path"))
        for name in self.columns:
            if name not in asked:
                raise InputError(f"unknown column; admissible: {', '.join(asked)}", field=(*field, "columns", name))
        places = {}
        for name in asked:
            said = self.columns.get(name, name)
            if isinstance(said, int) and said <= len(names):
                places[name] = said - 1
            elif names.count(str(said)) == 1:
                places[name] = names.index(str(said))
            else:
                there = "has twice the" if said in names else "has no"
                known = shown([*names])
                mend = "" if name in self.columns else f"; set columns.{name} to its name or number"
                raise InputError(f"{file}:1: {there} column {said!r} among {known}{mend}", field=(*field, "columns"))
        return places


class TimesFile(TableFile):
    """A CSV file of times."""

    unit: Annotated[Positive, Timed(units=True)] = 1.0
    """What the file counts times in, such as ms, where the scenario has a ``time_unit``; by default time units."""

    @override
    def _number(self, cell: str, line: str, column: str, field: tuple[str, ...]) -> float:
        if seconds_in(cell) is not None:
            said = "must be a number without its unit, which unit says for the whole file"
            raise InputError(f"{line}: {column} {shown(cell)} {said}", field=field)
        return self.unit * super()._number(cell, line, column, field)
