"""The end of ``hushnet run`` in some fifteen lines of 80 columns: who is ahead, a table, and what to act on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import pandas as pd
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..analysis.aggregate import FEWEST, data_sets
from ..analysis.claimed_privacy import MARK, epsilon_text
from ..analysis.labels import column_name, swept_name
from ..analysis.results import Collection
from ..analysis.summary import notes_on, parted, summarise, trivial_rows, with_half_width
from ..compare.winners import standings
from .report_winners import sentence

MOST_WARNINGS = 3
MOST_POINTS = 3
"""Points of a sweep that have a column."""
LONGEST_LABEL = 26
Point = TypeVar("Point")


def answer(collection: Collection) -> str:
    """Return who is ahead of whom, in a sentence; empty where there is nothing to compare."""
    found = standings(collection, most=1)
    return sentence(found[0], collection.labels) if found else ""


def print_brief(collection: Collection, warnings: Sequence[str], console: Console, tuned: str = "") -> None:
    """Print who is ahead, the final numbers, and at most `MOST_WARNINGS` of what somebody has to act on.

    Warnings are those of the runs; `tuned` says how parameters were chosen, if they were.
    """
    said, frame, noted = answer(collection), summarise(collection), notes_on(collection)
    if said:
        console.print(Text(said, style="bold"))
    console.print(_pivot(collection, frame, said) if collection.grid else _table(collection, frame), crop=False)
    for line in [*_captions(collection, frame, said), *([tuned] if tuned else [])]:
        console.print(Text(line, style="dim"))
    loud = [text for text, is_loud in noted if is_loud]
    # Runs of many seeds say the same with other numbers.
    distinct: dict[str, str] = {}
    for text in warnings:
        distinct.setdefault(re.sub(r"\d[\d.]*", "0", text), f"warning: {text}")
    acted = [*loud, *distinct.values()]
    for text in acted[:MOST_WARNINGS]:
        shown = text.partition("; ")[0] if text in loud else text  # what is behind it are details
        console.print(Text(shown, style="bold red" if text in loud else "yellow"))
    quiet = len(noted) + len(warnings) - min(len(acted), MOST_WARNINGS)
    if quiet:
        notes = "note" if quiet == 1 else "notes"
        console.print(
            Text(f"{quiet} more {notes}, on what epsilons cover and assume among others: --verbose", style="dim")
        )


def short_table(longest: int) -> Table:
    """A table without rows, whose first column has protocols' labels of so many letters at most."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("protocol", overflow="fold", max_width=longest)
    return table


def spread(points: Sequence[Point], most: int) -> list[Point]:
    """So many of some points at most: the first, those evenly between and the last."""
    count = min(most, len(points))
    return [points[round(k * (len(points) - 1) / max(count - 1, 1))] for k in range(count)]


def _table(collection: Collection, frame: pd.DataFrame) -> Table:
    table = short_table(LONGEST_LABEL)
    metrics, private, runs = _metrics(frame), _is_private(frame), set(frame["n"].tolist())
    for name in [*metrics, *(["\u03b5"] if private else []), *(["n"] if len(runs) > 1 else [])]:
        table.add_column(escape(column_name(collection, *parted(name))), justify="right", no_wrap=True)
    for row in frame.to_dict("records"):
        cells = [row["label"], *(_number(row, name) for name in metrics)]
        cells += [_epsilons(row)] if private else []
        cells += [str(row["n"])] if len(runs) > 1 else []
        table.add_row(*map(escape, map(str, cells)), style="bold red" if row["flagged"] else None)
    return table


def _pivot(collection: Collection, frame: pd.DataFrame, said: str) -> Table:
    """Return one measure, that of the answer if there is one: a row for each protocol, a column for each point.

    Of many points the first, those between and the last are shown.
    """
    table = short_table(LONGEST_LABEL)
    name = _decisive(collection, frame, said)
    rows = frame.to_dict("records")
    varying = [path for path in collection.grid if len({str(row[path]) for row in rows}) > 1] or collection.grid[:1]
    keys = list(dict.fromkeys(tuple(str(row[path]) for path in varying) for row in rows))
    keys = spread(keys, MOST_POINTS)
    shown = column_name(collection, *parted(name))
    table.columns[0].header = escape(f"{shown} by {', '.join(swept_name(collection, path) for path in varying)}")
    for key in keys:
        table.add_column(escape(", ".join(key)), justify="right", no_wrap=True)
    for label in dict.fromkeys(row["label"] for row in rows):
        own = [row for row in rows if row["label"] == label]
        at = {tuple(str(row[path]) for path in varying): row for row in own}
        cells = [_number(at[key], name) if key in at else "\u2013" for key in keys]
        flagged = any(row["flagged"] for row in own)
        name_of_row = f"{label} {MARK}" if flagged else str(label)
        table.add_row(escape(name_of_row), *map(escape, cells), style="bold red" if flagged else None)
    return table


def _metrics(frame: pd.DataFrame) -> list[str]:
    names = [str(name).removesuffix(" half_width") for name in frame.columns if str(name).endswith(" half_width")]
    return [name for name in names if name != "vectors_with_start"]


def _decisive(collection: Collection, frame: pd.DataFrame, said: str) -> str:
    """Return the column of what the answer is about, or of what the task is measured by, or else the first one."""
    metrics = _metrics(frame)
    if named := [name for name in metrics if column_name(collection, *parted(name)) in said]:
        return named[0]
    judged = {manifest["task"].get("metric") for manifest in collection.manifests}
    return next((name for name in metrics if name in judged), metrics[0])


def _number(row: Mapping[Any, Any], name: str) -> str:
    return with_half_width(row[name], row[f"{name} half_width"] if row["n"] >= FEWEST else float("nan"))


def _epsilons(row: Mapping[Any, Any]) -> str:
    claimed, verified = row["epsilon_claimed"], row["epsilon_verified"]
    both = [epsilon_text(claimed), epsilon_text(verified)]
    return "\u2013" if both[0] == both[1] == "\u2013" else " / ".join(both) + (f" {MARK}" if row["flagged"] else "")


def _captions(collection: Collection, frame: pd.DataFrame, ahead: str) -> list[str]:
    counts: list[int] = frame["n"].tolist()
    least, most = min(counts), max(counts)
    runs = f"{most} run{'' if most == 1 else 's'}" if least == most else f"{least} to {most} runs"
    few = least < FEWEST
    said = f"mean over {runs}{data_sets(collection)}" + (
        ", too few for intervals" if few else " \N{PLUS-MINUS SIGN} 95 % t interval"
    )
    measured = _decisive(collection, frame, ahead) if collection.grid else ""  # all that the table shows
    if _is_private(frame) and not measured:
        said += "; \u03b5 claimed / verified"
    if collection.started_with_vectors and measured in ("", "vectors"):
        said += "; vectors without those before the start"
    lines = [said]
    trivial = [row for row in trivial_rows(collection) if not row.at]
    parts = [
        f"{row.label.strip('()')} {', '.join(f'{name} {mean:.4g}' for name, (mean, _) in row.values.items())}"
        for row in trivial
        if row.values
    ]
    return [*lines, f"without learning: {'; '.join(parts)}"] if parts else lines


def _is_private(frame: pd.DataFrame) -> bool:
    return bool(frame[["epsilon_claimed", "epsilon_verified"]].notna().to_numpy().any())
