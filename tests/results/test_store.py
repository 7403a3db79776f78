"""A run is there with every byte or not at all, whatever happens; one dataset holds what the folders of all runs do."""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars
import pytest
from hushnet.agents import input_files as files
from hushnet.agents.errors import InputError, OutOfResources
from hushnet.agents.graph import Graph
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.storage import dataset, ownership, store
from hushnet.simulator.storage.dataset import grid_table
from hushnet.simulator.storage.store import Store

from .synthetic import LABELS, make_run

FILES = ["agents.parquet", "ledger.parquet", "manifest.json", "trace.parquet"]
EXTRA = {"messages": pd.DataFrame({"time": [0.5, 1.5], "lost": [True, False]})}


@pytest.fixture
def kept(tmp_path):
    """A store with one run."""
    kept = Store(tmp_path / "store")
    kept.save("run", dataclasses.replace(make_run(seed=1), extras=EXTRA))
    return kept


def names(root):
    return sorted(path.name for path in root.iterdir() if path.name != ownership.MARKER)


def python(code, *arguments, **options):
    """Start a process that runs code with the store and the synthetic runs at hand."""
    begin = "import sys\nfrom pathlib import Path\nfrom hushnet.simulator.storage.store import Store\n"
    begin += "from tests.results.synthetic import make_run\nstore = Store(Path(sys.argv[1]))\n"
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT} | options
    return subprocess.Popen([sys.executable, "-c", begin + code, *map(str, arguments)], **options)


ROOT = Path(__file__).resolve().parents[2]


def test_a_run_comes_back_as_it_was_saved(kept):
    run = make_run("cd_eps", 2, grid={"network.loss": 0.1})
    kept.save("run", run)
    back = kept.load("run")
    assert back.manifest == run.manifest == kept.manifest("run")
    assert back.trace["value"].to_numpy().tobytes() == run.trace["value"].to_numpy().tobytes()
    for name in ("trace", "agents", "ledger"):
        pd.testing.assert_frame_equal(getattr(back, name), getattr(run, name), check_dtype=False)


def test_the_same_run_gives_the_same_bytes_however_its_frames_were_made(tmp_path):
    run = make_run()
    kept = Store(tmp_path)
    kept.save("first", run)
    shuffled = run.trace.sample(frac=1, random_state=1).sort_index()
    shuffled["protocol"] = shuffled["protocol"].astype("category")
    indexed = run.agents.set_index(pd.Index(range(100, 130)))
    kept.save("second", dataclasses.replace(run, trace=shuffled, agents=indexed))
    assert names(tmp_path / "first") == FILES
    for name in FILES:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_special_numbers_survive(kept):
    run = make_run(privacy={"claimed": 1.0, "verified": math.inf, "delta": 0.0})
    run.trace["value"] = np.resize([math.inf, -math.inf, math.nan, -0.0, 5e-324, 0.1 + 0.2], len(run.trace))
    kept.save("run", run)
    back = kept.load("run")
    np.testing.assert_array_equal(back.trace["value"], run.trace["value"])
    assert back.manifest["privacy"] == run.manifest["privacy"]
    text = (kept.root / "run" / "manifest.json").read_text()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize("harm", ["missing", "shorter", "longer", "another bit", "empty"])
@pytest.mark.parametrize("name", [*FILES, "messages.parquet"])
def test_harm_to_any_file_makes_a_run_damaged_and_reading_it_an_error_that_names_the_file(kept, name, harm):
    path = kept.root / "run" / name
    content = bytearray(path.read_bytes())
    path.unlink()
    if harm != "missing":
        content[len(content) // 2] ^= harm == "another bit"
        changed = {"shorter": content[:-1], "longer": content + b"\n", "empty": b""}
        path.write_bytes(changed.get(harm, content))
    assert kept.state("run") == "damaged"
    with pytest.raises(InputError, match=name) as caught:
        kept.load("run")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("last", FILES)
def test_a_crash_while_writing_leaves_the_old_run(kept, monkeypatch, last):
    write = Path.write_bytes

    def crashing(path, content):
        write(path, content)
        if path.name == last:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", crashing)
        with pytest.raises(KeyboardInterrupt):
            kept.save("run", make_run(seed=2))
    assert kept.load("run").manifest["seed"] == 1
    assert names(kept.root) == ["run"]


def failing_rename(monkeypatch, folder, instead):
    rename = Path.rename

    def failing(path, target):
        if target == folder and not path.name.endswith(".old"):
            instead()
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)


def test_a_failed_rename_puts_the_old_run_back(kept, monkeypatch):
    def fail():
        raise OSError("no")

    failing_rename(monkeypatch, kept.root / "run", fail)
    with pytest.raises(OutOfResources, match="no"):
        kept.save("run", make_run(seed=2))
    assert kept.load("run").manifest["seed"] == 1
    assert names(kept.root) == ["run"]


def test_strays_are_swept_and_results_stay(kept):
    (kept.root / "figures").mkdir()
    (kept.root / "graphs").mkdir()
    (kept.root / ".cache" / "0123").mkdir(parents=True)
    stay = [".cache/minimum-ab.npz", "figures/a.png", ".mine", ".env.20240115", "graphs/mine.parquet"]
    mark = f"hushnet-{'0123abcd' * 4}"
    strays = [f".index.json.{mark}", f"graphs/.ffff.parquet.{mark}", f".cache/0123/.minimum-ab.npz.{mark}"]
    strays.append(f".cache/.contract-ab.json.{mark}")
    for name in (*stay, *strays):
        (kept.root / name).touch()
    folders = [f".other.{mark}", f".dataset.{mark}", f".dataset.{mark}.old"]
    for name in folders:
        (kept.root / name).mkdir()
        (kept.root / name / "trace.parquet").write_bytes(b"half")
    with kept.locked():
        assert set(kept.sweep()) == {*strays, *folders}
        assert kept.sweep() == []
    assert all((kept.root / name).exists() for name in stay)
    assert kept.state("run") == "complete"


@pytest.mark.parametrize("ending", ["", ".old"])
def test_a_whole_run_that_was_not_renamed_any_more_is_put_in_its_place(kept, ending):
    (kept.root / "run").rename(kept.root / f".run.hushnet-{'01234567' * 4}{ending}")
    assert kept.sweep() == []
    assert kept.manifest("run")["seed"] == 1
    (kept.root / "run" / "ledger.parquet").unlink()
    kept.save("else", make_run(seed=9))
    (kept.root / "else").rename(kept.root / f".run.hushnet-{'01234567' * 4}{ending}")
    assert kept.sweep() == []
    assert kept.manifest("run")["seed"] == 9
    kept.save("else", make_run(seed=10))
    (kept.root / "else").rename(kept.root / f".run.hushnet-{'01234567' * 4}{ending}")
    assert kept.sweep() == [f".run.hushnet-{'01234567' * 4}{ending}"]
    assert kept.manifest("run")["seed"] == 9, "what is whole is not replaced"


def test_a_second_process_is_told_who_is_there_and_may_come_once_that_one_was_killed(tmp_path):
    holder = python("with store.locked():\n    print('held', flush=True)\n    sys.stdin.read()", tmp_path, stdin=-1)
    assert holder.stdout.readline() == "held\n"
    with (
        pytest.raises(InputError, match=f"process {holder.pid} on .* is writing there") as caught,
        Store(tmp_path).locked(),
    ):
        pytest.fail("both are in")
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
    holder.kill()
    holder.communicate()
    with Store(tmp_path).locked():
        pass


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_in_trouble_is_no_file_system_without_locks(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(store.fcntl, "flock", refuse)
    with pytest.raises(OutOfResources, match=os.strerror(number)), Store(tmp_path).locked():
        pass


def some_graph(weight=0.5):
    return Graph.from_edges(5, np.array([2, 0, 3]), np.array([0, 1, 2]), np.array([0.1, weight, 1 / 3]))


def test_a_graph_is_kept_once_and_comes_back(kept):
    name = kept.save_graph(some_graph())
    written = (kept.root / "graphs" / f"{name}.parquet").stat().st_mtime_ns
    assert kept.save_graph(some_graph()) == name
    assert (kept.root / "graphs" / f"{name}.parquet").stat().st_mtime_ns == written
    assert kept.save_graph(some_graph(math.nextafter(0.5, 1))) != name
    edges = kept.load_graph(name)
    assert edges.to_dict("list") == {"tail": [0, 0, 2], "head": [1, 2, 3], "weight": [0.5, 0.1, 1 / 3]}
    again = Graph.from_edges(5, *(edges[column].to_numpy() for column in ("tail", "head", "weight")))
    np.testing.assert_array_equal(again.weights, some_graph().weights)
    np.testing.assert_array_equal(again.heads, some_graph().heads)


def test_a_run_whose_graph_is_gone_or_was_swept_as_damaged_is_damaged(kept):
    run = make_run()
    run.manifest["topology"] = {"graph": kept.save_graph(some_graph())}
    kept.save("run", run)
    assert kept.state("run") == "complete"
    path = kept.root / "graphs" / f"{run.manifest['topology']['graph']}.parquet"
    other = kept.root / "graphs" / f"{kept.save_graph(some_graph(7.0))}.parquet"
    path.write_bytes(other.read_bytes())
    assert kept.sweep() == [f"graphs/{path.name}"]
    assert kept.state("run") == "damaged"
    kept.save_graph(some_graph())
    assert kept.state("run") == "complete"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=path.name):
        kept.load_graph(path.stem)


@pytest.mark.parametrize("trouble", [errno.EIO, errno.EACCES, errno.EMFILE])
def test_what_a_disk_in_trouble_cannot_read_is_neither_damaged_nor_removed(kept, monkeypatch, trouble):
    run = make_run()
    run.manifest["topology"] = {"graph": kept.save_graph(some_graph())}
    kept.save("run", run)

    def fail(path, flags):
        raise OSError(trouble, os.strerror(trouble))

    with monkeypatch.context() as patched:
        patched.setattr(files, "_at_once", fail)
        for look in (kept.sweep, lambda: kept.state("run"), lambda: kept.load("run"), kept.entries):
            with pytest.raises(OutOfResources, match=f"cannot be read .*{os.strerror(trouble)}"):
                look()
    assert kept.state("run") == "complete"
    assert kept.sweep() == []


FILLING = """
import resource
from hushnet.agents.errors import OutOfResources
store.save("first", make_run())
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    store.{what}
except OutOfResources as error:
    print(error)
    sys.exit(error.exit_code)
"""


@pytest.mark.parametrize("what", ["save('second', make_run())", "consolidate()", "write_index(**big)"])
def test_a_file_that_may_not_be_that_large_is_one_sentence_and_leaves_a_store_that_goes_on(tmp_path, what):
    big = "big = dict(scenario='s', runs=['first'], figures=[{'y': 'accuracy' * 300}], labels={})\n"
    process = python(big + FILLING.format(what=what), tmp_path)
    printed, errors = process.communicate()
    assert process.returncode == OutOfResources.exit_code == 5, errors
    assert printed.count("\n") == 1
    assert str(tmp_path) in printed
    kept = Store(tmp_path)
    assert names(tmp_path) == ["first"]
    assert kept.state("first") == "complete"
    kept.save("second", make_run())
    assert kept.state("second") == "complete"
    assert kept.consolidate()


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
