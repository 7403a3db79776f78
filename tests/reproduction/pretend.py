"""Runs of a scenario that were never run: its protocols, grid, seeds and metrics, with numbers by formula."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
from hushnet.simulator.analysis.results import Collection, RunResult
from hushnet.simulator.reproduction.reproduction_runs import Runs
from hushnet.simulator.storage.store import Store

STEPS = np.arange(6)
STATISTICS = {
    "objective": ("value", "gap"),
    "accuracy": ("mean", "worst_decile"),
    "rmse": ("mean", "worst_decile"),
    "mse": ("mean", "worst_decile"),
    "epsilon_claimed": ("worst", "median"),
    "epsilon_verified": ("worst", "median"),
    "distance": ("mean", "worst"),
    "updates": ("mean",),
    "traffic": ("sent",),
    "epsilon_observers": ("worst", "median", "distance 1", "distance 2", "distance 3", "distance 4"),
}


class PretendedRuns(Runs):
    """Runs of a collection that is nowhere on disk: ledgers have one release of every agent, graphs are rings."""

    def ledgers(self, key):
        ledger = pd.DataFrame(
            {
                "agent": ["0", "1"],
                "mechanism": "gamma",
                "multiplier": 2.0,
                "claimed_multiplier": 2.0,
                "claimed_epsilon": 0.5,
                "claimed_delta": 0.0,
                "sampling": 1.0,
                "dimension": 0,
                "count": 1,
            }
        )
        return [ledger] * len({manifest["seed"] for manifest in self.collection.manifests})

    def graph(self, key):
        return nx.cycle_graph(20)

    def mean_of_pairs(self, key, distance, *, at=None):
        """As large as the largest."""
        return self.final(key, "epsilon_observers", f"distance {distance}", at=at)


def number(rank, seed, step, point):
    """What every metric is: differs by protocol, seed, time and grid point, and is never constant."""
    swept = sum(value for value in point.values() if isinstance(value, int | float))
    return 0.5 + 0.05 * rank + 0.001 * seed * (rank + 1) + 0.01 * step + 1e-4 * swept


def pretended_runs(loaded):
    """A result for every run that a loaded scenario asks for, in order."""
    for point in loaded.points:
        for seed, data_seed, run_seed in point.scenario.seed_pairs():
            for rank, key in enumerate(point.scenario.protocols):
                manifest = _manifest(point, key) | {"seed": seed, "data_seed": data_seed, "run_seed": run_seed}
                trace = _trace(point, key, rank, seed)
                yield RunResult(manifest, trace, _agents(point, key, rank, seed), pd.DataFrame({"agent": ["0"]}))


def pretended_collection(loaded):
    """The collection that reading these runs back would give."""
    results = list(pretended_runs(loaded))
    names = [f"{k:016x}" for k in range(len(results))]
    tables = {
        table: pd.concat(
            [
                getattr(result, table).assign(run=name, **result.manifest["grid"])
                for name, result in zip(names, results, strict=True)
            ],
            ignore_index=True,
        )
        for table in ("trace", "agents")
    }
    index = {"figures": [figure.model_dump() for figure in loaded.scenario.figures]}
    return Collection(**tables, manifests=[result.manifest for result in results], runs=names, index=index)


def pretend(loaded, folder):
    """Write what running a loaded scenario would have left, into a folder."""
    results = list(pretended_runs(loaded))
    names = [f"{k:016x}" for k in range(len(results))]
    for name, result in zip(names, results, strict=True):
        Store(folder).save(name, result)
    scenario = loaded.scenario
    Store(folder).write_index(
        scenario=scenario.scenario,
        runs=names,
        figures=[figure.model_dump() for figure in scenario.figures],
        labels={key: scenario.label(key) for key in scenario.protocols},
    )


def _manifest(point, key):
    parameters = point.scenario.protocols[key]
    private = getattr(parameters, "privacy", None) or getattr(parameters, "noise", None)
    return {
        "scenario": point.scenario.resolved(),
        "protocol": key,
        "label": point.scenario.label(key),
        "grid": point.values,
        "status": "complete",
        "code": "0.0+pretended",
        "privacy": {"claimed": 1.0, "verified": 3.0, "delta": 1e-5} if private else None,
        "epoch": 1.0,
        "totals": {"vectors": 5000, "start_vectors": 60},
        "topology": {
            "edges": 30,
            "agents": 20,
            "components": 1,
            "spectral_gap": (2 - 2**0.5) / 5,
            "degree": {"min": 3, "mean": 3.0, "max": 3},
            "weight": {"min": 1.0, "mean": 1.0, "max": 1.0},
        },
        "task": {"dimension": 3, "notes": {}},
    }


def _trace(point, key, rank, seed):
    measured = [(m, s) for m in point.scenario.traced() for s in STATISTICS.get(m, ("value",))]
    rows = [
        [key, seed, float(step), 100 * step, 90 * step, 1000 * step, 8000 * step, metric, statistic, value]
        for step in STEPS
        for value in [number(rank, seed, step, point.values)]
        for metric, statistic in measured
    ]
    columns = ["protocol", "seed", "time", "activations", "messages", "vectors", "bytes"]
    return pd.DataFrame(rows, columns=[*columns, "metric", "statistic", "value"])


def _agents(point, key, rank, seed):
    sizes = np.arange(10, 30)
    value = number(rank, seed, 5, point.values) - 0.001 * (rank + seed) * sizes
    columns = {"protocol": key, "seed": seed, "agent": sizes.astype(str), "samples": sizes}
    numbers = dict.fromkeys(("accuracy", "rmse", "mse", "epsilon_claimed", "epsilon_verified"), value)
    return pd.DataFrame(columns | numbers)
