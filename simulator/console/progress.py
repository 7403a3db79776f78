"""The progress of an experiment in a line: runs done of all, the time that is left, and the run that it is at."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from ...agents.compilation import is_at_it, seconds_spent, unannounced
from ...agents.errors import HushnetError
from ..engine.selection import is_ready
from ..experiment import Experiment, Run, RunOutcome, Workers, perform
from ..experiment.time_left import TimeLeft, key_of, range_in_words, time_left
from ..experiment.tuning import trial_experiment
from ..world.world import World
from .log import LOGGER, run_ended

COMPILING = "compiling (once, about half a minute)"


def perform_visibly(
    experiment: Experiment, workers: Workers, console: Console, *, bar: bool = True, verbose: bool = False
) -> list[HushnetError]:
    """`perform` with a progress bar, if wanted, and a line for every run that fails, unless the log shows it."""

    def advise(sentence: str) -> None:
        LOGGER.warning("%s", sentence)
        if not verbose:
            console.print(f"warning: {sentence}", style="yellow", highlight=False, markup=False)

    stages = [stage for stage in (trial_experiment(experiment), experiment) if stage is not None]
    left = time_left(run for stage in stages for run in stage.runs())

    def logged(run: Run, outcome: RunOutcome) -> None:
        left.processes = workers.processes()
        left.ended(key_of(run), outcome.own_seconds)
        run_ended(run.words, outcome, left.seconds())

    if not bar:
        return perform(experiment, workers=workers, on_run=logged, on_advice=advise)
    shown = _Shown(experiment, workers, left)
    columns = (
        BarColumn(12),
        TextColumn("{task.fields[ended]}/{task.fields[all]} runs"),
        shown,
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
    )
    # The bar says that something is compiled, where there is one.
    silence = unannounced(quiet=True) if console.is_terminal else nullcontext()
    with silence, Progress(*columns, console=console, transient=True, expand=True) as progress:
        shown.begin(progress)

        def on_run(run: Run, outcome: RunOutcome) -> None:
            logged(run, outcome)
            shown.ended(run, outcome)
            if not verbose and outcome.status != "complete" and not outcome.there:
                text = f"{outcome.status}: {run.words}: {outcome.error}"
                progress.console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)

        on: dict[str, Callable[..., None]] = {
            "on_start": shown.started,
            "on_sample": shown.sampled,
            "on_check": shown.checked,
            "on_advice": advise,
        }
        return perform(experiment, workers=workers, on_run=on_run, **on)


class _Shown(ProgressColumn):
    """Column with the time that is left, which decreases between two runs; told of all that happens."""

    max_refresh = 0.5

    def __init__(self, experiment: Experiment, workers: Workers, left: TimeLeft) -> None:
        super().__init__()
        self._workers, self._left, self._total, self._ended = workers, left, left.runs(), 0
        self._compiles = not is_ready() and any(experiment.engine_name(run) != "event" for run in experiment.runs())
        self._begun: list[Run] = []
        self._share, self._at, self._compiled = 0.0, 0.0, 0.0

    def begin(self, progress: Progress) -> None:
        """Have a progress bar to tell."""
        counts: dict[str, Any] = {"ended": 0, "all": self._total}
        self._progress, self._job = progress, progress.add_task("", total=self._total, **counts)
        self._next()
        self._say("preparing")

    def started(self, run: Run) -> None:
        """A run begins in this process."""
        if not self._begun:
            self._next()
        self._begun.append(run)
        self._say(run.few_words)

    def sampled(self, world: World) -> None:
        """A world in this process has got somewhere."""
        end = world.setting.stop.time
        self._share = min(world.now / end, 1.0) if end else 0.0
        self._progress.update(self._job, completed=self._ended + self._share * len(self._begun))
        if self._share == 1 and self._ended + len(self._begun) == self._total:
            self._say("writing tables")

    def checked(self, run: Run) -> None:
        """The contract of a run's protocol is about to be checked."""
        self._say(f"privacy contract of {run.point.scenario.label(run.protocol)}")

    def ended(self, run: Run, outcome: RunOutcome) -> None:
        """A run has ended, or was there."""
        self._ended, self._compiles = self._ended + 1, self._compiles and outcome.there
        self._begun = [other for other in self._begun if other is not run]
        if not self._begun:
            self._next()
        self._progress.update(self._job, completed=self._ended, ended=self._ended)
        if self._ended == self._total:
            self._say("writing tables")
        elif self._left.processes > 1:
            self._say(run.few_words)

    def render(self, task: Task) -> Text:
        """Return the time that is left, in words."""
        if is_at_it() or (self._compiles and self._workers.processes() > 1):
            return Text(COMPILING)
        gone = time.perf_counter() - self._at - (seconds_spent() - self._compiled)
        left = self._left.seconds_after(gone, begun=[key_of(run) for run in self._begun], share=self._share)
        words = f"{range_in_words(left)} left" if left is not None and left[1] > 0 else ""
        return Text(words, style="progress.remaining")

    def _next(self) -> None:
        """Count time from now on, for the runs that begin."""
        self._share, self._at, self._compiled = 0.0, time.perf_counter(), seconds_spent()

    def _say(self, words: str) -> None:
        self._progress.update(self._job, description=words)
