"""The Markdown page of a paper: for every figure what is claimed, what was measured, and whether the two agree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from ...agents.errors import InputError
from ..analysis.apart import set_apart
from ..analysis.results import Collection
from ..analysis.summary import with_half_width
from ..analysis.trivial_values import at_places, axes_that_matter, baselines, measure_of, unbeaten, with_baselines
from ..figures.figure_files import drawing, few_colours, picture
from ..language.figure_style import FigureStyle
from ..storage.files import put_file
from .findings import judged
from .judge import EXACT, FEWEST, Finding, Number, Verdict, measured
from .papers import Claim, Paper, PaperFigure
from .reproduction_plan import duration
from .reproduction_runs import Runs

RESOLUTION = 150
"""Dots per inch of a picture, whatever is on it: 525 across a column."""

RULE = (
    "A number *holds* if its whole 95 % interval lies within the margin and *does not hold* if all of it lies outside; "
    f"in between, and below {FEWEST} seeds, it is *undecided*. Sides of a comparison that were not tuned in equal "
    "trials are *untuned* and judge nothing. How numbers decide stands below the verdict. *For all*: one violated "
    "number refutes the claim. *All of these parts*: where some hold and some do not, it holds *in part*. *Ordering*: "
    "every pair stands in the claimed order. *Exists a setting*: all numbers of one setting hold. Where the paper may "
    "be read in several ways, each reading is judged. Where runs have several sizes, those nearest to the paper's "
    "decide. A claim of privacy is *proved* where what is verified lies within it, *refuted* where a lower bound, "
    "printed as `at least`, lies above it, and *not proved* in between. `--more-seeds` runs what would decide."
)
NO_VERDICT = "**Quick runs**: smaller problems and fewer seeds than the paper's, so there are numbers but no verdict."

SHORT: dict[Verdict, str] = {
    "holds": "Holds",
    "in part": "Holds in part",
    "does not hold": "Does not hold",
    "depends on the reading": "Depends on how the paper is read",
    "undecided": "Undecided so far",
    "untuned": "Not judged, for want of equal tuning",
    "proved": "Private as claimed, by proof",
    "not proved": "Privacy that nobody should copy, refuted or not proved",
    "refuted": "Privacy that nobody should copy, refuted or not proved",
}
"""How each verdict is called in ten lines."""


@dataclass(frozen=True)
class Row:
    """One row of a table: a claim, what was found, or else in ``note`` why it was not measured."""

    claim: Claim
    finding: Finding | None
    note: str = ""


@dataclass(frozen=True)
class Section:
    """What a page says about one figure: its rows, its runs if they are finished, and pictures beside the page."""

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

    @property
    def deciding(self) -> dict[str, tuple[str, Row]]:
        """Return the deciding row of every claim and the figure that it stands at, by what the claim says."""
        rows = {(row.claim.says, at.figure.name): row for at in self.sections for row in at.rows}
        found = {row.claim.says: ("", row) for row in self.statements}
        for claim in self.paper.claims:
            if claim.on:
                measured_at = [name for name in claim.on if rows[claim.says, name].finding]
                name = (measured_at or claim.on)[0]
                found[claim.says] = (name, rows[claim.says, name])
        return found

    def count(self) -> Counter[Verdict | None]:
        """Claims by verdict; None counts those that were not measured."""
        return Counter(row.finding.verdict if row.finding else None for _, row in self.deciding.values())

    def in_short(self) -> list[str]:
        """Ten lines in plain words or fewer: what holds, what does not, what depends, what nobody should copy."""
        said: dict[str, dict[str, list[str]]] = {}
        titles = {figure.name: f" ({figure.title})" for figure in self.paper.figures}
        for at, row in self.deciding.values():
            name = SHORT[row.finding.verdict] if row.finding else "Not measured"
            text, title = f"{row.claim.stands}: {row.claim.says}".removeprefix(": "), titles.get(at, " ()")
            if row.finding and at and at != row.claim.on[0]:
                text += " (Of a stand-in for the paper's size.)"
            if row.finding and row.finding.verdict == "undecided":
                count = row.finding.said.partition(" (")[2].removesuffix(")")
                text += f" ({count}{'; ' if count else ''}{row.finding.needed or 'too many'} seeds would decide.)"
            elif row.finding and row.finding.verdict == "depends on the reading":
                text += f" ({row.finding.said.partition(': ')[2].capitalize()}.)"
            places = said.setdefault(name, {}).setdefault(text.replace(title, ""), [])
            places += [title[2:-1]] if title in text else []
        order = [name for name in dict.fromkeys([*SHORT.values(), "Not measured"]) if name in said]
        lines = []
        for name in order:
            texts = [f"{text} ({'; '.join(at)}.)" if at else text for text, at in said[name].items()]
            count = sum(max(1, len(at)) for at in said[name].values())
            lines.append(f"- **{name}** ({count}): {' '.join(texts)}")
        return [f"- Looked at are {len(self.deciding)} claims.", *lines]


def row_of(paper: Paper, claim: Claim, runs: Runs | None = None) -> Row:
    """A row with what comes out about a claim, or with what is missing."""
    try:
        return Row(claim, judged(paper, claim, runs))
    except InputError as error:
        return Row(claim, None, f"not measured: {error}")


def page(report: Report) -> str:
    """The page of a paper, in Markdown."""
    paper, quick = report.paper, report.quick
    lines = [f"# {paper.authors}: {paper.title}" + (" (quick runs)" if quick else ""), "", f"{paper.venue}.", ""]
    if not quick:
        lines += [*report.in_short(), ""]
    lines += [
        "What the paper says, beside what hushnet measures. `hushnet reproduce` computes every measured number from "
        f"the runs' own files. {NO_VERDICT if quick else RULE}",
        "",
    ]
    if paper.remarks:
        lines += ["How the paper was read:", "", *(f"- {remark}" for remark in paper.remarks), ""]
    for section in report.sections:
        lines += _section(section, report)
    if report.statements:
        lines += ["## Printed statements", "", "Decided without a scenario, by direct computation.", ""]
        lines += _table(report.statements, report)
    return "\n".join([*lines, _versions(report.sections), ""])


def overview(reports: Iterable[Report]) -> str:
    """The reader's page: ten lines a paper, and how many claims have which verdict."""
    reports, columns = list(reports), ["paper", *get_args(Verdict), "not measured"]
    said = "Written by `hushnet reproduce`: ten lines a paper, computed from its rows. [What changed](changes.md)."
    lines = ["# Reproductions", "", said, ""]
    for report in reports:
        name = f"[{report.paper.authors} ({report.paper.year})]({report.paper.name}.md)"
        lines += [f"## {name}", "", f"{report.paper.title}.", "", *report.in_short(), ""]
    lines += ["## Verdicts", "", _line(columns), _line(["---"] * len(columns))]
    for report in reports:
        counts = report.count()
        numbers = [str(counts[verdict]) for verdict in (*get_args(Verdict), None)]
        lines.append(_line([f"{report.paper.authors} ({report.paper.year})", *numbers]))
    return "\n".join([*lines, ""])


def moved(reports: Iterable[tuple[Report, Report]]) -> str:
    """The rows that are measured with two sets of seeds, and those whose verdicts differ, in Markdown.

    Parameters
    ----------
    reports : iterable of (Report, Report)
        Of each paper, with the shipped seeds and with others.
    """
    both: list[tuple[str, Verdict, Verdict]] = []
    for report, other in reports:
        for at in report.sections:
            others = {(row.claim.says, old.figure.name): row.finding for old in other.sections for row in old.rows}
            for row in at.rows:
                found = others[row.claim.says, at.figure.name]
                if row.finding and found and any(number.seeds for number in row.finding.numbers):
                    both.append((f"{report.paper.authors}, {row.claim.says}", row.finding.verdict, found.verdict))
    changed = [row for row in both if row[1] != row[2]]
    opened = sum("undecided" in row for row in changed)
    lines = [
        f"Of {len(both)} rows with something random in them, {len(changed)} have another verdict: {opened} move to or "
        f"from *undecided*, {sum(set(row[1:]) == {'holds', 'does not hold'} for row in changed)} between *holds* and "
        "*does not hold*.",
        "",
        _line(["row", "with the shipped seeds", "with others"]),
        _line(["---"] * 3),
    ]
    return "\n".join([*lines, *(_line(list(row)) for row in changed), ""])


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


def number_text(number: Number) -> str:
    """A number with its half-width, to the digits that it deserves.

    Examples
    --------
    >>> number_text(Number("accuracy", 0.89123, 0.0042, 5))
    '0.8912 ± 0.0042'
    >>> number_text(Number("epsilon", float("inf"), high=1.0, claimed=True, at_least=3.2))
    '∞, at least 3.2'
    """
    value, half = number.value, number.half_width
    if number.claimed and number.at_least > 0:
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


def ours_text(claim: Claim) -> str:
    """Since when each margin of ours was asked for, and by which commit of the page."""
    stood = [(asked, *at.split()) for at, asked in claim.since.items()]
    return ", ".join(
        f"{asked if len(stood) > 1 else ''} since {day} ({commit})".strip() for asked, day, commit in stood
    )


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


def _section(section: Section, report: Report) -> list[str]:
    figure, runs = section.figure, section.runs
    command = f"hushnet reproduce {figure.name}{' --quick' if report.quick else ''}"
    place = f"[`{figure.scenario}`](../../scenarios/{figure.scenario}.yaml)"
    lines = [f"## {figure.title}", "", f"{figure.shows} Scenario {place}; `{command}`.", ""]
    if runs is not None:
        lines += [_size(runs), *(f"{said}  " for said in trivial_predictions(runs)), ""]
    lines += _table(section.rows, report, figure.name)
    if figure.table and runs is not None:
        lines += [*_means(runs, *figure.table), ""]
    for name in section.pictures:
        lines += [f"![{figure.title}: {name.removesuffix('.png')}]({name})", ""]
    return lines


def _means(runs: Runs, metric: str, down: str, across: str) -> list[str]:
    """A table of means over runs: a row for each protocol and value of a swept field, columns of another one's."""
    columns, lines = runs.values(across), []
    for key, label in runs.collection.labels.items():
        for row in runs.values(down):
            ends = [runs.final(key, metric, at={down: row, across: column}).mean() for column in columns]
            lines.append(_line([label, str(row), *(f"{end:.4f}" for end in ends)]))
    header = ["protocol", down, *(f"{across} = {column}" for column in columns)]
    return [_line(header), _line(["---"] * len(header)), *lines]


def _table(rows: Iterable[Row], report: Report, at: str = "") -> list[str]:
    columns = ["claim in the paper", "hushnet measures (± 95 %)", "margin asked for"]
    columns += ["how and why"] if report.quick else ["verdict", "how and why"]
    lines, deciding = [_line(columns), _line(["---"] * len(columns))], report.deciding
    titles = {figure.name: figure.title for figure in report.paper.figures}
    for row in rows:
        claim, finding = row.claim, row.finding
        says = f"{claim.stands}: {claim.says}" if claim.stands else claim.says
        if finding is None:
            lines.append(_line([says, row.note, *[""] * (len(columns) - 2)]))
            continue
        numbers = [f"{number.name}: {number_text(number)}" for number in finding.numbers]
        margins = [margin_text(number) for number in finding.numbers]
        margins += [f"ours: {claim.ours}: {ours_text(claim)}"] if claim.ours else []
        kind = "" if any(number.claimed for number in finding.numbers) else f"<br>{finding.kind}"
        verdict, texts = f"**{finding.said}**{kind}", [finding.how, finding.why]
        if not report.quick:
            texts += finding.reasons
        decider = deciding[claim.says][0]
        if decider != at:
            verdict, texts = finding.said, [*texts, f"{titles[decider]} is nearer to the paper: it decides."]
        elif at and at != claim.on[0]:
            texts.append(f"A stand-in decides, as {titles[claim.on[0]]} was not run.")
        cells = [says, "<br>".join(numbers), "<br>".join(margins), *([] if report.quick else [verdict])]
        lines.append(_line([*cells, " ".join(filter(None, texts))]))
    return [*lines, ""]


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
    known = [section.runs.collection for section in sections if section.runs]
    manifests = {run: m for runs in known for run, m in zip(runs.runs, runs.manifests, strict=True)}.values()
    codes = dict.fromkeys(
        f"hushnet {m['code']}, commit {m.get('commit') or 'unknown'}" for m in manifests if "code" in m
    )
    seconds = sum(m["timings"]["cpu_seconds"] for m in manifests if "timings" in m)
    took = f" Their processor time was {duration(seconds)}, trials of tunings not counted." if seconds else ""
    return f"Runs by {'; '.join(codes)}.{took}" if codes else "No runs yet."


def _plain(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return "not a number" if math.isnan(value) else f"{value + 0.0:.4g}"  # no minus before nothing
