"""Progress where Python runs in a notebook: one line that is written anew, and nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from typing import Any

from .plan import Experiment, Run
from .run_once import RunOutcome
from .time_left import key_of, range_in_words, time_left
from .tuning import trial_experiment
from .workers import Workers


def in_notebook() -> bool:
    """True if this process is a kernel of Jupyter, whose cells show what is displayed."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def shown_progress(experiment: Experiment, workers: Workers) -> dict[str, Callable[..., None]]:
    """Callbacks of `perform` that show a line of progress in a notebook; empty elsewhere."""
    if not in_notebook():
        return {}
    from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

    stages = [stage for stage in (trial_experiment(experiment), experiment) if stage is not None]
    runs = [run for stage in stages for run in stage.runs()]
    total, left, ended = len(runs), time_left(runs), [0]
    handle: Any = display(HTML(_line(0, total, "preparing")), display_id=True)

    def on_run(run: Run, outcome: RunOutcome) -> None:
        ended[0] += 1
        left.processes = workers.processes()
        left.ended(key_of(run), outcome.own_seconds)
        bounds = left.seconds()
        rest = "; done" if ended[0] == total else "" if bounds is None else f"; {range_in_words(bounds)} left"
        handle.update(HTML(_line(ended[0], total, f"{run.words}{rest}")))

    return {"on_run": on_run}


def _line(ended: int, total: int, text: str) -> str:
    return f'<progress value="{ended}" max="{max(total, 1)}"></progress> {ended} of {total} runs; {escape(text)}'
