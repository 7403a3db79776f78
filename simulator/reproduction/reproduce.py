"""Run the scenarios of papers' figures and write one page per paper; one figure's failure stops no other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...agents.errors import HushnetError
from ...agents.packed import located
from ...agents.suggestions import require
from ...agents.tasks import datasets
from ..analysis.results import load_all
from ..experiment import Experiment, Jobs, Run, Workers, perform, start_workers
from ..experiment.time_left import in_words
from ..experiment.tuning import settled
from ..language.loading import LoadedScenario, load, of_one_point
from ..language.scenario import SeedGrid
from ..storage.files import json_text, write_text
from .pages import Report, Row, Section, moved, overview, page, row_of, save_pictures
from .papers import Paper, PaperFigure
from .reproduction_runs import Runs

REPORT_INTERVAL = 60.0
"""Seconds between two signs of life."""

MOST_MORE = 200
"""Seeds of a figure up to which they are added to decide a claim."""


class Failure(HushnetError):
    """A figure that could not be reproduced as it should, with the exit code of its error; 1 for an unforeseen one."""

    def __init__(self, figure: str, error: Exception) -> None:
        foreseen = isinstance(error, HushnetError)
        super().__init__(f"{figure}: {'' if foreseen else f'{type(error).__name__}: '}{error}")
        self.figure, self.error, self.exit_code = figure, error, error.exit_code if foreseen else 1


@dataclass(frozen=True)
class Place:
    """Where runs and pages are: in ``results``; quick runs, and those of seeds that are raised, in a folder there."""

    results: Path
    quick: bool
    anew: int = 0
    """What all seeds are raised by."""
    data_dir: Path | None = None
    """Where data sets are; by default where ``HUSHNET_DATA`` says."""

    @property
    def pages(self) -> Path:
        """Folder of pages and their pictures."""
        return (self.results / f"anew-{self.anew}" if self.anew else self.results) / "reproduction"

    def runs(self, figure: PaperFigure) -> Path:
        """Folder of a figure's runs, the one that ``hushnet run`` uses."""
        return self.pages.parent / ("quick" if self.quick else "") / figure.scenario

    def scenario(self, figure: PaperFigure, seeds: int = 0) -> LoadedScenario:
        """The checked scenario of a figure's runs, made small for a quick run.

        It has so many seeds as are asked for, or as are shipped or were run, whichever is more. Of seeds that are
        raised, which are as many, those of data are raised and those of runs begin there; then without pictures, which
        may ask for a seed by its number.
        """
        changed, own = (figure.quick, figure.quick_seeds) if self.quick else ([], figure.seeds)
        loaded = load(figure.scenario, overrides=changed, seeds=own or None)
        shipped = len(loaded.scenario.seed_pairs())
        seeds = seeds or max(shipped, *(place._run_seeds(figure) for place in {self, replace(self, anew=0)}))
        if seeds != shipped:
            grid = loaded.scenario.seeds
            field = "seeds" if not isinstance(grid, SeedGrid) else "seeds.run" if grid.data == 1 else "seeds.data"
            loaded = load(figure.scenario, overrides=[*changed, f"{field}={seeds}"])
        if not self.anew:
            return loaded
        pairs = enumerate(loaded.scenario.seed_pairs(), self.anew)  # repetitions go by their run's seed
        drawn = ", ".join(f"{{data: {data + self.anew}, run: {run}}}" for run, (_, data, _) in pairs)
        return load(figure.scenario, overrides=[*changed, f"seeds=[{drawn}]", "figures=[]"])

    def _run_seeds(self, figure: PaperFigure) -> int:
        try:
            manifests = load_all(self.runs(figure)).manifests
        except HushnetError:
            return 0
        return len({(manifest["data_seed"], manifest["run_seed"]) for manifest in manifests})


def select(
    papers: Iterable[Paper], name: str | None, *, full: bool = False
) -> list[tuple[Paper, tuple[PaperFigure, ...]]]:
    """The figures that a name means, by paper: all of them, a paper's, or one; large ones if `full` or by name.

    Raises `InputError` if there is no such paper or figure.
    """
    named: dict[str, tuple[Paper, tuple[PaperFigure, ...]]] = {}
    for paper in papers:
        named[paper.name] = paper, tuple(figure for figure in paper.figures if full or not figure.large)
        named |= {figure.name: (paper, (figure,)) for figure in paper.figures}
    if name is None:
        return [chosen for known, chosen in named.items() if known == chosen[0].name]
    require(name, named, f"unknown paper or figure {name!r}")
    return [named[name]]


def reproduce(
    papers: Iterable[Paper],
    name: str | None = None,
    *,
    quick: bool = False,
    full: bool = False,
    more_seeds: bool = False,
    anew: int = 0,
    results: Path = Path("results"),
    data_dir: Path | None = None,
    jobs: Jobs = 1,
    say: Callable[[str], None],
) -> list[Failure]:
    """Run what a name means, by default everything, as far as it is not there yet, and write the papers' pages.

    The name is that of a paper or a figure. Quick runs have fewer seeds and smaller problems; full ones also figures of
    large designs, which otherwise are run by their name only. ``more_seeds`` adds those that would decide what is
    undecided, once, as far as they are no more than `MOST_MORE`; not of quick runs, which decide nothing. All seeds are
    raised by ``anew``: runs and pages are in a folder of their own then, with a list of the verdicts that move in
    ``moved.md``, and what is undecided with the ones or the others gets more seeds in both. Results are the same
    whatever the number of processes.

    Returns the figures that failed, or of which runs diverged or stalled. Raises `InputError` if the name is unknown,
    or the number of processes is none.
    """
    chosen, place = select(papers, name, full=full), Place(results, quick, anew, data_dir)
    places = [replace(place, anew=0), place] if anew and not quick else [place]
    failures: list[Failure] = []
    found: list[list[Report]] = []
    with start_workers(jobs) as workers:

        def judge(paper: Paper, at: Place, run: Mapping[str, int]) -> Report:
            report, broken = judge_paper(paper, at, run=run, workers=workers, say=say)
            failures.extend(broken)
            return report

        for paper, figures in chosen:
            wanted = {figure.name: 0 for figure in figures}
            reports = [judge(paper, at, wanted if at == place else {}) for at in places]
            more = wanted_seeds(reports, figures) if more_seeds and not quick else {}
            if more:
                say(f"{paper.name}: more seeds for {', '.join(f'{name} ({count})' for name, count in more.items())}")
                reports = [judge(paper, at, more) for at in places]
            found.append(reports)
            say(f"page: {write_page(reports[-1], place)}")
    if len(places) > 1:
        write_text(moved(found), place.pages / "moved.md")
        say(moved(found))
    if name is None and not quick:
        write_text(overview(reports[-1] for reports in found), place.pages / "README.md")
    return failures


def judge_paper(
    paper: Paper, place: Place, *, run: Mapping[str, int], workers: Workers | None = None, say: Callable[[str], None]
) -> tuple[Report, list[Failure]]:
    """Judge a paper's claims by the runs that there are, after running what is to be run.

    What is to be run are figures, by name, with their numbers of seeds, 0 for as many as are shipped; workers execute
    them, by default this process.
    """
    sections, failures = [], []
    for figure in paper.figures:
        claims = [claim for claim in paper.claims if figure.name in claim.on]
        lacking = _missing_data(figure, place.data_dir)
        broken: list[Failure] = []
        section = None
        try:
            if figure.name in run and lacking:
                say(f"{figure.name}: {lacking}")
            elif figure.name in run:
                broken = _run(figure, run[figure.name], place, workers, say)
            if runs := finished(figure, place):
                rows = tuple(row_of(paper, claim, runs) for claim in claims)
                pictures = save_pictures(runs, figure, place.pages, suffix="-quick" * place.quick)
                section = Section(figure, rows, runs, pictures)
        except Exception as error:  # A fault in one figure, even one of ours, must not cost hours of others.
            broken = [Failure(figure.name, error)]
            say(f"{figure.name}: failed")
        not_run = "not run; `hushnet reproduce --full` does" if figure.large else "not run"
        note = str(broken[0].error) if broken else lacking or not_run
        sections.append(section or Section(figure, tuple(Row(claim, None, note) for claim in claims)))
        failures += broken
    statements = tuple(row_of(paper, claim) for claim in paper.statements)
    return Report(paper, tuple(sections), statements, place.quick), failures


def wanted_seeds(reports: Iterable[Report], figures: Iterable[PaperFigure]) -> dict[str, int]:
    """Return the seeds that would decide what is undecided in any report, by figure; too many are left out."""
    names, wanted = {figure.name for figure in figures}, {}
    for name, row in (decider for report in reports for decider in report.deciding.values()):
        if name in names and row.finding and row.finding.verdict == "undecided":
            needed = row.finding.needed
            if needed is not None and needed <= MOST_MORE:
                wanted[name] = max(needed, wanted.get(name, 0))
    return wanted


def finished(figure: PaperFigure, place: Place) -> Runs | None:
    """The runs of a figure, if all of them are there and are runs of the scenario as it is now, or of more seeds."""
    folder = place.runs(figure)
    try:
        collection = load_all(folder)
        loaded = place.scenario(figure)
        asked = Experiment(loaded, folder)
        asked = settled(asked) if loaded.trials else asked
        found = sorted(_names_today(collection.manifests))
    except HushnetError:
        return None
    return Runs(collection) if found == sorted(map(asked.planned_name, asked.runs())) else None


def write_page(report: Report, place: Place) -> Path:
    """Write a paper's page and return its path."""
    path = place.pages / f"{report.paper.name}{'-quick' * place.quick}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(page(report), path)
    return path


def _run(
    figure: PaperFigure, seeds: int, place: Place, workers: Workers | None, say: Callable[[str], None]
) -> list[Failure]:
    """Run what is missing of a figure; a failure for every run that diverged or stalled."""
    loaded, began = place.scenario(figure, seeds), time.perf_counter()
    asked = Experiment(replace(loaded, points=(*loaded.trials, *loaded.points)))
    total, count, said = len(set(map(asked.planned_name, asked.runs()))), 0, began
    say(f"{figure.name}: {total} runs of {figure.scenario}")

    def beat(*_: object) -> None:
        nonlocal count, said
        count += 1
        if time.perf_counter() - said > REPORT_INTERVAL:
            said = time.perf_counter()
            say(f"{figure.name}: run {count} of {total}")

    errors = perform(Experiment(loaded, place.runs(figure), place.data_dir), workers=workers, on_run=beat)
    say(f"{figure.name}: done after {in_words(time.perf_counter() - began)}")
    return [Failure(figure.name, error) for error in errors]


def _missing_data(figure: PaperFigure, data_dir: Path | None) -> str | None:
    """Why a figure cannot be run on this machine, if it cannot."""
    known, folder = datasets.DATASETS.get(figure.data or ""), datasets.data_directory(data_dir)
    if known is None or (folder is not None and all(located(folder / known.folder, name) for name in known.files)):
        return None
    hint = f"{known.hint}; then give --data-dir or set {datasets.ENVIRONMENT_VARIABLE}"
    return f"not run: needs {known.title} ({hint})"


def _names_today(manifests: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What today's code would call finished runs before their data are known: fields that are new have defaults."""
    known: dict[str, Experiment] = {}
    for manifest in manifests:
        written = of_one_point(manifest["scenario"])
        experiment = known.get(json_text(written)) or known.setdefault(json_text(written), Experiment(load(written)))
        seeds = (manifest[name] for name in ("seed", "data_seed", "run_seed"))
        yield experiment.planned_name(Run(experiment.loaded.points[0], manifest["protocol"], *seeds))
