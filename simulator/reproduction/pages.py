"""The Markdown page of a paper: for every figure what is claimed, what was measured, and whether the two agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from ...agents.errors import InputError
from ..analysis.apart import set_apart
from ..analysis.baselines import at_places, axes_that_matter, baselines, measure_of, unbeaten, with_baselines
from ..analysis.results import Collection
from ..analysis.summary import with_half_width
from ..figures.files import drawing, few_colours, picture
from ..language.figure_style import FigureStyle
from ..storage.files import put_file
from .claims import Finding, Kind, Number, Paper, PaperFigure, Promise, Verdict, measured
from .runs import Runs

RESOLUTION = 150
"""Dots per inch of a picture, whatever is on it: 525 across a column."""

RULE = (
    "A number *holds* if its whole 95 % interval lies within the margin, *holds in part* if only its mean does. How "
    "numbers decide stands below the verdict. *For all*: one violated number refutes the claim. *All of these parts*: "
    "a missing half fails it. *Ordering*: every pair stands in the claimed order. *Exists a setting*: all numbers of "
    "one setting hold. Without a kind, the numbers that hold are counted. A claim of privacy is *proved* where what is "
    "verified lies within it, *refuted* where a lower bound, printed as `at least`, lies above it, and *not proved* in "
    "between."
)
NO_VERDICT = "**Quick runs**: smaller problems and fewer seeds than the paper's, so there are numbers but no verdict."


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Parameters
    ----------
    text : str
        What the paper says.
    finding : Finding or None
        None where it was not measured.
    note : str
        Why it was not.
    """

    text: str
    finding: Finding | None
    note: str = ""


@dataclass(frozen=True)
class Section:
    """What a page says about one figure.

    Parameters
    ----------
    figure : PaperFigure
    rows : tuple of Row
    runs : Runs or None
        None where there are no finished runs.
    pictures : tuple of str
        File names beside the page.
    """

    figure: PaperFigure
    rows: tuple[Row, ...]
    runs: Runs | None = None
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """All that is known about a paper, ready to be written down.

    Parameters
    ----------
    paper : Paper
    sections : tuple of Section
    statements : tuple of Row
    quick : bool
        Whether the runs were quick ones, which give no verdict.
    """

    paper: Paper
    sections: tuple[Section, ...]
    statements: tuple[Row, ...]
    quick: bool

    def count(self, verdict: Verdict | None) -> int:
        """Rows with this verdict; with None, those that were not measured."""
        rows = [*self.statements, *(row for section in self.sections for row in section.rows)]
        return sum((row.finding.verdict if row.finding else None) == verdict for row in rows)


def judged(text: str, check: Callable[[], Finding], kind: Kind = "") -> Row:
    """A row with what came out of a check, decided as its kind asks, or with what is missing."""
    try:
        return Row(text, replace(check(), kind=kind))
    except InputError as error:
        return Row(text, None, f"not measured: {error}")


def page(report: Report) -> str:
    """The page of a paper, in Markdown."""
    paper, quick = report.paper, report.quick
    lines = [f"# {paper.authors}: {paper.title}" + (" (quick runs)" if quick else ""), "", f"{paper.venue}.", ""]
    lines += [
        "What the paper says, beside what hushnet measures. `hushnet reproduce` computes every measured number from "
        f"the runs' own files. {NO_VERDICT if quick else RULE}",
        "",
    ]
    if paper.remarks:
        lines += ["How the paper was read:", "", *(f"- {remark}" for remark in paper.remarks), ""]
    for section in report.sections:
        lines += _section(section, quick=quick)
    if report.statements:
        lines += ["## Printed statements", "", "Decided without a scenario, by direct computation.", ""]
        lines += _table(report.statements, quick=quick)
    return "\n".join([*lines, _versions(report.sections), ""])


def overview(reports: Iterable[Report]) -> str:
    """A page that counts the verdicts of all papers."""
    columns = ["paper", *get_args(Verdict), "not measured"]
    lines = ["# Reproductions", "", "Written by `hushnet reproduce`.", ""]
    lines += [_line(columns), _line(["---"] * len(columns))]
    for report in reports:
        counts = [report.count(verdict) for verdict in (*get_args(Verdict), None)]
        name = f"[{report.paper.authors} ({report.paper.year})]({report.paper.name}.md)"
        lines.append(_line([name, *map(str, counts)]))
    return "\n".join([*lines, ""])


def save_pictures(runs: Runs, figure: PaperFigure, folder: Path, *, suffix: str = "") -> tuple[str, ...]:
    """Draw small PNGs of the scenario's figures that a page shows, and return their names.

    Parameters
    ----------
    runs : Runs
    figure : PaperFigure
    folder : Path
        Where the page goes.
    suffix : str
        Appended to the names.
    """
    names = []
    specs = list(enumerate(runs.collection.index.get("figures") or [], 1))
    wanted = figure.pictures
    shown = specs[:2] if wanted is None else [(number, spec) for number, spec in specs if spec.get("name") in wanted]
    for number, spec in shown:
        path = folder / f"{figure.name}-{spec.get('name') or number}{suffix}.png"
        drawn = drawing(runs.collection, spec, path.stem, FigureStyle(resolution=RESOLUTION))
        put_file(few_colours(picture(drawn, "png")), path)
        names.append(path.name)
    return tuple(names)


EXACT = 1e-12
"""Half-widths that are smaller, relative to their number, are rounding."""


def number_text(number: Number) -> str:
    """A number with its half-width, to the digits that it deserves.

    Examples
    --------
    >>> number_text(Number("accuracy", 0.89123, 0.0042))
    '0.8912 ± 0.0042'
    >>> number_text(Promise("epsilon", float("inf"), high=1.0, at_least=3.2))
    '∞, at least 3.2'
    """
    value, half = number.value, number.half_width
    if isinstance(number, Promise) and number.at_least > 0:
        return f"{_plain(value)}, at least {_plain(number.at_least)}"
    spread = half > EXACT * abs(value) or math.isnan(half)  # equal numbers' mean is off by a rounding
    return with_half_width(value, half) if spread and math.isfinite(value) else _plain(value)


def margin_text(number: Number) -> str:
    """What is asked of a number.

    Examples
    --------
    >>> margin_text(Number("difference", 0.1, low=0.0))
    '> 0'
    >>> margin_text(Number("RMSE", 0.95, low=0.93, high=0.97))
    '0.95 ± 0.02'
    """
    low, high = number.low, number.high
    if math.isinf(low) and math.isinf(high):
        return "none"
    if math.isinf(high):
        return f"> {_plain(low)}"
    if math.isinf(low):
        return f"< {_plain(high)}"
    return f"{_plain(round((low + high) / 2, 12))} ± {_plain(round((high - low) / 2, 12))}"


def _section(section: Section, *, quick: bool) -> list[str]:
    figure = section.figure
    command = f"hushnet reproduce {figure.name}{' --quick' if quick else ''}"
    place = f"[`{figure.scenario}`](../../scenarios/{figure.scenario}.yaml)"
    lines = [f"## {figure.title}", "", f"{figure.shows} Scenario {place}; `{command}`.", ""]
    if section.runs is not None:
        lines += [_size(section.runs), *(f"{said}  " for said in trivial_predictions(section.runs)), ""]
    lines += _table(section.rows, quick=quick)
    if figure.table is not None and section.runs is not None:
        header, *rows = figure.table(section.runs)
        lines += [_line(header), _line(["---"] * len(header)), *map(_line, rows), ""]
    for name in section.pictures:
        lines += [f"![{figure.title}: {name.removesuffix('.png')}]({name})", ""]
    return lines


def trivial_predictions(runs: Runs) -> list[str]:
    """What constant predictions come to in a figure's runs, and who does not beat them."""
    apart = set_apart(runs.collection)
    named = [
        f"{name} {_by_place(apart, values)} ({measure_of(metric)})"
        for metric in with_baselines(apart)
        for name, values in baselines(apart, metric).items()
    ]
    listed = [f"Trivial predictions: {', '.join(named)}."] if named else []
    return [*listed, *(said for said, _ in unbeaten(apart))]


def _by_place(collection: Collection, values: Any) -> str:
    """A trivial prediction's mean over runs; where it changes along a sweep, its smallest and its largest one."""
    places = at_places(collection, axes_that_matter(collection, [values]))
    known = [values[values.index.isin(runs)].dropna() for _, runs in places]
    means = [measured("", here) for here in known if len(here)]
    ends = [end(means, key=lambda mean: mean.value) for end in (min, max)]
    return " to ".join(dict.fromkeys(map(number_text, ends))) + (" by point of the sweep" if len(means) > 1 else "")


def _table(rows: Iterable[Row], *, quick: bool) -> list[str]:
    columns = ["claim in the paper", "hushnet measures (± 95 %)", "margin asked for"]
    columns += ["why"] if quick else ["verdict", "why"]
    lines = [_line(columns), _line(["---"] * len(columns))]
    for row in rows:
        finding = row.finding
        if finding is None:
            lines.append(_line([row.text, row.note, *[""] * (len(columns) - 2)]))
            continue
        numbers = [f"{number.name}: {number_text(number)}" for number in finding.numbers]
        cells = [row.text, "<br>".join(numbers), "<br>".join(margin_text(number) for number in finding.numbers)]
        kind = f"<br>{finding.kind}" if finding.kind and not _promised(finding) else ""
        cells += [finding.why] if quick else [f"**{finding.words}**{kind}", finding.why]
        lines.append(_line(cells))
    return [*lines, ""]


def _promised(finding: Finding) -> bool:
    return any(isinstance(number, Promise) for number in finding.numbers)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _size(runs: Runs) -> str:
    """How many runs, and what broke off."""
    collection = runs.collection
    stopped = len(collection.runs) - len(collection.complete)
    seeds = runs.seeds()
    text = f"{len(collection.runs)} runs, {seeds} seed{'' if seeds == 1 else 's'}"
    return f"{text}; {stopped} of them broke off and are left out." if stopped else f"{text}."


def _versions(sections: Iterable[Section]) -> str:
    manifests = [manifest for section in sections if section.runs for manifest in section.runs.collection.manifests]
    codes = dict.fromkeys(
        f"hushnet {m['code']}, commit {m.get('commit') or 'unknown'}" for m in manifests if "code" in m
    )
    return f"Runs by {'; '.join(codes)}." if codes else "No runs yet."


def _plain(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return "not a number" if math.isnan(value) else f"{value:.4g}"
