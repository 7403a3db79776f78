"""A collection is what its files hold, in the order of the index, and what is damaged is named."""

from __future__ import annotations

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.storage.store import Store

from .synthetic import make_run


@pytest.mark.parametrize("name", ["agents.parquet", "manifest.json", "trace.parquet"])
def test_a_truncated_file_is_named_in_one_sentence(experiment, name):
    root = experiment()
    path = root / f"{0:016x}" / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=name) as caught:
        load_all(root)
    assert "\n" not in str(caught.value)


def test_a_collection_joins_grid_values_and_follows_the_index(tmp_path):
    for name, loss in (("a", 0.0), ("b", 0.1), ("c", 0.2)):
        Store(tmp_path).save(name, make_run(grid={"network.loss": loss, "task.samples": [10, 100]}))
    assert load_all(tmp_path).runs == ["a", "b", "c"]
    Store(tmp_path).write_index(scenario="s", runs=["c", "a", "gone"], figures=[], labels={"cd": "CD"})
    collection = load_all(tmp_path)
    assert collection.runs == ["c", "a"]
    assert collection.missing == ["gone"]
    assert collection.labels == {"cd": "CD"}
    assert list(collection.trace["network.loss"].unique()) == [0.2, 0.0]
    assert list(collection.agents["run"].unique()) == ["c", "a"]
    assert list(collection.trace["task.samples"].unique()) == ["[10, 100]"]


def test_a_run_can_stand_for_several_grid_points(tmp_path):
    Store(tmp_path).save("a", make_run("local"))
    Store(tmp_path).save("b", make_run("cd"))
    rest = {"scenario": "s", "figures": [], "labels": {}}
    grids = [{"protocols.cd.mu": mu} for mu in (0.1, 0.1, 0.2)]
    Store(tmp_path).write_index(runs=["a", "b", "a"], grids=grids, **rest)
    collection = load_all(tmp_path)
    assert collection.runs == ["a", "b", "a#2"]
    assert list(collection.places["protocols.cd.mu"]) == [0.1, 0.1, 0.2]
    assert len(collection.trace) == 3 * len(make_run().trace)
    with pytest.raises(ValueError, match="needs grids"):
        Store(tmp_path).write_index(runs=["a", "a"], **rest)


def test_a_folder_without_runs_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="holds no complete run"):
        load_all(tmp_path)
