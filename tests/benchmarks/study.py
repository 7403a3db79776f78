"""What a study takes: ``python -m tests.benchmarks.study``.

Five protocols on ten points with ten seeds, each run of 100 agents with 101 records: processor time in all and by
protocol, what a record takes (a run with its 101 records against one with two), and a run of 20 agents.
Runs of one protocol are made side by side; the whole study is made once more with each by itself, in one process.
``--toy`` sees that it runs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hushnet.simulator.experiment import Experiment, RunOutcome, perform, stacks, start_workers
from hushnet.simulator.language.loading import load

from .sweep import processor

TIME = 100.0
"""Time units of a run; it is recorded at the start and once in each of them."""
NOISE = {"mechanism": "gaussian", "target": {"verified": 3.0, "delta": 0.001}, "updates": 15, "clip": 0.2}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "cd": {"kind": "coordinate_descent", "mu": 0.04},
    "cd-strong": {"kind": "coordinate_descent", "mu": 0.16},
    "cd-private": {"kind": "coordinate_descent", "mu": 0.04, "privacy": {**NOISE, "sensitivity": "clip"}},
    "propagation": {"kind": "model_propagation"},
    "local": {"kind": "local"},
}


@dataclass(frozen=True)
class Study:
    """How large a study is.

    Parameters
    ----------
    agents, points, seeds : int
    time : float
        Time units of a run.
    every : float
        Time units between two records.
    """

    agents: int = 100
    points: int = 10
    seeds: int = 10
    time: float = TIME
    every: float = 1.0

    @property
    def scenario(self) -> dict[str, Any]:
        """What is run."""
        return {
            "schema": 1,
            "scenario": "study",
            "task": {"kind": "linear_classification", "agents": self.agents, "dimension": 20, "points": "ball"},
            "topology": {"kind": "knn", "k": min(10, self.agents - 1)},
            "network": {"latency": {"kind": "exponential", "mean": 0.2}},
            "engine": "batched",
            "protocols": PROTOCOLS,
            "stop": {"time": self.time},
            "record": {"every": self.every, "metrics": ["objective", "accuracy", "traffic"]},
            "sweep": {"network.loss": [number / 20 for number in range(self.points)]},
            "seeds": self.seeds,
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.study", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="of each point (10)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--toy", action="store_true", help="at toy size, to see that it runs")
    options = parser.parse_args(arguments)
    whole = Study(agents=6, points=1, seeds=1, time=4.0) if options.toy else Study(seeds=options.seeds)
    few = replace(whole, points=1, seeds=min(3, whole.seeds))
    measured(few)  # so that everything is compiled
    seconds, outcomes = measured(whole, options.jobs)
    print(f"{whole.points} points x {whole.seeds} seeds: {len(outcomes)} runs, {seconds:.1f} s of processor time")
    with patch.object(stacks, "MOST_AGENTS", 1):
        alone, singly = measured(whole)
    print(f"one after the other: {alone:.1f} s, {alone / seconds:.2f} times as much")
    with_all, with_two = usual(measured(few)[1]), usual(measured(replace(few, every=few.time))[1])
    small = usual(measured(replace(few, agents=min(20, few.agents)))[1])
    print("| protocol | a run, ms | by itself, ms | a record, ms | a run of 20 agents, ms |")
    print("| --- | ---: | ---: | ---: | ---: |")
    each = usual(singly)
    for name, taken in usual(outcomes).items():
        record = (with_all[name] - with_two[name]) / (few.time / few.every - 1)
        print(f"| {name} | {1e3 * taken:.1f} | {1e3 * each[name]:.1f} | {1e3 * record:.2f} | {1e3 * small[name]:.1f} |")


def measured(study: Study, jobs: int = 1) -> tuple[float, list[tuple[str, RunOutcome]]]:
    """Processor time of a study in a new folder, and what became of its runs, by protocol."""
    outcomes: list[tuple[str, RunOutcome]] = []
    with tempfile.TemporaryDirectory() as folder:
        began = processor()
        with start_workers(jobs) as workers:
            experiment = Experiment(load(study.scenario), Path(folder) / "study")
            failures = perform(
                experiment, workers=workers, on_run=lambda run, outcome: outcomes.append((run.protocol, outcome))
            )
        assert not failures
        return processor() - began, outcomes


def usual(outcomes: Sequence[tuple[str, RunOutcome]]) -> dict[str, float]:
    """Median processor time of a run in seconds, by protocol."""
    return {
        name: statistics.median(outcome.cpu_seconds for other, outcome in outcomes if other == name)
        for name in dict.fromkeys(name for name, _ in outcomes)
    }


if __name__ == "__main__":
    main()
