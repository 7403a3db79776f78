"""Loading makes of a file or a name a checked scenario, with all its sweep's points and the code it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import resources
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from ...agents.authors import author_place, class_place
from ...agents.errors import INTERRUPTED, InputError, words_of
from ...agents.files import at_home, read_bytes
from ...agents.suggestions import listed, suggestion
from ...protocols import catalog
from ...protocols.base import Protocol, ProtocolParameters
from ...protocols.schedule_selection import check_schedule
from ...protocols.user_files import is_file, load_module, load_object
from ..metrics import recordable
from . import inheritance, transforms
from .admissible import kinds_of
from .field_errors import ScenarioError, field_errors, sentences, without_kind
from .fitting import check_fit, check_kept, check_protocols
from .points import Checker, GridPoint, at_budget, points, trials, tuned_points
from .scenario import Scenario
from .trials import trial_seeds
from .yaml_source import Source, from_mapping, read_file

MAX_RUNS = 1_000_000
"""Runs that one experiment may have, tuning included."""


@dataclass(frozen=True)
class Code:
    """Where protocols and metrics that are not shipped come from.

    Parameters
    ----------
    base : Path
        Folder that file names are relative to.
    trust_code : bool
        Whether files that the scenario names may be run.
    extra : mapping of str to type
        Protocol classes handed over from Python.
    """

    base: Path = Path()
    trust_code: bool = False
    extra: Mapping[str, type[Protocol]] = field(default_factory=dict)

    def protocol(self, kind: str) -> type[Protocol]:
        """The class of a ``kind``; see `catalog.resolve`."""
        return catalog.resolve(kind, trust_code=self.trust_code, base=self.base, extra=self.extra)

    @cached_property
    def known(self) -> list[str]:
        """What a scenario may give as ``kind``, in words; to ask who is installed takes a tenth of a second."""
        return [*catalog.names(self.extra), "./file.py:Class"]

    def files(self, names: Iterable[str]) -> list[ModuleType]:
        """The user's own files among the names of protocols and metrics, whatever they define or pass on."""
        own = [name for name in names if name not in self.extra and is_file(name)]
        return [load_module(name, trust_code=self.trust_code, base=self.base) for name in own]

    def metric(self, name: str) -> Callable[..., Any]:
        """A user's own metric, ``./file.py:function``."""
        function = load_object(name, trust_code=self.trust_code, base=self.base)
        if not callable(function):
            raise InputError(f"{name} is not a function")
        return function


@dataclass(frozen=True)
class LoadedScenario:
    """A checked scenario with what is needed to run it and to say where an error was written.

    Parameters
    ----------
    scenario : Scenario
    points : tuple of GridPoint
        In the order of the sweep, the last axis fastest; their scenarios have no sweep.
    source : Source
    code : Code
    trials : tuple of GridPoint
        What is to be tried before the points are run, see `hushnet.simulator.experiment.tuning`.
    tuning : mapping, optional
        What was tried and chosen for these points; see `hushnet.simulator.experiment.tuning`.
    """

    scenario: Scenario
    points: tuple[GridPoint, ...]
    source: Source
    code: Code
    trials: tuple[GridPoint, ...] = ()
    tuning: Mapping[str, Any] | None = None

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
) -> LoadedScenario:
    """Read and check a scenario.

    Parameters
    ----------
    source : Path, str or mapping
        A file, the name of a shipped scenario, or the data themselves.
    overrides : sequence of str
        ``path=value`` each, applied in order before anything is checked.
    trust_code : bool
        Whether Python files that the scenario names may be run.
    extra : mapping of str to type, optional
        Protocol classes by the name that the scenario gives as ``kind``.
    seeds : int, optional
        Replaces the scenario's seeds.
    quick : bool
        Whether to make the scenario's ``quick`` assignments, before the overrides.

    Raises
    ------
    InputError
        One sentence per error, one a line.
    """
    if isinstance(source, Mapping):
        written, base = from_mapping(source, "scenario"), Path()
    else:
        path = find(source)
        written, base = read_file(path), path.parent
    if not isinstance(written.data, Mapping):
        raise InputError(f"{written.where(())}: must be a mapping with the fields of a scenario")
    code = Code(base, trust_code, dict(extra or {}))
    loaded = _loaded(_assigned(transforms.quickened(written) if quick else written, overrides, seeds), code)
    if loaded.scenario.quick and not quick:
        _loaded(transforms.quickened(written), code)  # so that its errors show before somebody asks for it
    return loaded


def _assigned(source: Source, overrides: Sequence[str], seeds: int | None) -> Source:
    source = transforms.override(source, overrides)
    return source if seeds is None else source.with_value(("seeds",), seeds, f"--seeds {seeds}")


def _loaded(written: Source, code: Code) -> LoadedScenario:
    scenario = _checked(written, code)
    try:
        checker = _checker(scenario, code)
        _check_runs(scenario)
        found = tuple(points(written, checker))
        tried = tuple(trials(written, checker))
        _check_metrics(scenario, code)
    except InputError as error:
        raise InputError(locate(error, written)) from error
    return LoadedScenario(scenario, found, written, code, tried)


def tuned(loaded: LoadedScenario, choices: Sequence[Mapping[str, Mapping[str, Any]]]) -> LoadedScenario:
    """The scenario with what was chosen for it; its source stays as it was written.

    Parameters
    ----------
    loaded : LoadedScenario
    choices : sequence of mapping
        For each grid point, or once for all: values by field, by the protocol's key.
    """
    source, scenario = loaded.source, loaded.scenario
    if len(choices) == 1:
        source = transforms.chosen(source, choices[0], at_budget(scenario))
        scenario = _checked(source, loaded.code)
    checker = _checker(scenario, loaded.code)
    found = points(source, checker) if len(choices) == 1 else tuned_points(source, checker, choices)
    return replace(loaded, scenario=scenario, points=tuple(found))


def locate(error: InputError, loaded: LoadedScenario | Source) -> str:
    """An error's sentence, with file, line, path and value of the field that it names."""
    return transforms.locate(error, loaded.source if isinstance(loaded, LoadedScenario) else loaded)


def locate_at(error: InputError, loaded: LoadedScenario, point: GridPoint) -> str:
    """`locate`, with the values that a point of the sweep has."""
    axes = loaded.scenario.axes() if loaded.scenario.sweep else []
    values = {axis.name: point.values.get(axis.name) for axis in axes}
    variants = transforms.grid(loaded.source, axes) if axes else iter(())
    variant = next((variant for found, variant in variants if found == values), loaded.source)
    return transforms.locate(error, variant)


def find(source: Path | str) -> Path:
    """The file that a path or the name of a shipped scenario means.

    Raises
    ------
    InputError
        If it is neither.
    """
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


def _checked(source: Source, code: Code) -> Scenario:
    data = dict(source.data)
    found: list[ScenarioError] = []
    family = inheritance.Family()
    if isinstance(data.get("protocols"), Mapping):
        family = inheritance.inherit(data["protocols"])
        found += [_as_field_error(error, source) for error in family.errors]
        data["protocols"] = {key: _protocol(key, entry, code, found) for key, entry in family.entries.items()}
        for key in source.data["protocols"]:
            data["protocols"].setdefault(key, ProtocolParameters(kind="unknown"))
    try:
        scenario = Scenario.model_validate(data)
    except ValidationError as error:
        found = [*field_errors(error, Scenario, data), *found]
    except InputError as error:
        found = found or [_as_field_error(error, source)]
    else:
        if not found:
            try:
                _fits(scenario, scenario.protocols, code)
            except InputError as error:
                raise InputError(locate(error, source)) from error
            return scenario
    raise InputError("\n".join(sentences(found, source, family)))


def _protocol(key: str, entry: Any, code: Code, found: list[ScenarioError]) -> ProtocolParameters:
    """Validate one protocol's entry with its own class; after an error something harmless stands for it.

    Parameters
    ----------
    key : str
    entry : any
    code : Code
    found : list of ScenarioError
        Takes what is wrong.
    """
    where = ("protocols", key)
    placeholder = ProtocolParameters(kind="unknown", label=f"\0{key}")
    if not isinstance(entry, Mapping):
        found.append(ScenarioError(where, inheritance.ENTRY, entry))
        return placeholder
    kind = entry.get("kind")
    if not isinstance(kind, str):
        if kind is None:
            missing = f"is missing; admissible: {listed(code.known)}"
            found.append(without_kind(where, entry, lambda: missing, ("kind", "like")))
        else:
            wrong = f"must be the name of a protocol; admissible: {listed(code.known)}"
            found.append(ScenarioError((*where, "kind"), wrong, kind))
        return placeholder
    if len(found) > inheritance.MOST_SAID and kind not in code.known and not is_file(kind):
        found.append(ScenarioError((*where, "kind"), "unknown protocol", kind))  # one of those that are only counted
        return placeholder
    try:
        protocol = code.protocol(kind)
        model = protocol.Parameters
    except InputError as error:
        found.append(ScenarioError((*where, "kind"), str(error), kind))
        return placeholder
    # A class that is found by its file may be a copy of a shipped one, with that one's literal kind.
    named = kinds_of(model)
    accepted = dict(entry) if not named or kind in named else {**entry, "kind": named[0]}
    try:
        parameters = model.model_validate(accepted).model_copy(update={"kind": kind})
        check_schedule(protocol.traits_for(parameters), parameters)
        check_kept(parameters)
        return parameters
    except ValidationError as error:
        found += field_errors(error, model, accepted, where)
    except InputError as error:
        found.append(ScenarioError((*where, *error.field), str(error), _at(accepted, error.field)))
    except INTERRUPTED:
        raise
    except BaseException as error:  # whatever an author's validators, defaults and traits raise
        place = author_place(error) or class_place(protocol)
        found.append(ScenarioError(where, f"{place}: {type(error).__name__}: {words_of(error)}", ...))
    return placeholder


def _at(value: Any, field: Sequence[str | int]) -> Any:
    """The value of a field as it was written; ``...`` where nothing short was."""
    for part in field:
        value = value.get(part, ...) if isinstance(value, Mapping) else ...
    return ... if isinstance(value, Mapping | list) else value


def _as_field_error(error: InputError, source: Source) -> ScenarioError:
    value = source.value(error.field)
    return ScenarioError(error.field, str(error), ... if isinstance(value, Mapping | list) else value)


def _checker(scenario: Scenario, code: Code) -> Checker:
    """What checks the points of a scenario that is valid as a whole."""

    def protocol(key: str, entry: Any) -> ProtocolParameters | None:
        found: list[ScenarioError] = []
        made = _protocol(key, entry, code, found)
        return None if found else made

    return Checker(scenario, lambda variant: _checked(variant, code), protocol, partial(_fits, code=code))


def _fits(scenario: Scenario, protocols: Iterable[str], code: Code) -> None:
    check_fit(scenario)
    check_protocols(scenario, [(key, code.protocol(scenario.protocols[key].kind)) for key in protocols])


def _check_runs(scenario: Scenario) -> None:
    """Refuse an experiment that has more runs than anybody could keep."""
    places, protocols = prod(len(axis.places) for axis in scenario.axes()), len(scenario.protocols)
    runs = places * protocols * scenario.repetitions
    if scenario.tune is not None:
        count = len(next(iter(scenario.tune.choices().values())))
        runs += count * len(trial_seeds(scenario)) * (places if scenario.tune.at == "each point" else 1)
    if runs > MAX_RUNS:
        raise InputError(
            f"asks for {runs:,} runs ({protocols:,} protocols, {places:,} grid points, "
            f"{scenario.repetitions:,} seeds); at most {MAX_RUNS:,} are admissible",
            field=("sweep",) if scenario.sweep else ("seeds",),
        )


def _check_metrics(scenario: Scenario, code: Code) -> None:
    for rank, name in enumerate(scenario.record.metrics or []):
        if name not in recordable():
            try:
                code.metric(name)
            except InputError as error:
                raise InputError(str(error), field=("record", "metrics", rank)) from error
