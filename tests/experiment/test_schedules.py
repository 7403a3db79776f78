"""Schedules from a scenario file: rounds beside asynchronous steps, stalled runs, and mistakes."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.errors import Stall
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.console.words import fates
from hushnet.simulator.experiment import run

SCENARIO = """\
schema: 1
scenario: barrier
task: {kind: linear_classification, agents: 8, dimension: 4, samples: [5, 20], test_samples: 10}
topology: {kind: ring, reach: 2}
network: {latency: {kind: exponential, mean: 0.5}}
protocols:
  gossip: {kind: coordinate_descent, mu: 0.1}
  barrier:
    like: gossip
    schedule: rounds
  lossy:
    like: barrier
    schedule: {kind: rounds, resend_after: never}
stop: {updates: 6}
record: {every: 1.0, metrics: [objective, traffic]}
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "barrier.yaml"
    path.write_text(SCENARIO)
    return path


def test_a_stalled_run_says_so_and_keeps_what_was_recorded(scenario, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(Stall, match=r"^barrier: protocol lossy, seed 0: agent \d at time .*: round \d can never begin"):
        run(scenario, out=out, overrides=("network.loss=0.2", "stop={updates: 40}"))
    collection = load_all(out)
    manifests = {manifest["protocol"]: manifest for manifest in collection.manifests}
    assert [manifests[key]["status"] for key in ("gossip", "barrier", "lossy")] == ["complete", "complete", "stalled"]
    assert manifests["lossy"]["ended"] == "stalled"
    totals = [manifests[key]["totals"] for key in ("barrier", "lossy")]
    planned = 40 * manifests["barrier"]["scenario"]["task"]["agents"]
    assert [total["rounds_planned"] for total in totals] == [planned, planned]
    assert totals[0]["rounds_finished"] >= planned > totals[1]["rounds_finished"] == totals[1]["activations"]
    assert "can never begin" in manifests["lossy"]["error"]
    assert np.isfinite(collection.trace.query("protocol == 'lossy'")["value"]).all()
    with pytest.raises(Stall):
        run(scenario, out=out, overrides=("network.loss=0.2", "stop={updates: 40}"))


def test_the_summary_says_what_became_of_sessions_and_rounds():
    sessions = {"opened": 1200, "finished": 1100, "void": 60, "refused": 0, "given_up": 30, "open": 10, "skipped": 7}
    gossip = {"label": "gossip", "totals": {f"sessions_{name}": count for name, count in sessions.items()}}
    none = {"rounds_begun_without_all": 0, "messages_repeated": 0}
    rounds = {"label": "rounds", "totals": {**none, "rounds_begun_without_all": 3, "rounds_finished": 40}}
    calm = {"label": "calm", "totals": {**none, "rounds_finished": 80, "rounds_planned": 80}}
    short = {"label": "short", "totals": {**none, "rounds_finished": 31, "rounds_planned": 40}}
    assert fates([gossip, gossip, rounds, calm, short, short, {"label": "old"}]) == [
        "gossip: 2,400 sessions opened, 2,200 finished, 120 void, 0 refused, 60 given up, 20 still open; "
        "14 calls skipped",
        "rounds: 40 rounds finished, 3 begun without all messages; 0 messages repeated",
        "short: 62 of 80 planned rounds finished, 0 begun without all messages; 0 messages repeated",
    ]
