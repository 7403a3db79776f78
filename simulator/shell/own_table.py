"""Task of a custom table, inferred from its header and its cells."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path

from ...agents.errors import InputError
from ...agents.input_files import parse_number, read_lines
from ...agents.tasks.cell_hints import about_cell
from ...agents.tasks.csv_reader import Columns, comma_number, day_of, read_columns

DELIMITERS = ",;\t|"
MOST_VALUES = 20
"""Different texts of a column that is taken for one of categories."""


@dataclass(frozen=True)
class OwnTable:
    """A task of the kind csv, as the lines of a scenario, and what was taken for what."""

    lines: tuple[str, ...]
    """Of the section ``task``."""
    topology: str
    """Kind of a graph that its agents fit into."""
    notes: tuple[str, ...]
    """In words."""


def own_table(path: Path, folder: Path, *, agent: str | None, label: str, several: bool = False) -> OwnTable:
    """Look at a table, a CSV file with a header line, and say how a scenario in the folder would read it.

    The column `agent` names the agent of each row; without one, rows are dealt to ten agents. With `several` the model
    takes more than two classes. Raises `InputError` if the file cannot be read, a column is not there, or labels are
    neither two classes nor numbers.
    """
    columns = read_columns(path, delimiter_of(path))
    for name, field in ((label, "label"), (agent, "agent")):
        if name is not None:
            columns.position(name, field)
    comma = _has_decimal_commas(columns)
    texts: list[str] = []
    dates, gone, some_missing = [], dict[str, str](), False
    for name in columns.names:
        if name in (label, agent):
            continue
        cells = columns.present(name, "features")
        some_missing |= len(cells) < len(columns.lines)
        if not cells or _are_identifiers(cells, comma):
            gone[name] = ""
        elif _are_numbers(cells, comma):
            continue
        elif all(math.isfinite(day_of(cell)) for cell in cells):
            dates.append(name)
        elif len({*cells}) <= MOST_VALUES:
            texts.append(name)
        else:
            gone[name] = ""
        if name in gone:
            strange = next((cell for cell in cells if not _is_number(cell, comma)), "")
            gone[name] = f"{strange!r}{hint}" if (hint := about_cell(strange, categorical=False)) and strange else ""
    some_missing |= any(columns.missing(name, "features").any() for name in (label, agent) if name is not None)
    given = {
        "path": _quoted(os.path.relpath(path, folder)),
        "label": _quoted(label),
        **({"agent": _quoted(agent)} if agent is not None else {"split": "{kind: even, agents: 10}"}),
        **{
            field: f"[{', '.join(map(_quoted, names))}]"
            for field, names in (("categorical", texts), ("dates", dates), ("drop", gone))
            if names
        },
        **({"missing": "drop"} if some_missing else {}),
        **({"delimiter": _quoted(columns.delimiter)} if columns.delimiter != "," else {}),
        **({"decimal": '","'} if comma else {}),
        "scaling": "standard",
        "loss": _loss(columns, label, comma, several),
    }
    notes = [f"{path}: {len(columns.lines)} rows, {len(columns.names)} columns"]
    for words, names in (
        ("categories", texts),
        ("dates", dates),
        ("left out (no values, identifiers, or too many that differ)", [name for name in gone if not gone[name]]),
    ):
        if names:
            notes.append(f"{words}: {', '.join(names)}")
    notes += [f"left out: {name}, for {why}" for name, why in gone.items() if why]
    if some_missing:
        notes.append("rows with missing values are left out; task.missing may be median or indicator")
    agents = 10 if agent is None else len({*columns.cells[columns.position(agent, "agent")]})
    lines = ("kind: csv", *(f"{name}: {value}" for name, value in given.items()))
    return OwnTable(lines, "ring" if agents > 2 else "complete", tuple(notes))


def delimiter_of(path: Path) -> str:
    """Return what separates the cells of a header line."""
    header = next((line for _, line in read_lines(path)), "")
    return max(DELIMITERS, key=header.count)


def _has_decimal_commas(columns: Columns) -> bool:
    """Tell whether more cells would be numbers with a decimal comma than with a point."""
    cells = [cell for column in columns.cells for cell in column]
    return columns.delimiter != "," and sum("," in cell and _is_number(cell, True) for cell in cells) > sum(
        "." in cell and _is_number(cell, False) for cell in cells
    )


def _is_number(cell: str, comma: bool) -> bool:
    return math.isfinite(comma_number(cell) if comma else parse_number(cell))


def _are_numbers(cells: list[str], comma: bool) -> bool:
    return all(_is_number(cell, comma) for cell in cells)


def _are_identifiers(cells: list[str], comma: bool) -> bool:
    """Tell whether no two rows have the same cell, and cells are texts, numbers from 007 on, or numbers of rows."""
    if len(cells) <= MOST_VALUES or len({*cells}) < len(cells):
        return False
    if not all(cell.isdecimal() for cell in cells):
        return not _are_numbers(cells, comma)
    numbers = [int(cell) for cell in cells]
    return max(numbers) - min(numbers) < len(numbers) or any(cell != "0" and cell.startswith("0") for cell in cells)


def _loss(columns: Columns, label: str, comma: bool, several: bool) -> str:
    cells = columns.present(label, "label")
    values = {*cells}
    if len(values) == 2 or (several and 2 < len(values) <= MOST_VALUES):
        return "logistic"
    if _are_numbers(cells, comma) and len(values) > 2:
        return "squared"
    raise InputError(
        f"{columns.file}: column {label!r} has {len(values)} distinct values; a label has two classes, or numbers"
        + ("; --model softmax takes more classes" if 2 < len(values) <= MOST_VALUES else ""),
        field=("task", "label"),
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
