"""A scenario that asks for messages keeps them beside its tables, and is the same run otherwise."""

from __future__ import annotations

import pandas as pd
import pytest
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.experiment import run
from hushnet.simulator.figures import redraw
from hushnet.simulator.network.randomness import Draws
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
    protocols = {"local": {"kind": "local"}, **SCENARIO["protocols"]}  # of which a timeline has nothing
    scenario = {**SCENARIO, "protocols": protocols, "engine": engine}
    plain = run({**scenario, "record": {"every": 1.0}}, out=tmp_path / "plain")
    figures = [{"kind": "timeline"}, {"kind": "portrait", "y": "accuracy"}]
    asked = {**scenario, "record": {"every": 1.0, "messages": WINDOW}, "figures": figures}
    asked["style"] = {"formats": ["png"]}
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
    assert len(redraw(tmp_path / "logged")) == 4


def log_of(folder, engine, protocol, name="messages", **asked):
    window = {"agents": 6, "between": [0.0, 100_000.0], **asked}
    protocols, record = {"own": protocol}, {"every": 1.0, "messages": window}
    made = run(
        {**SCENARIO, "engine": engine, "protocols": protocols, "record": record, "seeds": [7]}, out=folder / engine
    )
    return Store(folder / engine).load(made.runs[0]).extras[name]


@pytest.mark.parametrize("engine", ["event", "batched"])
def test_the_copies_of_a_session_have_its_caller_and_tick_and_repeats_are_counted(engine, tmp_path):
    log = log_of(tmp_path, engine, SCENARIO["protocols"]["admm"])
    sent = log[log["what"] == "message"]
    opened = set(log[log["what"] == "step"][["agent", "tick"]].itertuples(index=False, name=None))
    assert set(sent[["caller", "tick"]].itertuples(index=False, name=None)) <= opened
    asks = sent["kind"] == "request"
    assert (sent["caller"] == sent["agent"].where(asks, sent["other"])).all()
    answers = sent[~asks].set_index(["agent", "other", "tick"]).index
    assert answers.isin(sent[asks].set_index(["other", "agent", "tick"]).index).all()
    assert set(sent[asks]["copy"]) >= {0, 1}
    first = sent.groupby(["agent", "other", "kind", "tick"])
    assert (first["copy"].max() == first.size() - 1).all()


PRIVATE = {
    "mechanism": "laplace",
    "budget": {"epsilon": 5.0, "delta": 1e-5},
    "updates": 4,
    "sensitivity": "clip",
    "clip": 1.0,
}


def test_noise_and_rows_that_steps_draw_are_those_of_numpys_streams(tmp_path):
    """Noise is NumPy's Laplace noise at the scale that the ledger has, rows NumPy's choice, each at the step's tick."""
    found = log_of(
        tmp_path, "batched", {"kind": "coordinate_descent", "mu": 0.5, "privacy": PRIVATE}, "draws", draws=True
    )
    (made,) = load_all(tmp_path / "batched").runs
    stored = Store(tmp_path / "batched").load(made)
    rows = stored.agents.set_index("agent")["samples"]
    scale = stored.ledger.set_index("agent")["multiplier"] * 2 * PRIVATE["clip"] / rows
    assert set(found["what"]) == {"noise"}
    for (agent, tick), drawn in found.groupby(["agent", "tick"]):
        stream = Draws(7).generator("noise", tick + 1, int(agent), 0)
        assert list(drawn["value"]) == pytest.approx(list(stream.laplace(0.0, scale[agent], 3))), (agent, tick)
    found = log_of(tmp_path / "rows", "batched", {"kind": "dual_averaging", "mu": 0.5, "batch": 2}, "draws", draws=True)
    assert set(found["what"]) == {"rows"}
    for (agent, tick), drawn in found.groupby(["agent", "tick"]):
        stream = Draws(7).generator("sampling", tick + 1, int(agent), 0)
        assert list(drawn["value"]) == list(stream.choice(rows[agent], 2, replace=False)), (agent, tick)
