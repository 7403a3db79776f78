"""``hushnet.simulator`` from Python: light to import, and its results are those on disk."""

from __future__ import annotations

import subprocess
import sys

import hushnet.simulator
import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator import Result, load, run

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
