"""One dataset of all runs: what pandas, polars and duckdb read is what the runs' own folders hold."""

from __future__ import annotations

import random

import duckdb
import pandas as pd
import polars
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.storage import dataset
from hushnet.simulator.storage.dataset import grid_table
from hushnet.simulator.storage.store import Store

from .synthetic import LABELS, make_run

LOSSES = (0.0, 0.1, 0.2)
NAMES = [f"{k:016x}" for k in range(len(LOSSES) * len(LABELS))]


def fill(root, order=None):
    """A store with a swept experiment whose runs came in the given order."""
    store = Store(root)
    places = [(protocol, loss) for loss in LOSSES for protocol in LABELS]
    for k in order or range(len(places)):
        protocol, loss = places[k]
        store.save(NAMES[k], make_run(protocol, seed=k, grid={"network.loss": loss}))
    grids = [{"network.loss": loss} for _, loss in places]
    store.write_index(scenario="s", runs=NAMES, figures=[], labels=LABELS, grids=grids)
    return store


def contents(store):
    return {path.name: path.read_bytes() for path in sorted((store.root / "dataset").iterdir())}


def test_pandas_polars_and_duckdb_read_the_runs_in_the_order_of_the_index(tmp_path):
    store = fill(tmp_path)
    assert store.consolidate()
    for name in ("trace", "agents"):
        path = tmp_path / "dataset" / f"{name}.parquet"
        runs = [getattr(store.load(run), name).assign(run=run) for run in NAMES]
        expected = pd.concat(runs, ignore_index=True)
        expected["network.loss"] = expected["run"].map(lambda run: LOSSES[NAMES.index(run) // len(LABELS)])
        frames = [
            pd.read_parquet(path),
            polars.read_parquet(path).to_pandas(),
            duckdb.sql(f"from '{path}'").df(),
        ]
        for frame in frames:
            pd.testing.assert_frame_equal(frame, expected, check_dtype=False)
    where = "metric = 'accuracy' and \"network.loss\" > 0.05"
    [(mean,)] = duckdb.sql(f"select avg(value) from '{tmp_path}/dataset/trace.parquet' where {where}").fetchall()
    trace = load_all(tmp_path).trace
    chosen = (trace["metric"] == "accuracy") & (trace["network.loss"] > 0.05)
    assert mean == pytest.approx(trace.loc[chosen, "value"].mean())


def test_its_bytes_do_not_depend_on_the_order_in_which_the_runs_came(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "ROWS", 150)
    orders = [list(range(len(NAMES))), list(reversed(range(len(NAMES)))), random.Random(1).sample(range(9), 9)]
    stores = [fill(tmp_path / str(rank), order) for rank, order in enumerate(orders)]
    assert [store.consolidate() for store in stores] == [True] * 3
    first, *others = map(contents, stores)
    assert set(first) == {"trace.parquet", "agents.parquet", "dataset.json"}
    assert all(other == first for other in others)


def test_it_is_written_only_when_it_is_stale_or_damaged(tmp_path):
    store = fill(tmp_path)
    assert store.consolidate()
    before = contents(store)
    assert not store.consolidate()
    path = tmp_path / "dataset" / "trace.parquet"
    path.write_bytes(path.read_bytes()[:-8])
    assert store.consolidate()
    assert contents(store) == before
    path.unlink()
    assert store.consolidate()
    (tmp_path / "dataset" / "dataset.json").write_text("{")
    assert store.consolidate()
    assert contents(store) == before
    store.save(NAMES[0], make_run(seed=77))
    assert store.consolidate()
    assert contents(store) != before
    index = store.index()
    store.write_index(**{**index, "runs": NAMES[1:], "grids": index["grids"][1:]})
    assert store.consolidate()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == [".hushnet.json"]


def test_it_is_what_is_read_as_long_as_it_is_fresh_and_whole(tmp_path):
    store = fill(tmp_path)
    store.consolidate()
    path = tmp_path / NAMES[0] / "trace.parquet"
    content = path.read_bytes()
    path.unlink()
    assert len(load_all(tmp_path).trace) == sum(len(make_run().trace) for _ in NAMES)
    assert store.state(NAMES[0]) == "damaged"
    (tmp_path / "dataset" / "trace.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=r"trace\.parquet"):
        load_all(tmp_path)
    path.write_bytes(content)
    assert len(load_all(tmp_path).trace) == sum(len(make_run().trace) for _ in NAMES)
    store.save(NAMES[0], make_run("local", seed=77))
    assert set(load_all(tmp_path).trace.query("run == @NAMES[0]")["seed"]) == {77}


@pytest.mark.parametrize(
    ("values", "kind", "shown"),
    [
        ([1, 2, 3], "int64", [1, 2, 3]),
        ([1, 0.5, 2], "double", [1.0, 0.5, 2.0]),
        ([True, False, True], "bool", [True, False, True]),
        (["count", "equal"], "string", ["count", "equal"]),
        (["count", 1.5, True], "string", ["count", "1.5", "true"]),
        ([[10, 100], {"kind": "ring"}], "string", ["[10, 100]", '{"kind": "ring"}']),
        ([None, 0.5], "double", [None, 0.5]),
        ([2**64, 1], "string", ["18446744073709551616", "1"]),
        ([2**53 + 1, 1], "int64", [2**53 + 1, 1]),
        ([True, 1], "string", ["true", "1"]),
        ([None, None], "string", [None, None]),
    ],
)
def test_a_swept_column_has_the_type_of_its_values(values, kind, shown):
    column = grid_table([{"path": value} for value in values])["path"]
    assert str(column.type) == kind
    assert column.to_pylist() == shown
