"""What ``hushnet run`` shows: progress, summary, warnings, and where everything is."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..agents.errors import Divergence, InputError, Stall
from . import results
from .estimate import print_estimate
from .experiment import Experiment, Run, perform
from .figures import redraw
from .graphs import graph_line
from .loading import LoadedScenario, locate
from .summary import print_summary
from .world import World


def run_scenario(
    loaded: LoadedScenario,
    *,
    out: Path | None = None,
    data_dir: Path | None = None,
    progress: bool = True,
    dry_run: bool = False,
) -> None:
    """What ``hushnet run`` does: run with a progress bar, draw the figures, print the summary.

    Raises
    ------
    Divergence, Stall
        At the end, if a run diverged or stalled; everything that was recorded is kept, drawn and summarised.
    """
    console = Console()
    experiment = Experiment(loaded, out, data_dir)
    if dry_run:
        try:
            print_estimate(experiment, console)
        except InputError as error:
            raise InputError(locate(error, loaded)) from error
        return
    failures = _with_progress(experiment, console) if progress else perform(experiment)
    _conclude(experiment, console)
    if failures:
        raise type(failures[0])("\n".join(str(failure) for failure in failures))


def engines(manifests: Sequence[dict[str, Any]]) -> str:
    """Which engine ran and why; by protocol where they differ."""
    ran: dict[str, list[str]] = {}
    for manifest in manifests:
        labels = ran.setdefault(manifest.get("engine", "reference"), [])
        if manifest["label"] not in labels:
            labels.append(manifest["label"])
    if len(ran) == 1:
        return next(iter(ran))
    return "; ".join(f"{engine} for {', '.join(labels)}" for engine, labels in ran.items())


def _with_progress(experiment: Experiment, console: Console) -> list[Divergence | Stall]:
    total = sum(1 for _ in experiment.runs())
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs, {task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        job = bar.add_task("preparing", total=total, rate="")
        began = {"at": time.perf_counter()}
        counted = iter(range(total))

        def on_run(run: Run, there: bool) -> None:
            began["at"] = time.perf_counter()
            label = run.point.scenario.label(run.protocol)
            grid = "".join(f", {path} = {value}" for path, value in run.point.values.items())
            description = f"{label}, seed {run.seed}{grid}{' (there)' if there else ''}"
            bar.update(job, description=description, completed=next(counted), rate="")

        def on_sample(world: World) -> None:
            rate = world.activations / max(time.perf_counter() - began["at"], 1e-9)
            bar.update(job, rate=f"{rate:,.0f} activations/s")

        return perform(experiment, on_run=on_run, on_sample=on_sample)


def _conclude(experiment: Experiment, console: Console) -> None:
    collection = results.load_all(experiment.folder)
    figures = redraw(experiment.folder)
    print_summary(collection, console)
    console.print(f"engine: {engines(collection.manifests)}", highlight=False, soft_wrap=True)
    for line in dict.fromkeys(graph_line(manifest["topology"]) for manifest in collection.manifests):
        console.print(line, highlight=False, soft_wrap=True)
    for line in dict.fromkeys(filter(None, (source_line(manifest["task"]) for manifest in collection.manifests))):
        console.print(line, highlight=False, soft_wrap=True)
    warnings = dict.fromkeys(text for manifest in collection.manifests for text in manifest.get("warnings", []))
    for text in warnings:
        console.print(f"warning: {text}", style="yellow", highlight=False, soft_wrap=True)
    for path in figures:
        if path.suffix == ".png":
            console.print(f"figure: {path}", highlight=False, soft_wrap=True)
    console.print(f"results: {experiment.folder}", highlight=False, soft_wrap=True)


def source_line(task: Mapping[str, Any]) -> str | None:
    """Where a task's data come from and their checksum; None if they were not read from a file with one."""
    notes = task["notes"]
    if "md5" not in notes:
        return None
    known = "as published" if notes["as_published"] else "not the published file"
    return f"data: {notes['source']}, md5 {notes['md5']} ({known})"
