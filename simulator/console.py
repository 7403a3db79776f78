"""What ``hushnet run`` shows: progress, summary, warnings, and where everything is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..agents.errors import HushnetError, InputError, Interrupted
from .analysis import results
from .analysis.summary import print_summary
from .experiment import Answer, Experiment, Run, RunOptions, Workers, hire, perform
from .experiment.estimate import print_estimate
from .experiment.tuning import sentences, trial_experiment
from .figures import redraw
from .figures.look import check_font
from .language.loading import LoadedScenario, locate
from .network.graphs import graph_line
from .storage.store import Store
from .world.world import World

MOST_LINES = 20
"""Failures that are said one by one."""


def run_scenario(
    loaded: LoadedScenario,
    options: RunOptions | None = None,
    *,
    progress: bool = True,
    dry_run: bool = False,
    **changes: Any,
) -> None:
    """What ``hushnet run`` does: run with a progress bar, draw the figures, print the summary.

    Parameters
    ----------
    loaded : LoadedScenario
    options : RunOptions, optional
        As the scenario was read.
    progress, dry_run : bool
        Whether there is a bar; whether it is only said what would be run.
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
            print_estimate(experiment, console, jobs)
        except InputError as error:
            raise InputError(locate(error, loaded)) from error
        return
    for style in (loaded.scenario.style, *(figure.style for figure in loaded.scenario.figures)):
        if style is not None:
            check_font(style)  # and not after hours of runs
    debug = loaded.scenario.debug
    if debug and (jobs != 1 or options.scheduler is not None):
        raise InputError("debug: true runs in this process, where a debugger can be; leave --jobs and --scheduler out")
    try:
        with hire(jobs, options.scheduler) as workers:
            failures = perform_visibly(experiment, workers, console, bar=progress and not debug)
    except KeyboardInterrupt as stop:
        raise Interrupted(str(stop) or "interrupted") from stop
    if Store(experiment.folder).index().get("runs"):
        try:
            _conclude(experiment, console)
        except InputError as error:
            if not failures:
                raise
            console.print(f"warning: {error}", style="yellow", highlight=False, markup=False, soft_wrap=True)
    if failures:
        raise worst(failures)


def worst(failures: Sequence[HushnetError]) -> HushnetError:
    """One error for several: the kind with the largest exit code, and their sentences, as far as one can read them."""
    gravest = max(failures, key=lambda failure: failure.exit_code)
    lines = [str(failure) for failure in failures[:MOST_LINES]]
    if len(failures) > MOST_LINES:
        lines.append(f"and {len(failures) - MOST_LINES} more")
    return type(gravest)("\n".join(lines))


def engines(manifests: Sequence[dict[str, Any]]) -> str:
    """Which engine ran and why; by protocol where they differ."""
    ran: dict[str, list[str]] = {}
    for manifest in manifests:
        labels = ran.setdefault(_engine(manifest), [])
        if manifest["label"] not in labels:
            labels.append(manifest["label"])
    if len(ran) == 1:
        return next(iter(ran))
    return "; ".join(f"{engine} for {', '.join(labels)}" for engine, labels in ran.items())


def _engine(manifest: dict[str, Any]) -> str:
    """A run's engine, with the form of its steps where that is known and not said with it."""
    engine, form = manifest.get("engine", "event"), (manifest.get("form") or {}).get("steps")
    return f"{engine}; steps in Python" if form == "python" and "step" not in engine.partition(",")[0] else engine


def perform_visibly(
    experiment: Experiment, workers: Workers, console: Console, *, bar: bool = True
) -> list[HushnetError]:
    """`perform` with a progress bar, if wanted, and a line above it for every run that fails."""
    if not bar:
        return perform(experiment, workers=workers)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        stages = [stage for stage in (trial_experiment(experiment), experiment) if stage is not None]
        total = sum(1 for stage in stages for _ in stage.runs())
        job = progress.add_task("preparing", total=total, rate="")
        began = {"at": time.perf_counter()}

        def on_start(run: Run) -> None:
            began["at"] = time.perf_counter()
            progress.update(job, description=_words(run), rate="")

        def on_run(run: Run, answer: Answer) -> None:
            description = f"{_words(run)}{' (there)' if answer.there else ''}"
            progress.update(job, advance=1, description=description)
            _say_failure(run, answer, progress.console)

        def on_sample(world: World) -> None:
            rate = world.activations / max(time.perf_counter() - began["at"], 1e-9)
            progress.update(job, rate=f", {rate:,.0f} activations/s")

        def on_check(run: Run) -> None:
            progress.update(job, description=f"privacy contract of {run.point.scenario.label(run.protocol)}", rate="")

        on = {"on_start": on_start, "on_run": on_run, "on_sample": on_sample, "on_check": on_check}
        return perform(experiment, workers=workers, **on)


def _words(run: Run) -> str:
    grid = "".join(f", {path} = {value}" for path, value in run.point.values.items())
    return f"{run.point.scenario.label(run.protocol)}, seed {run.seed}{grid}"


def _say_failure(run: Run, answer: Answer, console: Console) -> None:
    if answer.status != "complete" and not answer.there:
        text = f"{answer.status}: {_words(run)}: {answer.error}"
        console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)


SESSIONS = {
    "finished": "finished",
    "void": "void",
    "refused": "refused",
    "given_up": "given up",
    "open": "still open",
}
"""What may become of a session, in totals and in words."""


def _conclude(experiment: Experiment, console: Console) -> None:
    collection = results.load_all(experiment.folder)
    print_summary(collection, console)
    for line, loud in sentences(collection.index["tuning"]) if collection.index.get("tuning") else ():
        text, style = (f"warning: {line}", "yellow") if loud else (line, None)
        console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)
    console.print(f"engine: {engines(collection.manifests)}", highlight=False, soft_wrap=True)
    central = dict.fromkeys(manifest["label"] for manifest in collection.manifests if manifest.get("central"))
    if central:
        console.print(f"computed centrally: {', '.join(central)}", highlight=False, markup=False, soft_wrap=True)
    for line in dict.fromkeys(graph_line(manifest["topology"]) for manifest in collection.manifests):
        console.print(line, highlight=False, soft_wrap=True)
    for line in dict.fromkeys(filter(None, (source_line(manifest["task"]) for manifest in collection.manifests))):
        console.print(line, highlight=False, soft_wrap=True)
    for line in fates(collection.manifests):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    warnings = dict.fromkeys(text for manifest in collection.manifests for text in manifest.get("warnings", []))
    for text in warnings:
        console.print(f"warning: {text}", style="yellow", highlight=False, soft_wrap=True)
    console.print(f"results: {experiment.folder}", highlight=False, soft_wrap=True)
    # Last, for a figure that cannot be drawn ends the command.
    for path in redraw(experiment.folder, collection=collection):
        if path.suffix == ".png":
            console.print(f"figure: {path}", highlight=False, soft_wrap=True)


def fates(manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    """What became of pairwise sessions, and of rounds that did not all go as planned: a line per protocol, all runs."""
    sums: dict[str, Counter[str]] = {}
    for manifest in manifests:
        sums.setdefault(manifest["label"], Counter()).update(manifest.get("totals") or {})
    lines = []
    for label, total in sums.items():
        opened = int(total["sessions_opened"])
        if opened:
            other = ", ".join(f"{total[f'sessions_{name}']:,} {word}" for name, word in SESSIONS.items())
            lines.append(f"{label}: {opened:,} sessions opened, {other}; {total['sessions_skipped']:,} calls skipped")
        begun, repeated = int(total["rounds_begun_without_all"]), int(total["messages_repeated"])
        finished, planned = int(total["rounds_finished"]), int(total["rounds_planned"])
        if begun or repeated or finished < planned:
            done = (
                f"{finished:,} of {planned:,} planned rounds finished" if planned else f"{finished:,} rounds finished"
            )
            lines.append(f"{label}: {done}, {begun:,} begun without all messages; {repeated:,} messages repeated")
    return lines


def source_line(task: Mapping[str, Any]) -> str | None:
    """Where a task's data come from, and their checksum or that there is none; None for what was not published."""
    notes = task["notes"]
    if "md5" not in notes and "not_verified" not in notes:
        return None
    parts = [f"data: {notes['source']}"]
    if "md5" in notes:
        known = "as published" if notes["as_published"] else "not the published file"
        parts.append(f"md5 {notes['md5']} ({known})")
    if "not_verified" in notes:
        parts.append(f"{' and '.join(notes['not_verified'])} not verified (no checksum is published)")
    return ", ".join(parts)
