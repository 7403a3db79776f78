"""The points of a sweep, and the trials of a tuning at them, which keep away from what is reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

from . import transforms
from .checking import Checker
from .equal_budget import scaled_fields
from .scenario import Scenario, SeedPair
from .sweeps import TRIAL
from .tune_parameters import VALIDATION, TuneParameters

FIRST_SEED = 2**63
"""Where the seeds of trials begin, far from those that anybody writes down."""
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
    """The points of a scenario's sweep in order, with what was chosen for each; one of no values without a sweep."""
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


def trial_seeds(scenario: Scenario) -> list[SeedPair]:
    """The seeds of every trial of a scenario; no run seed is one of the reported runs'.

    Where data are drawn, no data seed is either, so trials see other data. Where they are read from files, another
    data seed would deal the reported runs' test rows to the trials' training rows; trials then have the data seeds of
    the reported runs, whose test rows they do not touch.
    """
    assert scenario.tune is not None
    reported, asked = scenario.seed_pairs(), scenario.tune.seeds
    taken = {seed for _, data, run in reported for seed in (data, run)}
    fresh = (seed for seed in count(FIRST_SEED) if seed not in taken)
    seeds = list(islice(fresh, asked)) if isinstance(asked, int) else asked
    data = seeds if scenario.task.draws_data else list(dict.fromkeys(data for _, data, _ in reported))
    return [SeedPair(data=data[rank % len(data)], run=seed) for rank, seed in enumerate(seeds)]


def trials_of(tune: TuneParameters) -> list[dict[str, dict[str, Any]]]:
    """Return for every trial the values that it sets: by the protocol's key, and by field."""
    choices = tune.choices()
    return [dict(zip(choices, each, strict=True)) for each in zip(*choices.values(), strict=True)]


def as_trial(scenario: Scenario, tune: TuneParameters, tuned: Sequence[str], seeds: Sequence[SeedPair]) -> Scenario:
    """The scenario, with a trial's values set, of only the protocols that are tuned, and measured by what decides.

    Where the reported runs have the objective, by which a run that explodes ends, a trial has it, too.
    """
    held_out = tune.metric == VALIDATION
    measured_by = None if held_out else scenario.record.objective_of
    kept = {key: value for key, value in scenario.protocols.items() if key in (*tuned, measured_by)}
    decides = scenario.task.outline().metric if held_out else tune.metric
    metrics = list(dict.fromkeys([*({"objective"} & {*scenario.measured()}), decides]))
    record = {"metrics": metrics, "objective_of": measured_by, "messages": None}
    return scenario.model_copy(
        update={
            "protocols": kept,
            "seeds": list(seeds),
            "figures": [],
            "target": None,
            "validation": tune.share if held_out else None,
            "record": scenario.record.model_copy(update=record),
        }
    )
