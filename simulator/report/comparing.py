"""A comparison in some fifteen lines of 80 columns: who is ahead, one table a measure, and what to act on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ...agents.durations import alike
from ...agents.errors import InputError
from ...agents.suggestions import require
from ..analysis.aggregate import FEWEST
from ..analysis.claimed_privacy import MARK
from ..analysis.results import Collection
from ..analysis.summary import with_half_width
from ..compare.comparison import SIGNIFICANT, Comparison, compare
from ..compare.comparison_tables import (
    COLOURS,
    DASH,
    break_even_rows,
    censored,
    number,
    p_value,
    print_comparison,
    seen_in,
    swept_text,
    write_comparison,
)
from ..compare.folders import gather
from ..compare.winners import standings
from ..storage.files import Frame
from .brief import short_table, spread
from .report_winners import sentence

ALL = "all"
MOST_COLUMNS = 3
MOST_ROWS = 12
MOST_WARNINGS = 3


@dataclass(frozen=True)
class Shown:
    """Choice of what is shown of a comparison; `chosen` checks it."""

    measures: list[str]
    """Names, in order."""
    at: dict[str, str]
    """Swept values by path: only rows that have them."""
    by: str | None
    """Swept path whose values are the columns; all points are, where it is None."""


def compare_folders(
    folders: Sequence[Path],
    baseline: str | None = None,
    measures: Sequence[str] = (),
    at: Sequence[str] = (),
    by: str | None = None,
    *,
    verbose: bool = False,
    console: Console | None = None,
) -> None:
    """Print a comparison of saved runs and write it beside them, as ``hushnet compare`` does; arguments as of `chosen`.

    Files go to ``compare`` in the first ``results/<scenario>``, or, with several, to ``compare-with-...``, which names
    the others. Raises `InputError` if a folder holds no runs, there is nothing to compare or no pair of runs that
    reached their end, or what is to be shown is not there.
    """
    console, collection = console or Console(), gather(folders)
    comparison = compare(collection, baseline)
    if comparison.differences.empty:
        why = " ".join(said.removeprefix(MARK).strip() for said in comparison.warnings)
        raise InputError(f"there is nothing to compare: no run has a partner that reached its end as well. {why}")
    shown = chosen(comparison, collection, measures, at, by)
    if verbose:
        print_comparison(comparison, console)
    else:
        print_short(comparison, collection, shown, console)
    others = [Path(folder).resolve().name for folder in folders[1:]]
    name = f"compare-with-{'-and-'.join(others)}" if others else "compare"
    written = write_comparison(comparison, Path(folders[0]) / name, None if verbose else shown.measures)
    files = ", ".join(path.name for path in written)
    console.print(f"written: {written[0].parent}: {files}", highlight=False, markup=False, soft_wrap=True)


def chosen(
    comparison: Comparison,
    collection: Collection,
    measures: Sequence[str] = (),
    at: Sequence[str] = (),
    by: str | None = None,
) -> Shown:
    """Return what somebody asks to see; raises `InputError` if there is no such measure, path or value.

    Measures are names or titles, or ``all``; by default the one that matters most. Of ``at`` each is ``path=value``, by
    the path or the end of it, and ``by`` a swept path likewise.
    """
    titles = dict(comparison.differences[["measure", "title"]].drop_duplicates().itertuples(index=False, name=None))
    names = {**{title: name for name, title in titles.items()}, **{name: name for name in titles}}
    for given in measures:
        if given not in (*names, ALL):
            require(given, [*titles, ALL], f"--measure {given}: is no measure", ())
    main = next(iter(standings(collection, most=1)), None)
    default = main.measure if main is not None and main.measure in titles else next(iter(titles))
    wanted = list(titles) if ALL in measures else [names[given] for given in measures] or [default]
    places = {}
    for text in at:
        path, equals, value = text.partition("=")
        path = _swept(path, comparison, f"--at {text}")
        there = list(dict.fromkeys(map(swept_text, comparison.differences[path])))
        same = [known for known in there if alike(known, value, collection.index.get("time_unit"))]
        if not equals or not same:
            raise InputError(f"--at {text}: nothing was run there; {path} is one of {', '.join(there)}")
        places[path] = same[0]
    return Shown(wanted, places, None if by is None else _swept(by, comparison, f"--by {by}"))


def print_short(comparison: Comparison, collection: Collection, shown: Shown, console: Console) -> None:
    """Print a sentence and a table for every measure that is shown, break-even points, and the gravest warnings."""
    few = 0
    for found in standings(collection, most=len(shown.measures) if len(shown.measures) == 1 else 100):
        here = [place for place in found.places if all(swept_text(place.at[p]) == at for p, at in shown.at.items())]
        if found.measure in shown.measures and here:
            said = sentence(replace(found, places=tuple(here)), collection.labels)
            console.print(Text(said, style="bold"))
    for measure in shown.measures:
        rows = comparison.differences[comparison.differences["measure"] == measure]
        for path, value in shown.at.items():
            rows = rows[rows[path].map(swept_text) == value]
        if rows.empty:
            console.print(Text(f"{measure}: no pair of runs has a value there", style="dim"))
            continue
        few = max(few, int((rows["n"] < FEWEST).sum()))
        title, table = _table(comparison, rows, shown)
        console.print(Text(title, style="bold"))
        console.print(table, crop=False)
    least = int(comparison.differences["n"].min())
    interval = (
        f"{least} pairs of runs are too few for intervals" if few else "\N{PLUS-MINUS SIGN} half of a 95 % interval"
    )
    text = (
        f"each minus {comparison.labels[comparison.baseline]}, over runs with the same seed; {interval}; "
        f"* p < {SIGNIFICANT:g} after Holm's correction"
    )
    console.print(Text(text, style="dim"))
    crossings = [(row, cells) for row, cells in break_even_rows(comparison) if row["measure"] in shown.measures]
    for row, cells in crossings[:MOST_WARNINGS]:
        console.print(Text(_crossing(row, cells)))
    if len(crossings) > MOST_WARNINGS:
        console.print(Text(f"{len(crossings) - MOST_WARNINGS} more changes of sign: break-even.csv", style="dim"))
    for warning in comparison.warnings[:MOST_WARNINGS]:
        console.print(Text(warning.partition("; ")[0], style="bold red"))
    if len(comparison.warnings) > MOST_WARNINGS:
        console.print(Text(f"{len(comparison.warnings) - MOST_WARNINGS} more warnings: --verbose", style="dim"))


def _table(comparison: Comparison, rows: Frame, shown: Shown) -> tuple[str, Table]:
    table, title = short_table(24), str(rows["title"].iloc[0])
    varying = [path for path in comparison.grid if len(set(rows[path].map(swept_text))) > 1]
    across = [shown.by] if shown.by is not None else varying
    beside = [path for path in varying if path not in across]
    for path in beside:
        table.add_column(escape(comparison.names[path]), overflow="fold", max_width=12)
    if not across:
        for name in ("baseline", "difference", "p"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("")
        for row in rows.to_dict("records"):
            cells = [row["label"], number(row["baseline_mean"]), _cell(row), p_value(row["p_holm"]), row["verdict"]]
            table.add_row(*map(escape, cells), style=COLOURS.get(row["verdict"]))
        return title, table
    names = ", ".join(comparison.names[path] for path in across)
    keys = list(dict.fromkeys(tuple(swept_text(row[path]) for path in across) for row in rows.to_dict("records")))
    chosen = "" if len(keys) <= MOST_COLUMNS else f" ({MOST_COLUMNS} of {len(keys)} values; --at)"
    keys = spread(keys, MOST_COLUMNS)
    for key in keys:
        table.add_column(escape(", ".join(key)), justify="right", no_wrap=True)
    lines: dict[tuple[str, ...], dict[tuple[str, ...], dict[str, Any]]] = {}
    for row in rows.to_dict("records"):
        head = (str(row["label"]), *(swept_text(row[path]) for path in beside))
        lines.setdefault(head, {})[tuple(swept_text(row[path]) for path in across)] = row
    for head, cells in list(lines.items())[:MOST_ROWS]:
        texts = [_cell(cells[key]) if key in cells else DASH for key in keys]
        verdicts = {cells[key]["verdict"] for key in keys if key in cells}
        style = COLOURS.get(verdicts.pop()) if len(verdicts) == 1 else None
        table.add_row(*map(escape, [*head, *texts]), style=style)
    if len(lines) > MOST_ROWS:
        table.add_row(f"{len(lines) - MOST_ROWS} more: --at, --by")
    return f"{title}, by {names}{chosen}", table


def _cell(row: dict[str, Any]) -> str:
    star = " *" if row["p_holm"] < SIGNIFICANT else ""
    if censored(row):
        return f"{row['finite']} vs {row['baseline_finite']} reached{star}"
    half = (row["high"] - row["low"]) / 2 if row["n"] >= FEWEST else math.nan
    text = with_half_width(row["difference"], half)
    return f"{'+' if row['difference'] > 0 else ''}{text}{star}"


def _crossing(row: dict[str, Any], cells: Sequence[str]) -> str:
    _, label, axis, elsewhere, at, interval, *_ = cells
    where = f"at {at}" if interval == DASH else f"at {at} ({interval})"
    where = f"between {row['after']:g} and {row['before']:g}" if at == DASH else where
    beside = f", {elsewhere}" if elsewhere else ""
    stands = f"{row['first']}, then {row['then']} from {axis} {where} on"
    return f"{label}{beside}: {stands}, seen in {seen_in(row)} of resamples"


def _swept(given: str, comparison: Comparison, where: str) -> str:
    found = [path for path in comparison.grid if given in (path, path.rpartition(".")[2]) or path.endswith(f".{given}")]
    if len(found) != 1:
        paths = ", ".join(comparison.grid)
        raise InputError(f"{where}: {f'must be one swept path of {paths}' if paths else 'nothing is swept here'}")
    return found[0]
