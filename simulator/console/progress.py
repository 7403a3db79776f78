"""The progress of an experiment on the screen: which run, how fast, and how much longer all of it takes."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from ...agents.errors import HushnetError
from ..experiment import Experiment, Jobs, Run, RunOutcome, Workers, perform
from ..experiment.time_left import TimeLeft, in_words, key_of, processes_of, time_left
from ..experiment.tuning import trial_experiment
from ..world.world import World
from .log import run_ended, words_of


def perform_visibly(
    experiment: Experiment,
    workers: Workers,
    console: Console,
    *,
    bar: bool = True,
    verbose: bool = False,
    jobs: Jobs = 1,
) -> list[HushnetError]:
    """`perform` with a progress bar, if wanted, and a line for every run that fails.

    Parameters
    ----------
    experiment : Experiment
    workers : Workers
    console : rich.console.Console
    bar, verbose : bool
        Whether there is a bar; whether the log shows what fails already.
    jobs : int or "auto"
        How many runs go on at once.
    """
    if not bar:
        return perform(experiment, workers=workers, on_run=lambda run, outcome: run_ended(words_of(run), outcome))
    stages = [stage for stage in (trial_experiment(experiment), experiment) if stage is not None]
    left = _Left(time_left(stages, processes_of(jobs)))
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs{task.fields[rate]}"),
        left,
    )
    with Progress(*columns, console=console, transient=True) as progress:
        total = sum(1 for stage in stages for _ in stage.runs())
        job = progress.add_task("preparing", total=total, rate="")
        began = {"at": time.perf_counter()}

        def on_start(run: Run) -> None:
            began["at"] = time.perf_counter()
            progress.update(job, description=words_of(run), rate="")

        def on_run(run: Run, outcome: RunOutcome) -> None:
            words = words_of(run)
            left.ended(run, outcome)
            progress.update(job, advance=1, description=f"{words}{' (there)' if outcome.there else ''}")
            run_ended(words, outcome)
            if not verbose and outcome.status != "complete" and not outcome.there:
                text = f"{outcome.status}: {words}: {outcome.error}"
                progress.console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)

        def on_sample(world: World) -> None:
            rate = world.activations / max(time.perf_counter() - began["at"], 1e-9)
            progress.update(job, rate=f", {rate:,.0f} activations/s")

        def on_check(run: Run) -> None:
            progress.update(job, description=f"privacy contract of {run.point.scenario.label(run.protocol)}", rate="")

        on: dict[str, Any] = {"on_start": on_start, "on_run": on_run, "on_sample": on_sample}
        return perform(experiment, workers=workers, on_check=on_check, **on)


class _Left(ProgressColumn):
    """Progress column with the time that is left, in words; it decreases between two runs."""

    max_refresh = 0.5

    def __init__(self, time_left: TimeLeft) -> None:
        super().__init__()
        self._left, self._at = time_left, time.perf_counter()

    def ended(self, run: Run, outcome: RunOutcome) -> None:
        self._left.ended(key_of(run), None if outcome.there else outcome.seconds)
        self._at = time.perf_counter()

    def render(self, task: Task) -> Text:
        if task.finished:
            return Text("")
        left = self._left.seconds_after(time.perf_counter() - self._at)
        return Text("" if left is None else f"about {in_words(left)} left", style="progress.remaining")
