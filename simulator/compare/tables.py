"""A comparison on the screen, as CSV and as LaTeX."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ...agents.errors import InputError
from ..analysis.claimed_privacy import MARK
from ..storage.files import Frame, put_file, writing
from ..storage.plain_text import csv_text
from .comparison import Comparison, compare
from .folders import gather
from .statistics import NOTHING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
INFINITY = "\N{INFINITY}"
LATEX = str.maketrans({DASH: "--", MINUS: "$-$", TIMES: r"$\times$", INFINITY: r"$\infty$"})
"""What pdfLaTeX has no letters for."""

COLOURS = {"better": "green", "worse": "red"}
NUMBERS = ("baseline", "difference", "95 % interval", "p (Holm)", "pairing", "n")
CAPTION = (
    "differences of runs with the same seed, protocol minus baseline; p corrected over the protocols and points of a "
    "measure (Holm); pairing: how many times smaller the variance is than with unpaired runs"
)
CENSORED = (
    "Reached: by how many runs, against the baseline's. A run that never got there has no place in a mean: the "
    "difference is that of the pairs in which both did, and p counts who was first in all pairs (sign test)."
)

PLACES = (
    "The place of the scenario's own target is that of the event that met it; of any other that of the first record "
    "that meets it, late by less than its distance from the record before. Where that leaves open who was first, there "
    "is no verdict: name the target in the scenario."
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


def compare_folders(folders: Sequence[Path], baseline: str | None = None, console: Console | None = None) -> None:
    """Print a comparison of saved runs and write it beside them, as ``hushnet compare`` does.

    Parameters
    ----------
    folders : sequence of Path
        One or more ``results/<scenario>``; files go to ``compare`` in the first, or, with several, to
        ``compare-with-...``, which names the others.
    baseline : str, optional
        Key or label of a protocol.
    console : rich.console.Console, optional

    Raises
    ------
    InputError
        If a folder holds no runs, or there is nothing to compare or no pair of runs that reached their end.
    """
    from rich.console import Console

    console = console or Console()
    comparison = compare(gather(folders), baseline)
    if comparison.differences.empty:
        why = " ".join(sentence.removeprefix(MARK).strip() for sentence in comparison.warnings)
        raise InputError(f"there is nothing to compare: no run has a partner that reached its end as well. {why}")
    print_comparison(comparison, console)
    others = [Path(folder).resolve().name for folder in folders[1:]]
    name = f"compare-with-{'-and-'.join(others)}" if others else "compare"
    for path in write_comparison(comparison, Path(folders[0]) / name):
        console.print(f"written: {path}", highlight=False, markup=False, soft_wrap=True)


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print a table per measure, the break-even points, and what a reader must know before believing them."""
    from rich.text import Text

    for _, rows in comparison.differences.groupby("measure", sort=False):
        _show(_differences_table(comparison, rows), console)
    console.print(Text(f"Baseline: {comparison.labels[comparison.baseline]}; {CAPTION}.", style="dim"))
    if any(map(censored, comparison.differences.to_dict("records"))):
        console.print(Text(CENSORED, style="dim"))
    if any(map(on_records, comparison.differences.to_dict("records"))):
        console.print(Text(PLACES, style="dim"))
    if len(comparison.break_even):
        _show(_break_even_table(comparison), console)
        console.print(Text(about_break_even(comparison.break_even), style="dim"))
    for sentence in comparison.warnings:
        console.print(Text(sentence, style="bold red"))


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write ``differences.csv``, ``differences.tex`` and, where a sweep has some, ``break-even.csv`` and ``.tex``.

    Returns
    -------
    list of Path
        What was written, in order.
    """
    tables = {"differences": (comparison.differences, _differences_latex(comparison))}
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


def _show(table: Table, console: Console) -> None:
    """Print a table whole: in a window that is too narrow its lines are too long rather than cut off."""
    least = console.measure(table, options=console.options.update(width=1000)).minimum
    table.width = least if least > console.width else None
    console.print(table, crop=False)


def _new_table(title: str, texts: Sequence[str], numbers: Sequence[str]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1))
    for name in texts:
        table.add_column(escape(name), overflow="fold", min_width=max(6, min(len(name), 12)))
    for name in numbers:
        table.add_column(escape(name), justify="right", no_wrap=True)
    return table


def _fix_widths(table: Table) -> Table:
    """Numbers are never wrapped or cut."""
    for column in table.columns:
        if column.no_wrap:
            column.min_width = max(len(str(cell)) for cell in (column.header, *column.cells))
    return table


def _differences_table(comparison: Comparison, rows: Frame) -> Table:
    from rich.markup import escape

    swept = [path.rpartition(".")[2] for path in comparison.grid]
    table = _new_table(str(rows["title"].iloc[0]), ["protocol", *swept], NUMBERS)
    table.add_column("", no_wrap=True)
    for row in rows.to_dict("records"):
        texts = [row["label"], *(swept_text(row[path]) for path in comparison.grid)]
        cells = [*map(escape, map(str, texts)), *cells_of(row), row["verdict"]]
        table.add_row(*cells, style=COLOURS.get(row["verdict"]))
    return _fix_widths(table)


def cells_of(row: dict[str, Any]) -> list[str]:
    """Numbers of a row of differences, as texts in the order of `NUMBERS`."""
    half = (row["high"] - row["low"]) / 2
    low, high = (number(row[name], half) for name in ("low", "high"))
    interval = DASH if DASH in (low, high) else f"{low} to {high}"
    return [
        number(row["baseline_mean"], half),
        number(row["difference"], half),
        f"reached {row['finite']} against {row['baseline_finite']}" if censored(row) else interval,
        NOTHING if row["method"] == NOTHING else p_value(row["p_holm"]),
        DASH if math.isnan(row["pairing"]) else f"{number(row['pairing'], row['pairing'] / 5)}{TIMES}",
        str(row["n"]),
    ]


def censored(row: dict[str, Any]) -> bool:
    """True if a run of some pair has no finite value, such as a target that it never reached."""
    return min(row["finite"], row["baseline_finite"]) < row["n"]


def on_records(row: dict[str, Any]) -> bool:
    """True if values are record instants, so that the measured event happened at or before them."""
    return not math.isnan(row["least"])


def _break_even_table(comparison: Comparison) -> Table:
    from rich.markup import escape

    texts = ["measure", "protocol", "axis", "elsewhere"]
    numbers = ["break-even", "95 % interval", "between", "points", "seen"]
    table = _new_table("break-even points with the baseline along the sweep", texts, numbers)
    table.add_column("", overflow="fold", min_width=10)
    for row, cells in break_even_rows(comparison):
        table.add_row(*map(escape, [*cells, seen_in(row)]), escape(f"{row['first']}, then {row['then']}"))
    return _fix_widths(table)


def break_even_rows(comparison: Comparison) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Every break-even point with its cells: measure, protocol, axis, elsewhere, place, interval, neighbours."""
    for row in comparison.break_even.to_dict("records"):
        others = [path for path in comparison.grid if path != row["axis"]]
        where = ", ".join(f"{path.rpartition('.')[2]} {swept_text(row[path])}" for path in others)
        half = (row["high"] - row["low"]) / 2
        low, high = (number(row[name], half) for name in ("low", "high"))
        interval = DASH if DASH in (low, high) else f"{low} to {high}"
        place = [number(row["at"], half), interval, f"{row['after']:g} to {row['before']:g}", str(row["points"])]
        yield row, [row["title"], row["label"], row["axis"], where, *place]


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


def _differences_latex(comparison: Comparison) -> str:
    """A booktabs table of all differences."""
    rows = [
        [row["title"], row["label"], *(swept_text(row[path]) for path in comparison.grid), *cells_of(row)]
        for row in comparison.differences.to_dict("records")
    ]
    names = ["measure", "protocol", *comparison.grid, *NUMBERS]
    return _latex(rows, names, len(NUMBERS), f"Baseline: {comparison.labels[comparison.baseline]}; {CAPTION}.")


def _break_even_latex(comparison: Comparison) -> str:
    rows = [cells for _, cells in break_even_rows(comparison)]
    names = ["measure", "protocol", "axis", "elsewhere", "break-even", "95 % interval", "between", "points"]
    said = [f"Break-even points with {comparison.labels[comparison.baseline]}.", *_withheld(comparison.break_even)]
    return _latex(rows, names, 4, " ".join(said))


def _latex(rows: list[list[str]], names: Sequence[str], numbers: int, remark: str) -> str:
    """A tabular for LaTeX with the package booktabs, everything in it escaped."""
    columns = "l" * (len(names) - numbers) + "r" * numbers
    text = pd.DataFrame(rows, columns=list(names)).to_latex(index=False, escape=True, column_format=columns)
    return f"% {' '.join(remark.split())}\n% Needs \\usepackage{{booktabs}}.\n{text.translate(LATEX)}"
