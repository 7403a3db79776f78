"""Loading makes of a file or a name a checked scenario, with all its sweep's points and the code it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from math import prod
from pathlib import Path
from typing import Any

from ...agents.errors import InputError
from ...agents.input_files import at_home, read_bytes
from ...agents.suggestions import suggestion
from ...protocols.base import Protocol
from . import transforms
from .checking import Checker, Code
from .field_errors import sentence
from .points import GridPoint, at_budget, points, trial_seeds, trials
from .scenario import Scenario
from .yaml_source import Source, from_mapping, read_file

MAX_RUNS = 1_000_000
"""Runs that one experiment may have, tuning included."""


OF_ALL_RUNS = ("sweep", "tune", "figures", "style", "target", "quick")
"""Fields of a scenario that are about its runs together, and may name what a single one does not have."""


@dataclass(frozen=True)
class LoadedScenario:
    """A checked scenario with what is needed to run it and to say where an error was written."""

    scenario: Scenario
    points: tuple[GridPoint, ...]
    """In the order of the sweep, the last axis fastest; their scenarios have no sweep."""
    source: Source
    code: Code
    trials: tuple[GridPoint, ...] = ()
    """What is to be tried before the points are run, see `hushnet.simulator.experiment.tuning`."""
    tuning: Mapping[str, Any] | None = None
    """What was tried and chosen for these points; see `hushnet.simulator.experiment.tuning`."""

    @property
    def base(self) -> Path:
        """Folder that file names in the scenario are relative to."""
        return self.code.base


def load(
    source: Path | str | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    trust_code: bool = False,
    extra: Mapping[str, type[Protocol]] | None = None,
    seeds: int | None = None,
    quick: bool = False,
    metrics: Iterable[str] = (),
) -> LoadedScenario:
    """Read and check a scenario: a file, the name of a shipped one, or the data themselves.

    Raises `InputError`: one sentence per error, one a line. Before anything is checked, the scenario's ``quick``
    assignments are made if asked for, then the overrides, ``path=value`` each, in order, and other seeds are set.
    Python files that it names are run if its code is trusted; `extra` has protocol classes by the name that it gives as
    ``kind``, and `metrics` names of those that are recorded beside its own.
    """
    if isinstance(source, Mapping):
        written, base = from_mapping(source, "scenario"), Path()
    else:
        path = find(source)
        written, base = read_file(path), path.parent
    if not isinstance(written.data, Mapping):
        raise InputError(f"{written.where(())}: must be a mapping with the fields of a scenario")
    code = Code(base, trust_code, dict(extra or {}), tuple(metrics))
    loaded = _loaded(_assigned(transforms.quickened(written) if quick else written, overrides, seeds), code)
    if loaded.scenario.quick and not quick:
        _loaded(transforms.quickened(written), code)  # so that its errors show before somebody asks for it
    return loaded


def of_one_point(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario of a run's manifest, without what is about all runs, as it can be loaded again."""
    return {name: value for name, value in resolved.items() if name not in OF_ALL_RUNS and value is not None}


def _assigned(source: Source, overrides: Sequence[str], seeds: int | None) -> Source:
    source = transforms.override(source, overrides)
    return source if seeds is None else source.with_value(("seeds",), seeds, f"--seeds {seeds}")


def _loaded(written: Source, code: Code) -> LoadedScenario:
    checker = Checker(code, written)
    try:
        _check_runs(checker.scenario)
        return LoadedScenario(checker.scenario, tuple(points(checker)), written, code, tuple(trials(checker)))
    except InputError as error:
        raise InputError(locate(error, written)) from error


def tuned(loaded: LoadedScenario, choices: Sequence[Mapping[str, Mapping[str, Any]]]) -> LoadedScenario:
    """The scenario with what was chosen for it; its source stays as it was written.

    Choices, for each grid point or once for all, are values by field, by the protocol's key.
    """
    if len(choices) > 1:
        return replace(loaded, points=tuple(points(Checker(loaded.code, loaded.source), choices)))
    source = transforms.chosen(loaded.source, choices[0], at_budget(loaded.scenario))
    checker = Checker(loaded.code, source)
    return replace(loaded, scenario=checker.scenario, points=tuple(points(checker)))


def locate(error: InputError, loaded: LoadedScenario | Source) -> str:
    """An error's sentence, with file, line, path and value of the field that it names; without one it says all."""
    source = loaded.source if isinstance(loaded, LoadedScenario) else loaded
    return sentence(source, error.field, str(error), value=source.scalar(error.field)) if error.field else str(error)


def locate_at(error: InputError, loaded: LoadedScenario, point: GridPoint) -> str:
    """`locate`, with the values that a point of the sweep has."""
    for values, variant in transforms.grid(loaded.source, loaded.scenario.axes()):
        if all(point.values.get(axis) == value for axis, value in values.items()):
            return locate(error, variant)
    return locate(error, loaded)


def find(source: Path | str) -> Path:
    """The file that a path or the name of a shipped scenario means; raises `InputError` if it is neither."""
    path = at_home(Path(source))
    if isinstance(source, Path) or path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        return path
    known = shipped()
    if source in known:
        return known[source]
    if path.is_file():
        return path
    names = ", ".join(known) or "none yet"
    raise InputError(f"unknown scenario {source!r}{suggestion(source, known)} shipped scenarios: {names}")


def shipped() -> dict[str, Path]:
    """The scenarios that come with the package, by name."""
    folder = resources.files(f"{(__package__ or '').partition('.')[0]}.scenarios")
    return {path.stem: path for path in sorted(Path(str(item)) for item in folder.iterdir()) if path.suffix == ".yaml"}


def opening_comment(path: Path) -> str:
    """The first line of a scenario's opening comment."""
    first = read_bytes(path).decode().partition("\n")[0].strip()
    return first.lstrip("# ") if first.startswith("#") else ""


def _check_runs(scenario: Scenario) -> None:
    places, protocols = prod(len(axis.places) for axis in scenario.axes()), len(scenario.protocols)
    runs = places * protocols * scenario.repetitions
    if scenario.tune is not None:
        count = len(next(iter(scenario.tune.choices().values())))
        runs += count * len(trial_seeds(scenario)) * (1 if scenario.tune.at == "first" else places)
    if runs > MAX_RUNS:
        raise InputError(
            f"asks for {runs:,} runs ({protocols:,} protocols, {places:,} grid points, "
            f"{scenario.repetitions:,} seeds); at most {MAX_RUNS:,} are admissible",
            field=("sweep",) if scenario.sweep else ("seeds",),
        )
