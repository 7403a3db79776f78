"""The points of a sweep, and the trials of a tuning at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from . import transforms
from .checking import Checker
from .equal_budget import scaled_fields
from .scenario import Scenario
from .sweeps import TRIAL
from .trials import as_trial, trial_seeds, trials_of

Choices = Mapping[str, Mapping[str, Any]]
"""Values by field, by the protocol's key."""


@dataclass(frozen=True)
class GridPoint:
    """One combination of a sweep's values (none without a sweep), and the scenario that has them set."""

    values: dict[str, Any]
    """By path; of a trial of a tuning its number as well, as `TRIAL`."""
    scenario: Scenario
    trials: int = 0
    """Number of trials of a tuning, of which this is one; 0 for a point that is reported."""


def points(checker: Checker, choices: Sequence[Choices] = ()) -> Iterator[GridPoint]:
    """The points of a scenario's sweep, in its order; one of no values without a sweep.

    Parameters
    ----------
    choices : sequence of mapping
        What was chosen for each point, if anything.
    """
    scenario = checker.scenario
    for place, (values, variant) in enumerate(transforms.grid(checker.source, scenario.axes())):
        if choices:
            variant = transforms.chosen(variant, choices[place], at_budget(scenario))
        yield GridPoint(values, checker.point(variant))


def trials(checker: Checker) -> Iterator[GridPoint]:
    """Every trial at the grid points where there is tuning; only of the protocols that are tuned."""
    scenario, tune = checker.scenario, checker.scenario.tune
    if tune is None:
        return
    seeds, scaled = trial_seeds(scenario), at_budget(scenario)
    grid = transforms.grid(checker.source, scenario.axes())
    for values, variant in islice(grid, 1) if tune.at == "first" else grid:
        combinations = trials_of(tune)
        for number, choices in enumerate(combinations):
            trial = checker.point(transforms.chosen(variant, choices, scaled))
            yield GridPoint({**values, TRIAL: number}, as_trial(trial, tune, list(choices), seeds), len(combinations))


def at_budget(scenario: Scenario) -> Choices:
    """Fields that set the noise of tuned protocols to the tuning's budget, by protocol; empty without a budget."""
    tune = scenario.tune
    return {} if tune is None else scaled_fields(scenario.protocols, tune.tuned, tune.budget)
