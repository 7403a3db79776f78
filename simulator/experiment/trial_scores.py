"""Scores of a tuning's trials; those of which a curve exploded do not win by where it ends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..analysis.results import Collection
from ..metrics import more_is_better
from ..storage.files import json_text

EXPLODED = 10.0
"""A loss that was so many times what it is at both ends of a trial shows no good choice of parameters."""
RunKey = tuple[str, int, str]
"""A run of a trial: protocol, seed, and grid point with the trial's number as JSON."""


@dataclass(frozen=True)
class Trial:
    """Result of one trial of a protocol."""

    protocol: str
    place: int
    """Index of its grid point, of those where there is tuning."""
    number: int
    """Index of its combination of the protocol's values."""
    values: Mapping[str, Any]
    """Values that it set, by field."""
    scores: Mapping[int, float]
    """The metric that decides, at the end of each run or over it, by seed; NaN for a run that did not reach its end."""
    where: str
    """Its grid point and number, as JSON."""

    @property
    def score(self) -> float:
        """Mean over the seeds; NaN if a run did not reach its end."""
        return sum(self.scores.values()) / len(self.scores)


def exploded_runs(there: Collection, metric: str, statistic: str) -> set[RunKey]:
    """Return runs of trials that were far worse meanwhile than at their start and at their end.

    Where less of the metric that decides is better, its curve is looked at beside the objective's gap.
    """
    trace = there.trace
    judged = (trace["metric"] == "objective") & (trace["statistic"] == "gap")
    if more_is_better(metric) is False:
        judged |= (trace["metric"] == metric) & (trace["statistic"] == statistic)
    curves = trace[judged].groupby(["run", "metric"], sort=False)["value"]
    ends = np.maximum(curves.first(), curves.last())
    runs = {str(run) for run, _ in ends[(ends > 0) & (curves.max() > EXPLODED * ends)].index}
    return {(m["protocol"], m["seed"], json_text(m["grid"])) for run, m in there.by_run.items() if run in runs}


def without_exploded(tried: Sequence[Trial], exploded: set[RunKey]) -> tuple[list[Trial], list[str]]:
    """The trials, of which those that exploded do not count where some have not, and what is to be said of it."""
    kept, said = [], []
    wild = {
        id(trial) for trial in tried if any((trial.protocol, seed, trial.where) in exploded for seed in trial.scores)
    }
    for protocol in dict.fromkeys(trial.protocol for trial in tried):
        own = [trial for trial in tried if trial.protocol == protocol]
        count = sum(id(trial) in wild for trial in own)
        calm = {trial.place for trial in own if id(trial) not in wild and math.isfinite(trial.score)}
        for trial in own:
            void = id(trial) in wild and trial.place in calm
            kept.append(replace(trial, scores=dict.fromkeys(trial.scores, math.nan)) if void else trial)
        if count:
            ending = "do not count" if {trial.place for trial in own} <= calm else "count only where all did"
            said.append(
                f"{count} of {len(own)} trials of {protocol} were more than {EXPLODED:g} times worse on the way than "
                f"at both ends, and {ending}"
            )
    order = {(trial.place, trial.number, trial.protocol): rank for rank, trial in enumerate(tried)}
    return sorted(kept, key=lambda trial: order[trial.place, trial.number, trial.protocol]), said
