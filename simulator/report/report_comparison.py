"""Every protocol against the first, on common random numbers, for the page."""

from __future__ import annotations

from collections.abc import Collection as Collection_
from itertools import starmap
from typing import Any

from ...agents.errors import InputError
from ..analysis.results import Collection
from ..compare import Comparison, compare
from ..compare.comparison_tables import (
    CAPTION,
    CENSORED,
    NUMBERS,
    PLACES,
    about_break_even,
    break_even_rows,
    cells_of,
    censored,
    on_records,
    seen_in,
)
from .grid import Grid, value_text

MOST_POINTS = 40
"""Points of a sweep up to which differences of all measures are listed."""


def comparison(collection: Collection, grid: Grid, most: Collection_[str] = ()) -> dict[str, Any] | None:
    """Return the result of ``hushnet compare``; None where there is nothing to compare.

    Where the sweep has more than `MOST_POINTS` points, the page lists only those measures that matter `most`, and
    ``points`` says how many there are.
    """
    points = len({series.at for series in grid.series})
    many = points > MOST_POINTS
    try:
        found = compare(collection, only=most if many else None)
    except InputError:
        return None
    if found.differences.empty:
        return None
    differences = found.differences.to_dict("records")
    return {
        "points": points if many else 0,
        "baseline": found.labels[found.baseline],
        "caption": CAPTION,
        "numbers": NUMBERS,
        "rows": [_row(found, row) for row in differences],
        "censored": CENSORED if any(map(censored, differences)) else "",
        "places": PLACES if any(map(on_records, differences)) else "",
        "break_even": list(starmap(_crossing, break_even_rows(found))),
        "about_break_even": about_break_even(found.break_even) if len(found.break_even) else "",
        "warnings": found.warnings,
    }


def _row(found: Comparison, row: dict[str, Any]) -> dict[str, Any]:
    at = [value_text(row[path]) for path in found.grid]
    return {**{name: row[name] for name in ("title", "label", "verdict")}, "at": at, "cells": cells_of(row)}


def _crossing(row: dict[str, Any], cells: list[str]) -> dict[str, Any]:
    _, _, _, elsewhere, at, interval, _, points = cells
    texts = {"elsewhere": elsewhere, "at": at, "interval": interval, "points": points, "seen": seen_in(row)}
    return {**{name: row[name] for name in ("title", "label", "axis", "first", "then")}, **texts}
