"""Choosing parameters before the reported runs: as many trials for every protocol, on seeds that are not reported.

Trials are runs like any others, in a store of their own (``results/<scenario>/tuning``): they are resumed, spread over
workers and kept. What was tried is in ``tuning.parquet``; what was chosen is in the scenario of the reported runs,
which also names the tuned fields among what is treated as public, and in the index under ``tuning``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from ...agents.errors import Divergence, HushnetError, InputError
from ...agents.quantity import Quantity
from ..analysis.aggregate import final_values, mean_interval, mean_values
from ..analysis.results import Collection, load_all
from ..language.loading import GridPoint, LoadedScenario, tuned
from ..language.points import trials_of
from ..language.sweep_parameters import values_of
from ..language.sweeps import TRIAL
from ..language.tune_parameters import VALIDATION, TuneParameters
from ..metrics import METRICS, more_is_better
from ..storage.files import json_text, parquet, put_file, writing
from ..storage.store import Store
from .plan import Experiment
from .trial_scores import RunKey, Trial, exploded_runs, without_exploded

Contest = tuple[int | None, str]
"""Place (None where one trial is chosen for all) and protocol of a choice."""
Contests = Mapping[Contest, Sequence[Trial]]
TABLE = "tuning.parquet"
"""Name of the file that has everything that was tried."""


def trial_experiment(experiment: Experiment) -> Experiment | None:
    """The trials that an experiment needs first; None if there is nothing to tune, or all is chosen."""
    loaded = experiment.loaded
    if not loaded.trials or loaded.tuning is not None:
        return None
    only = replace(loaded, scenario=loaded.trials[0].scenario, points=loaded.trials, trials=())
    return replace(experiment, loaded=only, out=experiment.folder / "tuning", contract=False)


def choose(experiment: Experiment, perform: Callable[[Experiment], list[HushnetError]]) -> LoadedScenario:
    """Try everything, and take what did best: the scenario with the chosen values in its points, and an account.

    `perform` makes sure that all runs of an experiment are there. Raises `InputError` if what decides is the objective
    and a protocol's trials differ in what theirs is, and `Divergence` if no trial of a protocol reached its end.
    """
    trials = trial_experiment(experiment)
    assert trials is not None
    _check_objectives(experiment, trials)
    perform(trials)
    chosen, table = _decided(experiment.loaded, trials.folder)
    with writing(experiment.folder):
        put_file(parquet(table), experiment.folder / TABLE, within=experiment.folder)
    return chosen


def _check_objectives(experiment: Experiment, trials: Experiment) -> None:
    """Refuse, before anything is run, to tune by an objective that the tuned fields change."""
    tune = experiment.loaded.scenario.tune
    if tune is None or tune.metric != "objective":
        return
    met: dict[tuple[Any, ...], Quantity] = {}
    first_seed = trials.loaded.scenario.seed_pairs()[0][0]
    for run in trials.runs():
        if run.seed != first_seed or (objective := trials.measured_objective(run)) is None:
            continue
        grid = json_text({name: value for name, value in run.point.values.items() if name != TRIAL})
        first = met.setdefault((run.protocol, grid), objective.quantity)
        if not objective.quantity.same(first):
            raise InputError(
                f"tune.metric: the trials of {run.protocol} are measured by other objectives ({first.words}; "
                f"{objective.quantity.words}), so that the smallest gap says nothing; tune by {VALIDATION}, or let "
                "record.objective_of name a protocol that is not tuned",
                field=("tune", "metric"),
            )


def settled(experiment: Experiment) -> Experiment:
    """An experiment whose trials are there, with what they make of it; nothing is run or written."""
    trials = trial_experiment(experiment)
    assert trials is not None
    runs = list(trials.runs())  # which need not be those of the latest index
    index = {"runs": [trials.run_id(run) for run in runs], "grids": [dict(run.point.values) for run in runs]}
    return replace(experiment, loaded=_decided(experiment.loaded, trials.folder, index)[0])


def _decided(
    loaded: LoadedScenario, folder: Path, index: Mapping[str, Any] | None = None
) -> tuple[LoadedScenario, pd.DataFrame]:
    """The scenario with what was chosen for it, and a table of all that was tried, by the trials of an index."""
    assert loaded.scenario.tune is not None
    there = load_all(folder, index) if Store(folder).entries(index=index) else None
    tune, all_tried = loaded.scenario.tune, [*_tried(loaded, there)]
    wild: set[RunKey] = set() if there is None else exploded_runs(there, *_measure(tune, there))
    tried, exploded = without_exploded(all_tried, wild)
    more = _more_is_better(tune, there)
    contests = _contests(tried, more, tune)
    best = _best(contests, more, tune, loaded.scenario.scenario)
    chosen = [
        {protocol: dict(trial.values) for (place, protocol), trial in best.items() if place == one}
        for one in dict.fromkeys(place for place, _ in best)
    ]
    account = _account(loaded, there, [*best.values()], more)
    account["warnings"] += [*dict.fromkeys([*_level(contests, best), *_left_out(all_tried), *exploded])]
    return replace(tuned(loaded, chosen), tuning=account), _table(tried, best, loaded.trials, tune)


def sentences(tuning: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """An account of a choice in sentences, each with whether it is a warning."""
    for chosen in tuning["chosen"]:
        values = ", ".join(f"{field} = {value}" for field, value in chosen["values"].items())
        grid = "".join(f", {name} = {value}" for name, value in chosen["grid"].items())
        grid += f" at {tuning['budget']}" if tuning.get("budget") else ""
        where = f" {tuning['tuned_at']}" if tuning.get("tuned_at") and not chosen["grid"] else ""
        yield (
            f"tuned {chosen['protocol']}{grid}{where}: {values} ({tuning['decided_by']} {chosen['score']:.4g}, best of "
            f"{tuning['trials']} trials on {len(tuning['seeds'])} seed{'s' * (len(tuning['seeds']) > 1)})",
            False,
        )
    yield tuning["note"], False
    for warning in tuning["warnings"]:
        yield warning, True


def in_short(tuning: Mapping[str, Any]) -> str:
    """Return one sentence on what was tuned where, over what, and what was chosen."""
    found: dict[str, list[Any]] = {}
    for chosen in tuning["chosen"]:
        for field, value in chosen["values"].items():
            found.setdefault(f"{chosen['protocol']}.{field}", []).append(value)
    parts = []
    for path, values in found.items():
        over = ", ".join(map(str, (tuning.get("over") or {}).get(path, [])))
        parts.append(f"{path} {' or '.join(map(str, dict.fromkeys(values)))}{f' of {over}' if over else ''}")
    where = f" {tuning['tuned_at']}" if tuning.get("tuned_at") else ""
    return f"tuned by {tuning['decided_by']}{where}: {'; '.join(parts)}"


def _tried(loaded: LoadedScenario, there: Collection | None) -> Iterator[Trial]:
    tune = loaded.scenario.tune
    assert tune is not None
    scores = {} if there is None else _scores(tune, there)
    combinations = trials_of(tune)
    for rank, point in enumerate(loaded.trials):
        place, number = divmod(rank, len(combinations))
        where = json_text(point.values)
        for key, values in combinations[number].items():
            found = {seed: scores.get((key, seed, where), math.nan) for seed, _, _ in point.scenario.seed_pairs()}
            yield Trial(key, place, number, values, found, where)


def _scores(tune: TuneParameters, there: Collection) -> dict[tuple[str, int, str], float]:
    """The metric that decides, at the end of every run that reached it or over it, by protocol, seed and grid point."""
    read = mean_values if tune.over_the_run else final_values
    values = read(there, *_measure(tune, there)).set_index("run")["value"]
    runs = there.by_run.items()
    return {(m["protocol"], m["seed"], json_text(m["grid"])): float(values.get(run, math.nan)) for run, m in runs}


def _measure(tune: TuneParameters, there: Collection) -> tuple[str, str]:
    metric = there.manifests[0]["task"]["metric"] if tune.metric == VALIDATION else tune.metric
    return metric, METRICS[metric].judged_by


def _more_is_better(tune: TuneParameters, there: Collection | None) -> bool:
    return there is not None and bool(more_is_better(_measure(tune, there)[0]))


def _contests(tried: Sequence[Trial], more: bool, tune: TuneParameters) -> Contests:
    """The trials among which each choice is made.

    For all places, each is there once: where its score is worst, or where a run of it did not reach its end.
    """
    contests: dict[Contest, dict[int, Trial]] = {}
    sign = 1 if more else -1
    for trial in tried:
        own = contests.setdefault(_contest_of(trial, tune), {})
        worst = own.setdefault(trial.number, trial)
        if math.isfinite(worst.score) and not sign * trial.score >= sign * worst.score:
            own[trial.number] = trial
    return {key: list(own.values()) for key, own in contests.items()}


def _contest_of(trial: Trial, tune: TuneParameters) -> Contest:
    return trial.place if tune.at == "every point" else None, trial.protocol


def _best(contests: Contests, more: bool, tune: TuneParameters, scenario: str) -> dict[Contest, Trial]:
    """The best trial of every contest; of equal ones the first."""
    best: dict[Contest, Trial] = {}
    for contest, own in contests.items():
        whole = [trial for trial in own if math.isfinite(trial.score)]
        if not whole:
            everywhere = " at every point" if tune.at == "worst" else ""
            raise Divergence(
                f"{scenario}: none of the {len(own)} trials of {contest[1]} reached its end{everywhere} on every seed; "
                "try other values"
            )
        best[contest] = max(whole, key=lambda trial: trial.score if more else -trial.score)
    return best


def _table(
    tried: Sequence[Trial], best: Mapping[Contest, Trial], points: Sequence[GridPoint], tune: TuneParameters
) -> pd.DataFrame:
    """A row per trial and seed: protocol, grid point, trial, what it set, seed, score, whether it was chosen."""
    rows, grid = [], {}
    for trial in tried:
        point = points[trial.place * points[0].trials]
        grid = {name: value for name, value in point.values.items() if name != TRIAL}
        chosen = trial.number == best[_contest_of(trial, tune)].number
        head = {"protocol": trial.protocol, **grid, "trial": trial.number}
        values = json_text(dict(trial.values), indent=None)
        for seed, score in trial.scores.items():
            rows.append({**head, "values": values, "seed": str(seed), "score": score, "chosen": chosen})
    table = pd.DataFrame(rows)
    mixed = [name for name in grid if table[name].dtype == object]
    return table.astype(dict.fromkeys(mixed, str))


def _account(loaded: LoadedScenario, there: Collection | None, best: Sequence[Trial], more: bool) -> dict[str, Any]:
    """Account of a tuning and its choices, as the index of results keeps it."""
    tune, trials = loaded.scenario.tune, loaded.trials[0].trials
    assert tune is not None
    assert there is not None
    metric, statistic = _measure(tune, there)
    judged = f"validation {metric}" if tune.metric == VALIDATION else f"{metric} {statistic}"
    chosen = []
    for trial in best:
        grid = loaded.trials[trial.place * trials].values if tune.at == "every point" else {}
        _, half_width, _ = mean_interval(list(trial.scores.values()))
        chosen.append(
            {
                "protocol": trial.protocol,
                "grid": {name: value for name, value in grid.items() if name != TRIAL},
                "values": dict(trial.values),
                "score": trial.score,
                "half_width": float(half_width) if math.isfinite(half_width) else None,
            }
        )
    pairs = loaded.trials[0].scenario.seed_pairs()
    return {
        "metric": tune.metric,
        "decided_by": f"{judged} over the run" if tune.over_the_run else judged,
        "more_is_better": more,
        "share": tune.share if tune.metric == VALIDATION else None,
        "at": tune.at,
        "tuned_at": _tuned_at(tune, loaded),
        "over": {path: values_of(values) for path, values in tune.over.items()},
        "budget": None if tune.budget is None else tune.budget.words,
        "trials": trials,
        "seeds": [run for _, _, run in pairs],
        "data_seeds": [data for _, data, _ in pairs],
        "table": TABLE,
        "chosen": chosen,
        "note": _note(tune, loaded.scenario.task.draws_data),
        "warnings": [*_on_test_rows(tune), *dict.fromkeys(_at_an_end(tune, best))],
    }


def _tuned_at(tune: TuneParameters, loaded: LoadedScenario) -> str:
    """Where in the sweep there was tuning, in words; empty without a sweep."""
    grid = {name: value for name, value in loaded.trials[0].values.items() if name != TRIAL}
    if not grid or tune.at == "every point":
        return "at every point" if grid else ""
    if tune.at == "worst":
        return "for the worst of all points, and used at all of them"
    return f"at {', '.join(f'{name} = {value}' for name, value in grid.items())}, and used at every point"


def _note(tune: TuneParameters, drawn: bool) -> str:
    data = "other data drawn alike" if drawn else "the reported runs' training rows"
    if tune.metric == VALIDATION:
        held_out = f"{tune.share:.0%} of every agent's training rows, held out"
        return f"tuned on {data}, judged by {held_out}; no test row of the reported runs was used"
    looks = "which looks at test rows" if METRICS[tune.metric].rows == "test" else "on training rows"
    return f"tuned on {data}, judged by {tune.metric}, {looks}"


def _on_test_rows(tune: TuneParameters) -> Iterator[str]:
    if tune.metric != VALIDATION and METRICS[tune.metric].rows == "test":
        yield (
            f"tuned by {tune.metric}, which looks at test rows, so that numbers on them are too good; tune by "
            f"{VALIDATION}"
        )


def _at_an_end(tune: TuneParameters, best: Sequence[Trial]) -> Iterator[str]:
    for trial in best:
        for field, value in trial.values.items():
            values = values_of(tune.over[f"{trial.protocol}.{field}"])
            if len(values) < 2 or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
                continue
            for end, word in ((min(values), "smallest"), (max(values), "largest")):
                if value == end:
                    name = f"{trial.protocol}.{field}"
                    yield f"{name} = {value} is the {word} value that was tried; the best one may lie beyond"


def _level(contests: Contests, best: Mapping[Contest, Trial]) -> Iterator[str]:
    for contest, own in contests.items():
        level = sum(trial.score == best[contest].score for trial in own)
        if level > 1:
            yield (
                f"{level} of {len(own)} trials of {best[contest].protocol} did equally well, and the first of them was "
                "taken: what tells them apart says nothing"
            )


def _left_out(tried: Sequence[Trial]) -> Iterator[str]:
    for protocol in dict.fromkeys(trial.protocol for trial in tried):
        own = [trial for trial in tried if trial.protocol == protocol]
        broken = sum(not math.isfinite(trial.score) for trial in own)
        if broken:
            yield f"{broken} of {len(own)} trials of {protocol} did not reach their end and were left out"
