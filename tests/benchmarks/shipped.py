"""Whether scenarios have the numbers of another checkout: ``python -m tests.benchmarks.shipped OTHER [SCENARIO ...]``.

Each is run by both with one seed: its quick version, or a shorter run where it has none.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from .proofs import HERE, environment_of

MOST = 1e-9
"""The largest difference between two values, as a share of the larger one where that is above 1."""
RUN = """
import sys
from hushnet.simulator import run
out, scenario, quick, *overrides = sys.argv[1:]
run(scenario, out=out, seeds=1, quick=quick == "quick", overrides=tuple(overrides))
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each scenario; the number of those that differ or have not ended."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.shipped", description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout of another commit")
    parser.add_argument("scenarios", nargs="*", help="by default all that are shipped")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long a scenario may take in each")
    given = parser.parse_args(arguments)
    print(
        "| scenario | numbers | largest difference | where; texts that differ |", "| --- | --- | --- | --- |", sep="\n"
    )
    wrong = 0
    for name in given.scenarios or sorted(file.stem for file in (HERE / "scenarios").glob("*.yaml")):
        with tempfile.TemporaryDirectory() as folder:
            tables = [Path(folder) / str(rank) for rank in range(2)]
            pairs = zip((given.other, HERE), tables, strict=True)  # one after the other: some take half of a machine
            said = "; ".join(filter(None, [_run(checkout, name, out, given.seconds) for checkout, out in pairs]))
            found = (0, np.inf, said) if said else compared(*(_tables(out / "results") for out in tables))
        values, difference, where = found
        print(f"| {name} | {values:,} | {difference:.1e} | {where} |", flush=True)
        wrong += difference > MOST
    return wrong


def _run(checkout: Path, name: str, folder: Path, seconds: float) -> str:
    """Run a scenario into ``folder / "results"``, and say what went wrong, if anything."""
    file = checkout.resolve() / "scenarios" / f"{name}.yaml"
    text = yaml.safe_load(file.read_text())
    quick = "quick" in text
    shorter = [] if quick else [f"stop.{key}={_shorter(stop)}" for key, stop in text["stop"].items()]
    command = [sys.executable, "-c", RUN, str(folder / "results"), str(file), "quick" if quick else "", "figures=[]"]
    environment = environment_of(checkout, folder)
    try:
        ended = subprocess.run([*command, *shorter], capture_output=True, text=True, env=environment, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"not ended after {seconds:g} s"
    return (ended.stderr.strip().splitlines() or ["failed"])[-1] if ended.returncode else ""


def _shorter(stop: float) -> float:
    shorter = stop * (0.05 if stop > 50 else 0.5)
    return shorter if isinstance(stop, float) else max(1, round(shorter))


def _tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Traces, agents and ledgers of all runs, in the order of the runs, whose names depend on the version."""
    tables = {name: pd.read_parquet(folder / "dataset" / f"{name}.parquet") for name in ("trace", "agents")}
    for rank, run in enumerate(dict.fromkeys(tables["trace"]["run"].astype(str))):
        tables[f"ledger {rank}"] = pd.read_parquet(folder / run.partition("#")[0] / "ledger.parquet")
    return {name: table.drop(columns="run", errors="ignore") for name, table in tables.items()}


def compared(one: Mapping[str, pd.DataFrame], other: Mapping[str, pd.DataFrame]) -> tuple[int, float, str]:
    """How many numbers were compared, how far apart they are, and where they are most.

    What only one of the two has is infinitely far apart. Columns whose texts are not the same are named.
    """
    if one.keys() != other.keys():
        return 0, np.inf, "numbers of runs"
    values, largest, where = 0, 0.0, ""
    reworded: dict[str, None] = {}
    for name, table in one.items():
        if table.shape != other[name].shape or list(table.columns) != list(other[name].columns):
            return values, np.inf, f"shape of {name}"
        for column in table.columns:
            if not pd.api.types.is_numeric_dtype(table[column]):
                if table[column].astype(str).tolist() != other[name][column].astype(str).tolist():
                    reworded[column] = None
                continue
            difference = _apart(table[column], other[name][column])
            values += len(table)
            if difference > largest:
                largest, where = difference, f"{column} of {name}"
    return values, largest, "; ".join(filter(None, (where, ", ".join(reworded))))


def _apart(one: Any, other: Any) -> float:
    x, y = (column.to_numpy(dtype=float) for column in (one, other))
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    if not np.isfinite(x[~same]).all() or not np.isfinite(y[~same]).all():
        return np.inf
    scale = np.maximum(1.0, np.maximum(abs(x[~same]), abs(y[~same])))
    return float(np.max(abs(x[~same] - y[~same]) / scale, initial=0.0))


if __name__ == "__main__":
    sys.exit(main())
