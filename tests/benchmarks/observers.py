"""Cost of observers: `python -m tests.benchmarks.observers`.

The last line is the processor time of the linear bound of 256 agents against each other, with 20 releases each; the
others are, by engine, the processor time of a run of 1,000 agents whose releases and copies are recorded, and of the
same run without observers, by turns, best of some: of the run, and of the whole command with the files that it writes.
"""

from __future__ import annotations

import time
from contextlib import chdir
from copy import deepcopy
from tempfile import TemporaryDirectory

import networkx as nx
import numpy as np
from hushnet.simulator import run

from tests.observers.noisy_averaging import averaging
from tests.observers.worlds import found, ran

REPEATS = 4
SCENARIO = {
    "schema": 1,
    "scenario": "plain",
    "task": {"kind": "mean_estimation", "agents": 1000, "samples": 4},
    "topology": {"kind": "random_regular", "degree": 8},
    "network": {"loss": 0.1, "latency": {"kind": "exponential", "mean": 0.5}},
    "protocols": {
        "descent": {
            "kind": "coordinate_descent",
            "mu": 0.5,
            "privacy": {"mechanism": "gaussian", "multiplier": 4.0, "clip": 1.0, "delta": 1e-5, "updates": 60},
        }
    },
    "stop": {"time": 10},
    "record": {"every": 5, "metrics": ["objective"]},
}


def of_bounds() -> float:
    """Processor time of one linear bound, in seconds."""
    world = averaging(nx.random_regular_graph(8, 256, seed=1), 20, run=ran)
    began = time.process_time()
    assert found(world).mistake == ""
    return time.process_time() - began


def of_record(engine: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Processor time of a run without observers, and with everything recorded: of the run, and of all of it."""
    plain = {**deepcopy(SCENARIO), "engine": engine}
    watched = {**plain, "scenario": "recorded", "observers": {"against": ["everyone"], "record": True}}
    spent: dict[str, list[tuple[float, float]]] = {"plain": [], "recorded": []}
    with TemporaryDirectory() as folder, chdir(folder):
        for seed in range(REPEATS):
            for scenario in (plain, watched):
                began = time.process_time()
                (manifest,) = run({**scenario, "seeds": [seed]}).manifests
                times = manifest["timings"]["cpu_seconds"], time.process_time() - began
                spent[scenario["scenario"]].append(times)
    plain, recorded = (np.min(times, axis=0).tolist() for times in spent.values())
    return (plain[0], recorded[0]), (plain[1], recorded[1])


if __name__ == "__main__":
    for engine in ("event", "batched"):
        for what, (plain, recorded) in zip(("run", "run with its files"), of_record(engine), strict=True):
            print(
                f"record of 1,000 agents, {engine} engine, {what}: {plain:.2f} s without, {recorded:.2f} s with "
                f"({recorded / plain - 1:+.0%})"
            )
    print(f"linear bound, 256 agents, 20 releases each: {of_bounds():.1f} s")
