"""The shipped comparisons run in small and meet one luck; rounds beside asynchronous steps from a scenario."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.errors import Stall
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.console.words import fates
from hushnet.simulator.experiment import run
from hushnet.simulator.figures import redraw
from hushnet.simulator.language.loading import load, opening_comment, shipped

SMALL = ("seeds=1", "task.agents=7", "topology.k=3")
TINY = {
    "latency-sweep": (
        *SMALL,
        "sweep.mean delay (intervals)={zip: {network.latency.mean: [0.1, 10.0], stop.time: [20.0, 150.0]}}",
        "record.every=1.0",
        "tune.over={admm.rho: [0.1, 0.3]}",
    ),
    "dropout-sweep": (
        *SMALL,
        "sweep.share of time online={zip: {availability.online: [1.0, 0.5]}}",
        "stop.time=40",
        "record.every=1.0",
    ),
    "loss-sweep": (
        *SMALL,
        "sweep.share of messages lost={zip: {network.loss.loss_bad: [0.0, 1.0]}, labels: [0.0, 0.5]}",
        "stop.time=40",
    ),
    "stragglers": (
        *SMALL,
        "sweep.ratio of fast to slow rates={zip: {clock.rate.sigma: [0.001, 1.151]}, labels: [1, 100]}",
        "stop.time=60",
    ),
    "privacy-frontier": ("seeds=1", "task.agents=6", "stop.time=60", "record.every=30"),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A function that runs a tiny version of a comparison, once, and returns its folder."""
    ran = {}

    def folder(name):
        if name not in ran:
            ran[name] = tmp_path_factory.mktemp(name)
            run(name, overrides=TINY[name], out=ran[name], quick=True)
        return ran[name]

    return folder


@pytest.mark.parametrize("name", TINY)
def test_a_comparison_checks_and_says_what_it_shows_what_to_expect_and_how_long_it_takes(name):
    loaded = load(name)
    assert len(loaded.points) > len(load(name, quick=True).points) > 1
    text = shipped()[name].read_text(encoding="utf-8")
    opening = text.partition("schema:")[0]
    assert opening_comment(shipped()[name])
    assert "# What to expect: " in opening
    assert "# Run time on 2 cores (--jobs 2): " in opening
    assert "--quick" in opening


@pytest.mark.parametrize("name", TINY)
def test_a_tiny_version_runs_from_end_to_end_with_its_figures(name, folders):
    folder = folders(name)
    collection = load_all(folder)
    assert {manifest["status"] for manifest in collection.manifests} == {"complete"}
    assert set(collection.labels) == set(load(name).scenario.protocols)
    drawn = {path.name for path in redraw(folder)}
    for figure in load(name).scenario.figures:
        assert {f"{figure.name}.{kind}" for kind in ("pdf", "png", "csv")} <= drawn


@pytest.mark.parametrize("name", [name for name in TINY if name != "privacy-frontier"])
def test_all_protocols_of_a_comparison_start_at_one_place_and_aim_at_one_optimum(name, folders):
    collection = load_all(folders(name))
    gaps = collection.trace.query("metric == 'objective' and statistic == 'gap' and time == 0")
    assert len(gaps) == len(set(collection.trace["run"]))
    assert np.ptp(gaps["value"]) < 1e-9 * gaps["value"].max()
    best = load_all(folders(name)).trace.query("metric == 'objective' and statistic == 'gap'")["value"].min()
    assert best > -1e-8 * gaps["value"].max()


def test_agents_that_never_come_back_stop_the_rounds_around_them_only_without_patience(folders):
    collection = load_all(folders("dropout-sweep"))
    rows = collection.trace.query("metric == 'updates' and statistic == 'max'")
    rows = rows[(rows["absences"] == "for good") & (rows["share of time online"] == 0.5)]
    last = rows.groupby("protocol")["value"].last()
    assert last["cd-rounds"] <= 7
    assert last["cd"] > 20
    assert last["cd-patience"] >= 7


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
