"""A comparison on the screen, as CSV and as LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..analysis.summary import fix_widths, print_whole
from ..storage.files import Frame, put_file, writing
from ..storage.plain_text import csv_text
from .comparison import Comparison
from .statistics import NOTHING

DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
INFINITY = "\N{INFINITY}"
LATEX = str.maketrans({DASH: "--", MINUS: "$-$", TIMES: r"$\times$", INFINITY: r"$\infty$"})
"""What pdfLaTeX has no letters for."""

COLOURS = {"better": "green", "worse": "red"}
NUMBERS = ("baseline", "difference", "95 % interval", "p (Holm)", "pairing", "n")
PRINTED = ("baseline", "difference", "95 % interval", "p (Holm)", "n")
"""Those that papers print."""
MOST_OF_A_PAGE = 40
"""Rows."""
PREAMBLE = "% Needs \\usepackage{booktabs}, and longtable where a table goes over several pages.\n"
PAIRS = (
    "differences of runs with the same seed, protocol minus baseline; p corrected over the protocols and points of a "
    "measure (Holm)"
)
CAPTION = f"{PAIRS}; pairing: how many times smaller the variance is than with unpaired runs"
CENSORED = (
    "Reached: by how many runs, against the baseline's. A run that never got there has no place in a mean: the "
    "difference is that of the pairs in which both did, and p counts who was first in all pairs (sign test)."
)

PLACES = (
    "The place of a target is that of the first record that meets it, late by less than its distance from the record "
    "before. Where that leaves open who was first, there is no verdict: record more often."
)

BREAK_EVEN = (
    "Where the mean difference changes sign, interpolated between two neighbours of so many points of the axis; "
    "interval from resampled seeds, from ten seeds on; seen: in what share of the resamples there is such a change at "
    "all. Far below 100 % it may be chance."
)
WITHHELD = (
    "A dash: the place between two neighbours is unknown, for a mean is infinite there, or the metric is another "
    "function at each of them."
)


def about_break_even(found: Frame) -> str:
    """Return the note on break-even points: the method by which they were found, and why some are not known."""
    return " ".join([*([BREAK_EVEN] if found["at"].notna().any() else []), *_withheld(found)])


def _withheld(found: Frame) -> list[str]:
    return [] if found["at"].notna().all() else [WITHHELD]


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print a table per measure, the break-even points, and what a reader must know before believing them."""
    for _, rows in comparison.differences.groupby("measure", sort=False):
        print_whole(_differences_table(comparison, rows), console)
    console.print(Text(f"Baseline: {comparison.labels[comparison.baseline]}; {CAPTION}.", style="dim"))
    if any(map(censored, comparison.differences.to_dict("records"))):
        console.print(Text(CENSORED, style="dim"))
    if any(map(on_records, comparison.differences.to_dict("records"))):
        console.print(Text(PLACES, style="dim"))
    if len(comparison.break_even):
        print_whole(_break_even_table(comparison), console)
        console.print(Text(about_break_even(comparison.break_even), style="dim"))
    for sentence in comparison.warnings:
        console.print(Text(sentence, style="bold red"))


def write_comparison(comparison: Comparison, folder: Path, measures: Sequence[str] | None = None) -> list[Path]:
    """Write ``differences.csv``, ``differences.tex`` and, where a sweep has some, ``break-even.csv`` and ``.tex``.

    The LaTeX file has a table of each of the named measures; by default of all.
    """
    tables = {"differences": (comparison.differences, _differences_latex(comparison, measures))}
    if len(comparison.break_even):
        tables["break-even"] = (comparison.break_even, _break_even_latex(comparison))
    written = []
    for name, (frame, latex) in tables.items():
        csv, tex = folder / f"{name}.csv", folder / f"{name}.tex"
        text = csv_text(frame)
        with writing(folder):
            put_file(text.encode(), csv, within=folder.parent)
            put_file(latex.encode(), tex, within=folder.parent)
        written += [csv, tex]
    return written


def _new_table(title: str, texts: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1))
    for name in texts:
        table.add_column(
            escape(name), overflow="fold", min_width=max(10 if name == "protocol" else 6, min(len(name), 12))
        )
    for name in numbers:
        table.add_column(escape(name), justify="right", no_wrap=True)
    return table


def _differences_table(comparison: Comparison, rows: Frame) -> Table:
    swept = [comparison.names.get(path, path) for path in comparison.grid]
    table = _new_table(str(rows["title"].iloc[0]), ["protocol", *swept], NUMBERS)
    table.add_column("", no_wrap=True)
    for row in rows.to_dict("records"):
        texts = [row["label"], *(swept_text(row[path]) for path in comparison.grid)]
        cells = [*map(escape, map(str, texts)), *cells_of(row), row["verdict"]]
        table.add_row(*cells, style=COLOURS.get(row["verdict"]))
    return fix_widths(table)


def cells_of(row: dict[str, Any]) -> list[str]:
    """Numbers of a row of differences, as texts in the order of `NUMBERS`."""
    half = (row["high"] - row["low"]) / 2
    return [
        number(row["baseline_mean"], half),
        number(row["difference"], half),
        f"reached {row['finite']} against {row['baseline_finite']}" if censored(row) else _interval(row, half),
        NOTHING if row["method"] == NOTHING else p_value(row["p_holm"]),
        DASH if math.isnan(row["pairing"]) else f"{number(row['pairing'], row['pairing'] / 5)}{TIMES}",
        str(row["n"]),
    ]


def _interval(row: dict[str, Any], half: float) -> str:
    low, high = (number(row[name], half) for name in ("low", "high"))
    return DASH if DASH in (low, high) else f"{low} to {high}"


def censored(row: dict[str, Any]) -> bool:
    """True if a run of some pair has no finite value, such as a target that it never reached."""
    return min(row["finite"], row["baseline_finite"]) < row["n"]


def on_records(row: dict[str, Any]) -> bool:
    """True if values are record instants, so that the measured event happened at or before them."""
    return not math.isnan(row["least"])


def _break_even_table(comparison: Comparison) -> Table:
    texts = ["measure", "protocol", "axis", "elsewhere"]
    numbers = ["break-even", "95 % interval", "between", "points", "seen"]
    table = _new_table("break-even points with the baseline along the sweep", texts, numbers)
    table.add_column("", overflow="fold", min_width=10)
    for row, cells in break_even_rows(comparison):
        table.add_row(*map(escape, [*cells, seen_in(row)]), escape(f"{row['first']}, then {row['then']}"))
    return fix_widths(table)


def break_even_rows(comparison: Comparison) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Every break-even point with its cells: measure, protocol, axis, elsewhere, place, interval, neighbours."""
    for row in comparison.break_even.to_dict("records"):
        others = [path for path in comparison.grid if path != row["axis"]]
        where = ", ".join(f"{comparison.names.get(path, path)} {swept_text(row[path])}" for path in others)
        half = (row["high"] - row["low"]) / 2
        place = [
            number(row["at"], half),
            _interval(row, half),
            f"{row['after']:g} to {row['before']:g}",
            str(row["points"]),
        ]
        yield row, [row["title"], row["label"], f"{comparison.names.get(row['axis'], row['axis'])}", where, *place]


def seen_in(row: dict[str, Any]) -> str:
    """The share of resamples in which a break-even point was seen; a dash where it is not known."""
    return DASH if math.isnan(row["seen"]) else f"{row['seen']:.0%}"


def swept_text(value: Any) -> str:
    """A swept value in words; a dash where it is not set."""
    return DASH if pd.isna(value) else str(value)


def number(value: float, half: float = math.nan) -> str:
    """A number as exact as its interval's half-width deserves, else with four digits; a dash where it is not known."""
    if math.isnan(value):
        return DASH
    if math.isinf(value):
        return INFINITY if value > 0 else MINUS + INFINITY
    known = math.isfinite(half) and half > 0
    if value != 0 and not 1e-4 <= max(abs(value), half if known else 0.0) < 1e7:
        return f"{value:.3g}".replace("-", MINUS)
    scale, digits = (half, 1) if known else (abs(value) or 1.0, 3)
    decimals = min(max(digits - math.floor(math.log10(scale)), 0), 8)
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", MINUS)


def p_value(p: float) -> str:
    """A p value as papers print it."""
    return DASH if math.isnan(p) else "<0.0001" if p < 1e-4 else f"{p:.2g}"


def _differences_latex(comparison: Comparison, measures: Sequence[str] | None) -> str:
    names = ["protocol", *(comparison.names.get(path, path) for path in comparison.grid), *PRINTED]
    tables = []
    for measure, rows in comparison.differences.groupby("measure", sort=False):
        if measures is None or measure in measures:
            cells = [
                [row["label"], *(swept_text(row[path]) for path in comparison.grid), *_printed(row)]
                for row in rows.to_dict("records")
            ]
            title, other = rows["title"].iloc[0], comparison.labels[comparison.baseline]
            caption = f"{title}, against {other}: {PAIRS}."
            tables.append(_latex(cells, names, len(PRINTED), caption, f"differences-{measure}"))
    return f"{PREAMBLE}{chr(10).join(tables)}"


def _printed(row: dict[str, Any]) -> list[str]:
    cells = dict(zip(NUMBERS, cells_of(row), strict=True))
    return [cells[name] for name in PRINTED]


def _break_even_latex(comparison: Comparison) -> str:
    rows = [cells for _, cells in break_even_rows(comparison)]
    names = ["measure", "protocol", "axis", "elsewhere", "break-even", "95 % interval", "between", "points"]
    said = [f"Break-even points with {comparison.labels[comparison.baseline]}.", *_withheld(comparison.break_even)]
    return f"{PREAMBLE}{_latex(rows, names, 4, ' '.join(said), 'break-even')}"


def _latex(rows: list[list[str]], names: Sequence[str], numbers: int, caption: str, label: str) -> str:
    """A table for LaTeX, everything in it escaped; one that no page has room for goes over several."""
    columns = "l" * (len(names) - numbers) + "r" * numbers
    text = pd.DataFrame(rows, columns=list(names)).to_latex(
        index=False,
        escape=True,
        column_format=columns,
        caption=_escaped(caption),
        label=f"tab:{re.sub(r'[^a-z0-9]+', '-', label.lower()).strip('-')}",
        longtable=len(rows) > MOST_OF_A_PAGE,
        position=None if len(rows) > MOST_OF_A_PAGE else "t",
    )
    return text.translate(LATEX)


def _escaped(text: str) -> str:
    return re.sub(r"([#$%&_{}])", r"\\\1", " ".join(text.split()).replace("\\", ""))
