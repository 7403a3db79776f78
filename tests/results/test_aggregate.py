"""What a name in a figure stands for, intervals, where a run meets a target, and the table at the end of a run."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.analysis.aggregate import curves, mean_interval, resolve, share_interval
from hushnet.simulator.analysis.results import Collection, load_all
from hushnet.simulator.analysis.summary import print_summary
from hushnet.simulator.analysis.targets import describe, levels, reached
from hushnet.simulator.experiment import run
from hushnet.simulator.figures import plots
from hushnet.simulator.figures.intervals import interval
from hushnet.simulator.language.figure_kinds import AXES
from hushnet.simulator.language.figure_parameters import TO_TARGET, per_agent
from hushnet.simulator.metrics import METRICS, more_is_better
from hushnet.simulator.metrics.metric import ANY, range_of, range_of_difference
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from .synthetic import FALSE, make_run
from .writing import caption, figure_of, printed

RECORDED = [
    ("objective", "value"),
    ("objective", "gap"),
    ("accuracy", "mean"),
    ("accuracy", "worst_decile"),
    ("epsilon_claimed", "worst"),
    ("epsilon_verified", "worst"),
    ("epsilon_verified", "q90"),
]


def collection_of(recorded, *, agents=4):
    """A run of two records, after 0 and 8 activations."""
    rows = [
        {"run": "r", "protocol": "p", "time": time, "activations": 8 * time, "metric": metric, "statistic": statistic}
        for time in (0, 1)
        for metric, statistic in recorded
    ]
    trace = pd.DataFrame(rows).assign(messages=0, vectors=0, bytes=0, value=1.0)
    manifest = {"protocol": "p", "seed": 0, "grid": {}, "status": "complete"}
    return Collection(trace, pd.DataFrame({"run": ["r"] * agents}), [manifest], ["r"])


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (("objective", None), ("objective", "gap")),
        (("objective", "value"), ("objective", "value")),
        (("gap", None), ("objective", "gap")),
        (("gap", "value"), ("objective", "gap")),
        (("accuracy", None), ("accuracy", "mean")),
        (("accuracy", "worst_decile"), ("accuracy", "worst_decile")),
        (("epsilon", None), ("epsilon_verified", "worst")),
        (("epsilon", "mean"), ("epsilon_verified", "worst")),
        (("epsilon", "q90"), ("epsilon_verified", "q90")),
        (("epsilon_claimed", None), ("epsilon_claimed", "worst")),
        (("bytes", None), ("bytes", "")),
    ],
)
def test_a_name_stands_for_a_recorded_metric_and_statistic(asked, meant):
    assert resolve(collection_of(RECORDED), *asked) == meant


def test_epsilon_is_the_claimed_one_where_no_other_was_recorded():
    assert resolve(collection_of([("epsilon_claimed", "worst")]), "epsilon") == ("epsilon_claimed", "worst")


def test_updates_are_activations_by_agent_unless_they_were_recorded():
    assert curves(collection_of(RECORDED), "accuracy", "mean", "updates")["x"].tolist() == [0.0, 2.0]
    recorded = collection_of([*RECORDED, ("updates", "mean")])
    recorded.trace.loc[recorded.trace["metric"] == "updates", "value"] = [0.0, 1.5]
    assert curves(recorded, "accuracy", "mean", "updates")["x"].tolist() == [0.0, 1.5]


SHARES = st.lists(st.floats(0, 1), min_size=2, max_size=12)


def wild(protocol, seed, values):
    """A run whose accuracy and gap are what is given, at every time."""
    run = make_run(protocol, seed)
    for (metric, statistic), value in values.items():
        chosen = (run.trace["metric"] == metric) & (run.trace["statistic"] == statistic)
        run.trace.loc[chosen, "value"] = value
    return run


@given(SHARES)
def test_the_interval_of_a_share_lies_between_0_and_1_around_the_mean(values):
    found = interval(values, (0.0, 1.0))
    assert 0 <= found.low <= found.mean <= found.high <= 1


@pytest.mark.parametrize("runs", range(2, 40))
def test_an_interval_contains_its_mean_where_all_runs_agree(runs):
    """Figures draw its ends by their distances from the mean, which rounding must not make negative."""
    for value in np.arange(0.0, 1.001, 0.01):
        found = interval([value] * runs, (0.0, 1.0))
        assert found.low <= found.mean <= found.high
    for won in (0.0, 1.0):
        share, low, high, _ = share_interval([won] * runs)
        assert 0 <= low <= share <= high <= 1


@pytest.mark.parametrize("within", [(0.0, 1.0), (0.0, math.inf), (-1.0, 1.0), (-math.inf, 2.0)])
def test_narrow_intervals_are_those_of_student(within):
    values = 0.4 + 1e-4 * np.arange(6)
    mean, half, _ = mean_interval(values)
    found = interval(values, within)
    assert (found.low, found.high) == pytest.approx((mean - half, mean + half), abs=2e-3 * half)


def test_where_a_run_leaves_the_range_nothing_is_assumed():
    """A gap may lie below 0 while models differ."""
    values = np.array([[-0.1, 0.1], [0.2, 0.2], [0.3, 0.3]])
    mean, half, _ = mean_interval(values)
    found = interval(values, (0.0, math.inf))
    assert found.low[0] == pytest.approx(mean[0] - half[0])
    assert found.low[1] > 0


def test_every_recorded_metric_has_a_range_that_is_on_purpose():
    """What is not listed has any value: a new metric must be put where it belongs."""
    assert {name for name in METRICS if range_of(name) == ANY} == {"objective"}
    assert all(range_of(name) != ANY for name in (*AXES, *TO_TARGET))
    assert {name for name in per_agent() if range_of(name) == ANY} == {"model"}
    assert range_of_difference(range_of("accuracy")) == (-1, 1)


def test_bands_of_accuracy_end_at_1_and_those_of_a_gap_do_not_fall_like_curtains(experiment):
    shares, gaps = [0.5, 0.999, 0.999, 0.999, 0.999, 0.9], [1e-3, 2e-3, 1e-1, 1e-3, 2e-3, 1e-3]
    given = zip(shares, gaps, strict=True)
    runs = [wild("cd", k, {("accuracy", "mean"): a, ("objective", "gap"): g}) for k, (a, g) in enumerate(given)]
    collection = load_all(experiment(runs))
    (plot,) = plots(collection, {"y": "accuracy", "x": "time"})
    assert plot.points["high"].max() <= 1
    (plot,) = plots(collection, {"y": "objective", "statistic": "gap", "x": "time", "log": "y"})
    assert plot.points["low"].min() > 1e-4
    figure = figure_of(collection, {"y": "objective", "x": "time", "log": "y"})
    assert "95 % t interval (log scale), n = 6 runs" in caption(figure)
    low, high = figure.axes[0].get_ylim()
    assert 1e-3 < low < 2e-3
    assert 1e-1 < high < 1.5e-1


@pytest.mark.parametrize(("each", "said"), [(1, "n = 6 runs"), (2, "n = 6 runs on 3 data sets"), (6, "on 1 data set")])
def test_a_caption_says_on_how_many_data_sets_runs_were_made(each, said, experiment):
    """Of other data an interval over runs that share them says nothing."""
    runs = [wild("cd", k, {("accuracy", "mean"): 0.5 + 0.01 * k}) for k in range(6)]
    for k, one in enumerate(runs):
        one.manifest |= {"data_seed": k // each, "run_seed": k}
    found = caption(figure_of(load_all(experiment(runs)), {"y": "accuracy", "x": "time"}))
    assert said in found
    assert ("data set" in found) == (each > 1)


@pytest.mark.parametrize("kind", ["curve", "sweep", "bars", "frontier"])
def test_every_seed_lies_inside_the_panel_whatever_the_interval(experiment, kind):
    runs = []
    for seed, share in enumerate((0.2, 0.9, 0.95)):
        run = wild("cd", seed, {("accuracy", "mean"): share})
        run.manifest["grid"] = {"network.loss": 0.1}
        runs.append(run)
    x = {"curve": "time", "sweep": "network.loss", "bars": "protocol", "frontier": "vectors"}[kind]
    low, high = figure_of(load_all(experiment(runs)), {"y": "accuracy", "x": x, "kind": kind}).axes[0].get_ylim()
    assert low < 0.2 or (kind == "bars" and low <= 0)
    assert 0.95 < high < 1.05


COUNTS = ("activations", "messages", "vectors", "bytes")


def curves_of(curves, *, metric="objective", statistic="gap", seeds=None, grids=None, status=None, measured_by=None):
    """Runs ``r0, r1, ...`` of protocols ``p0, p1, ...`` with the given (time, value) points; counts are ten a time."""
    tables, manifests = [], []
    for k, points in enumerate(curves):
        times, values = np.array(points, dtype=float).reshape(-1, 2).T
        table = pd.DataFrame({"time": times, "metric": metric, "statistic": statistic, "value": values})
        grid = (grids or {}).get(k, {})
        tables.append(table.assign(run=f"r{k}", protocol=f"p{k}", seed=0, **dict.fromkeys(COUNTS, 10 * times), **grid))
        manifest = {"protocol": f"p{k}", "seed": (seeds or {}).get(k, 0), "grid": grid}
        manifest |= {"status": (status or {}).get(k, "complete"), "scenario": {"record": {"objective_of": measured_by}}}
        manifests.append(manifest)
    runs = [f"r{k}" for k in range(len(curves))]
    return Collection(pd.concat(tables, ignore_index=True), pd.DataFrame({"run": []}), manifests, runs)


def values(frame):
    return list(frame["value"])


def test_the_place_may_be_read_on_any_axis(experiment):
    collection = load_all(experiment([make_run("cd", 1)]))
    assert values(reached(collection, None, "bytes")) == [320 * 3]
    with pytest.raises(InputError, match=r"centuries.*is no axis.*time, activations"):
        reached(collection, None, "centuries")
    with pytest.raises(InputError, match="cd does not say what an epoch of it is"):
        reached(collection, None, "epochs")


def test_a_level_of_a_metric_is_met_from_below_or_from_above():
    curve = [(0, 0.5), (1, 0.7), (2, 0.69), (3, 0.9)]
    for metric, level, place in [("accuracy", 0.7, 1), ("rmse", 0.5, 0), ("accuracy", 0.91, math.inf)]:
        found = reached(curves_of([curve], metric=metric, statistic="mean"), {"metric": metric, "level": level}, "time")
        assert values(found) == [place]


def test_all_are_held_against_the_start_of_the_protocol_whose_objective_is_measured():
    curves = [[(0, 100), (1, 9)], [(0, 20), (1, 9)], [(0, 5000), (1, 90)]]
    assert values(reached(curves_of(curves), None, "time")) == [1, math.inf, 1]
    assert values(reached(curves_of(curves, measured_by="p0"), None, "time")) == [1, 1, math.inf]
    elsewhere = curves_of(curves, measured_by="p0", seeds={1: 7})
    assert values(reached(elsewhere, None, "time")) == [1, math.inf, math.inf]


def test_a_run_that_broke_off_counts_up_to_its_end_and_one_without_the_metric_is_unknown():
    curves = [[(0, 10), (1, 1)], [(0, 10), (1, 20)], []]
    found = reached(curves_of(curves, status={0: "diverged", 1: "diverged"}), None, "time")
    np.testing.assert_array_equal(values(found), [1, math.inf, math.nan])


def test_a_share_of_the_accuracy_may_be_of_another_protocol_with_the_same_seed_at_the_same_place():
    curves = [[(0, 0.1), (1, 0.5)], [(0, 0.1), (1, 0.5)], [(0, 0.8)], [(0, 0.4)]]
    grids = {k: {"loss": k % 2} for k in range(4)}
    collection = curves_of(curves, metric="accuracy", statistic="mean", grids=grids)
    for manifest, protocol in zip(collection.manifests, ["cd", "cd", "best", "best"], strict=True):
        manifest["protocol"] = protocol
    for of in ("best", {"cd": "best"}):
        target = {"metric": "accuracy", "share": 0.5, "of": of}
        assert values(reached(collection, target, "time")) == [1, 1, 0, 0]
        assert list(levels(collection, target)) == [0.4, 0.2, 0.4, 0.2]
    most = {"metric": "accuracy", "share": 0.9, "of": "best"}
    assert values(reached(collection, most, "time")) == [math.inf, 1, 0, 0]
    collection.manifests[3]["seed"] = 7
    held = levels(collection, {"metric": "accuracy", "share": 0.5, "of": {"cd": "best"}})
    np.testing.assert_array_equal(held, [0.4, math.nan, 0.4, 0.2])
    del collection.__dict__["complete"]
    collection.manifests[2]["status"] = "diverged"
    found = reached(collection, {"metric": "accuracy", "share": 0.5, "of": "best"}, "time")
    np.testing.assert_array_equal(values(found), [math.nan, math.nan, math.nan, 0])


@pytest.mark.parametrize(
    "target",
    [
        {"metric": "rmse", "share": 0.9},
        {"metric": "objective"},
        {"metric": "objective", "share": 1.0},
        {"share": 0.5},
    ],
)
def test_a_target_that_is_none_is_said_in_one_sentence(experiment, target):
    with pytest.raises(InputError, match="target: "):
        reached(load_all(experiment([make_run()])), target, "time")


def test_targets_are_said_in_words():
    assert describe({"metric": "objective", "share": 0.9}) == "objective gap down to 0.1 of its start"
    assert describe({"metric": "accuracy", "level": 0.85}) == "accuracy at least 0.85"
    assert describe({"metric": "rmse", "level": 1}) == "rmse at most 1"
    share = {"metric": "accuracy", "share": 0.9}
    assert describe(share) == "0.9 of the last accuracy"
    assert describe({**share, "of": "best"}) == "0.9 of the last accuracy of best"
    assert describe({**share, "of": {"a": "x", "b": "y"}}) == "0.9 of the last accuracy of x (for a), y (for b)"
    assert describe({"metric": "mine", "level": 1}) == "mine 1"
    assert [more_is_better(name) for name in ("accuracy", "objective", "mine")] == [True, False, None]


def test_models_that_converge_have_no_distance_left_and_start_at_one(tmp_path):
    """From zero the relative distance is 1; coordinate descent ends at the minimiser."""
    data = {
        "schema": 1,
        "scenario": "tiny",
        "task": {"kind": "linear_classification", "agents": 4, "dimension": 3, "samples": [20, 30]},
        "topology": {"kind": "ring"},
        "protocols": {"cd": {"kind": "coordinate_descent", "start": "zero", "mu": 1.0}},
        "stop": {"time": 400},
        "record": {"every": 100.0, "metrics": ["distance"]},
        "seeds": 1,
    }
    trace = run(data, out=tmp_path).trace
    mean = trace[(trace["metric"] == "distance") & (trace["statistic"] == "mean")]["value"].tolist()
    assert mean[0] == pytest.approx(1.0)
    assert mean[-1] < 1e-3
    assert mean[1] < 1.0


def test_missing_runs_do_not_count_and_infinite_ones_do():
    mean, half, n = mean_interval([[1.0, math.inf, math.nan], [3.0, 1.0, math.nan], [math.nan, 2.0, math.nan]])
    np.testing.assert_array_equal(n, [2, 3, 0])
    np.testing.assert_array_equal(mean, [2.0, math.inf, math.nan])
    assert half[0] == pytest.approx(stats.t.ppf(0.975, 1))
    assert np.isnan(half[1:]).all()


def test_an_infinite_epsilon_says_why_and_who_is_not_protected(experiment):
    privacy = {**FALSE, "verified": math.inf, "because": ["the noise hides nothing"], "unprotected": {"centre": ["y"]}}
    loud = " ".join(
        printed(print_summary, load_all(experiment([make_run("cd_eps", privacy=privacy)])), width=100).split()
    )
    assert "ε claimed 0.15 < verified ∞, δ=0.0067; not verified because the noise hides nothing;" in loud
    assert "not protected: the centre (y); assumed public:" in loud


def test_labels_are_not_read_as_markup(experiment):
    assert "CD [bold]" in printed(print_summary, load_all(experiment([make_run(label="CD [bold]")])), width=100)
