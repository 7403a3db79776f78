"""Fields of a scenario's tuning: the values to try for each protocol, and the metric that decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from ...agents.errors import InputError
from ...agents.parameters import Parameters
from ...agents.suggestions import require
from ...protocols.base import ProtocolParameters
from ...protocols.privacy.budget import Total
from ..metrics.metric import names_of
from .equal_budget import check_budget
from .names import MAX_SEEDS, Count, Seed
from .sweep_parameters import Values, values_of
from .sweeps import Axis, check_different, clash

VALIDATION = "validation"
"""The task's own measure, on rows that are held out of the agents' training rows."""

MOST_TRIALS = 10_000

MOST_FIELDS = 1_000

FIXED = ("kind", "like", "label", "tuned")
"""Fields of a protocol that cannot be tuned."""


class TuneParameters(Parameters):
    """Parameters that are chosen before the reported runs, with as many trials for every protocol that is tuned."""

    over: dict[str, Values] = Field(min_length=1, max_length=MOST_FIELDS)
    """Values to try, by ``<protocol>.<field>``; all combinations of a protocol's fields are its trials."""
    seeds: Count | Annotated[list[Seed], Field(min_length=1)] = 3
    """Number or list of the seeds of every trial; none of them is reported on."""
    metric: str = Field(
        default=VALIDATION,
        description="What decides, at the end of a trial: ``validation``, the task's own measure on held-out training "
        f"rows, or a recorded metric ({', '.join(names_of(lambda metric: metric.judge))}).",
    )
    share: float = Field(default=0.2, gt=0, lt=1)
    """Share of every agent's training rows that is held out for ``validation``."""
    trials: Count | None = None
    """Trials of each protocol, drawn from its combinations; by default all of them, of which all must have as many."""
    budget: Total | None = None
    """Epsilon that every trial, and the tuned protocol after it, spends in all: ``{claimed: 10}`` or ``{verified: 1,
    delta: 1e-5}``. The noise of every tuned protocol follows from it, whatever else a trial sets, so that protocols are
    compared at one cost; by default noise is as the protocol says."""
    over_the_run: bool = False
    """Whether a trial's mean over all its records decides, and not its end: for claims about a whole curve."""
    at: Literal["first", "every point", "worst"] = "first"
    """Where in a sweep to tune: once, at the ``first`` point of the grid; anew at ``every point``; or once, for the
    ``worst``: all are tried at every point, and the values are taken whose worst score over the points is best."""

    @property
    def tuned(self) -> list[str]:
        """Keys of the protocols that are tuned."""
        return list(dict.fromkeys(path.partition(".")[0] for path in self.over))

    def choices(self) -> dict[str, list[dict[str, Any]]]:
        """Return the values of every trial of a protocol, by field, by the protocol's key.

        With ``trials``, they are a random subset of the combinations, the same for protocols of as many combinations.
        """
        fields: dict[str, dict[str, list[Any]]] = {}
        for path, values in self.over.items():
            key, _, rest = path.partition(".")
            fields.setdefault(key, {})[rest] = values_of(values)
        return {key: self._drawn(own) for key, own in fields.items()}

    def _drawn(self, fields: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
        combinations = [dict(zip(fields, values, strict=True)) for values in product(*fields.values())]
        if self.trials is None or self.trials >= len(combinations):
            return combinations
        kept = np.random.default_rng(0).choice(len(combinations), self.trials, replace=False)
        return [combinations[rank] for rank in sorted(kept.tolist())]


def check_tuning(
    tune: TuneParameters,
    protocols: Mapping[str, ProtocolParameters],
    swept: Sequence[Axis],
    reported: Sequence[tuple[int, int, int]],
    traced: Sequence[str],
) -> None:
    """Raise an `InputError` with its place if tuning does not fit the experiment.

    A field is either swept or tuned; of reported runs there are labels, data seeds and run seeds, and `traced` names
    the metrics that the trace will have.
    """
    _check_paths(tune, list(protocols), swept)
    check_budget(protocols, tune.over, tune.budget)
    _check_trials(tune)
    if isinstance(tune.seeds, list):
        taken = {seed for _, data, run in reported for seed in (data, run)}
        for rank, seed in enumerate(tune.seeds):
            if seed in taken:
                raise InputError("is a seed of the reported runs; tuning needs others", field=("tune", "seeds", rank))
        if len(set(tune.seeds)) < len(tune.seeds):
            raise InputError("names a seed twice", field=("tune", "seeds"))
    elif tune.seeds > MAX_SEEDS:
        raise InputError(f"asks for {tune.seeds} seeds; at most {MAX_SEEDS} are admissible", field=("tune", "seeds"))
    known = [VALIDATION, *(name for name in names_of(lambda metric: metric.judge) if name in traced)]
    require(tune.metric, known, "cannot decide", ("tune", "metric"))


def _check_paths(tune: TuneParameters, protocols: Sequence[str], swept: Sequence[Axis]) -> None:
    for path in tune.over:
        field, (key, _, rest) = ("tune", "over", path), path.partition(".")
        require(key, protocols, f"unknown protocol {key!r}", field)
        if not all(rest.split(".")) or rest.partition(".")[0] in FIXED:
            raise InputError(f"must be a protocol and one of its fields, such as {key}.step_size", field=field)
    paths = [setting.path for axis in swept for setting in axis.settings[0]]
    paths += [f"protocols.{path}" for path in tune.over]
    pair = clash(paths)
    if pair is not None:
        other, path = (paths[rank] for rank in pair)
        wrong = f"{path} is set twice: {other} is also swept or tuned"
        raise InputError(wrong, field=("tune", "over", path.removeprefix("protocols.")))


def _check_trials(tune: TuneParameters) -> None:
    counts: dict[str, int] = {}
    for path, values in tune.over.items():
        check_different(values_of(values), ("tune", "over", path))
        key = path.partition(".")[0]
        counts[key] = counts.get(key, 1) * len(values_of(values))
    if max(counts.values()) > MOST_TRIALS:
        raise InputError(f"has more than {MOST_TRIALS} combinations for one protocol", field=("tune", "over"))
    each = ", ".join(f"{key} has {count}" for key, count in counts.items())
    least = min(counts.values())
    if tune.trials is None and len(set(counts.values())) > 1:
        raise InputError(
            f"every protocol needs as many trials, and {each}; give each as many values, or trials: {least}, "
            "which draws so many of each one's combinations",
            field=("tune", "over"),
        )
    if tune.trials is not None and tune.trials > least:
        raise InputError(
            f"must be at most {least}, as every protocol has as many, and {each}", field=("tune", "trials")
        )
