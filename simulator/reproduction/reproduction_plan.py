"""What will be reproduced: which figures a name means, and what their runs need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ...agents.errors import InputError
from ...agents.packed import located
from ...agents.suggestions import suggestion
from ...agents.tasks import datasets
from ..language.loading import LoadedScenario, load
from ..language.scenario import SeedGrid
from .papers import Paper, PaperFigure


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
    """Say how many runs there are going to be; what is complete is not made again."""
    seen = set()
    for _, figures in chosen:
        for figure in figures:
            try:
                runs = count_runs(scenario_of(figure, quick=quick))
            except InputError:
                continue  # It is said when its turn comes.
            same = (figure.scenario, runs, tuple(figure.quick) if quick else ())
            what = f"the same runs of {figure.scenario}" if same in seen else f"{runs} runs of {figure.scenario}"
            seen.add(same)
            say(f"{figure.name}: {what}")


def scenario_of(figure: PaperFigure, *, quick: bool, seeds: int = 0, anew: int = 0) -> LoadedScenario:
    """The checked scenario of a figure, made small for a quick run.

    Parameters
    ----------
    figure : PaperFigure
    quick : bool
    seeds : int
        Another number of seeds; 0 for the shipped one.
    anew : int
        What the seeds of data are raised by, and where those of runs begin; then without pictures, which may ask for a
        seed by its number.
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
    pairs = enumerate(loaded.scenario.seed_pairs(), anew)
    drawn = [
        f"{{data: {data + anew}, run: {run}}}" for run, (_, data, _) in pairs
    ]  # repetitions go by their run's seed
    return load(figure.scenario, overrides=[*changed, f"seeds=[{', '.join(drawn)}]", "figures=[]"])


def count_runs(loaded: LoadedScenario) -> int:
    """How many runs a scenario asks for, those that are tried before it included."""
    tried = sum(len(point.scenario.protocols) * len(point.scenario.seed_pairs()) for point in loaded.trials)
    return tried + len(loaded.points) * len(loaded.scenario.protocols) * len(loaded.scenario.seed_pairs())


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
