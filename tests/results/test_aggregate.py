"""What a name in a figure stands for, where a record is on an axis, and intervals within what a metric can be."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hushnet.simulator.analysis.aggregate import curves, mean_interval, resolve
from hushnet.simulator.analysis.results import Collection, load_all
from hushnet.simulator.figures import draw, plots
from hushnet.simulator.figures.intervals import interval
from hushnet.simulator.figures.series_style import house_style
from hushnet.simulator.language.figure_kinds import AXES
from hushnet.simulator.language.figure_parameters import TO_TARGET, per_agent
from hushnet.simulator.metrics import METRICS
from hushnet.simulator.metrics.metric import ANY, range_of, range_of_difference
from hypothesis import given
from hypothesis import strategies as st

from .synthetic import make_run

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


def figure_of(collection, **spec):
    spec = {"statistic": None, "interval": "95%", "x": "time", **spec}
    with house_style():
        return draw(collection, spec, plots(collection, spec))


def caption(figure):
    return figure.legends[0].get_title().get_text().replace("\n", " ")


@given(SHARES)
def test_the_interval_of_a_share_lies_between_0_and_1_around_the_mean(values):
    found = interval(values, (0.0, 1.0))
    assert 0 <= found.low <= found.mean + 1e-12
    assert found.mean - 1e-12 <= found.high <= 1


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
    figure = figure_of(collection, y="objective", statistic="gap", log="y")
    assert "95 % t interval (log scale), n = 6 runs" in caption(figure)
    low, high = figure.axes[0].get_ylim()
    assert 1e-3 < low < 2e-3
    assert 1e-1 < high < 1.5e-1


@pytest.mark.parametrize("kind", ["curve", "sweep", "bars", "frontier"])
def test_every_seed_lies_inside_the_panel_whatever_the_interval(experiment, kind):
    runs = []
    for seed, share in enumerate((0.2, 0.9, 0.95)):
        run = wild("cd", seed, {("accuracy", "mean"): share})
        run.manifest["grid"] = {"network.loss": 0.1}
        runs.append(run)
    x = {"curve": "time", "sweep": "network.loss", "bars": "protocol", "frontier": "vectors"}[kind]
    low, high = figure_of(load_all(experiment(runs)), y="accuracy", x=x, kind=kind).axes[0].get_ylim()
    assert low < 0.2 or (kind == "bars" and low <= 0)
    assert 0.95 < high < 1.05
