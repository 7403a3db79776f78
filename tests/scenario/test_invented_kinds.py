"""A kind of thing that somebody invents needs one registration, and works on both engines and in every list."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final, get_args

import networkx as nx
import numpy as np
import pytest
from hushnet.agents.availability import AVAILABILITIES, Availability
from hushnet.agents.errors import InputError, RunFailure
from hushnet.agents.losses import LOSSES, Loss, RowForms
from hushnet.agents.losses import register as register_loss
from hushnet.agents.optimisation.solvers import minimise_local
from hushnet.agents.parameters import Positive
from hushnet.agents.quantity import Quantity
from hushnet.agents.tables import Shard, Table
from hushnet.agents.tasks.extent import Extent
from hushnet.agents.tasks.outline import Outline
from hushnet.agents.tasks.task import Task
from hushnet.agents.tasks.task_registry import TASKS, TaskKind
from hushnet.simulator.analysis.summary import summarise
from hushnet.simulator.api import Result, run
from hushnet.simulator.figures.figure_words import axis_label
from hushnet.simulator.figures.series import bars
from hushnet.simulator.language.figure_kinds import FIGURE_KINDS, FigureKind, asked, kind_asked_by
from hushnet.simulator.language.figure_kinds import register as register_figure
from hushnet.simulator.language.loading import load
from hushnet.simulator.language.schema import scenario_schema
from hushnet.simulator.metrics import METRICS, Metric, more_is_better, range_of, register
from hushnet.simulator.network.clocks import CLOCKS, ClockModel, RecordedClock
from hushnet.simulator.network.graphs import TOPOLOGIES, Topology
from hushnet.simulator.network.latency import EXPONENTIAL, LATENCIES, Latency
from hushnet.simulator.network.network import LOSS_MODELS, LossModel

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
            default="worst",
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


@pytest.mark.parametrize("value", [None, "12", [1.0, 2.0], 1j])
def test_what_is_no_number_is_named_with_its_metric_and_file(weight, value, tmp_path):
    METRICS.remove("weight")

    def compute(reading):
        yield "mean", value

    register(replace(weight, compute=compute))
    asked = {"every": 2.0, "metrics": ["objective", "weight"]}
    with pytest.raises(RunFailure, match=r"kinds\.py:\d+, .*: metric 'weight', statistic 'mean': is .*number"):
        run(scenario(record=asked), out=tmp_path)


def test_what_a_function_of_the_user_gives_in_one_run_ends_no_other(tmp_path):
    seen = []

    def mine(snapshot):
        seen.append(snapshot.now)
        return 1.0 if seen.count(0.0) > 1 else None

    with pytest.raises(RunFailure, match=r"kinds\.py:\d+, .*: metric 'mine', statistic 'value': is None .*number"):
        run(scenario(), out=tmp_path, metrics={"mine": mine})
    index = Result.open(tmp_path).collection.index
    assert (len(index["failed"]), len(index["runs"])) == (1, 1)


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
    with pytest.raises(InputError, match="did you mean 'huber'"):
        load(with_loss("hubert", "auto"))


@final
@dataclass(frozen=True)
class Absolute(Loss):
    """phi(s, y) = |s - y|, which has a kink."""

    name: str = "absolute"
    lipschitz: float = 1.0
    curvature: float = float("inf")
    labels: str = "real"

    def value(self, scores, labels):
        return np.abs(scores - labels)

    def slope(self, scores, labels):
        return np.sign(scores - labels)

    def second_slope(self, scores, labels):
        return np.zeros_like(scores)


def test_a_loss_that_nothing_here_minimises_is_refused(forget):
    """Newton's method would stop anywhere, and its end would count as the minimum."""
    forget(LOSSES, "absolute")
    register_loss(Absolute())
    with pytest.raises(InputError, match=r"task\.loss.*'absolute' is another one with a kink"):
        load(with_loss("absolute", "auto"))
    shard, zero = Shard(np.eye(3), np.ones(3)), np.zeros(3)
    asked = {"weight": 1.0, "curvature": 0.1, "linear": zero, "start": zero, "tolerance": 1e-9}
    with pytest.raises(InputError, match="'absolute' is another one with a kink"):
        minimise_local(shard, Absolute(), **asked)


def kinds_of(registry, forget, *classes):
    """Register classes for a test."""
    for found in classes:
        forget(registry, get_args(found.model_fields["kind"].annotation)[0])
        registry.register(found)


class Hops(Latency):
    """Exponential delays by the rate of hops."""

    kind: Literal["hops"]
    hops: Positive
    """Hops per time unit."""

    @property
    def average(self):
        return 1 / self.hops

    @property
    def distribution(self):
        return EXPONENTIAL, 1 / self.hops, 0.0


class Odd(LossModel):
    """Losses with one probability, given in per cent."""

    kind: Literal["percent"]
    percent: float

    @property
    def chance(self):
        return self.percent / 100

    def begin(self, numbers, draws):
        return lambda sender, receivers, now: np.full(len(receivers), self.percent / 100)


class Metronome(ClockModel):
    """Agents wake in turn, as if that were recorded."""

    kind: Literal["metronome"]
    beats: int = 40

    def build(self, ids, numbers, draws, base):
        every = len(ids)
        return RecordedClock([[0.125 * (beat + 1) for beat in range(k, self.beats, every)] for k in range(every)])


class Wheel(Topology):
    """A ring whose agents all know agent 0."""

    kind: Literal["wheel"]

    def expected_edges(self, extent, files):
        return 2.0 * extent.agents - 3

    def edges(self, task, *, rng, base):
        return nx.wheel_graph(task.agents)


class Constants(TaskKind):
    """Every agent has the same label everywhere."""

    kind: Literal["constants"]
    draws_data: ClassVar[bool] = True
    agents: int = 6

    def outline(self):
        return Outline(self.kind, "logistic", agents=self.agents)

    def extent(self, files):
        return Extent(self.agents, 2, 1000.0)

    def build(self, *, rng, data_dir, base=None):
        owners = np.repeat(np.arange(self.agents), 5)
        rows, labels = rng.normal(size=(len(owners), 2)), np.where(owners % 2, 1.0, -1.0)
        table = Table.from_owners(rows, labels, owners, self.agents)
        ids, weights = list(range(self.agents)), np.full(self.agents, 0.1)
        return Task("constants", ids, table, table, LOSSES["logistic"], weights, "accuracy")


NETWORKS = [{"latency": {"kind": "hops", "hops": 3.0}}, {"loss": {"kind": "percent", "percent": 20.0}}]
PARTS = [
    *({"network": network} for network in NETWORKS),
    {"clock": {"kind": "metronome"}},
    {"topology": {"kind": "wheel"}},
    {"task": {"kind": "constants"}},
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: str(next(iter(part))))
def test_a_kind_of_network_clock_topology_or_task_runs_on_both_engines(part, forget, tmp_path):
    with pytest.raises(InputError, match=r"unknown kind; (did you mean '\w+'\? )?admissible: "):
        load(scenario(**part))
    kinds_of(LATENCIES, forget, Hops)
    kinds_of(LOSS_MODELS, forget, Odd)
    kinds_of(CLOCKS, forget, Metronome)
    kinds_of(TOPOLOGIES, forget, Wheel)
    kinds_of(TASKS, forget, Constants)
    if "clock" in part:  # what its clocks build has the compiled form of recorded ones
        assert Metronome(kind="metronome").build([0, 1], np.arange(2), None, None).form is not None
    found = {}
    for engine in ENGINES:
        result = run(scenario(engine=engine, **part), out=tmp_path / engine)
        assert str(result.manifests[0]["engine"]).startswith(engine)
        found[engine] = result.trace["value"]
    np.testing.assert_allclose(*found.values(), rtol=1e-9, atol=1e-12)
    assert "oneOf" in scenario_schema()["properties"]["task"]
    known = json.dumps(scenario_schema())
    assert all(f'"{name}"' in known for name in ("hops", "percent", "metronome", "wheel", "constants"))


def test_mistakes_inside_an_invented_kind_are_told_with_their_field(forget):
    kinds_of(LATENCIES, forget, Hops)
    with pytest.raises(InputError, match=r"network\.latency\.hop.*did you mean 'hops'"):
        load(scenario(network={"latency": {"kind": "hops", "hop": 3.0}}))


def test_a_kind_that_lacks_a_method_is_refused_where_it_is_registered():
    with pytest.raises(InputError, match=r"test_invented_kinds\.py:\d+, `.*`: Never is abstract; .* define timelines"):

        @AVAILABILITIES.register
        class Never(Availability):
            """Never there."""

            kind: Literal["never"] = "never"

            def check_size(self, agents):
                """Any number will do."""


def test_a_task_that_does_not_say_whether_it_draws_its_data_is_refused():
    class Silent(TaskKind):
        kind: Literal["silent"]

        def outline(self):
            return Outline(self.kind, "logistic")

        def extent(self, files):
            return Extent(1, 1, 1.0)

        def build(self, *, rng, data_dir, base=None):
            raise NotImplementedError

    with pytest.raises(TypeError, match="Silent has to say its draws_data"):
        TASKS.register(Silent)
    with pytest.raises(TypeError, match="a topology is a subclass of Topology"):
        TOPOLOGIES.register(Silent)


def ends(collection, spec):
    return bars(collection, spec)


def dots(panels, collection, spec):
    for axes, plot in panels:
        axes.plot(plot.points["mean"].to_numpy(), "o")
    return {}


def test_a_kind_of_figure_is_asked_for_checked_and_drawn(forget, tmp_path):
    forget(FIGURE_KINDS, "dots")
    kind = FigureKind(name="dots", about="a dot per protocol", numbers=ends, draw=dots, x=("protocol",))
    kind = replace(kind, default_x="protocol", shows="metric or target", seeds="seeds (rings)", asked_by=("dot",))
    register_figure(kind)
    result = run(scenario(figures=[{"kind": "dots", "y": "accuracy", "name": "end"}], seeds=2), out=tmp_path)
    assert {path.name for path in result.save_figures()} >= {"end.png", "end.csv"}
    assert (kind_asked_by("dot"), kind_asked_by("epsilon_claimed").name) == (kind, "frontier")
    assert asked(["mu"])[-2:] == ["dot", "mu"]
    with pytest.raises(InputError, match=r"baseline belongs to .*, not to a dots"):
        load(scenario(figures=[{"kind": "dots", "y": "accuracy", "baseline": "local"}]))
    with pytest.raises(InputError, match="did you mean 'dots'"):
        load(scenario(figures=[{"kind": "dotz", "y": "accuracy"}]))


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (
            lambda collection, spec: replace(
                bars(collection, spec), points=bars(collection, spec).points[["x", "mean"]]
            ),
            "its numbers lack protocol, low, high, n; the points of a dots have protocol, mean, low, high, n",
        ),
        (lambda collection, spec: bars(collection, spec).points, "its numbers are a DataFrame and must be a Plot"),
    ],
)
def test_numbers_that_a_figure_cannot_be_drawn_from_are_one_sentence(forget, tmp_path, numbers, said):
    forget(FIGURE_KINDS, "dots")
    register_figure(FigureKind(name="dots", about="a dot per protocol", numbers=numbers, draw=dots, x=("protocol",)))
    with pytest.raises(InputError, match=f"figure kind dots: {said}"):
        run(scenario(seeds=2, figures=[{"kind": "dots", "y": "accuracy", "x": "protocol"}]), out=tmp_path)


class Hub(Topology):
    """Agent 0 with everybody else."""

    kind: Literal["hub"]
    may_be_star: ClassVar[bool] = True
    drawn_as: ClassVar[str] = "star"

    def expected_edges(self, extent, files):
        return extent.agents - 1.0

    def edges(self, task, *, rng, base):
        return nx.star_graph(task.agents - 1)


def test_a_topology_that_may_be_a_star_is_one_for_protocols_that_need_it(forget, tmp_path):
    kinds_of(TOPOLOGIES, forget, Hub)
    task = {
        "kind": "gisette_like",
        "rows": 9,
        "test_rows": 4,
        "dimension": 5,
        "split": {"by": "columns", "parts": [2, 3]},
    }
    asked = {"task": task, "protocols": {"sharing": {"kind": "feature_sharing"}}, "record": {"every": 2.0}}
    assert load(scenario(topology={"kind": "hub"}, **asked)).scenario.topology.may_be_star
    with pytest.raises(InputError, match="has a centre, agent 0"):
        load(scenario(topology={"kind": "ring"}, **asked))
