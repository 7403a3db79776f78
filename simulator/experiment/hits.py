"""Where runs met the scenario's target: by the very event, not by the next record.

What a target asks of a run may follow from other runs: from the start of the protocol whose objective measures all, or
from the end of the one that its accuracy is held against. So runs are looked at closely when all of them are there.
Each is made again, as far as its first record that meets the target, and its metric is read after every activation
since the record before. The rows found are kept in the index, beside the target.

Where more than `MOST_LOOKS` activations lie between the two records, fewer looks narrow them down first: then the event
is the first one within the part in which the first of these looks met the target.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from ...agents.errors import InputError
from ..analysis.results import load_all
from ..analysis.targets import windows
from ..metrics.trace import HitWindow, Row
from ..storage.files import json_text
from .plan import Experiment, PlannedRun, Run
from .workers import Workers

MOST_LOOKS = 2_000
"""Activations after each of which a run is looked at, at most."""
LOOKS = 64
"""Looks that narrow down a longer stretch of a run."""


def first_hits(
    experiment: Experiment,
    listed: Sequence[tuple[str, PlannedRun]],
    known: Mapping[str, Any] | None,
    workers: Workers,
    on_look: Callable[[Run], None] | None = None,
) -> dict[str, Any] | None:
    """The rows around the events by which runs met the scenario's target, for the index; None without a target.

    Parameters
    ----------
    experiment : Experiment
    listed : sequence of (str, PlannedRun)
        The runs of its index, in order, and what they are.
    known : mapping, optional
        What was found before: taken if it is of the same runs and the same target.
    workers : Workers
        Who makes the runs again.
    on_look : callable, optional
        Told of every run that was looked at.

    Raises
    ------
    HushnetError
        If this machine does not admit the runs any more.

    Warns
    -----
    UserWarning
        Of a run that cannot be made again: the place of its target is that of a record.
    """
    scenario = experiment.loaded.scenario
    if scenario.target is None:
        return None
    target = scenario.target.model_dump(exclude_none=True)
    of = json_text([target, [run_id for run_id, _ in listed]], indent=None)
    found_by = hashlib.sha256(of.encode()).hexdigest()[:32]
    if known is not None and known.get("found_by") == found_by:
        return dict(known)
    try:
        collection = load_all(experiment.folder)
        places = windows(collection, target)
    except InputError:  # whoever asks for the target is told what is wrong with it
        return None
    planned = dict(zip(collection.runs, (each for _, each in listed), strict=True))
    found: dict[str, list[list[Any]]] = {}
    while places:
        asked = {(planned[run].name, _looks(window)): planned[run] for run, window in places.items()}
        queue = [replace(each, window=window) for (_, window), each in asked.items()]
        seen = _seen(experiment, queue, workers, on_look)
        narrower: dict[str, HitWindow] = {}
        for run, window in places.items():
            look = _looks(window)
            rows = seen.get((planned[run].name, look), ())
            if look.stride > 1:
                narrower |= _narrowed(run, window, rows)
            elif rows and look.met(_value(rows, look)):
                found[run] = [list(row) for row in rows]
        places = narrower
    return {"found_by": found_by, "runs": {run: found[run] for run in planned if run in found}}


def _looks(window: HitWindow) -> HitWindow:
    """A window with the stride at which it is looked at: every activation, if they are few enough."""
    width = window.until - window.after
    return replace(window, stride=1 if width <= MOST_LOOKS else math.ceil(width / LOOKS))


def _narrowed(run: str, window: HitWindow, rows: Sequence[Row]) -> dict[str, HitWindow]:
    """The part of a wide window in which the target was met, by run; none if nothing was seen."""
    instants = sorted({row[1] for row in rows})
    if not instants:
        return {}
    if not window.met(_value(rows, window)):
        return {run: replace(window, after=instants[-1])} if instants[-1] < window.until else {}
    return {run: replace(window, after=instants[0] if len(instants) > 1 else window.after, until=instants[-1])}


def _value(rows: Sequence[Row], window: HitWindow) -> float:
    """The last value of a window's metric."""
    return [row[-1] for row in rows if row[-3:-1] == (window.metric, window.statistic)][-1]


def _seen(
    experiment: Experiment,
    queue: Sequence[PlannedRun],
    workers: Workers,
    on_look: Callable[[Run], None] | None,
) -> dict[tuple[str, HitWindow | None], tuple[Row, ...]]:
    """What was seen of runs that are made again, by their names and windows."""
    seen: dict[tuple[str, HitWindow | None], tuple[Row, ...]] = {}
    with closing(workers.work(experiment, queue)) as work:
        for rank, outcome in work:
            each = queue[rank]
            seen[each.name, each.window] = outcome.hit
            if on_look:
                on_look(each.run)
            if outcome.error:
                warnings.warn(f"{each.run.place}: when it met the target was not found: {outcome.error}", stacklevel=3)
    return seen
