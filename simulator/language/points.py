"""The points of a sweep and the trials of a tuning, each checked by what it changes.

A grid has up to 10,000 points, which differ from the scenario in a few fields. Only these are validated again, with the
protocols that inherit from a changed one; the rest is shared with the scenario. A point that turns out wrong is then
checked as a whole, which finds the sentence to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from pydantic import BaseModel, ValidationError, create_model

from ...agents.errors import InputError
from ...agents.parameters import Parameters
from ...protocols.base import ProtocolParameters
from . import inheritance, transforms
from .equal_budget import scaled_fields
from .scenario import Scenario
from .sweeps import TRIAL
from .trials import as_trial, trial_seeds, trials_of
from .yaml_source import Source

ALONE: dict[str, Any] = {"sweep": {}, "tune": None, "quick": {}}
"""Fields that the scenario of a single grid point does not have any more."""


@dataclass(frozen=True)
class GridPoint:
    """One combination of a sweep's values (none without a sweep), and the scenario that has them set."""

    values: dict[str, Any]
    scenario: Scenario


@dataclass(frozen=True)
class Checker:
    """What checks scenarios, whole ones and parts of them.

    Parameters
    ----------
    scenario : Scenario
        Valid as a whole.
    whole : callable
        Checks a whole scenario, and says in full what is wrong.
    protocol : callable
        Checks the complete entry of a protocol; None if it is wrong.
    fits : callable
        Raises an `InputError` if the parts of a scenario do not fit each other, as far as some protocols are concerned.
    """

    scenario: Scenario
    whole: Callable[[Source], Scenario]
    protocol: Callable[[str, Any], ProtocolParameters | None]
    fits: Callable[[Scenario, Sequence[str]], None]

    def point(self, variant: Source, paths: Iterable[str]) -> Scenario:
        """The scenario of a point.

        Parameters
        ----------
        variant : Source
            The scenario with the point's values set.
        paths : iterable of str
            What they set.

        Raises
        ------
        InputError
            If they do not fit the scenario, with everything that is wrong.
        """
        try:
            found = self._changed(variant, {tuple(path.split(".")) for path in paths})
        except (ValidationError, InputError):
            found = None
        return (found or self.whole(variant)).model_copy(update=ALONE)

    def _changed(self, variant: Source, paths: set[tuple[str, ...]]) -> Scenario | None:
        """The scenario with what was set checked and taken over; None if something is wrong."""
        update: dict[str, Any] = {}
        for field in sorted({keys[0] for keys in paths} - {"protocols"}):
            update[field] = getattr(_part(field).model_validate({field: variant.data[field]}), field)
        concerned = list(self.scenario.protocols)
        swept = {keys[1] for keys in paths if keys[0] == "protocols"}
        if swept:
            heirs = _heirs(variant.data["protocols"], swept)
            entries = inheritance.inherit(variant.data["protocols"], heirs).entries
            made = {key: self.protocol(key, entries.get(key)) for key in heirs}
            if None in made.values():
                return None
            update["protocols"] = {**self.scenario.protocols, **made}
            concerned = concerned if len(update) > 1 else heirs
        changed = self.scenario.model_copy(update=update)
        changed.check_changed(set(update))
        self.fits(changed, concerned)
        return changed


def points(source: Source, checker: Checker) -> Iterator[GridPoint]:
    """The points of a scenario's sweep, in its order; one of no values without a sweep."""
    scenario = checker.scenario
    if not scenario.sweep:
        yield GridPoint({}, scenario.model_copy(update=ALONE))
        return
    axes = scenario.axes()
    paths = [setting.path for axis in axes for setting in axis.settings[0]]
    for values, variant in transforms.grid(source, axes):
        yield GridPoint(values, checker.point(variant, paths))


def trials(source: Source, checker: Checker) -> Iterator[GridPoint]:
    """Every trial at the grid points where there is tuning; only of the protocols that are tuned."""
    scenario, tune = checker.scenario, checker.scenario.tune
    if tune is None:
        return
    seeds, axes, scaled = trial_seeds(scenario), scenario.axes(), at_budget(scenario)
    paths = [setting.path for axis in axes for setting in axis.settings[0]]
    grid = transforms.grid(source, axes) if scenario.sweep else iter([({}, source)])
    for values, variant in grid if tune.at == "each point" else islice(grid, 1):
        for number, choices in enumerate(trials_of(tune)):
            trial = checker.point(transforms.chosen(variant, choices, scaled), [*paths, *_chosen(choices, scaled)])
            yield GridPoint({**values, TRIAL: number}, as_trial(trial, tune, list(choices), seeds))


def tuned_points(
    source: Source, checker: Checker, choices: Iterable[Mapping[str, Mapping[str, Any]]]
) -> Iterator[GridPoint]:
    """The points of a sweep with what was chosen for each."""
    axes, scaled = checker.scenario.axes(), at_budget(checker.scenario)
    paths = [setting.path for axis in axes for setting in axis.settings[0]]
    for (values, variant), own in zip(transforms.grid(source, axes), choices, strict=True):
        yield GridPoint(values, checker.point(transforms.chosen(variant, own, scaled), [*paths, *_chosen(own, scaled)]))


def at_budget(scenario: Scenario) -> dict[str, dict[str, Any]]:
    """What makes the noise of tuned protocols follow from the tuning's budget: values by field, by protocol."""
    tune = scenario.tune
    return {} if tune is None else scaled_fields(scenario.protocols, tune.tuned, tune.budget)


def _chosen(choices: Mapping[str, Mapping[str, Any]], scaled: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [
        f"protocols.{key}.{field}"
        for key, fields in choices.items()
        for field in (*scaled.get(key, ()), *fields, "tuned")
    ]


def _heirs(protocols: Mapping[str, Any], changed: set[str]) -> list[str]:
    """Entries that are changed, and those that inherit from them, in the scenario's order."""
    children: dict[str, list[str]] = {}
    for key, entry in protocols.items():
        if isinstance(entry, Mapping) and isinstance(entry.get("like"), str):
            children.setdefault(entry["like"], []).append(key)
    found, new = set(changed), list(changed)
    while new:
        new = [child for key in new for child in children.get(key, ()) if child not in found]
        found.update(new)
    return [key for key in protocols if key in found]


@cache
def _part(field: str) -> type[BaseModel]:
    """A model of one field of a scenario."""
    info = Scenario.model_fields[field]
    return create_model(f"Scenario_{field}", __base__=Parameters, **{field: (info.annotation, info)})  # pyright: ignore
