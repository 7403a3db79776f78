"""The Markdown page of a paper: for every figure what is claimed, what was measured, and whether the two agree.

Headings, tables and standing sentences are in the ``*.jinja`` files beside this module.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ...agents.errors import InputError
from ..analysis.apart import set_apart
from ..analysis.summary import parted, trivial_rows, with_half_width
from ..analysis.trivial_values import measure_of, unbeaten
from ..experiment.time_left import in_words
from ..figures.figure_files import drawing, few_colours, picture
from ..language.figure_style import FigureStyle
from ..storage.files import put_file
from .findings import judged
from .judge import FEWEST, Finding, Number, Verdict
from .papers import Claim, Paper, PaperFigure
from .reproduction_runs import Runs

RESOLUTION = 150
"""Dots per inch of a picture, whatever is on it: 525 across a column."""


@dataclass(frozen=True)
class Row:
    """One row of a table: a claim, what was found, or else in ``note`` why it was not measured."""

    claim: Claim
    finding: Finding | None
    note: str = ""

    @property
    def says(self) -> str:
        """The claim, after where it stands in the paper."""
        return f"{self.claim.stands}: {self.claim.says}".removeprefix(": ")

    @property
    def verdict(self) -> Verdict | None:
        """The verdict, if it was measured."""
        return self.finding.verdict if self.finding else None


@dataclass(frozen=True)
class Section:
    """What a page says about one figure: its rows, its runs if they are finished, and pictures beside the page."""

    figure: PaperFigure
    rows: tuple[Row, ...]
    runs: Runs | None = None
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """All that is known about a paper, ready to be written down; quick runs give no verdict."""

    paper: Paper
    sections: tuple[Section, ...]
    statements: tuple[Row, ...]
    quick: bool

    @cached_property
    def deciding(self) -> dict[str, tuple[str, Row]]:
        """The deciding row of every claim and the figure that it stands at, by what the claim says."""
        rows = {(row.claim.says, at.figure.name): row for at in self.sections for row in at.rows}
        found = {row.claim.says: ("", row) for row in self.statements}
        for claim in (claim for claim in self.paper.claims if claim.on):
            name = next((name for name in claim.on if rows[claim.says, name].finding), claim.on[0])
            found[claim.says] = (name, rows[claim.says, name])
        return found

    @property
    def titles(self) -> dict[str, str]:
        """What figures are called in the paper, by name."""
        return {figure.name: figure.title for figure in self.paper.figures}

    @property
    def manifests(self) -> list[Any]:
        """Manifests of the runs behind the page, each once."""
        known = [section.runs.collection for section in self.sections if section.runs]
        return [*{run: m for runs in known for run, m in runs.by_run.items()}.values()]

    def count(self) -> Counter[Verdict | None]:
        """Claims by verdict; None counts those that were not measured."""
        return Counter(row.verdict for _, row in self.deciding.values())

    def in_short(self) -> list[str]:
        """Ten lines in plain words or fewer: what holds, what does not, what depends, what nobody should copy."""
        said: dict[tuple[Verdict | None, str], list[str]] = {}
        for at, row in self.deciding.values():
            text, title = row.says + self._remark(at, row), self.titles.get(at, "")
            # A claim of several figures is said once, with the figures after it.
            bare = text.replace(f" ({title})", "")
            said.setdefault((row.verdict, bare), []).append(title if bare != text else "")
        told = [(verdict, text, places) for (verdict, text), places in said.items()]
        return _filled("in_short", count=len(self.deciding), told=told).splitlines()

    def _remark(self, at: str, row: Row) -> str:
        """What is added to a claim in ten lines: that a stand-in decides, how many seeds would, or the readings."""
        finding, remark = row.finding, ""
        if finding and at and at != row.claim.on[0]:
            remark = " (Of a stand-in for the paper's size.)"
        if finding and finding.verdict == "undecided":
            count = finding.said.partition(" (")[2].removesuffix(")")
            remark += f" ({count}{'; ' if count else ''}{finding.needed or 'too many'} seeds would decide.)"
        elif finding and finding.verdict == "depends on the reading":
            remark += f" ({finding.said.partition(': ')[2].capitalize()}.)"
        return remark


def row_of(paper: Paper, claim: Claim, runs: Runs | None = None) -> Row:
    """A row with what comes out about a claim, or with what is missing."""
    try:
        return Row(claim, judged(paper, claim, runs))
    except InputError as error:
        return Row(claim, None, f"not measured: {error}")


def page(report: Report) -> str:
    """The page of a paper, in Markdown."""
    return _filled("page", report=report, fewest=FEWEST, trivial=trivial_predictions)


def overview(reports: Iterable[Report]) -> str:
    """The reader's page: ten lines a paper, and how many claims have which verdict."""
    return _filled("overview", reports=list(reports), verdicts=(*get_args(Verdict), None))


def moved(reports: Iterable[Iterable[Report]]) -> str:
    """The deciding rows whose numbers are others with other seeds, and those of them whose verdicts are others."""
    both = [
        (f"{report.paper.authors}, {row.claim.says}", row.verdict, again.verdict)
        for report, other in reports
        for at, with_others in zip(report.sections, other.sections, strict=True)
        for row, again in zip(at.rows, with_others.rows, strict=True)
        if row.finding
        and again.finding
        and [*map(number_text, row.finding.numbers)] != [*map(number_text, again.finding.numbers)]
        and report.deciding[row.claim.says][0] == at.figure.name
    ]
    changed = [row for row in both if row[1] != row[2]]
    opened = sum("undecided" in row for row in changed)
    turned = sum(set(row[1:]) == {"holds", "does not hold"} for row in changed)
    return _filled("moved", both=both, changed=changed, opened=opened, turned=turned)


def save_pictures(runs: Runs, figure: PaperFigure, folder: Path, *, suffix: str = "") -> tuple[str, ...]:
    """Draw small PNGs of the scenario's figures that a page in a folder shows; return their names, with the suffix."""
    specs, names = enumerate(runs.collection.index.get("figures") or [], 1), []
    for number, spec in specs:
        if number <= 2 if figure.pictures is None else spec.get("name") in figure.pictures:
            path = folder / f"{figure.name}-{spec.get('name') or number}{suffix}.png"
            drawn = drawing(runs.collection, spec, path.stem, FigureStyle(resolution=RESOLUTION))
            put_file(few_colours(picture(drawn, "png")), path)
            names.append(path.name)
    return tuple(names)


def number_text(number: Number) -> str:
    """A number with its half-width, to the digits that it deserves.

    >>> number_text(Number("accuracy", 0.89123, 0.0042, 5))
    '0.8912 ± 0.0042'
    >>> number_text(Number("epsilon", float("inf"), high=1.0, claimed=True, at_least=3.2))
    '∞, at least 3.2'
    """
    value, half = number.value, number.half_width
    if number.claimed and number.at_least > 0:
        return f"{_plain(value)}, at least {_plain(number.at_least)}"
    spread = half > 1e-9 * abs(value) or math.isnan(half)  # less is rounding in runs that are equal
    return with_half_width(value, half) if spread and math.isfinite(value) else _plain(value)


def margin_text(number: Number) -> str:
    """What is asked of a number.

    >>> margin_text(Number("difference", 0.1, low=0.0))
    '> 0'
    >>> margin_text(Number("RMSE", 0.95, low=0.93, high=0.97))
    '0.95 ± 0.02'
    """
    low, high = number.low, number.high
    if math.isinf(high):
        return "none" if math.isinf(low) else f"> {_plain(low)}"
    if math.isinf(low):
        return f"< {_plain(high)}"
    return f"{_plain(round((low + high) / 2, 12))} ± {_plain(round((high - low) / 2, 12))}"


def trivial_predictions(runs: Runs) -> list[str]:
    """What constant predictions come to in a figure's runs, and who does not beat them.

    A prediction that changes along a sweep is said from its smallest mean over seeds to its largest.
    """
    found: dict[tuple[str, str], list[Number]] = {}
    for row in trivial_rows(runs.collection):
        for column, (mean, half) in row.values.items():
            name = row.label.strip("()"), measure_of(parted(column)[0])
            found.setdefault(name, []).append(Number("", mean, half))
    named = []
    for (name, column), numbers in found.items():
        ends = dict.fromkeys(number_text(end(numbers, key=lambda number: number.value)) for end in (min, max))
        named.append(f"{name} {' to '.join(ends)}{' by point of the sweep' if len(ends) > 1 else ''} ({column})")
    listed = [f"Trivial predictions: {', '.join(named)}."] if named else []
    return [*listed, *(said for said, _ in unbeaten(set_apart(runs.collection)))]


def _line(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


_PAGES = Environment(  # of Markdown, in which nothing is escaped but what would end a cell
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_PAGES.filters |= {"row": _line, "value": number_text, "margin": margin_text, "in_words": in_words}


def _filled(name: str, **content: object) -> str:
    return _PAGES.get_template(f"{name}.jinja").render(**content)


def _plain(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return "not a number" if math.isnan(value) else f"{value + 0.0:.4g}"  # no minus before nothing
