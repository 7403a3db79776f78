"""Output of ``hushnet run``: progress, summary, warnings, and the places of all files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from ...agents.errors import HushnetError, InputError, Interrupted
from ..analysis import results
from ..analysis.aggregate import NothingRecorded
from ..analysis.results import Collection
from ..analysis.summary import print_summary
from ..experiment import Experiment, RunOptions, start_workers
from ..experiment.estimate import print_estimate
from ..experiment.tuning import in_short, sentences
from ..figures.current import drawn_already, keep_drawn
from ..language.loading import LoadedScenario, locate
from ..network.graphs import graph_line
from ..report.brief import print_brief
from ..storage.store import Store
from .log import begin, logged
from .progress import perform_visibly
from .words import as_published, engines, fates, source_line

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
    """Run a scenario as ``hushnet run`` does: with a progress bar, the figures and the summary.

    Changes are fields of the options. Raises `Divergence`, `Stall`, `LimitReached` or `RunFailure` at the end, if a run
    diverged, stalled, went beyond a limit or failed; everything that was recorded is kept, drawn and summarised. Raises
    `Interrupted` if somebody pressed Ctrl-C; the message says how to go on.
    """
    console = Console()
    options = replace(options or RunOptions(), **changes)
    experiment, jobs = options.experiment(loaded), options.jobs
    if dry_run:
        try:
            print_estimate(experiment, console, jobs)
        except InputError as error:
            raise InputError(locate(error, loaded)) from error
        return
    debug = loaded.scenario.debug
    if debug and (jobs not in (1, "auto") or options.scheduler is not None):
        raise InputError("debug: true runs in this process, where a debugger can be; leave --jobs and --scheduler out")
    try:
        with (
            start_workers(1 if debug else jobs, options.scheduler) as workers,
            logged(experiment, console, verbose=verbose),
        ):
            begin(experiment)
            bar = progress and not debug
            failures = perform_visibly(experiment, workers, console, bar=bar, verbose=verbose)
    except KeyboardInterrupt as stop:
        raise Interrupted(str(stop) or "interrupted") from stop
    if Store(experiment.folder).index().get("runs"):
        try:
            _conclude(experiment, console, verbose=verbose)
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


def _conclude(experiment: Experiment, console: Console, *, verbose: bool) -> None:
    collection = results.load_all(experiment.folder)
    warnings = list(dict.fromkeys(text for manifest in collection.manifests for text in manifest.get("warnings", [])))
    tuned = sentences(collection.index["tuning"]) if collection.index.get("tuning") else ()
    if verbose:
        _tell_all(collection, console, [line for line, loud in tuned if not loud])
        for text in [*(line for line, loud in tuned if loud), *warnings]:
            _say(console, f"warning: {text}", "yellow")
    else:
        others = [
            source_line(manifest["task"]) for manifest in collection.manifests if not as_published(manifest["task"])
        ]
        print_brief(
            collection,
            [*dict.fromkeys(filter(None, others)), *(line for line, loud in tuned if loud), *warnings],
            console,
            in_short(collection.index["tuning"]) if collection.index.get("tuning") else "",
        )
    _say(console, f"results: {experiment.folder}")
    # Last, for a figure that cannot be drawn ends the command, unless the runs had nothing for it.
    files, refused = _figures(experiment, collection)
    drawn = [path.name for path in files if path.suffix == ".png"]
    if drawn:
        _say(console, f"figure{'' if len(drawn) == 1 else 's'}: {experiment.folder / 'figures'}: {', '.join(drawn)}")
    for error in refused:
        if isinstance(error, NothingRecorded):
            _say(console, f"warning: {error}", "yellow")
    if wrong := [str(error) for error in refused if not isinstance(error, NothingRecorded)]:
        raise InputError("\n".join(wrong), field=("figures",))


def _tell_all(collection: Collection, console: Console, tuned: Sequence[str]) -> None:
    print_summary(collection, console)
    central = dict.fromkeys(manifest["label"] for manifest in collection.manifests if manifest.get("central"))
    lines = [
        *tuned,
        f"engine: {engines(collection.manifests)}",
        *([f"computed centrally: {', '.join(central)}"] if central else []),
        *dict.fromkeys(graph_line(manifest["topology"]) for manifest in collection.manifests),
        *dict.fromkeys(filter(None, (source_line(manifest["task"]) for manifest in collection.manifests))),
        *fates(collection.manifests),
    ]
    for line in lines:
        _say(console, line)


def _say(console: Console, text: str, style: str | None = None) -> None:
    """Print a line as it is: brackets in names and folders are no marks of style."""
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def _figures(experiment: Experiment, collection: Collection) -> tuple[list[Path], list[InputError]]:
    """The figures' files, drawn where they are not there as they would be drawn, and why others are not."""
    there = drawn_already(experiment.folder, collection)
    if there is not None:
        return there, []
    from ..figures.figure_files import draw_all

    files, refused = draw_all(collection, experiment.folder / "figures", within=experiment.folder)
    if not refused:
        keep_drawn(experiment.folder, collection, files)
    return files, refused
