"""Runs are kept as a whole, byte for byte, and what is damaged is named."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator import results, storage
from hushnet.simulator.results import (
    code_version,
    commit,
    is_complete,
    libraries,
    load,
    load_all,
    run_id,
    save,
    write_index,
)

from .synthetic import make_run

FILES = ["agents.parquet", "ledger.parquet", "manifest.json", "trace.parquet"]
RESOLVED = {
    "schema": 1,
    "network": {"loss": 0.1},
    "protocols": {"cd": {"kind": "coordinate_descent", "mu": 0.04, "label": "CD"}, "local": {"kind": "local"}},
    "seeds": 5,
    "figures": [],
}


def identify(resolved=None, protocol="cd", seed=0, **changes):
    fixed = {"code_version": "0.1.0+a", "plugin_source": None, "data_fingerprint": "d", "libraries": {"numpy": "2"}}
    return run_id(resolved or RESOLVED, protocol, seed, **(fixed | changes))


def test_a_run_comes_back_as_it_was_saved(tmp_path):
    run = make_run("cd_eps", 2, grid={"network.loss": 0.1})
    save(run, tmp_path / "run")
    back = load(tmp_path / "run")
    assert back.manifest == run.manifest
    assert back.trace["value"].to_numpy().tobytes() == run.trace["value"].to_numpy().tobytes()
    for name in ("trace", "agents", "ledger"):
        pd.testing.assert_frame_equal(getattr(back, name), getattr(run, name), check_dtype=False)


def test_the_same_run_gives_the_same_bytes_however_its_frames_were_made(tmp_path):
    run = make_run()
    save(run, tmp_path / "first")
    shuffled = run.trace.sample(frac=1, random_state=1).sort_index()
    shuffled["protocol"] = shuffled["protocol"].astype("category")
    indexed = run.agents.set_index(pd.Index(range(100, 130)))
    save(dataclasses.replace(run, trace=shuffled, agents=indexed), tmp_path / "second")
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == FILES
    for name in FILES:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_special_numbers_survive(tmp_path):
    run = make_run(privacy={"claimed": 1.0, "verified": math.inf, "delta": 0.0})
    run.trace["value"] = np.resize([math.inf, -math.inf, math.nan, -0.0, 5e-324, 0.1 + 0.2], len(run.trace))
    save(run, tmp_path / "run")
    back = load(tmp_path / "run")
    np.testing.assert_array_equal(back.trace["value"], run.trace["value"])
    assert back.manifest["privacy"] == run.manifest["privacy"]
    text = (tmp_path / "run" / "manifest.json").read_text()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_the_largest_seed_can_be_kept(tmp_path):
    run = make_run()
    run.trace["seed"] = np.uint64(2**64 - 1)
    save(run, tmp_path / "run")
    assert set(load(tmp_path / "run").trace["seed"]) == {2**64 - 1}


def test_an_empty_ledger_can_be_kept(tmp_path):
    run = dataclasses.replace(make_run(), ledger=pd.DataFrame())
    save(run, tmp_path / "run")
    assert load(tmp_path / "run").ledger.empty


@pytest.mark.parametrize("last", FILES)
def test_a_crash_while_writing_leaves_the_old_run(tmp_path, monkeypatch, last):
    save(make_run(seed=1), tmp_path / "run")

    def crash_at(write):
        def crashing(content, path, *rest):
            write(content, path, *rest)
            if path.name == last:
                raise KeyboardInterrupt

        return crashing

    monkeypatch.setattr(results, "write_table", crash_at(storage.write_table))
    monkeypatch.setattr(results, "write_text", crash_at(storage.write_text))
    with pytest.raises(KeyboardInterrupt):
        save(make_run(seed=2), tmp_path / "run")
    assert load(tmp_path / "run").manifest["seed"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_failed_rename_puts_the_old_run_back(tmp_path, monkeypatch):
    save(make_run(seed=1), tmp_path / "run")
    rename = type(tmp_path).rename

    def failing(path, target):
        if target == tmp_path / "run" and not path.name.endswith(".old"):
            raise OSError("disk full")
        return rename(path, target)

    monkeypatch.setattr(type(tmp_path), "rename", failing)
    with pytest.raises(OSError, match="disk full"):
        save(make_run(seed=2), tmp_path / "run")
    assert load(tmp_path / "run").manifest["seed"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_new_run_replaces_an_old_one(tmp_path):
    save(make_run(seed=1), tmp_path / "run")
    save(make_run(seed=2), tmp_path / "run")
    assert load(tmp_path / "run").manifest["seed"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_without_all_its_files_is_not_complete(tmp_path):
    assert not is_complete(tmp_path / "run")
    save(make_run(), tmp_path / "run")
    assert is_complete(tmp_path / "run")
    (tmp_path / "run" / "ledger.parquet").unlink()
    assert not is_complete(tmp_path / "run")


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_named_in_one_sentence(experiment, name):
    root = experiment()
    path = root / f"{0:016x}" / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=name) as caught:
        load_all(root)
    assert "\n" not in str(caught.value)


def test_a_flipped_bit_in_a_table_is_noticed(tmp_path):
    save(make_run(), tmp_path / "run")
    path = tmp_path / "run" / "trace.parquet"
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"trace\.parquet"):
        load(tmp_path / "run")


def test_a_collection_joins_grid_values_and_follows_the_index(tmp_path):
    for name, loss in (("a", 0.0), ("b", 0.1), ("c", 0.2)):
        save(make_run(grid={"network.loss": loss, "task.samples": [10, 100]}), tmp_path / name)
    assert load_all(tmp_path).runs == ["a", "b", "c"]
    write_index(tmp_path, scenario="s", runs=["c", "a", "gone"], figures=[], labels={"cd": "CD"})
    collection = load_all(tmp_path)
    assert collection.runs == ["c", "a"]
    assert collection.missing == ["gone"]
    assert collection.labels == {"cd": "CD"}
    assert list(collection.trace["network.loss"].unique()) == [0.2, 0.0]
    assert list(collection.agents["run"].unique()) == ["c", "a"]
    assert list(collection.trace["task.samples"].unique()) == ["[10, 100]"]


def test_a_run_can_stand_for_several_grid_points(tmp_path):
    save(make_run("local"), tmp_path / "a")
    save(make_run("cd"), tmp_path / "b")
    rest = {"scenario": "s", "figures": [], "labels": {}}
    grids = [{"protocols.cd.mu": mu} for mu in (0.1, 0.1, 0.2)]
    write_index(tmp_path, runs=["a", "b", "a"], grids=grids, **rest)
    collection = load_all(tmp_path)
    assert collection.runs == ["a", "b", "a#2"]
    assert list(collection.places["protocols.cd.mu"]) == [0.1, 0.1, 0.2]
    assert len(collection.trace) == 3 * len(make_run().trace)
    with pytest.raises(ValueError, match="needs grids"):
        write_index(tmp_path, runs=["a", "a"], **rest)


def test_a_folder_without_runs_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="holds no complete run"):
        load_all(tmp_path)


def test_the_run_id_ignores_what_changes_no_run():
    drawn = {**RESOLVED, "figures": [{"x": "time", "y": "accuracy"}], "seeds": 20}
    drawn["protocols"] = {**RESOLVED["protocols"], "new": {"kind": "local"}}
    drawn["protocols"]["cd"] = {**RESOLVED["protocols"]["cd"], "label": "coordinate descent"}
    assert identify() == identify(drawn)
    assert len(identify()) == 16
    assert int(identify(), 16) >= 0


def test_the_run_id_depends_on_all_that_changes_a_run():
    nearly = {**RESOLVED, "network": {"loss": math.nextafter(0.1, 1)}}
    names = [
        identify(),
        identify(nearly),
        identify(protocol="local"),
        identify(seed=1),
        identify(seed=(1, 0)),
        identify(code_version="0.1.0+b"),
        identify(plugin_source="class Mine: ..."),
        identify(data_fingerprint="e"),
        identify(libraries={"numpy": "2.1"}),
    ]
    assert len(set(names)) == len(names)


def test_versions_are_those_of_the_installed_code():
    assert code_version() == code_version()
    assert code_version().startswith("0.")
    assert set(libraries()) == {"numpy", "scipy", "numba", "simpy", "networkx", "pandas", "dp-accounting"}
    assert libraries()["numpy"] == np.__version__
    assert commit() is None or len(commit()) == 40
