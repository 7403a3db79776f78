"""Hints on the probable meaning of a cell, a header or a file that cannot be read as it is.

There is no hint for what nobody recognises: advice that leads away is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MISSING = {"?", "", "-", "--", ".", "na", "n/a", "#n/a", "nan", "null", "none", "missing", "<na>"}
"""How other programs write that there is no value."""

SEPARATORS = {";": "a semicolon", "\t": "a tab", "|": "a bar"}

HINTS: tuple[tuple[str, str], ...] = (
    (r"[-+]?\d{1,3}(\.\d{3})+,\d+", "has a decimal comma and points between thousands; write it as 1234.5"),
    (r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", "has commas between thousands; write it without them"),
    (r"[-+]?\d*,\d+([eE][-+]?\d+)?", "has a decimal comma; set task.decimal: ','"),
    (r"[-+]?[\d.,]+\s*%", "is a percentage; write a number without the sign"),
    (r"[$€£¥]\s*[-+]?[\d.,]+|[-+]?[\d.,]+\s*[$€£¥]", "is an amount; write a number without the sign"),
    (r"[-+]?(inf|infinity)", "is infinite"),
    (r"\d+(_\d+)+", "has underscores; write it without them"),
    (
        r"\d{4}-\d{2}-\d{2}.*|\d{1,2}\.\d{1,2}\.\d{4}",
        "looks like a date; list its column under task.dates",
    ),
    (r"\d{1,2}[./]\d{1,2}[./]\d{2,4}.*", "looks like a date; write it as 2026-11-28"),
)
"""Patterns of cells that are no finite numbers, and what each is."""


def about_cell(cell: str, *, categorical: bool) -> str:
    """Return the end of an error message about a cell that is no finite number, in a column perhaps of categories.

    >>> about_cell("1,5", categorical=True)
    "; it has a decimal comma; set task.decimal: ','"
    >>> about_cell("blue", categorical=True)
    '; otherwise choose features, or list the column under categorical'
    """
    text = cell.strip()
    if text.lower() in MISSING:
        return "; it says that a value is missing: set task.missing to drop, median or indicator"
    for pattern, said in HINTS:
        if re.fullmatch(pattern, text, re.IGNORECASE):
            return f"; it {said}"
    return "; otherwise choose features, or list the column under categorical" if categorical else ""


def about_header(names: Sequence[str], delimiter: str) -> str:
    """Return a hint from the cells of a header line, at another separator or kind of file; empty if there is none."""
    first = names[0] if names else ""
    if re.match(r"@relation\b|%", first, re.IGNORECASE):
        return "it begins as an ARFF file; save it as CSV, with a header line"
    if first.startswith(("#", "sep=")):
        return f"line 1 is no header; delete {first!r}"
    whole = delimiter.join(names)
    for other, called in SEPARATORS.items():
        if other != delimiter and whole.count(other) >= max(whole.count(delimiter), 1):
            return f"its cells seem to be separated by {called}; set task.delimiter: {other!r}"
    return ""
