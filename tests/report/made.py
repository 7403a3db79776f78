"""Experiments that were never run, with whatever a page has to cope with."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hushnet.simulator.analysis.results import RunResult
from hushnet.simulator.storage.store import Store

TIMES = np.arange(0.0, 11.0)
SPEED = {"local": 0.0, "cd": 1.0, "cd-private": 0.6}
LABELS = {"local": "purely local", "cd": "coordinate descent", "cd-private": "private CD"}
CLAIM = {
    "mechanism": "laplace",
    "sensitivity": "claimed",
    "claimed": 0.15,
    "claimed_by": "advanced_composition",
    "verified": 37.2,
    "delta": 0.0067,
    "flagged": True,
    "strict": False,
    "assumed_public": ["graph and weights"],
    "unit": ["record"],
    "adjacency": ["replace-one"],
}


def make_trace(protocol, seed, loss, epsilon):
    rows = []
    for k, time in enumerate(TIMES):
        head = [protocol, seed, time, 10 * k, 9 * k, (40 + seed) * k * (SPEED[protocol] > 0), 320 * k]
        gained = (0.2 - 0.3 * loss) * SPEED[protocol] * (1 - np.exp(-time / 3)) + 0.01 * seed
        measured = {
            ("objective", "value"): 10 - gained,
            ("objective", "gap"): (1 + 0.1 * seed) * np.exp(-SPEED[protocol] * time),
            ("accuracy", "mean"): 0.7 + gained,
            ("epsilon_verified", "worst"): epsilon * k / 10 if k else 0.0,
            ("traffic", "lost"): float(k),
        }
        rows += [[*head, *names, value] for names, value in measured.items()]
    columns = ["protocol", "seed", "time", "activations", "messages", "vectors", "bytes"]
    return pd.DataFrame(rows, columns=[*columns, "metric", "statistic", "value"])


def make_run(protocol="cd", seed=0, *, grid=None, status="complete", label=None, privacy=CLAIM, warnings=()):
    """A run with what the recorder would have measured; only ``cd-private`` is private."""
    epsilon = {"local": 0.0, "cd": np.inf, "cd-private": 37.2}[protocol]
    agents = pd.DataFrame(
        {
            "protocol": protocol,
            "seed": seed,
            "agent": [str(agent) for agent in range(30)],
            "samples": np.arange(10, 40),
            "degree": 4,
            "updates": np.arange(30) + seed,
            "accuracy": 0.6 + 0.004 * np.arange(30) + 0.1 * SPEED[protocol] + 0.01 * seed,
            "epsilon_verified": epsilon,
        }
    )
    manifest = {
        "scenario": {"schema": 1, "scenario": "made", "title": "Made up", "protocols": {protocol: {"kind": "local"}}},
        "protocol": protocol,
        "label": label or LABELS[protocol],
        "seed": seed,
        "grid": grid or {},
        "status": status,
        "error": "the objective exploded at agent 3" if status != "complete" else "",
        "engine": "event, as asked",
        "task": {"name": "linear classification", "metric": "accuracy", "dimension": 3, "notes": {}},
        "topology": {},
        "privacy": privacy if protocol == "cd-private" else None,
        "warnings": list(warnings),
        "totals": {"time": 10.0, "activations": 100},
        "timings": {"seconds": 0.5},
        "versions": {"numpy": "2.0"},
        "code": "0.1.0+abc",
        "commit": None,
        "data": "fingerprint",
    }
    grid_loss = (grid or {}).get("network.loss", 0.0)
    loss = grid_loss if isinstance(grid_loss, float) else 0.0
    trace = make_trace(protocol, seed, loss, epsilon)
    return RunResult(manifest, trace, agents, pd.DataFrame({"agent": ["0"], "mechanism": ["laplace"], "count": [3]}))


def make_experiment(root, runs=None, *, name="made", figures=(), labels=None, time_unit=None):
    """Write runs as an experiment and return its folder."""
    runs = runs or [make_run(protocol, seed) for seed in range(3) for protocol in LABELS]
    names = [f"{rank:016x}" for rank in range(len(runs))]
    for run_name, run in zip(names, runs, strict=True):
        Store(root).save(run_name, run)
    labels = labels or {run.manifest["protocol"]: run.manifest["label"] for run in runs}
    Store(root).write_index(scenario=name, runs=names, figures=list(figures), labels=labels, time_unit=time_unit)
    return root
