"""What will be reproduced: which figures a name means, and what their runs need."""

from __future__ import annotations

from collections.abc import Iterable
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
    named: dict[str, tuple[Paper, tuple[PaperFigure, ...]]] = {}
    for paper in papers:
        named[paper.name] = paper, tuple(figure for figure in paper.figures if full or not figure.large)
        named |= {figure.name: (paper, (figure,)) for figure in paper.figures}
    if name is None:
        return [chosen for known, chosen in named.items() if known == chosen[0].name]
    if name not in named:
        raise InputError(f"unknown paper or figure {name!r}{suggestion(name, named)} admissible: {', '.join(named)}")
    return [named[name]]


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
    changed, shipped = (figure.quick, figure.quick_seeds) if quick else ([], figure.seeds)
    loaded = load(figure.scenario, overrides=changed, seeds=shipped or None)
    if seeds:
        grid = loaded.scenario.seeds
        field = "seeds" if not isinstance(grid, SeedGrid) else "seeds.run" if grid.data == 1 else "seeds.data"
        loaded = load(figure.scenario, overrides=[*changed, f"{field}={seeds}"])
    if not anew:
        return loaded
    pairs = enumerate(loaded.scenario.seed_pairs(), anew)  # repetitions go by their run's seed
    drawn = ", ".join(f"{{data: {data + anew}, run: {run}}}" for run, (_, data, _) in pairs)
    return load(figure.scenario, overrides=[*changed, f"seeds=[{drawn}]", "figures=[]"])


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
