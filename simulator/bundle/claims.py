"""The numbers that an experiment's results claim, and whether other results bear them out."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...agents.errors import InputError
from ...agents.input_files import parse_number, read_bytes, shown
from ..analysis.results import Collection, load_all
from ..analysis.summary import summarise
from ..compare import compare
from ..storage.files import Frame

ROUNDING = 1e-6
"""What another machine's rounding may change of a number, as a share of it."""

MOST_CHECKED = 2**26
"""Bytes of a table of a bundle, which somebody else may have made."""

ALONE = 0.01
"""Tolerance, as a share of it, of a number that a single run gave and that has no interval."""

Row = tuple[str, float, float, str]
"""Claim, value, tolerance, and where the tolerance comes from."""


def claims(collection: Collection, command: str) -> Frame:
    """Every headline number with what it takes to get it again by the command that runs the experiment.

    Columns are ``claim``, ``value``, ``tolerance``, ``why`` (what the tolerance is), ``command`` and ``minutes``
    (measured, of all runs one after the other).
    """
    rows = [*_finals(collection), *_differences(collection)]
    frame = pd.DataFrame(rows, columns=["claim", "value", "tolerance", "why"])
    return frame.assign(command=command, minutes=round(minutes(collection), 2))


def minutes(collection: Collection) -> float:
    """Time that the runs took, each counted once."""
    once = {run.partition("#")[0]: m for run, m in collection.by_run.items()}
    return sum((manifest.get("timings") or {}).get("seconds", 0.0) for manifest in once.values()) / 60


def read_claims(path: Path) -> Frame:
    """A table that `claims` made, from CSV; raises `InputError` if it is none."""
    table = read_rows_of(path, ("claim", "value", "tolerance"), "as a table of claims")
    if not len(table):
        raise InputError(f"{path}: is no table of claims, it is empty; give the claims.csv of a bundle")
    for name in ("value", "tolerance"):
        numbers = [parse_number(text) for text in table[name]]
        wrong = next((text for text, value in zip(table[name], numbers, strict=True) if math.isnan(value)), None)
        if wrong is not None or (name == "tolerance" and min(numbers) < 0):
            said = shown(min(numbers) if wrong is None else wrong)
            raise InputError(f"{path}: column {name} has {said}, and no number of a claim")
        table[name] = numbers
    return table


def read_rows_of(path: Path, columns: Sequence[str], what: str) -> Frame:
    """The cells of some columns of a bundle's CSV file, as texts.

    Raises `InputError` if it is not `what` it has to be, such as ``as a table of claims``, or lacks a column.
    """
    content = read_bytes(path, what=what, most=MOST_CHECKED)
    try:
        table = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: cannot be read {what} ({reason})") from error
    absent = [name for name in columns if name not in table]
    if absent:
        raise InputError(f"{path}: is no {what.partition('a ')[2]}, it lacks {', '.join(absent)}; give one of a bundle")
    return table[list(columns)]


def check_claims(results: Path, table: Frame) -> Frame:
    """Hold results against a table of claims, of `read_claims`.

    Returns its ``claim, value, tolerance`` with ``measured`` (NaN where there is no such number) and ``holds``: whether
    the measured number is within the tolerance.
    """
    measured = claims(load_all(results), "").drop_duplicates("claim").set_index("claim")["value"]
    found = table[["claim", "value", "tolerance"]].assign(measured=table["claim"].map(measured))
    distance = np.abs(found["measured"] - found["value"])
    return found.assign(holds=(found["measured"] == found["value"]) | (distance <= found["tolerance"]))


def _finals(collection: Collection) -> Iterator[Row]:
    frame = summarise(collection)
    metrics = [name.removesuffix(" half_width") for name in frame.columns if name.endswith(" half_width")]
    for row in frame.to_dict("records"):
        where = f"{row['protocol']}{_place(row, collection.grid)}"
        for name in metrics:
            yield from _row(f"final {name} of {where}", row[name], row[f"{name} half_width"], f"{row['n']} runs")
        for name in ("epsilon_claimed", "epsilon_verified"):
            yield from _row(f"{name} of {where}", row[name], 0.0, "rounding")


def _differences(collection: Collection) -> Iterator[Row]:
    """Paired differences to the first protocol, where there is an interval."""
    if len(collection.labels) < 2:
        return
    comparison = compare(collection)
    for row in comparison.differences.to_dict("records"):
        if math.isfinite(row["high"] - row["low"]):
            half = max(row["high"] - row["difference"], row["difference"] - row["low"])
            where = f"{row['protocol']} to {comparison.baseline}{_place(row, collection.grid)}"
            yield from _row(f"difference in {row['title']} of {where}", row["difference"], half, f"{row['n']} pairs")


def _place(row: dict[str, Any], grid: list[str]) -> str:
    return "".join(f", {path} = {row[path]}" for path in grid)


def _row(claim: str, value: float, half: float, runs: str) -> Iterator[Row]:
    if math.isnan(value):
        return
    if not math.isfinite(value):
        yield claim, value, 0.0, "the same"
    elif math.isnan(half):
        yield claim, value, ALONE * abs(value), f"{ALONE:.0%} of a single run's number"
    elif half <= ROUNDING * abs(value):
        yield claim, value, ROUNDING * abs(value), "rounding"
    else:
        yield claim, value, half, f"half the 95 % interval over {runs}"
