"""Text that stays text wherever it is shown: on a terminal nothing that steers it, in a spreadsheet no formula."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from ...agents.errors import HIDDEN

CONTROLS = re.compile(
    r"\\(?:[bf]|u(?:00[01][0-9a-f]|007f|00[89][0-9a-f]|202[a-e]|206[6-9]))|[\x7f-\x9f\u202a-\u202e\u2066-\u2069]",
    re.IGNORECASE,
)
"""What may hide, colour or turn text on a terminal, as JSON writes it."""


def visible(content: Any) -> Any:
    """The same data without characters that steer a terminal; U+FFFD stands for each."""
    if isinstance(content, dict):
        return {visible(key): visible(value) for key, value in content.items()}
    if isinstance(content, list):
        return [visible(value) for value in content]
    return HIDDEN.sub("\ufffd", content) if isinstance(content, str) else content


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV, in which no cell is a formula: what a spreadsheet would compute begins with an apostrophe."""
    plain = table.rename(columns=_no_formula)
    for place, name in enumerate(plain.columns):
        if not pd.api.types.is_numeric_dtype(plain.dtypes.iloc[place]):
            plain[name] = plain[name].map(_no_formula)
    return plain.to_csv(index=False, lineterminator="\n")


def _no_formula(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet computes."""
