"""Where runs met the scenario's target: by the very event, not by the next record.

What a target asks of a run may follow from other runs: from the start of the protocol whose objective measures all, or
from the end of the one that its accuracy is held against. So runs are looked at closely when all of them are there.
Each is made again, as far as its first record that meets the target, and its metric is read after every activation
since the record before. The rows found are kept in the index, beside the target.
"""

from __future__ import annotations

import hashlib
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
    asked = {(planned[run].name, window): planned[run] for run, window in places.items()}
    queue = [replace(each, window=window) for (_, window), each in asked.items()]
    seen: dict[tuple[str, HitWindow | None], tuple[Row, ...]] = {}
    with closing(workers.work(experiment, queue)) as work:
        for rank, outcome in work:
            each = queue[rank]
            seen[each.name, each.window] = outcome.hit
            if on_look:
                on_look(each.run)
            if outcome.error:
                warnings.warn(f"{each.run.place}: when it met the target was not found: {outcome.error}", stacklevel=2)
    found = {run: [list(row) for row in seen[planned[run].name, window]] for run, window in places.items()}
    return {"found_by": found_by, "runs": {run: rows for run, rows in found.items() if rows}}
