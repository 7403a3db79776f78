"""Writes the table that estimates of time are read from: ``python -m tests.benchmarks.step_times``.

Worlds of 100 agents, of every protocol in every way that it can run, over a grid of sizes, until one has taken so long
or made so many steps; see `hushnet.simulator.experiment.step_times`.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hushnet.agents.graph import Graph
from hushnet.agents.objectives.minima import cached_minimum
from hushnet.agents.tasks.base import Task
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.experiment import Experiment, perform
from hushnet.simulator.experiment.step_times import FILE, Steps
from hushnet.simulator.language.loading import load
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.recording.recorder import Recorder
from threadpoolctl import threadpool_limits

from ..engine.driving import drive, prepared
from ..protocols.columns import split_task, star
from .cases import SEED, Case, make_task, random_regular
from .matrix.cases import ENTRIES, Entry, Row, rows_of
from .measure import Stopwatch, undisturbed
from .run import processor

AGENTS = 100
LIKE_OTHERS = (Entry("local_dp_descent", {"mu": 0.04}),)
"""Protocols that have no row of the matrix, for their step is another one's."""
GRID: dict[str, list[float]] = {"dimension": [2, 20, 100], "rows": [5, 100], "degree": [4, 20]}
PARTIES = [2, 8]
COLUMNS: dict[str, list[float]] = {
    "dimension": [10, 50, 250],
    "rows": [20, 500],
    "degree": [2 * parties / (parties + 1) for parties in PARTIES],
}
"""Rows of an agent are those of all, in parties and centre alike."""
SECONDS = 0.05
FEWEST, MOST = 3, 30
BEGINNING = 2
SURROUNDINGS = (("lossless", False), ("loss", False), ("lossless", True))
"""Networks, and whether the event engine runs them; with noise the first only."""


@dataclass(frozen=True)
class Point(Row):
    """A row of the matrix at a point of the grid."""

    rows: int = 0
    degree: float = 0.0

    @property
    def data(self) -> tuple[Task, Graph]:
        """See `Row.data`."""
        return data_at(self.entry.protocol.learns_from, self.dimension, self.rows, self.degree)


@cache
def data_at(learns_from: str, dimension: int, rows: int, degree: float) -> tuple[Task, Graph]:
    """Task and graph of a size."""
    if learns_from == "columns":
        parties = round(degree / (2 - degree))
        parts = [len(part) for part in np.array_split(np.arange(dimension), parties)]
        task = split_task(parts, rows * (parties + 1))
        return task, star(task)
    case = Case("step times", agents=AGENTS, dimension=dimension, degree=int(degree), rows=(rows, rows))
    rng = np.random.default_rng(SEED)
    return make_task(case, rng), random_regular(AGENTS, int(degree), rng)


def points_of(row: Row, grid: dict[str, list[float]]) -> Iterator[Point]:
    """A row at all points of the grid."""
    for dimension, rows, degree in itertools.product(*grid.values()):
        entry, p = row.entry, int(dimension)
        if "batch" in entry.fields and "averaging" in entry.kind:
            entry = replace(entry, fields={**entry.fields, "batch": min(5, int(rows))})
        if entry.kind == "perturbed_admm":  # theorem 4.1 asks for more rows than there are, unless losses count less
            entry = replace(entry, fields={**entry.fields, "loss_weight": 0.1})
        yield Point(entry, row.way, row.noise, p, rows=int(rows), degree=degree)


def measure_point(point: Point, network: str, *, event: bool, quick: bool = False) -> tuple[str, float, float]:
    """The form of a step, and microseconds of a step and of an agent's start."""
    form, step, start = _run(point, network, BEGINNING, event=event)
    if quick or 1e-6 * step * AGENTS * BEGINNING > SECONDS:
        return form, step, start
    updates = int(min(max(SECONDS / (1e-6 * step * AGENTS), FEWEST), MOST))
    return _run(point, network, updates, event=event)


def _run(point: Point, network: str, updates: int, *, event: bool) -> tuple[str, float, float]:
    agents = len(point.data[0].ids)
    watch = Stopwatch()
    with undisturbed():
        built = time.process_time()
        world = point.world(network, Stop(activations=updates * agents), recorder=watch)
        drive(prepared(world, EventEngine() if event else BatchedEngine()))
    form = "event" if event else "compiled" if "compiled step" in world.engine else "Python"
    return form, 1e6 * (watch.ended - watch.began) / world.activations, 1e6 * (watch.began - built) / agents


def table(*, quick: bool = False, only: Sequence[str] = ()) -> dict[str, Any]:
    """What the file has; ``quick`` with two steps an agent and a grid of few points, to see that it is written."""
    grid, columns = (({name: axis[:2] for name, axis in one.items()} if quick else one) for one in (GRID, COLUMNS))
    steps: dict[str, list[float]] = {}
    starts: dict[str, list[float]] = {}
    kinds = []
    for entry in {entry.kind: entry for entry in (*ENTRIES, *LIKE_OTHERS)}.values():
        if only and entry.kind not in only:
            continue
        split = entry.protocol.learns_from == "columns"
        kinds += [entry.kind] if split else []
        for row in rows_of(entry, (int(grid["dimension"][0]),)):
            plain = row.noise in ("plain", row.noise_of_its_own)
            if not plain and not split and not draws_in_steps(row):
                continue
            for network, event in SURROUNDINGS if plain else SURROUNDINGS[:1]:
                points = list(points_of(row, columns if split else grid))
                _run(points[0], network, 1, event=event)  # compiles
                found = [measure_point(point, network, event=event, quick=quick) for point in points]
                key = Steps(entry.kind, row.way, row.noise, found[0][0], network == "loss").key  # type: ignore[arg-type]
                steps[key] = [float(f"{step:.3g}") for _, step, _ in found]
                starts[key] = [float(f"{start:.3g}") for _, _, start in found]
                print(key, steps[key], flush=True)
    return {
        "date": f"{datetime.date.today():%Y-%m-%d}",
        "machine": processor(),
        "run": seconds_of_a_run(),
        **grid,
        "columns": {"kinds": kinds, **columns},
        "record": [record(int(p), int(rows)) for p, rows in itertools.product(grid["dimension"], grid["rows"])],
        "steps": steps,
        "starts": starts,
    }


def draws_in_steps(row: Row) -> bool:
    """Whether a row's noise is drawn in its steps, and not only at the start."""
    return replace(row, toy=True).world("lossless", Stop(time=1.0)).protocol.step_noise is not None


def record(dimension: int, rows: int) -> float:
    """Microseconds an agent of measuring objective, accuracy and traffic, averaged over the records of a run."""
    point = Point(ENTRIES[0], "broadcast", "plain", dimension, rows=rows, degree=GRID["degree"][0])
    found = []
    for every in (None, 0.5):
        world = point.world("lossless", Stop(time=20.0))
        objective = world.protocol.objective()
        assert objective is not None
        cached_minimum(objective, None)
        watch = Stopwatch(Recorder(("objective", "accuracy", "traffic"), objective=objective) if every else None)
        drive(prepared(point.world("lossless", Stop(time=20.0), recorder=watch, every=every), BatchedEngine()))
        found.append(watch.ended - watch.began)
    return float(f"{max(1e6 * (found[1] - found[0]) / (40 * AGENTS), 0.1):.3g}")


def seconds_of_a_run(runs: int = 20) -> float:
    """Processor time of a run of four agents for no time at all, from its data to its files."""
    scenario = {
        "schema": 1,
        "scenario": "nothing",
        "task": {"kind": "linear_classification", "agents": 4, "dimension": 2},
        "topology": {"kind": "ring"},
        "protocols": {"cd": {"kind": "coordinate_descent"}},
        "stop": {"time": 0.01},
        "seeds": runs,
    }
    with tempfile.TemporaryDirectory() as folder:
        experiment = Experiment(load(scenario), Path(folder) / "nothing")
        began = time.process_time()
        perform(experiment)
        return float(f"{(time.process_time() - began) / runs:.2g}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure and write."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.step_times", description=__doc__)
    parser.add_argument("--file", type=Path, default=FILE, help="where to write it (in the package)")
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="KIND", help="these protocols; others stay as they are"
    )
    options = parser.parse_args(arguments)
    with threadpool_limits(limits=1):
        content = table(only=options.only)
    if options.only and options.file.exists():
        before = json.loads(options.file.read_text(encoding="utf-8"))
        for name in ("steps", "starts"):
            kept = {key: one for key, one in before[name].items() if key.split()[0] not in options.only}
            content[name] = {**kept, **content[name]}
        content["columns"]["kinds"] = sorted({*before["columns"]["kinds"], *content["columns"]["kinds"]})
    options.file.write_text(written(content), encoding="utf-8")
    print(f"written to {options.file}", file=sys.stderr)


def written(content: dict[str, Any]) -> str:
    """JSON with a line for each list of numbers."""
    text = json.dumps(content, indent=1)
    return re.sub(r"\[\s+([^\[\]]+?)\s+\]", lambda found: "[" + re.sub(r"\s+", " ", found[1]) + "]", text) + "\n"


if __name__ == "__main__":
    main()
