"""Numbers that a correct build of Bellet et al. 2018 reaches: established by two independent implementations.

Zero latency, no loss, everybody online; n = 100, p = 100, points on the cube, five instances, mu_eff = 4. Tolerances
are those of a mean over five runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hushnet.simulator.experiment import run

pytestmark = pytest.mark.slow


def final(collection, protocol, metric, statistic="mean"):
    """Mean over seeds of a protocol's last value."""
    rows = collection.trace.query("protocol == @protocol and metric == @metric and statistic == @statistic")
    return rows.groupby("seed")["value"].last().mean()


@pytest.fixture(scope="module")
def figure_1(tmp_path_factory):
    return run(
        "bellet2018-fig1",
        overrides=("stop={activations: 1000}", "record.activations=1000", "figures=[]"),
        out=tmp_path_factory.mktemp("fig1"),
    )


def test_purely_local_models_reach_their_accuracy(figure_1):
    assert final(figure_1, "local", "accuracy") == pytest.approx(0.683, abs=0.01)


def test_coordinate_descent_reaches_its_accuracy_in_1000_activations(figure_1):
    assert final(figure_1, "cd", "accuracy") == pytest.approx(0.891, abs=0.015)


def test_1000_activations_move_31_200_vectors_and_the_start_is_counted_apart(figure_1):
    totals = [m["totals"] for m in figure_1.manifests if m["protocol"] == "cd"]
    assert np.mean([t["vectors"] for t in totals]) == pytest.approx(31_200, abs=1_000)
    edges = [m["topology"]["edges"] for m in figure_1.manifests if m["protocol"] == "cd"]
    assert [t["start_vectors"] for t in totals] == [2 * count for count in edges]


def test_gossip_admm_reaches_its_accuracy_in_10_000_activations_and_80_000_vectors(tmp_path):
    collection = run("bellet2018-fig1", overrides=("record.activations=10000", "figures=[]"), out=tmp_path)
    assert final(collection, "admm", "accuracy") == pytest.approx(0.892, abs=0.012)
    assert [m["totals"]["vectors"] for m in collection.manifests if m["protocol"] == "admm"] == [80_000] * 5


def test_200_updates_an_agent_close_the_gap_to_the_exact_minimum(tmp_path):
    collection = run(
        "bellet2018-fig1",
        overrides=("stop={activations: 20000}", "record.activations=20000", "figures=[]"),
        out=tmp_path,
        seeds=2,
    )
    gaps = collection.trace.query("protocol == 'cd' and metric == 'objective' and statistic == 'gap'")
    last = gaps.groupby("seed")["value"].last()
    assert (last < 1e-6).all()
    assert (last > -1e-8).all()


def test_private_accuracy_at_claimed_epsilon_0_15_is_below_local_for_every_number_of_updates(tmp_path):
    """A result near .8 would mean that the noise is about m_i times too small."""
    best = 0.0
    for updates in (1, 2, 3, 5, 10, 20):
        collection = run(
            "bellet2018-fig2a",
            overrides=(
                "protocols={local: {kind: local}, cd: {kind: coordinate_descent, mu: 0.04, start: constant, "
                "start_value: 0.0, smoothness: data, privacy: {mechanism: laplace, sensitivity: claimed, "
                f"budget: {{epsilon: 0.15, delta: 0.006737946999085467}}, updates: {updates}}}}}}}",
                f"stop={{updates: {updates}}}",
                "record={activations: 10000, metrics: [accuracy, epsilon]}",
                "figures=[]",
            ),
            out=tmp_path / str(updates),
        )
        best = max(best, final(collection, "cd", "accuracy"))
        privacy = [m["privacy"] for m in collection.manifests if m["protocol"] == "cd"]
        assert all(p["flagged"] and p["claimed"] == pytest.approx(0.15, rel=1e-6) for p in privacy)
        assert all(p["verified"] > 10 for p in privacy)
    assert best <= 0.56


@pytest.fixture
def movielens() -> Path:
    folder = os.environ.get("HUSHNET_DATA")
    if not folder or not (Path(folder) / "ml-100k/u.data").is_file():
        pytest.skip("MovieLens-100K is needed: HUSHNET_DATA names no folder that holds ml-100k/u.data")
    return Path(folder)


def test_movielens_coordinate_descent_reaches_its_rmse(movielens, tmp_path):
    """RMSE averaged over users; the user-mean predictor is the model 0 of centred ratings."""
    collection = run(
        "bellet2018-movielens",
        overrides=(
            "protocols={cd: {kind: coordinate_descent, mu: 0.04, confidence: relative, smoothness: data, start: local, "
            "updates: 60}, mean: {kind: coordinate_descent, mu: 0.04, confidence: relative, updates: 1}}",
            "stop={updates: 60}",
            "record={activations: 1000000, metrics: [rmse]}",
            "figures=[]",
        ),
        out=tmp_path,
        data_dir=movielens,
        seeds=3,
    )
    first = collection.trace.query("protocol == 'mean' and metric == 'rmse' and statistic == 'mean' and time == 0")
    assert first["value"].mean() == pytest.approx(1.014, abs=0.01)
    assert 0.935 <= final(collection, "cd", "rmse") <= 0.975
