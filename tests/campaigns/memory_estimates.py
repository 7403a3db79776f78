"""Estimates of memory beside what runs take, for shipped scenarios or a table of protocols; by hand, for the factor.

``python -m tests.campaigns.memory_estimates [SCENARIO ...]``

Each run is made in a process of its own; what it takes is how far its resident memory rises above what it had before
data were made, and before that a small run has had everything imported and compiled.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence

SIZES = {"agents": 4000, "dimension": 50, "samples": [10, 20], "test_samples": 5}
TASK = {"kind": "linear_classification", **SIZES}
BASE = {"schema": 1, "scenario": "estimate", "task": TASK, "topology": {"kind": "random_regular", "degree": 10}}
COLUMNS = {"kind": "gisette_like", "rows": 3000, "dimension": 400, "test_rows": 100}
SPLIT = {**COLUMNS, "split": {"by": "columns", "parts": [100, 100, 100, 100]}}
STAR = {**BASE, "task": SPLIT, "topology": {"kind": "star"}}
CASES = {
    "local": {**BASE, "protocols": {"p": {"kind": "local"}}},
    "coordinate_descent": {**BASE, "protocols": {"p": {"kind": "coordinate_descent"}}},
    "model_propagation": {**BASE, "protocols": {"p": {"kind": "model_propagation", "alpha": 0.5}}},
    "collaborative_admm": {**BASE, "protocols": {"p": {"kind": "collaborative_admm", "mu": 1.0, "rho": 1.0}}},
    "consensus_admm": {**BASE, "protocols": {"p": {"kind": "consensus_admm", "penalty": 1.0}}},
    "edge_consensus_admm": {**BASE, "protocols": {"p": {"kind": "edge_consensus_admm", "rho": 1.0}}},
    "dual_averaging": {**BASE, "protocols": {"p": {"kind": "dual_averaging"}}},
    "push_sum_dual_averaging": {**BASE, "protocols": {"p": {"kind": "push_sum_dual_averaging"}}},
    "feature_sharing": {**STAR, "protocols": {"p": {"kind": "feature_sharing"}}},
    "feature_sgd": {**STAR, "protocols": {"p": {"kind": "feature_sgd"}}},
}
SMALL = {"agents": 20, "dimension": 3}
CHILD = """\
import json, sys, threading, time
import psutil
from hushnet.simulator.engine.selection import engine_for
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.language.loading import load
from hushnet.simulator.limits.memory import expected_bytes

source, small = json.loads(sys.argv[1]), json.loads(sys.argv[2])

def one(loaded):
    experiment = Experiment(loaded)
    run = max(experiment.runs(), key=lambda run: run.protocol == (sys.argv[3] or run.protocol))
    experiment.data(run)
    world = experiment.world(run)
    engine_for(run.point.scenario.engine, world).run(world)
    return experiment, run

one(load(small) if isinstance(small, dict) else load(source, overrides=small))
own, peak = psutil.Process(), [0]
before = own.memory_info().rss

def watch():
    while True:
        peak[0] = max(peak[0], own.memory_info().rss)
        time.sleep(0.002)

threading.Thread(target=watch, daemon=True).start()
experiment, run = one(load(source))
print(json.dumps([run.protocol, expected_bytes(run.point.scenario, experiment.files), peak[0] - before]))
"""


def measured(source: object, small: object, protocol: str = "") -> tuple[str, float, float]:
    """Protocol, estimate and what was taken, in MiB."""
    command = [sys.executable, "-c", CHILD, json.dumps(source), json.dumps(small), protocol]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    key, needed, taken = json.loads(done.stdout.splitlines()[-1])
    return key, needed / 2**20, taken / 2**20


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per case."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.memory_estimates")
    parser.add_argument("names", nargs="*", help="shipped scenarios, or names of the table; the table by default")
    for name in parser.parse_args(arguments).names or CASES:
        if name in CASES:
            case = {**CASES[name], "stop": {"time": 2.0}, "record": {"every": 1.0, "metrics": ["traffic"]}}
            tiny = {**case, "task": {**TASK, **SMALL}, "topology": {"kind": "ring"}}
            key, needed, taken = measured(case, case if case["task"] is SPLIT else tiny)
        else:
            key, needed, taken = measured(name, ["stop.time=0.1"])
        factor = needed / max(taken, 1e-9)
        print(
            f"{name:<26} {key:<20} estimated {needed:7.1f} MiB, taken {taken:7.1f} MiB, factor {factor:.2f}", flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
