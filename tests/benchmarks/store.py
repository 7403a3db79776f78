"""How long thousands of runs take to save, check, consolidate and read: ``python -m tests.benchmarks.store``.

Every run has 50 agents and records ten numbers at 100 instants, by formula. Wall-clock time shows a disk that is slow
to sync and whatever else the machine does; processor time, of all threads, does not.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.storage.run_folder import RunResult
from hushnet.simulator.storage.store import Store

INSTANTS, STATISTICS, AGENTS = 100, 10, 50


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.store", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="how many (2000)")
    parser.add_argument("--folder", type=Path, help="where to write them; the system's temporary folder by default")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print(f"{'seconds of':<40} {'clock':>8} {'processor':>10} {'peak memory, MiB':>18}")
        for name, work in steps(Store(Path(folder)), options.runs):
            began, worked = time.perf_counter(), time.process_time()
            work()
            took = f"{time.perf_counter() - began:8.2f} {time.process_time() - worked:10.2f}"
            print(f"{name:<40} {took} {peak():18.0f}", flush=True)


def steps(store: Store, runs: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is to be done, one after the other."""
    names = [f"{rank:016x}" for rank in range(runs)]
    results = [made(rank) for rank in range(10)]
    yield f"save {runs} runs", lambda: [store.save(name, results[rank % 10]) for rank, name in enumerate(names)]
    grids = [{"network.loss": rank % 5 / 10} for rank in range(runs)]
    labels = {"cd": "CD", "local": "local"}
    store.write_index(scenario="benchmark", runs=names, figures=[], labels=labels, grids=grids)
    yield "check them", lambda: [store.state(name) for name in names]
    yield "make one dataset of them", store.consolidate
    yield "see that it is fresh", store.consolidate
    path = store.root / "dataset" / "trace.parquet"
    yield "read it with polars", lambda: polars.read_parquet(path)
    yield "take a mean over it with duckdb", lambda: duckdb.sql(f"select avg(value) from '{path}'").fetchall()
    yield "read it with pandas", lambda: pd.read_parquet(path)
    yield "read it with all manifests (load_all)", lambda: load_all(store.root)


def peak() -> float:
    """The most memory that this process has had so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def made(rank: int) -> RunResult:
    """A run by formula."""
    protocol, instants = ("cd", "local")[rank % 2], np.repeat(np.arange(INSTANTS), STATISTICS)
    counts = dict.fromkeys(("activations", "messages", "vectors", "bytes"), 10 * instants)
    trace = pd.DataFrame({"protocol": protocol, "seed": rank // 10, "time": instants.astype(float), **counts})
    trace["metric"] = "accuracy"
    trace["statistic"] = np.resize([f"statistic {number}" for number in range(STATISTICS)], len(trace))
    trace["value"] = np.cos(instants * (rank + 1.0) + np.resize(np.arange(STATISTICS), len(trace)))
    ids = np.arange(AGENTS)
    agents = pd.DataFrame({"protocol": protocol, "seed": rank // 10, "agent": ids.astype(str), "accuracy": np.sin(ids)})
    ledger = pd.DataFrame({"agent": ids.astype(str), "mechanism": "laplace", "count": ids})
    manifest = {"protocol": protocol, "label": protocol, "seed": rank // 10, "status": "complete", "grid": {}}
    settings = {f"field {number}": {"kind": "some", "value": number / 7} for number in range(40)}
    return RunResult({**manifest, "scenario": settings}, trace, agents, ledger)


if __name__ == "__main__":
    main()
