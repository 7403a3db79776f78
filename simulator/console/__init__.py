"""What ``hushnet run`` shows: progress, summary, warnings, and where everything is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from ...agents.errors import HushnetError, InputError, Interrupted
from ..analysis import results
from ..analysis.aggregate import NothingRecorded
from ..analysis.summary import print_summary
from ..experiment import Experiment, RunOptions, hire
from ..experiment.estimate import print_estimate
from ..experiment.tuning import sentences
from ..language.loading import LoadedScenario, locate
from ..limits.objectives import check_stand_ins
from ..network.graphs import graph_line
from ..storage.store import Store
from .log import begin, logged
from .progress import perform_visibly
from .words import engines, fates, source_line

MOST_LINES = 20
"""Failures that are said one by one."""


def run_scenario(
    loaded: LoadedScenario,
    options: RunOptions | None = None,
    *,
    progress: bool = True,
    dry_run: bool = False,
    verbose: bool = False,
    **changes: Any,
) -> None:
    """What ``hushnet run`` does: run with a progress bar, draw the figures, print the summary.

    Parameters
    ----------
    loaded : LoadedScenario
    options : RunOptions, optional
        As the scenario was read.
    progress, dry_run, verbose : bool
        Whether there is a bar; whether it is only said what would be run; whether there is a line for every run.
    **changes
        Fields of `RunOptions` that differ.

    Raises
    ------
    Divergence, Stall, LimitReached, RunFailure
        At the end, if a run diverged, stalled, went beyond a limit or failed; everything that was recorded is kept,
        drawn and summarised.
    Interrupted
        If somebody pressed Ctrl-C; it says how to go on.
    """
    console = Console()
    options = replace(options or RunOptions(), **changes)
    experiment, jobs = options.experiment(loaded), options.jobs
    if dry_run:
        try:
            check_stand_ins(loaded)
            print_estimate(experiment, console, jobs)
        except InputError as error:
            raise InputError(locate(error, loaded)) from error
        return
    debug = loaded.scenario.debug
    if debug and (jobs != 1 or options.scheduler is not None):
        raise InputError("debug: true runs in this process, where a debugger can be; leave --jobs and --scheduler out")
    try:
        with hire(jobs, options.scheduler) as workers, logged(experiment, console, verbose=verbose):
            begin(experiment)
            bar = progress and not debug
            failures = perform_visibly(experiment, workers, console, bar=bar, verbose=verbose, jobs=jobs)
    except KeyboardInterrupt as stop:
        raise Interrupted(str(stop) or "interrupted") from stop
    if Store(experiment.folder).index().get("runs"):
        try:
            _conclude(experiment, console)
        except InputError as error:
            if not failures:
                raise
            _say(console, f"warning: {error}", "yellow")
    if failures:
        raise worst(failures)


def worst(failures: Sequence[HushnetError]) -> HushnetError:
    """One error for several: the kind with the largest exit code, and their sentences, as far as one can read them."""
    gravest = max(failures, key=lambda failure: failure.exit_code)
    lines = [str(failure) for failure in failures[:MOST_LINES]]
    if len(failures) > MOST_LINES:
        lines.append(f"and {len(failures) - MOST_LINES} more")
    return type(gravest)("\n".join(lines))


def _conclude(experiment: Experiment, console: Console) -> None:
    collection = results.load_all(experiment.folder)
    print_summary(collection, console)
    for line, loud in sentences(collection.index["tuning"]) if collection.index.get("tuning") else ():
        text, style = (f"warning: {line}", "yellow") if loud else (line, None)
        _say(console, text, style)
    _say(console, f"engine: {engines(collection.manifests)}")
    central = dict.fromkeys(manifest["label"] for manifest in collection.manifests if manifest.get("central"))
    if central:
        _say(console, f"computed centrally: {', '.join(central)}")
    for line in dict.fromkeys(graph_line(manifest["topology"]) for manifest in collection.manifests):
        _say(console, line)
    for line in dict.fromkeys(filter(None, (source_line(manifest["task"]) for manifest in collection.manifests))):
        _say(console, line)
    for line in fates(collection.manifests):
        _say(console, line)
    warnings = dict.fromkeys(text for manifest in collection.manifests for text in manifest.get("warnings", []))
    for text in warnings:
        _say(console, f"warning: {text}", "yellow")
    _say(console, f"results: {experiment.folder}")
    # Last, for a figure that cannot be drawn ends the command, unless the runs had nothing for it.
    from ..figures.files import draw_all

    files, refused = draw_all(collection, experiment.folder / "figures", within=experiment.folder)
    for path in files:
        if path.suffix == ".png":
            _say(console, f"figure: {path}")
    for error in refused:
        if isinstance(error, NothingRecorded):
            _say(console, f"warning: {error}", "yellow")
    if wrong := [str(error) for error in refused if not isinstance(error, NothingRecorded)]:
        raise InputError("\n".join(wrong), field=("figures",))


def _say(console: Console, text: str, style: str | None = None) -> None:
    """Print a line as it is: brackets in names and folders are no marks of style."""
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)
