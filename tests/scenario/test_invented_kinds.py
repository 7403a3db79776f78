"""A kind of thing that somebody invents needs one registration, and works on both engines and in every list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import pytest
from hushnet.agents.criteria import CRITERIA, Criterion
from hushnet.agents.errors import InputError
from hushnet.agents.losses import LOSSES, Loss, RowForms
from hushnet.agents.losses import register as register_loss
from hushnet.agents.quantity import Quantity
from hushnet.simulator.analysis.summary import summarise
from hushnet.simulator.api import run
from hushnet.simulator.figures.words import axis_label
from hushnet.simulator.language.loading import load
from hushnet.simulator.metrics import METRICS, Metric, more_is_better, range_of, register
from hushnet.simulator.metrics.criteria import register_criterion

ENGINES = ("event", "batched")


def scenario(**changes):
    return {
        "schema": 1,
        "scenario": "invented",
        "task": {"kind": "linear_classification", "agents": 8, "dimension": 3, "samples": [4, 9]},
        "topology": {"kind": "ring"},
        "protocols": {"cd": {"kind": "coordinate_descent", "mu": 0.3}, "local": {"kind": "local"}},
        "stop": {"time": 6.0},
        "record": {"every": 2.0, "metrics": ["objective", "accuracy"]},
        **changes,
    }


@pytest.fixture
def forget():
    """Names to take out of registries after a test."""
    names: list[tuple[object, str]] = []
    yield lambda registry, name: names.append((registry, name))
    for registry, name in names:
        registry.remove(name)


def largest_weight(reading):
    yield "mean", np.abs(reading.models).max(axis=1).mean()
    yield "worst", np.abs(reading.models).max()


@pytest.fixture
def weight(forget):
    forget(METRICS, "weight")
    return register(
        Metric(
            name="weight",
            better="less",
            compute=largest_weight,
            quantity=lambda reading: Quantity("largest weight", "mean over agents"),
            label="largest weight",
            unit="kg",
            statistics=("mean", "worst"),
            usual="worst",
            low=0.0,
            per_agent=lambda reading: np.abs(reading.models).max(axis=1),
            judge=True,
        )
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_metric_is_recorded_shown_compared_and_kept_per_agent(weight, engine, tmp_path):
    asked = {"every": 2.0, "metrics": ["objective", "weight"]}
    figures = [{"y": "weight"}, {"kind": "scatter", "y": "weight", "baseline": "local"}]
    target = {"metric": "weight", "level": 0.5}
    result = run(scenario(record=asked, figures=figures, target=target, engine=engine), out=tmp_path)
    rows = result.trace[result.trace["metric"] == "weight"]
    assert set(rows["statistic"]) == {"mean", "worst"}
    final = rows[(rows["time"] == 6.0) & (rows["statistic"] == "mean")].set_index("protocol")["value"]
    agents = result.collection.agents.groupby("protocol")["weight"].mean()
    assert agents.to_dict() == pytest.approx(final.to_dict(), rel=1e-14)
    assert axis_label(result.collection, "weight") == "largest weight (kg)"
    assert (more_is_better("weight"), range_of("weight")) == (False, (0.0, np.inf))
    assert any("weight" in column for column in summarise(result.collection).columns)
    assert len(result.save_figures()) >= 6


def test_a_metric_has_the_same_values_on_both_engines(weight, tmp_path):
    asked = {"every": 2.0, "metrics": ["weight"]}
    found = [run(scenario(record=asked, engine=engine), out=tmp_path / engine).trace["value"] for engine in ENGINES]
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_a_metric_may_decide_a_tuning_and_is_unknown_before_its_registration(weight):
    tune = {"over": {"cd.mu": [0.1, 0.3]}, "metric": "weight"}
    asked = {"every": 2.0, "metrics": ["weight"]}
    assert load(scenario(record=asked, tune=tune)).scenario.tune.metric == "weight"
    with pytest.raises(InputError, match=r"unknown metric.*did you mean 'weight'"):
        load(scenario(record={"every": 2.0, "metrics": ["weigth"]}))


def test_a_name_that_is_taken_is_refused(weight):
    def other(reading):
        yield "mean", 0.0

    with pytest.raises(ValueError, match="'weight' is taken by another metric"):
        register(Metric(name="weight", better=None, compute=other, quantity=lambda reading: None))
    with pytest.raises(ValueError, match="'bytes' is taken by an axis"):
        register(Metric(name="bytes", better=None, compute=other, quantity=lambda reading: None))


def absolute_errors(predictions, labels):
    return np.abs(predictions - labels)


def test_a_criterion_is_a_metric_of_the_tasks_that_name_it(forget, tmp_path):
    forget(CRITERIA, "mae"), forget(METRICS, "mae")
    register_criterion(Criterion("mae", "mean absolute error", absolute_errors))
    assert more_is_better("mae") is False
    with pytest.raises(InputError, match="judged by accuracy, not by mae"):
        load(scenario(record={"every": 2.0, "metrics": ["mae"]}))


@final
@dataclass(frozen=True)
class Huber(Loss):
    """phi(s, y) = r^2 / 2 for a residual r = s - y of at most 1, else |r| - 1/2."""

    name: str = "huber"
    lipschitz: float = 1.0
    curvature: float = 1.0
    labels: str = "real"
    compiled: bool = True

    def value(self, scores, labels):
        gap = np.abs(scores - labels)
        return np.where(gap <= 1.0, gap**2 / 2, gap - 0.5)

    def slope(self, scores, labels):
        return np.clip(scores - labels, -1.0, 1.0)

    def second_slope(self, scores, labels):
        return (np.abs(scores - labels) < 1.0).astype(np.float64)

    @property
    def rows(self):
        return RowForms(huber_slope, huber_bend, huber_add) if self.compiled else None


def huber_slope(score, label):
    return min(max(score - label, -1.0), 1.0)


def huber_bend(score, label):
    return 1.0 if abs(score - label) < 1.0 else 0.0


def huber_add(score, label, total, factor):
    gap = abs(score - label)
    return total + (gap**2 / 2 if gap <= 1.0 else gap - 0.5), factor


def with_loss(loss, engine):
    """Local minimisers and coordinate descent, of which both take the loss in compiled code."""
    task = {"kind": "linear_classification", "agents": 8, "dimension": 3, "samples": [4, 9], "loss": loss}
    return scenario(task=task, record={"every": 2.0, "metrics": ["objective", "training_loss"]}, engine=engine)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_loss_runs_on_both_engines_with_or_without_a_compiled_form(compiled, forget, tmp_path):
    forget(LOSSES, "huber")
    register_loss(Huber(compiled=compiled))
    results = {engine: run(with_loss("huber", engine), out=tmp_path / engine) for engine in ENGINES}
    rows = {engine: found.trace.set_index(["protocol", "time", "metric"]) for engine, found in results.items()}
    np.testing.assert_allclose(*(found["value"] for found in rows.values()), rtol=1e-9, atol=1e-12)
    said = results["batched"].manifests[0]["engine"]
    assert ("Python step" in str(said)) is not compiled
    with pytest.raises(InputError, match="did you mean 'huber'"):
        load(with_loss("hubert", "auto"))


def test_a_table_of_real_labels_is_a_regression_whatever_its_loss_is_called(forget, tmp_path):
    forget(LOSSES, "huber")
    register_loss(Huber())
    rng = np.random.default_rng(3)
    rows = [f"{agent},{x:.3f},{2 * x + 0.1 * agent:.3f}" for agent in range(4) for x in rng.normal(size=12)]
    (tmp_path / "rows.csv").write_text("\n".join(["agent,x,y", *rows]))
    task = {"kind": "csv", "path": str(tmp_path / "rows.csv"), "label": "y", "agent": "agent", "loss": "huber"}
    asked = {"every": 2.0, "metrics": ["rmse", "objective"]}
    found = run(scenario(task=task, record=asked, topology={"kind": "complete"}), out=tmp_path / "out")
    last = found.trace[(found.trace["metric"] == "rmse") & (found.trace["statistic"] == "mean")]
    assert last[last["time"] == 6.0]["value"].max() < 1.5
    assert set(found.trace["metric"]) == {"rmse", "objective"}
