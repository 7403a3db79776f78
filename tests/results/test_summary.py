"""The table at the end of a run: means, t intervals, and claims that do not hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hushnet.simulator.analysis.aggregate import mean_interval
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.analysis.summary import print_summary, summarise
from rich.console import Console
from scipy import stats

from .synthetic import FALSE, LABELS, PUBLIC, accuracy, make_run


def printed(collection, width=100):
    console = Console(width=width, record=True, file=None, quiet=False)
    with console.capture() as capture:
        print_summary(collection, console)
    return capture.get()


def test_the_half_width_is_students():
    values = np.array([0.81, 0.84, 0.79, 0.86])
    mean, half, n = mean_interval(values)
    by_hand = stats.t.ppf(0.975, df=3) * values.std(ddof=1) / math.sqrt(4)
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    assert mean == pytest.approx(values.mean(), rel=1e-15)
    assert half == pytest.approx(by_hand, rel=1e-14)
    assert (mean - half, mean + half) == pytest.approx((low, high), rel=1e-14)
    assert n == 4


def test_missing_runs_do_not_count_and_infinite_ones_do():
    mean, half, n = mean_interval([[1.0, math.inf, math.nan], [3.0, 1.0, math.nan], [math.nan, 2.0, math.nan]])
    np.testing.assert_array_equal(n, [2, 3, 0])
    np.testing.assert_array_equal(mean, [2.0, math.inf, math.nan])
    assert half[0] == pytest.approx(stats.t.ppf(0.975, 1))
    assert np.isnan(half[1:]).all()


def test_a_row_per_protocol_holds_final_means_and_both_epsilons(experiment):
    frame = summarise(load_all(experiment())).set_index("protocol")
    assert list(frame.index) == list(LABELS)
    finals = [accuracy("cd", seed)[-1] for seed in range(3)]
    assert frame.loc["cd", "accuracy"] == pytest.approx(np.mean(finals), rel=1e-14)
    half = stats.t.ppf(0.975, 2) * np.std(finals, ddof=1) / math.sqrt(3)
    assert frame.loc["cd", "accuracy half_width"] == pytest.approx(half, rel=1e-12)
    assert frame.loc["cd", "objective gap"] == pytest.approx(np.mean([1, 1.1, 1.2]) * math.exp(-10))
    assert frame.loc["cd", "vectors"] == 410
    assert tuple(frame.loc["cd_eps", ["epsilon_claimed", "epsilon_verified", "delta"]]) == (0.15, 37.2, 0.0067)
    assert list(frame["flagged"]) == [False, False, True]
    assert list(frame["n"]) == [3, 3, 3]
    assert np.isnan(frame.loc["cd", "epsilon_claimed"])


def test_a_claim_below_what_was_verified_is_loud(experiment):
    text = printed(load_all(experiment()))
    table, _, notes = text.partition("n runs")
    assert "37.2 ⚠" in table
    loud = " ".join(notes.split())
    assert "⚠ private CD: ε claimed 0.15 < verified 37.2, δ=0.0067" in loud
    assert f"assumed public: {', '.join(PUBLIC)}." in loud


def test_an_infinite_epsilon_says_why_and_who_is_not_protected(experiment):
    privacy = {**FALSE, "verified": math.inf, "because": ["the noise hides nothing"], "unprotected": {"centre": ["y"]}}
    loud = " ".join(printed(load_all(experiment([make_run("cd_eps", privacy=privacy)]))).split())
    assert "ε claimed 0.15 < verified ∞, δ=0.0067; not verified because the noise hides nothing;" in loud
    assert "not protected: the centre (y); assumed public:" in loud


def test_labels_are_not_read_as_markup(experiment):
    assert "CD [bold]" in printed(load_all(experiment([make_run(label="CD [bold]")])))
