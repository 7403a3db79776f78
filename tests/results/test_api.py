"""From Python hushnet is light to import; reading needs no engine; a collection is what its files hold."""

from __future__ import annotations

import subprocess
import sys

import hushnet.simulator
import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator import Result, load, run
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.compare.comparison import compare
from hushnet.simulator.storage.store import Store

from .synthetic import LABELS, make_run

TINY = {
    "schema": 1,
    "scenario": "tiny",
    "task": {"kind": "linear_classification", "agents": 6, "dimension": 3, "samples": [10, 20], "points": "ball"},
    "topology": {"kind": "complete"},
    "engine": "event",
    "protocols": {"local": {"kind": "local"}, "cd": {"kind": "coordinate_descent", "mu": 0.1}},
    "stop": {"time": 3},
    "seeds": 2,
    "figures": [{"y": "accuracy"}],
}


def test_importing_the_package_is_light():
    heavy = "{'numpy', 'pandas', 'numba', 'matplotlib'} & set(sys.modules)"
    code = f"import sys, hushnet.simulator; dir(hushnet.simulator); print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_package_offers_what_it_says():
    assert set(hushnet.simulator.__all__) <= set(dir(hushnet.simulator))
    with pytest.raises(AttributeError, match="has no attribute 'runs'"):
        hushnet.simulator.runs  # noqa: B018


def test_a_run_gives_its_results_and_they_can_be_opened_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(TINY, seeds=3)
    assert result.folder.resolve() == (tmp_path / "results" / "tiny").resolve()
    assert len(result.manifests) == 6
    assert list(result.summary()["n"]) == [3, 3]
    assert set(result.compare().differences["protocol"]) == {"cd"}
    assert result.compare("cd").baseline == "cd"
    assert [path.suffix for path in result.save_figures()] == [".png", ".pdf", ".svg", ".csv"]
    assert "6 runs of local, cd" in repr(result)
    lines = str(result).splitlines()
    assert lines[0].startswith("By final accuracy (more is better), ")
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 80
    again = Result.open("results/tiny")
    pd.testing.assert_frame_equal(again.trace, result.trace)
    pd.testing.assert_frame_equal(load("results/tiny"), result.trace)
    pd.testing.assert_frame_equal(run(TINY, seeds=3).agents, result.agents)


def test_a_scenario_from_python_is_kept_beside_its_results(tmp_path):
    task = {**TINY["task"], "label_noise": np.float64(0.05)}
    result = run({**TINY, "task": task}, out=tmp_path / "out", seeds=1)
    again = run(tmp_path / "out" / "origin" / "scenario.yaml", out=tmp_path / "again")
    assert again.collection.runs == result.collection.runs


@pytest.mark.parametrize(
    ("metrics", "complaint"),
    [
        ({"accuracy": lambda snapshot: 1.0}, "metrics: 'accuracy' is a metric of hushnet's own"),
        ({"epsilon_verified": lambda snapshot: 1.0}, "metrics: 'epsilon_verified' is a metric of hushnet's own"),
        ({"size": 3}, "metrics: 'size' must be a function of a snapshot, got 3"),
    ],
)
def test_a_metric_that_cannot_be_measured_or_told_apart_is_refused(tmp_path, metrics, complaint):
    with pytest.raises(InputError, match=complaint):
        run(TINY, metrics=metrics, out=tmp_path)


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
    assert collection.missing == 1
    assert collection.labels == {"cd": "CD"}
    assert list(collection.trace["network.loss"].unique()) == [0.2, 0.0]
    assert list(collection.agents["run"].unique()) == ["c", "a"]
    assert list(collection.trace["task.samples"].unique()) == ["[10, 100]"]


def test_runs_that_were_planned_and_are_not_there_are_counted_and_compared_with_a_warning(tmp_path):
    for name in ("cd", "local"):
        Store(tmp_path).save(name, make_run(name))
    failed = [{"protocol": "cd", "seed": 1, "grid": {}, "error": "e", "details": "failures/a.txt"}]
    there = {"runs": ["cd", "local"], "labels": {"cd": "CD", "local": "local"}}
    Store(tmp_path).write_index(scenario="s", figures=[], planned=5, failed=failed, **there)
    assert load_all(tmp_path).missing == 2
    said = [text for text in compare(load_all(tmp_path)).warnings if "finished" in text]
    assert said == ["\u26a0 3 runs failed or have not been finished."]


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
    figures = [{"y": "accuracy", "x": "time", "style": {"formats": ["png"]}}]
    store.write_index(scenario="s", runs=list(runs), figures=figures, labels=LABELS)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True)
    said = ["compare set() system", "plot set() system", "report set() system"]
    assert (done.returncode, done.stderr.splitlines()) == (0, said)
