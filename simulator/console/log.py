"""Log of all runs, a line each: in ``RESULTS/run.log``, and on the screen where somebody asks for it.

The lines go through Python's `logging`, as the logger ``hushnet``, for whoever collects them elsewhere. The file is
none of the results: it has times of day, and no run, figure or bundle reads it.
"""

from __future__ import annotations

import logging
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from ..experiment import Experiment, RunOutcome
from ..experiment.time_left import Bounds, range_in_words
from ..experiment.tuning import trial_experiment
from ..storage.ownership import token

LOGGER = logging.getLogger("hushnet")
EARLY = "early"
"""Attribute of records that were made before the folder of the results was claimed."""
FILE = "run.log"
"""Name of the file in the folder of the results."""


class _Screen(logging.Handler):
    """Lines on a rich console, above its progress bar."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        style = "yellow" if record.levelno >= logging.WARNING else None
        self.console.print(record.getMessage(), style=style, highlight=False, markup=False, soft_wrap=True)


class _File(logging.FileHandler):
    """A file in the folder of results, from when that is hushnet's own; where it cannot be written, runs go on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / FILE, encoding="utf-8", errors="backslashreplace", delay=True)
        self._folder, self._early = folder, list[logging.LogRecord]()

    def emit(self, record: logging.LogRecord) -> None:
        self._early.append(record)
        if getattr(record, EARLY, False) or token(self._folder) is None:  # whose the folder is, is not known yet
            return
        path = self._folder / FILE
        if path.is_symlink() or (path.exists() and not path.is_file()):  # somebody else's file, or a pipe
            LOGGER.removeHandler(self)
            return
        try:
            for each in self._early:
                super().emit(each)
        except OSError:
            LOGGER.removeHandler(self)
        self._early.clear()

    def handleError(self, record: logging.LogRecord) -> None:
        LOGGER.removeHandler(self)


@contextmanager
def logged(experiment: Experiment, console: Console, *, verbose: bool = False) -> Iterator[None]:
    """Keep what is logged in a file of the experiment's results, and show every line if that is asked for."""
    form = logging.Formatter("%(asctime)sZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    form.converter = time.gmtime
    file = _File(experiment.folder)
    file.setFormatter(form)
    handlers: list[logging.Handler] = [file, *([_Screen(console)] if verbose else [])]
    level = LOGGER.level
    LOGGER.setLevel(logging.INFO)
    for handler in handlers:
        LOGGER.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            LOGGER.removeHandler(handler)
            handler.close()
        LOGGER.setLevel(level)


def begin(experiment: Experiment) -> None:
    """Log who runs what, how many runs that is, and where."""
    scenario = experiment.loaded.scenario
    stages = [stage for stage in (trial_experiment(experiment), experiment) if stage is not None]
    runs = sum(1 for stage in stages for _ in stage.runs())
    LOGGER.info(
        "%s: %d run%s, %s, hushnet %s, Python %s, %s; arguments %s",
        scenario.scenario,
        runs,
        "" if runs == 1 else "s",
        Path(experiment.loaded.source.name).name,
        version("hushnet"),
        platform.python_version(),
        platform.platform(),
        sys.argv[1:],
        extra={EARLY: True},
    )


def run_ended(words: str, outcome: RunOutcome, left: Bounds | None = None) -> None:
    """Log what became of a run, and the time that the others take."""
    if outcome.there:
        LOGGER.info("%s: there already, %s", words, outcome.run_id)
    elif outcome.status == "complete":
        taken = f"{outcome.seconds:.2f} s, {outcome.cpu_seconds:.2f} s of processor time"
        others = f", {range_in_words(left)} left" if left is not None and any(left) else ""
        LOGGER.info("%s: complete in %s%s, %s", words, taken, others, outcome.run_id)
    else:
        LOGGER.warning("%s: %s: %s", words, outcome.status, outcome.error)
