"""How much of a sweep is spent in its runs: ``python -m tests.benchmarks.sweep``.

Many short runs of about 0.2 s on two processes: processor time of runs as a share of all that is used, the most memory
that the process which hands them out has had, and the seconds that it takes to read them all.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.experiment import Experiment, RunOutcome, perform, start_workers
from hushnet.simulator.language.loading import load

POINTS, PROTOCOLS = 10, 4


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.sweep", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="how many, in steps of 40 (2000)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--folder", type=Path, help="where to write them; the system's temporary folder by default")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        experiment = Experiment(load(scenario(max(1, options.runs // (POINTS * PROTOCOLS)))), Path(folder) / "sweep")
        measure(experiment, options.jobs)


def scenario(seeds: int) -> dict[str, Any]:
    """Four protocols on lossy links."""
    protocols = {f"cd-{k}": {"kind": "coordinate_descent", "mu": 0.01 * 4**k} for k in range(PROTOCOLS)}
    return {
        "schema": 1,
        "scenario": "sweep",
        "task": {"kind": "linear_classification", "agents": 100, "dimension": 50, "points": "ball"},
        "topology": {"kind": "knn", "k": 10},
        "network": {"latency": {"kind": "exponential", "mean": 0.5}},
        "protocols": protocols,
        "stop": {"time": 60},
        "record": {"every": 1.0, "metrics": ["objective", "accuracy", "traffic"]},
        "sweep": {"network.loss": [number / 20 for number in range(POINTS)]},
        "seeds": seeds,
    }


def measure(experiment: Experiment, jobs: int) -> None:
    """Run it all and print what it took."""
    answers: list[RunOutcome] = []
    began = time.perf_counter()
    with start_workers(jobs) as workers:
        failures = perform(experiment, workers=workers, on_run=lambda _, answer: answers.append(answer))
    seconds, everything = time.perf_counter() - began, processor()
    assert not failures
    inside = sum(answer.cpu_seconds for answer in answers)
    print(
        f"{len(answers)} runs of {inside / len(answers):.3f} s of processor time on {jobs} processes: {seconds:.0f} s"
    )
    print(f"share of processor time in runs: {inside / everything:.1%} of {everything:.0f} s")
    print(f"processor time of the process that hands them out: {processor(resource.RUSAGE_SELF):.1f} s")
    print(f"its peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB")
    began = time.perf_counter()
    rows = len(load_all(experiment.folder).trace)
    print(f"reading all {rows} rows: {time.perf_counter() - began:.2f} s")


def processor(*whose: int) -> float:
    """Seconds of processor time so far; without anybody named, of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in whose or (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


if __name__ == "__main__":
    main()
