"""A scenario that asks for messages keeps them beside its tables, and is the same run otherwise."""

from __future__ import annotations

import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.experiment import run
from hushnet.simulator.figures import redraw
from hushnet.simulator.storage.store import Store

SCENARIO = {
    "schema": 1,
    "scenario": "talk",
    "task": {"kind": "linear_classification", "agents": 6, "dimension": 3, "samples": [5, 10], "points": "ball"},
    "topology": {"kind": "ring"},
    "network": {"latency": 0.3, "loss": 0.2},
    "protocols": {
        "cd": {"kind": "coordinate_descent", "mu": 0.5},
        "admm": {"kind": "collaborative_admm", "mu": 0.5},
        "rounds": {"kind": "coordinate_descent", "mu": 0.5, "label": "rounds", "schedule": "rounds"},
    },
    "stop": {"time": 6.0},
}
WINDOW = {"agents": [0, 1, 2], "between": [1.0, 4.0]}


@pytest.mark.parametrize("engine", ["event", "batched"])
def test_a_run_keeps_its_messages_and_is_the_same_run_otherwise(engine, tmp_path):
    plain = run({**SCENARIO, "engine": engine, "record": {"every": 1.0}}, out=tmp_path / "plain")
    figures = [{"kind": "timeline"}, {"kind": "portrait", "y": "accuracy"}]
    asked = {**SCENARIO, "engine": engine, "record": {"every": 1.0, "messages": WINDOW}, "figures": figures}
    logged = run(asked, out=tmp_path / "logged")
    pd.testing.assert_frame_equal(logged.trace.drop(columns="run"), plain.trace.drop(columns="run"))
    pd.testing.assert_frame_equal(logged.agents.drop(columns="run"), plain.agents.drop(columns="run"))
    kinds = {}
    for name, manifest in zip(logged.runs, logged.manifests, strict=True):
        log = Store(tmp_path / "logged").load(name).extras["messages"]
        assert set(log["agent"]) | set(log["other"]) <= {"", "0", "1", "2"}
        assert (log["start"] <= 4.0).all()
        kinds[manifest["protocol"]] = set(log["kind"]) - {""}
    assert kinds["cd"] == {"model"}
    assert kinds["admm"] >= {"request"}
    assert "model" in kinds["rounds"]
    assert Store(tmp_path / "plain").load(plain.runs[0]).extras == {}
    assert len(redraw(tmp_path / "logged")) == 8


def test_an_unknown_agent_is_named_with_its_place(tmp_path):
    asked = {**SCENARIO, "record": {"every": 1.0, "messages": {**WINDOW, "agents": [0, 9]}}}
    with pytest.raises(InputError, match=r"record\.messages\.agents\[1\].*there is no agent 9"):
        run(asked, out=tmp_path)
