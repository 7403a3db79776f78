"""Experiments that were never run: numbers by formula, so that tests can say what must come out."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hushnet.simulator.analysis.results import Collection, RunResult
from hushnet.simulator.storage.store import Store

TIMES = np.arange(0.0, 11.0)
LABELS = {"local": "local", "cd": "coordinate descent", "cd_eps": "private CD"}
SPEED = {"local": 0.0, "cd": 1.0, "cd_eps": 0.6}
HONEST = {"claimed": 1.0, "verified": 0.93, "delta": 0.0067, "mechanism": "laplace", "flagged": False}
FALSE = {"claimed": 0.15, "verified": 37.2, "delta": 0.0067, "mechanism": "laplace", "flagged": True}
QUANTITY = {"function": "Q", "scale": "sum over agents", "identity": "one for all"}
PUBLIC = ["graph weights", "confidences"]


def accuracy(protocol, seed, loss=0.0):
    """(11,) accuracy at TIMES."""
    return 0.7 + (0.2 - 0.3 * loss) * SPEED[protocol] * (1 - np.exp(-TIMES / 3)) + 0.01 * seed


def make_trace(protocol, seed, loss=0.0):
    rows = []
    for k, time in enumerate(TIMES):
        head = [protocol, seed, time, 10 * k, 9 * k, (40 + seed) * k * (SPEED[protocol] > 0), 320 * k]
        shown = accuracy(protocol, seed, loss)[k]
        measured = {
            ("objective", "value"): 10 - shown,
            ("objective", "gap"): (1 + 0.1 * seed) * np.exp(-SPEED[protocol] * time),
            ("accuracy", "mean"): shown,
            ("accuracy", "worst_decile"): shown - 0.2,
            ("updates", "mean"): float(k),
            ("traffic", "lost"): float(k),
        }
        rows += [[*head, *names, value] for names, value in measured.items()]
    columns = ["protocol", "seed", "time", "activations", "messages", "vectors", "bytes"]
    return pd.DataFrame(rows, columns=[*columns, "metric", "statistic", "value"])


def make_run(protocol="cd", seed=0, *, grid=None, privacy=None, status="complete", label=None):
    """A run with what the recorder would have measured."""
    loss = (grid or {}).get("network.loss", 0.0)
    loss = loss if isinstance(loss, float) else 0.0
    sizes = np.arange(10, 40)
    agents = pd.DataFrame(
        {
            "protocol": protocol,
            "seed": seed,
            "agent": [str(agent) for agent in range(len(sizes))],
            "samples": sizes,
            "degree": 4,
            "updates": 10,
            "accuracy": 0.6 + 0.004 * sizes + 0.1 * SPEED[protocol] + 0.01 * seed,
            "epsilon_claimed": privacy["claimed"] if privacy else np.nan,
            "epsilon_verified": privacy["verified"] if privacy else np.nan,
        }
    )
    ledger = pd.DataFrame({"agent": ["0", "1"], "mechanism": ["laplace", "laplace"], "count": [3, 4]})
    manifest = {
        "scenario": {"schema": 1, "scenario": "synthetic"},
        "protocol": protocol,
        "label": label or LABELS[protocol],
        "seed": seed,
        "grid": grid or {},
        "status": status,
        "measures": {"objective": QUANTITY},
        "privacy": privacy and {**privacy, "assumed_public": PUBLIC},
    }
    return RunResult(manifest, make_trace(protocol, seed, loss), agents, ledger)


def collected(runs):
    """The collection that writing these runs and reading them back would give."""
    names = [f"{k:016x}" for k in range(len(runs))]
    tables = {
        table: pd.concat(
            [getattr(r, table).assign(run=name, **r.manifest["grid"]) for name, r in zip(names, runs, strict=True)],
            ignore_index=True,
        )
        for table in ("trace", "agents")
    }
    return Collection(**tables, manifests=[run.manifest for run in runs], runs=names)


def write(root, runs, *, name="synthetic", figures=(), labels=None, time_unit=None, grids=None):
    """Write runs, each once, and figure specifications as an experiment, and return its folder."""
    places = {id(run): f"{rank:016x}" for rank, run in enumerate(runs)}
    names = [places[id(run)] for run in runs]
    for run_name, run in zip(names, runs, strict=True):
        Store(root).save(run_name, run)
    labels = labels or {run.manifest["protocol"]: run.manifest["label"] for run in runs}
    more = {"time_unit": time_unit, "grids": grids}
    Store(root).write_index(scenario=name, runs=names, figures=list(figures), labels=labels, **more)
    return root
