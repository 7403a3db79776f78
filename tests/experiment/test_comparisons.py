"""The shipped comparisons: they check, run in small with their figures, and let all protocols meet one luck."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.simulator.analysis.results import load_all
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
