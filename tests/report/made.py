"""Experiments that were never run, as those of results, with whatever else a page has to cope with."""

from __future__ import annotations

import numpy as np

from ..results import synthetic
from ..results.synthetic import write

LABELS = {"local": "purely local", "cd": "coordinate descent", "cd_eps": "private CD"}
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
EPSILON = {"local": 0.0, "cd": np.inf, "cd_eps": 37.2}


def make_run(protocol="cd", seed=0, *, grid=None, status="complete", label=None, privacy=CLAIM, warnings=()):
    """A run with what the recorder would have measured; only ``cd_eps`` is private."""
    run = synthetic.make_run(protocol, seed, grid=grid, status=status, label=label or LABELS[protocol])
    run.trace = run.trace[run.trace["statistic"] != "worst_decile"].reset_index(drop=True)
    spent = run.trace["metric"] == "updates"
    run.trace.loc[spent, ["metric", "statistic"]] = "epsilon_verified", "worst"
    run.trace.loc[spent, "value"] = (EPSILON[protocol] * run.trace["value"] / 10).fillna(0.0)
    run.agents["updates"] = np.arange(len(run.agents)) + seed
    run.agents["epsilon_verified"] = EPSILON[protocol]
    run.manifest |= {
        "scenario": {"schema": 1, "scenario": "made", "title": "Made up", "protocols": {protocol: {"kind": "local"}}},
        "error": "the objective exploded at agent 3" if status != "complete" else "",
        "engine": "event, as asked",
        "task": {"name": "linear classification", "metric": "accuracy", "dimension": 3, "notes": {}},
        "topology": {},
        "privacy": privacy if protocol == "cd_eps" else None,
        "warnings": list(warnings),
        "totals": {"time": 10.0, "activations": 100},
        "timings": {"seconds": 0.5},
        "versions": {"numpy": "2.0"},
        "code": "0.1.0+abc",
        "commit": None,
        "data": "fingerprint",
    }
    return run


def make_experiment(root, runs=None, *, name="made", **options):
    """Write runs as an experiment and return its folder."""
    return write(root, runs or [make_run(p, seed) for seed in range(3) for p in LABELS], name=name, **options)
