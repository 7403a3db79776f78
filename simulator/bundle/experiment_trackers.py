"""Finished runs in the file formats of MLflow and Weights & Biases, written by their own clients, without a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from ...agents.errors import InputError
from ..analysis.labels import plain_name, shown
from ..analysis.results import Collection, load_all
from ..storage.files import put_folder
from ..storage.provenance import PRESENTATION

COUNTS = ["time", "activations", "messages", "vectors", "bytes"]
"""Columns of a trace that have one value at each record."""
BATCH = 100
"""Parameters that MLflow takes at a time."""


@dataclass(frozen=True)
class _Tracked:
    """A run as experiment trackers know it: a name, parameters, and metrics at each record."""

    run: str
    name: str
    complete: bool
    parameters: dict[str, Any]
    records: list[dict[str, float]]


def export(results: Path, to: str, out: Path | None = None) -> Path:
    """Write all runs of ``results/<scenario>`` for an experiment tracker; return the folder.

    That is ``mlflow``, a SQLite database ``mlflow.db``, or ``wandb``, a folder ``wandb/offline-run-*`` for each run, in
    ``RESULTS/mlflow`` or ``RESULTS/wandb`` by default. Raises `InputError` if the tracker's client is not installed,
    the folder is there already, or there are no runs.
    """
    if to not in WRITERS:
        raise InputError(f"--to {to}: must be one of {', '.join(WRITERS)}")
    try:
        client = import_module(to)
    except ImportError as error:
        raise InputError(f"--to {to} needs {to}; install it with: pip install 'hushnet[{to}]'") from error
    collection, folder = load_all(results), (out or results / to).absolute()
    if folder.exists():
        raise InputError(f"{folder}: is there already; remove it, or name another folder with --out")
    scenario = str(collection.manifests[0]["scenario"]["scenario"])
    put_folder(folder, lambda fresh: WRITERS[to](client, scenario, [*_tracked(collection)], fresh), lambda _: False)
    return folder


def _tracked(collection: Collection) -> Iterator[_Tracked]:
    traces = dict(tuple(collection.trace.groupby("run", sort=False)))
    for run, manifest in collection.by_run.items():
        protocol, grid, trace = manifest["protocol"], manifest.get("grid") or {}, traces[run]
        scenario = {**manifest["scenario"], "protocol": manifest["scenario"]["protocols"][protocol]}
        deciding = {name: said for name, said in scenario.items() if name not in (*PRESENTATION, "protocols")}
        names = (trace["metric"].map(plain_name) + "/" + trace["statistic"]).str.replace(r"[^\w\-. /]", "_", regex=True)
        wide = trace.assign(name=names).pivot_table("value", "time", "name", "last", dropna=False)
        counts = trace.groupby("time", as_index=False)[COUNTS].last()
        found = pd.concat([counts, wide.reset_index(drop=True)], axis=1).to_dict("records")
        records = [{name: value for name, value in record.items() if not pd.isna(value)} for record in found]
        parameters = {name: manifest[name] for name in ("protocol", "label", "seed", "data_seed", "run_seed")}
        parameters |= pd.json_normalize(deciding).iloc[0].to_dict()
        place = [protocol, *(f"{path} {shown(value)}" for path, value in grid.items()), f"seed {manifest['seed']}"]
        complete = manifest["status"] == "complete"
        yield _Tracked(run.replace("#", "-"), ", ".join(place), complete, parameters, records)


def _to_mlflow(client: Any, scenario: str, runs: list[_Tracked], folder: Path) -> None:
    entities = import_module("mlflow.entities")
    tracking = client.MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")
    experiment = tracking.create_experiment(scenario)
    for run in runs:
        made = tracking.create_run(experiment, run_name=run.name, tags={"hushnet.run": run.run}).info
        params = [entities.Param(name, str(value)) for name, value in run.parameters.items()]
        metrics = [
            entities.Metric(name, float(value), made.start_time, step)
            for step, record in enumerate(run.records)
            for name, value in record.items()
        ]
        for first in range(0, max(len(params), len(metrics)), BATCH):
            batch = slice(first, first + BATCH)
            tracking.log_batch(made.run_id, metrics=metrics[batch], params=params[batch])
        tracking.set_terminated(made.run_id, "FINISHED" if run.complete else "FAILED")


def _to_wandb(client: Any, scenario: str, runs: list[_Tracked], folder: Path) -> None:
    settings = client.Settings(silent=True, console="off", disable_git=True, disable_code=True)
    names = {"dir": str(folder), "project": scenario}
    for run in runs:
        made = client.init(mode="offline", id=run.run, name=run.name, config=run.parameters, settings=settings, **names)
        made.define_metric("*", step_metric="time")
        for step, record in enumerate(run.records):
            made.log(record, step=step)
        made.finish(exit_code=0 if run.complete else 1)


WRITERS = {"mlflow": _to_mlflow, "wandb": _to_wandb}
"""What writes the runs, by the name of the tracker, its client and its extra."""
