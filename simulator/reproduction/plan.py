"""What will be reproduced: which figures a name means, what their runs need, and how long they take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from ...agents.errors import InputError
from ...agents.files import read_bytes
from ...agents.packed import located
from ...agents.suggestions import suggestion
from ...agents.tasks import datasets
from ..language.loading import LoadedScenario, find, load
from ..language.scenario import SeedGrid
from .papers import Paper, PaperFigure

_UNITS = {"s": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_RUN_TIME = re.compile(r"Run time on 2 cores:\D*(\d+(?:\.\d+)?) ?(seconds?|minutes?|hours?|min|s|h)\b( a run\b)?")


def select(
    papers: Iterable[Paper], name: str | None, *, full: bool = False
) -> list[tuple[Paper, tuple[PaperFigure, ...]]]:
    """The figures that a name means, by paper: all of them, a paper's, or one; large ones if `full` or by name.

    Raises
    ------
    InputError
        If there is no such paper or figure.
    """
    papers = list(papers)
    if name is None:
        return [(paper, _affordable(paper, full=full)) for paper in papers]
    for paper in papers:
        if name == paper.name:
            return [(paper, _affordable(paper, full=full))]
        for figure in paper.figures:
            if name == figure.name:
                return [(paper, (figure,))]
    known = [known for paper in papers for known in (paper.name, *(figure.name for figure in paper.figures))]
    raise InputError(f"unknown paper or figure {name!r}{suggestion(name, known)} admissible: {', '.join(known)}")


def _affordable(paper: Paper, *, full: bool) -> tuple[PaperFigure, ...]:
    return tuple(figure for figure in paper.figures if full or not figure.large)


def announce(
    chosen: Iterable[tuple[Paper, tuple[PaperFigure, ...]]], *, quick: bool, say: Callable[[str], None]
) -> None:
    """Say what will run and, for full runs, how long it takes according to the scenarios' own comments."""
    total, seen = 0.0, set()
    for _, figures in chosen:
        for figure in figures:
            try:
                loaded = scenario_of(figure, quick=quick)
                seconds = 0.0 if quick else expected_seconds(figure)
            except InputError:
                continue  # It is said when its turn comes.
            runs = count_runs(loaded)
            if (same := (figure.scenario, runs, tuple(figure.quick) if quick else ())) in seen:
                say(f"{figure.name}: the same runs of {figure.scenario}")
                continue
            seen.add(same)
            total += seconds
            stated = f", about {duration(seconds)} on 2 cores" if seconds else ""
            say(f"{figure.name}: {runs} run{'' if runs == 1 else 's'} of {figure.scenario}{stated}")
    if not quick:
        say(f"in all about {duration(total)}; what is complete is not run again")


def scenario_of(figure: PaperFigure, *, quick: bool, seeds: int = 0, anew: int = 0) -> LoadedScenario:
    """The checked scenario of a figure, made small for a quick run.

    Parameters
    ----------
    figure : PaperFigure
    quick : bool
    seeds : int
        Another number of seeds; 0 for the shipped one.
    anew : int
        What all seeds, of data and of runs, are raised by.
    """
    changed, shipped = figure.quick if quick else [], figure.quick_seeds if quick else figure.seeds
    loaded = load(figure.scenario, overrides=changed, seeds=shipped or None)
    grid = loaded.scenario.seeds
    if seeds and isinstance(grid, SeedGrid):
        loaded = load(figure.scenario, overrides=[*changed, f"seeds.{'run' if grid.data == 1 else 'data'}={seeds}"])
    elif seeds:
        loaded = load(figure.scenario, overrides=changed, seeds=seeds)
    if not anew:
        return loaded
    drawn = [f"{{data: {data + anew}, run: {run + anew}}}" for _, data, run in loaded.scenario.seed_pairs()]
    return load(figure.scenario, overrides=[*changed, f"seeds=[{', '.join(drawn)}]"])


def count_runs(loaded: LoadedScenario) -> int:
    """How many runs a scenario asks for, those that are tried before it included."""
    tried = sum(len(point.scenario.protocols) * len(point.scenario.seed_pairs()) for point in loaded.trials)
    return tried + len(loaded.points) * len(loaded.scenario.protocols) * len(loaded.scenario.seed_pairs())


def expected_seconds(figure: PaperFigure) -> float:
    """Duration of a full run, by what its scenario's opening comment states; 0 where that states nothing."""
    match = _RUN_TIME.search(read_bytes(find(figure.scenario)).decode().replace("\n# ", " "))
    if match is None:
        return 0.0
    shipped, full = load(figure.scenario), scenario_of(figure, quick=False)
    each = float(match[1]) * _UNITS[match[2].removesuffix("s") or "s"] / (1 if match[3] else count_runs(shipped))
    return each * count_runs(full)


def missing_data(figure: PaperFigure, data_dir: Path | None) -> str | None:
    """Why a figure cannot be run on this machine, if it cannot."""
    if figure.data is None:
        return None
    known, folder = datasets.DATASETS[figure.data], datasets.data_directory(data_dir)
    if folder is not None and all(located(folder / known.folder, name) for name in known.files):
        return None
    hint = f"{known.hint}; then give --data-dir or set {datasets.ENVIRONMENT_VARIABLE}"
    return f"not run: needs {known.title} ({hint})"


def duration(seconds: float) -> str:
    """A duration in words, such as ``3 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
