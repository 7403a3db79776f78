"""Tables of text as spreadsheets, R, pandas and shell tools write them, as cells with the lines that they stand in."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...agents.errors import InputError
from ...agents.input_files import csv_problem, open_text, parse_number, shown

DELIMITERS = {"\t": "tabs", ";": "semicolons", ",": "commas"}
COMMENTS = "#%"
ENCODINGS = ("utf-8-sig", "cp1252")
DECIMAL_COMMA = re.compile(r"[-+]?(\d*|\d{1,3}(\.\d{3})+),\d+")
USUAL = {
    "source", "target", "from", "to", "src", "dst", "destination", "sender", "receiver", "node", "agent", "client",
    "device", "host", "start", "end", "time", "timestamp", "event", "state",
}  # fmt: skip
"""Names that columns without numbers usually have."""
PICKLE = b"\x80"
"""First byte of a pickle of any protocol in use."""


@dataclass
class Cells:
    """The cells of a table."""

    path: Path
    header: list[str] | None
    """Names of the columns; None where the first line has data."""
    rows: list[list[str]]
    lines: list[int]
    """The line of each row."""
    notes: list[str] = field(default_factory=list)
    """What was taken for what, in words."""
    row_names: list[str] | None = None
    """What the first column called the rows, where it was left out."""

    def at(self, row: int) -> str:
        """Return where a row stands, as file:line."""
        return f"{self.path}:{self.lines[row]}"

    def column(self, names: Sequence[str]) -> int | None:
        """Return the place of the first column that has one of some names, or begins with one: ``RTT [ms]``."""
        plain = [_plain(given) for given in self.header or ()]
        for name in map(_plain, names):
            for place, given in enumerate(plain):
                if given == name or given.startswith(f"{name}_"):
                    return place
        return None

    def cell(self, row: int, place: int) -> str:
        """Return a cell; refuse a row that is too short, with its line."""
        if place >= len(self.rows[row]):
            raise InputError(f"{self.at(row)}: has {len(self.rows[row])} cells; {place + 1} are needed")
        return self.rows[row][place]

    def number(self, row: int, place: int) -> float:
        """Return the finite number of a cell; refuse anything else with its line and column."""
        text = self.cell(row, place)
        value = parse_number(text)
        if not abs(value) < float("inf"):
            name = self.header[place] if self.header else f"column {place + 1}"
            raise InputError(f"{self.at(row)}: {name} {shown(text)} must be a finite number")
        return value


def read_text(path: Path, notes: list[str]) -> str:
    """Return the text of a file, unpacked, in UTF-8 or as Windows in western Europe writes it.

    Raises `InputError` if it cannot be read, or is no text.
    """
    with open_text(path) as (stream, _):
        content = stream.read()
    if content.startswith(PICKLE):
        line = f"import json, pickle; json.dump(pickle.load(open({str(path)!r}, 'rb')), open('{path.stem}.json', 'w'))"
        raise InputError(
            f"{path}: is a pickle, which may run any code when it is opened; if you trust it, turn it into JSON first: "
            f'python3 -c "{line}"'
        )
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or (
        content[1:2] == b"\0" and content[3:4] == b"\0"
    ):
        raise InputError(
            f"{path}: is text in UTF-16; save it as UTF-8, as by: iconv -f UTF-16 -t UTF-8 {path} > utf8-{path.name}"
        )
    if b"\0" in content:
        raise InputError(f"{path}: is no text (it has bytes of zero); save it as text, such as CSV, first")
    for encoding in ENCODINGS:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding != ENCODINGS[0]:
            notes.append(f"text in {encoding}, not in UTF-8")
        return text
    raise InputError(
        f"{path}: is text neither in UTF-8 nor in cp1252; save it in UTF-8, as by: "
        f"iconv -f CP850 -t UTF-8 {path} > utf8-{path.name}"
    )


def cells_of(path: Path, text: str) -> Cells:
    """Return a table of which nothing is known: delimiters, header, names of rows and decimal commas are found out.

    Raises `InputError` about its file if it is empty, or of a form that is no table.
    """
    _refuse_others(path, text)
    notes: list[str] = []
    kept = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    kept = [(number, line) for number, line in kept if line.lstrip()[0] not in COMMENTS]
    if not kept:
        raise InputError(f"{path}: has no line of data")
    delimiter = _delimiter([line for _, line in kept[:50]])
    rows = [_split(path, number, line, delimiter) for number, line in kept]
    lines = [number for number, _ in kept]
    notes.append(f"cells between {DELIMITERS.get(delimiter, 'spaces')}")
    if delimiter != "," and all("," not in cell or DECIMAL_COMMA.fullmatch(cell) for row in rows[1:] for cell in row):
        if any("," in cell for row in rows for cell in row):
            notes.append("commas as decimal points")
        rows = [[_with_point(cell) for cell in row] for row in rows]
    header = row_names = None
    while rows[0][-1:] == [""] and len(rows) > 1 and len(rows[0]) > len(rows[1]):
        rows[0].pop()  # of a header that ends in a comma
    if len(rows) > 1 and _is_header(rows):
        header, lines = [cell.strip() for cell in rows.pop(0)], lines[1:]
        width = Counter(map(len, rows)).most_common(1)[0][0]
        of_matrix = sorted(header[1:]) == sorted(row[0] for row in rows)
        if len(header) == width - 1 or header[0] == "" or of_matrix:  # names of rows, as R and pandas write them
            header = header[len(header) - width + 1 :]
            lines = [line for line, row in zip(lines, rows, strict=True) if len(row) > 1]
            row_names = [row[0] for row in rows if len(row) > 1]
            rows = [row[1:] for row in rows if len(row) > 1]
            notes.append("first column as names of rows, which are left out")
    if not rows:
        raise InputError(f"{path}: has no line of data")
    return Cells(path, header, rows, lines, notes, row_names)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name).strip("_").lower()


def _with_point(cell: str) -> str:
    """Return a cell with a point for its decimal comma, and without points between thousands."""
    return cell.replace(".", "").replace(",", ".") if "," in cell else cell


def _refuse_others(path: Path, text: str) -> None:
    """Refuse what would be taken for a table, with the command that turns it into one."""
    if text.startswith("%%MatrixMarket"):
        made = f"scipy.sparse.coo_array(scipy.io.mmread({str(path)!r})).toarray()"
        name, line = "Matrix Market", f"import numpy, scipy; numpy.savetxt('{path.stem}.txt', {made})"
    elif text.lstrip()[:1] in tuple("{["):
        made = f"pandas.read_json({str(path)!r})"
        name, line = "JSON", f"import pandas; {made}.to_csv('{path.stem}.csv', index=False)"
    else:
        return
    raise InputError(f'{path}: looks like {name}; turn it into a table first, as by: python3 -c "{line}"')


def _delimiter(lines: Sequence[str]) -> str:
    """Return the character that parts the cells of all lines, or a blank for any white space."""
    for delimiter in DELIMITERS:
        if all(delimiter in line for line in lines):
            return delimiter
    return " "


def _split(path: Path, number: int, line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        braces = re.search(r"\s(\{.*\})\s*$", line)  # attributes of an edge, as networkx writes them
        cells = re.findall(r'"[^"]*"|\S+', line[: braces.start()] if braces else line)
        return [cell.strip('"') for cell in cells] + ([braces[1]] if braces else [])
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]
    except csv.Error as error:
        raise InputError(f"{path}:{number}: cannot be read as a table ({csv_problem(error)})") from None


def _is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first row names columns: by two usual names, or by a word above a column of numbers or dates."""
    first, others = rows[0], rows[1:]
    if sum(cell.strip().lower() in USUAL for cell in first) > 1:
        return True
    full = [row for row in others if len(row) >= len(first)]
    return any(
        not _is_measured(cell) and all(_is_measured(row[k]) for row in full) for k, cell in enumerate(first) if full
    )


def _is_measured(cell: str) -> bool:
    return parse_number(cell) == parse_number(cell) or re.match(r"\d{4}-\d|\d\d?\.\d\d?\.\d{4}", cell) is not None
