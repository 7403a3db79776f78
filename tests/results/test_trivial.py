"""Constant predictions stand beside every result, and it is said where nobody beats them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.losses import LOSSES
from hushnet.agents.tables import Table
from hushnet.agents.tasks.synthetic_ratings import SyntheticRatings
from hushnet.agents.tasks.task import Task
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.analysis.summary import print_summary, summarise
from hushnet.simulator.analysis.trivial_values import unbeaten
from hushnet.simulator.metrics import METRICS
from hushnet.simulator.report.report_page import content

from .synthetic import collected, make_run
from .writing import printed


def a_task(labels, owners, tests, *, metric="accuracy", **more):
    table = [Table.from_owners(np.zeros((len(y), 2)), np.array(y, float), np.array(owners), 2) for y in (labels, tests)]
    loss = LOSSES["logistic" if metric == "accuracy" else "squared"]
    return Task("by hand", [0, 1], table[0], table[1], loss, np.zeros(2), metric, **more)


def trivial(task, metrics):
    """What trivial predictions come to, by metric and name."""
    return {name: METRICS[name].baselines(task) for name in metrics if METRICS[name].baselines}


def with_baseline(accuracies, baseline, seeds=3, **grid):
    """Runs that end with these accuracies, by protocol, beside a trivial one."""
    runs = []
    for key, value in accuracies.items():
        for seed in range(seeds):
            made = make_run(key, seed, grid=grid or None)
            trace = made.trace[(made.trace["metric"] == "accuracy") & (made.trace["statistic"] == "mean")]
            made.trace = trace.iloc[[0, -1]].assign(value=[0.5, value + 0.001 * seed])
            made.manifest["baselines"] = {
                "accuracy": {"majority class": baseline, "own majority class": baseline - 0.1}
            }
            runs.append(made)
    return runs


def test_majorities_are_those_of_training_rows_and_judged_on_test_rows():
    owners = [0, 0, 0, 1, 1]
    task = a_task([1, 1, 1, -1, -1], owners, [1, -1, -1, -1, -1])
    found = trivial(task, ("accuracy", "objective"))
    assert found == {"accuracy": {"majority class": pytest.approx(1 / 6), "own majority class": pytest.approx(2 / 3)}}


def test_constants_of_squared_errors():
    task = a_task([2, 2, 2, 0, 0], [0, 0, 0, 1, 1], [1, 1, 1, 0, 2], metric="rmse")
    found = trivial(task, ("rmse", "test_loss", "training_loss"))
    own = (1 + np.sqrt(2)) / 2
    overall = (0.2 + np.sqrt((1.44 + 0.64) / 2)) / 2
    assert found["rmse"] == pytest.approx({"zero model": own, "overall mean": overall, "own mean": own})
    zero = task.loss.value(np.zeros(5), task.test.labels).mean()
    assert found["test_loss"] == {"zero model": pytest.approx(zero)}


def test_the_zero_model_of_centred_ratings_is_the_users_mean():
    given = SyntheticRatings.model_validate(
        {"kind": "synthetic_ratings", "users": 12, "items": 20, "ratings": [5, 10], "features": 2}
    )
    task = given.build(rng=np.random.default_rng(0), data_dir=None)
    found = trivial(task, ("rmse",))["rmse"]
    assert list(found) == ["user's mean", "overall mean"]
    sums = task.test.sums(task.test.labels**2)
    inhabited = task.test.counts > 0
    assert found["user's mean"] == pytest.approx(np.sqrt(sums[inhabited] / task.test.counts[inhabited]).mean())


def test_nobody_beats_a_constant_is_said_in_one_sentence(experiment):
    collection = load_all(experiment(with_baseline({"local": 0.745, "cd": 0.749}, 0.75)))
    said = [(text, loud) for text, loud in unbeaten(collection)]
    assert said == [("Nobody beats a trivial prediction: majority class, accuracy 0.75.", True)]
    assert "Nobody beats a trivial prediction" in printed(print_summary, collection, width=160)
    assert content(collection, collection.root)["alarms"] == [said[0][0]]


def test_two_metrics_that_say_the_same_share_a_sentence(experiment):
    runs = with_baseline({"local": 0.745, "cd": 0.749}, 0.75)
    for run in runs:
        run.trace = pd.concat([run.trace, run.trace.assign(metric="mse")], ignore_index=True)
        run.manifest["baselines"]["mse"] = {"zero model": 0.1}
    assert unbeaten(load_all(experiment(runs))) == [
        ("Nobody beats a trivial prediction: majority class, accuracy 0.75; zero model, mse 0.1.", True)
    ]


def test_whose_interval_reaches_a_constant_does_not_beat_it(experiment):
    collection = load_all(experiment(with_baseline({"local": 0.7495, "cd": 0.8}, 0.75)))
    assert unbeaten(collection) == [
        ("local does not beat a trivial prediction beyond the spread over seeds: majority class, accuracy 0.75.", False)
    ]
    assert unbeaten(collected(with_baseline({"local": 0.76, "cd": 0.8}, 0.75))) == []
    assert unbeaten(collected(with_baseline({"local": 0.751, "cd": 0.8}, 0.75, seeds=2))) == []  # too few for intervals


def test_constants_have_rows_of_their_own_below_the_protocols(experiment):
    collection = load_all(experiment(with_baseline({"local": 0.7, "cd": 0.8}, 0.75)))
    assert list(summarise(collection)["protocol"]) == ["local", "cd"]
    shown = printed(print_summary, collection, width=160)
    assert shown.index("coordinate descent") < shown.index("(majority class)") < shown.index("(own majority class)")
    rows = content(collection, collection.root)["content"]["headline"]["rows"]
    assert [row["label"] for row in rows] == ["local", "coordinate descent", "(majority class)", "(own majority class)"]


def over_an_objective(constants, accuracy=0.8):
    """Runs of a sweep of a task's field: the constant changes from point to point with what is learned."""
    runs = []
    for agents, (majority, own) in constants.items():
        made = with_baseline({"local": accuracy, "cd": 0.99}, majority, **{"task.agents": agents})
        for run_ in made:
            run_.manifest["baselines"]["accuracy"]["own majority class"] = own
        runs += made
    return runs


def test_a_constant_that_changes_along_the_sweep_has_a_row_at_every_point(experiment):
    collection = load_all(experiment(over_an_objective({5: (0.5, 0.4), 50: (0.9, 0.4)})))
    rows = content(collection, collection.root)["content"]["headline"]["rows"]
    found = {(row["label"], *row["at"]): row["cells"] for row in rows}
    assert "0.5 \N{PLUS-MINUS SIGN} 0" in found["(majority class)", "5"]
    assert "0.9 \N{PLUS-MINUS SIGN} 0" in found["(majority class)", "50"]
    assert "0.4 \N{PLUS-MINUS SIGN} 0" in found["(own majority class)", ""]
    lines = [line for line in printed(print_summary, collection, width=160).splitlines() if "(majority class)" in line]
    assert [("50" in line, "0.9" in line) for line in lines] == [(False, False), (True, True)]
