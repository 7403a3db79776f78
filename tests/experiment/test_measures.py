"""What is measured at one instant, held against arithmetic by hand; the recorder measures it and changes nothing."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.availability import Always, OnOff, Window
from hushnet.agents.errors import Divergence, InputError
from hushnet.agents.losses import LOSSES
from hushnet.agents.objectives.objectives import LocalOnly
from hushnet.agents.tables import Table
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent, CoordinateDescentParameters
from hushnet.protocols.algorithms.edge_consensus_admm import EdgeConsensusAdmm, EdgeConsensusAdmmParameters
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.language.figure_parameters import BIN
from hushnet.simulator.metrics import recordable
from hushnet.simulator.metrics.criterion_metrics import quality, size_bins
from hushnet.simulator.metrics.losses import training_loss
from hushnet.simulator.metrics.metric import Reading, quantile, statistics
from hushnet.simulator.metrics.network_metrics import ages
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.recording.objective_reading import ObjectiveReading
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world
from ..protocols.worlds import setting_of

AGENTS, ROWS = 26, 9


class Still(Protocol):
    """Every agent keeps the model that it starts with, and tells it again and again."""

    decides = True

    Parameters = ProtocolParameters

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.model = np.random.default_rng(me.agent).normal(size=self.problem.task.dimension)
        me.send("model", me.model, me.public("random"))

    def step(self, me):
        me.send("model", me.model, me.public("random"))


def task_of(metric="accuracy", agents=AGENTS):
    rng = np.random.default_rng(5)
    owners = np.repeat(np.arange(agents), ROWS)
    rows, labels = rng.normal(size=(len(owners), 3)), rng.choice([-1.0, 1.0], len(owners))
    test = Table.from_owners(rows, labels, owners, agents)
    return replace(small_task(agents), test=test, metric=metric)


def a_setting(task, **fields):
    late = {"kind": "exponential", "mean": 1.5}
    return setting_of(task=task, stop=Stop(time=6.0), seed=3, latency=late, loss=0.2, **fields)


def recorded(metrics, task=None, **fields):
    """The last value of every statistic, by metric and statistic, and the world."""
    recorder = Recorder(metrics)
    setting = a_setting(task or task_of(), **fields)
    world = World(setting, Still, ProtocolParameters(kind="still"), recorder=recorder, every=2.0)
    drive(world)
    return recorder.trace().groupby(["metric", "statistic"])["value"].last(), world


@pytest.mark.parametrize(
    ("q", "expected"), [(0.01, 1.0), (0.1, 1.0), (0.11, 2.0), (0.5, 5.0), (0.9, 9.0), (0.91, math.inf), (1.0, math.inf)]
)
def test_a_quantile_is_the_smallest_value_that_so_many_do_not_exceed(q, expected):
    values = np.array([math.inf, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    assert quantile(values, q) == expected


@pytest.mark.parametrize(("metric", "expected"), [("accuracy", 2 / 3), ("mse", 10 / 3), ("rmse", math.sqrt(10 / 3))])
def test_models_are_judged_on_their_agents_own_test_rows(metric, expected):
    """Scores 0, 2 and -1 with labels 1, -1 and -1: a score of zero stands for the label 1."""
    table = Table(np.array([[0.0], [2.0], [-1.0]]), np.array([1.0, -1.0, -1.0]), np.array([0, 3, 3]))
    task = replace(small_task(2, empty=False), test=table, metric=metric)
    found = quality(task, np.ones((2, 1)))
    assert found[0] == pytest.approx(expected, rel=1e-15)
    assert np.isnan(found[1])


@pytest.mark.parametrize("samples", [[1, 2], list(range(10, 101)), [5, 1, 9, 9, 9, 9, 2], [0, 4]])
def test_no_size_is_in_two_bins(samples):
    names, _ = size_bins(np.array(samples))
    ends = [[int(end) for end in name.removeprefix("samples ").split("-")] for name in names]
    assert all(top < low for (_, top), (low, _) in itertools.pairwise(ends))
    assert (ends[0][0], ends[-1][1]) == (min(samples), max(samples))


@pytest.mark.parametrize("metric", ["accuracy", "rmse", "mse"])
def test_the_worst_decile_is_the_worst_tenth_of_the_agents_to_the_nearest_agent(metric):
    found, world = recorded([metric], task_of(metric))
    ranked = np.sort(quality(world.setting.task, world.state.agent["model"].rows))
    worst = ranked[:3] if metric == "accuracy" else ranked[-3:]  # of 26
    assert found[metric, "worst_decile"] == pytest.approx(worst.mean(), rel=1e-13)
    assert found[metric, "worst_decile"] != pytest.approx(ranked[:2].mean() if metric == "accuracy" else ranked[-2:])


def test_an_agent_whose_error_has_overflowed_is_not_left_out():
    task = task_of("rmse")
    features = np.where(task.test.owners[:, None] == 4, 1e200, task.test.features)
    found, _ = recorded(["rmse"], replace(task, test=replace(task.test, features=features)))
    assert found["rmse", "mean"] == found["rmse", "worst_decile"] == math.inf


def test_agents_that_have_not_joined_yet_are_not_judged():
    late = Always(kind="always", joins=Window(share=0.8, between=[9.0, 10.0]))
    found, world = recorded(["accuracy", "training_loss", "test_loss"], availability=late)
    started, models, task = world.started, world.state.agent["model"].rows, world.setting.task
    assert 0 < started.sum() < 9
    values = quality(task, models)
    assert found["accuracy", "mean"] == pytest.approx(values[started].mean(), rel=1e-13)
    assert found["accuracy", "mean"] != pytest.approx(values.mean(), rel=1e-6)
    training, test = (
        [
            np.logaddexp(0.0, -labels * (features @ models[agent]))
            for agent in np.flatnonzero(started & (table.counts > 0))
            for features, labels in [(table.features[table.owners == agent], table.labels[table.owners == agent])]
        ]
        for table in (task.train, task.test)
    )
    assert found["training_loss", "mean"] == pytest.approx(np.mean([own.mean() for own in training]), rel=1e-13)
    assert found["test_loss", "mean"] == pytest.approx(np.concatenate(test).mean(), rel=1e-13)
    names, places = size_bins(task.train.counts)
    bins = {name for _, name in found.index if name.startswith("samples")}
    assert bins == {names[place] for place in places[started]} < set(names)


def test_what_became_of_messages_is_recorded_under_its_own_name():
    found, world = recorded(["traffic"], availability=Always(kind="always", leaves=Window(share=0.5, between=[1, 2])))
    links = world.traffic.links
    expected = {
        "sent": links.sent,
        "delivered": links.delivered,
        "lost": links.lost,
        "dropped": links.dropped,
        "in_flight": links.in_flight,
        "overtaken": world.traffic.overtaken,
        "start_vectors": world.traffic.start_vectors,
    }
    assert found["traffic"].to_dict() == expected
    assert len(set(expected.values())) == len(expected)
    assert min(expected.values()) > 0


def test_ages_and_updates_have_their_mean_and_their_extremes():
    found, world = recorded(["age", "updates"])
    known = np.sort(ages(world))
    assert np.isfinite(known).all()
    assert found["age", "mean"] == pytest.approx(known.mean(), rel=1e-13)
    assert found["age", "q90"] == known[math.ceil(0.9 * len(known)) - 1] < known[-1]
    assert found["age", "worst"] == known[-1]
    assert found["updates"].to_dict() == {
        "mean": pytest.approx(world.updates.mean()),
        "min": world.updates.min(),
        "max": world.updates.max(),
    }
    assert world.updates.min() < world.updates.mean() < world.updates.max()


def test_training_loss_weighs_agents_and_not_their_rows():
    _, world = recorded([])
    task, models = world.setting.task, world.state.agent["model"].rows
    shards = [task.train.shard(agent) for agent in range(task.agents)]
    means = [
        LOSSES["logistic"].value(shard.features @ model, shard.labels).mean()
        for shard, model in zip(shards, models, strict=True)
        if len(shard)
    ]
    ((_, value),) = training_loss(Reading(world, models, 1e-5, world.started))
    assert value == pytest.approx(np.mean(means), rel=1e-13)


class Scripted(ObjectiveReading):
    """Reads the values that it is told, one after the other, and the last one again and again."""

    told: list[float]

    def values(self, readings):
        return [self.told.pop(0) if len(self.told) > 1 else self.told[0] for _ in readings]

    def check(self, value, minimum, reading, now):
        """What it is told has no minimum."""


@pytest.mark.parametrize(
    ("start", "later", "explodes"),
    [
        (3.0, 2.9e6, False),
        (3.0, 3.1e6, True),
        (-3.0, 3.1e6, True),
        (0.5, 0.9e6, False),
        (0.5, 1.1e6, True),
        (3.0, math.nan, True),
        (3.0, math.inf, True),
        (3.0, -1e9, False),
    ],
)
def test_an_objective_has_exploded_above_a_million_times_its_start_or_one(start, later, explodes):
    task = small_task()
    recorder = Recorder(["objective"], objective=LocalOnly(task))

    class Outlier(Still):
        """The fourth agent's model is the longest, and negative."""

        def start(self, me):
            me.model = -50.0 if me.agent == 3 else 1.0

    world = World(a_setting(task), Outlier, ProtocolParameters(kind="still"), recorder=recorder, every=1.0)
    recorder._reading = Scripted(LocalOnly(task), world)
    recorder._reading.told = [start, later]
    if not explodes:
        drive(world)
        return
    with pytest.raises(Divergence, match=r"agent 3 at time 1: model has exploded"):
        drive(world)


class Keeping(Recorder):
    """A recorder that also keeps the models of every sample."""

    def __init__(self) -> None:
        super().__init__(["objective", "updates"])
        self.kept: list[np.ndarray] = []

    def sample(self, world: World, *, final: bool) -> None:
        super().sample(world, final=final)
        self.kept.append(world.protocol.models(world.state).copy())


def world_of(recorder, *, task=None, maker=fast_world, loss=0.2, availability=None, fields=None, **interval) -> World:
    late = {"kind": "exponential", "mean": 0.5}
    stop = Stop(time=12.0)
    setting = setting_of(task=task, availability=availability, stop=stop, seed=3, latency=late, loss=loss)
    parameters = CoordinateDescentParameters.model_validate({"kind": "coordinate_descent", "mu": 0.5} | (fields or {}))
    return maker(setting, CoordinateDescent, parameters, recorder=recorder, **interval)


INTERVALS = [{"every": 0.25}, {"every": 3.0}, {"activations": 1}, {"activations": 7}, {"every": 50.0}]


@pytest.mark.parametrize("interval", INTERVALS, ids=str)
@pytest.mark.parametrize("loss", ["logistic", "squared", "smoothed_hinge"])
def test_every_recorded_objective_is_that_of_the_models_at_its_instant(loss, interval):
    recorder = Keeping()
    world = world_of(recorder, task=replace(small_task(), loss=LOSSES[loss]), **interval)
    check(recorder, world)


@pytest.mark.parametrize(
    "availability",
    [
        OnOff(kind="on_off", online=0.6, mean_down=2.0),
        Always.model_validate(
            {"kind": "always", "joins": {"share": 0.5, "between": [2, 8]}, "leaves": {"share": 0.4, "between": [3, 9]}}
        ),
    ],
    ids=["on and off", "joining and leaving"],
)
@pytest.mark.parametrize("interval", INTERVALS, ids=str)
def test_absent_late_and_leaving_agents_count_with_the_models_that_they_have(availability, interval):
    recorder = Keeping()
    check(recorder, world_of(recorder, availability=availability, fields={"start": "local"}, **interval))


def check(recorder: Keeping, world: World) -> None:
    """Every recorded objective is that of the models that were kept beside it."""
    drive(world)
    values = recorder.trace().query("statistic == 'value'")["value"].to_numpy()
    objective = world.protocol.objective()
    kept = recorder.kept if len(values) == len(recorder.kept) else recorder.kept[:-2] + recorder.kept[-1:]
    assert len(values) == len(kept)
    np.testing.assert_allclose(values, [objective.value(models) for models in kept], rtol=1e-12)


def test_a_run_that_breaks_off_keeps_a_finite_objective_in_every_row():
    recorder = Recorder(["objective"])
    world = world_of(recorder, every=1.0)

    def fail(world):
        if world.now >= 6.0:
            raise Divergence("agent 1 at time 6: model is infinite")

    recorder.on_sample = fail
    with pytest.raises(Divergence):
        drive(world)
    trace = recorder.trace()
    assert trace["time"].max() == 6.0
    assert np.isfinite(trace["value"]).all()


def test_an_objective_that_explodes_is_reported_at_its_own_instant():
    class Exploding(ObjectiveReading):
        def values(self, readings):
            return [value * (1e9 if self.world.now >= 4.0 else 1.0) for value in super().values(readings)]

    recorder = Recorder(["objective"])
    world = world_of(recorder, every=1.0)
    recorder._reading = Exploding(world.protocol.objective(), world)
    with pytest.raises(Divergence, match=r"at time 4: model has exploded; the objective grew from"):
        drive(world)


LATE = {"kind": "exponential", "mean": 0.5}
PRIVATE = {
    "mechanism": "laplace",
    "budget": {"epsilon": 2.0, "delta": 1e-3},
    "updates": 6,
    "sensitivity": "clip",
    "clip": 1.0,
}


def private_world(recorder=None, *, every=None, activations=None, privacy=PRIVATE, time=12.0) -> World:
    away = OnOff(kind="on_off", online=0.7, mean_down=1.0)
    setting = setting_of(latency=LATE, loss=0.2, availability=away, stop=Stop(time=time), seed=3)
    fields = {"kind": "coordinate_descent", "mu": 0.5, "privacy": privacy}
    parameters = CoordinateDescentParameters.model_validate(fields)
    return World(setting, CoordinateDescent, parameters, recorder=recorder, every=every, activations=activations)


def models_of(world: World) -> bytes:
    drive(world)
    return world.state.agent["model"].values.tobytes()


def test_any_recorder_leaves_the_models_bitwise_as_none_would():
    reference = models_of(private_world())
    usual = [name for name in recordable() if name not in ("rmse", "mse")]
    choices = [usual, ["objective"], ["epsilon", "age"], []]
    for names, interval in itertools.product(choices, ({"every": 0.25}, {"activations": 1}, {"every": 5.0})):
        own = {"size": lambda snapshot: float(np.abs(snapshot.models).sum())}
        assert models_of(private_world(Recorder(names, own=own), **interval)) == reference


@pytest.mark.parametrize(
    "shared",
    [
        lambda snapshot: snapshot.models,
        lambda snapshot: snapshot.state.agent["model"].values,
        lambda snapshot: snapshot.task.train.features,
        lambda snapshot: snapshot.task.test.labels,
        lambda snapshot: snapshot.task.regularisation,
        lambda snapshot: snapshot.graph.weights,
    ],
    ids=["models", "state", "features", "labels", "regularisation", "weights"],
)
def test_a_metric_cannot_write_what_it_looks_at(shared):
    def vandal(snapshot):
        shared(snapshot)[:] = 0.0

    with pytest.raises(ValueError, match="read-only"):
        drive(private_world(Recorder([], own={"vandal": vandal}), every=1.0))


def trace_of(names, **interval) -> tuple[pd.DataFrame, World, Recorder]:
    recorder = Recorder(names, protocol="cd", seed=4)
    world = private_world(recorder, **interval)
    drive(world)
    return recorder.trace(), world, recorder


def test_samples_are_taken_at_their_instants_and_once_at_the_end():
    trace, world, _ = trace_of(["updates"], every=5.0)
    assert trace["time"].unique().tolist() == [0.0, 5.0, 10.0, 12.0]
    assert not trace.duplicated(["time", "metric", "statistic"]).any()
    trace, world, _ = trace_of(["updates"], activations=10)
    counts = trace["activations"].unique().tolist()
    assert counts[:-1] == list(range(0, counts[-2] + 1, 10))
    assert counts[-1] == world.activations


def test_the_statistics_in_a_trace_are_those_that_are_known_before_it():
    recorder = Recorder(tuple(name for name in recordable() if name not in ("rmse", "mse")))
    drive(private_world(recorder, every=4.0))
    found = {metric: set(rows) for metric, rows in recorder.trace().groupby("metric")["statistic"]}
    assert found.keys() == statistics().keys() - {"rmse", "mse", "epsilon_observers"}
    binned = {name for name in found["accuracy"] if name.startswith(BIN)}
    assert binned
    assert found | {"accuracy": found["accuracy"] - binned} == {name: set(statistics()[name]) for name in found}


def test_epsilon_is_claimed_always_and_verified_at_few_instants():
    trace, world, _ = trace_of(["epsilon"], every=0.5)
    counts = trace.groupby("metric")["time"].nunique()
    assert counts["epsilon_claimed"] == 25
    verified = trace.query("metric == 'epsilon_verified' and statistic == 'worst'")
    assert verified["time"].tolist() == [0.0, 0.5, 1.5, 3.5, 7.5, 12.0]  # samples 1, 2, 4, 8, 16, and the end
    last = trace.groupby(["metric", "statistic"])["value"].last()
    assert last["epsilon_claimed", "worst"] == pytest.approx(world.ledger.epsilon("claimed", 1e-3).max())
    assert last["epsilon_verified", "worst"] == pytest.approx(world.ledger.epsilon("verified", 1e-3).max())
    assert last["epsilon_verified", "worst"] <= last["epsilon_claimed", "worst"]
    claimed = np.sort(world.ledger.epsilon("claimed", 1e-3))
    assert last["epsilon_claimed", "median"] == pytest.approx(claimed[2])  # of six
    assert last["epsilon_claimed", "q90"] == pytest.approx(claimed[5])


def test_without_noise_epsilon_is_infinite_and_without_messages_it_is_zero():
    recorder = Recorder(["epsilon"])
    world = private_world(recorder, every=4.0, privacy=None)
    drive(world)
    trace = recorder.trace().query("metric == 'epsilon_verified' and statistic == 'worst'")
    assert trace["value"].iloc[0] == 0
    assert np.isinf(trace["value"].iloc[-1])


def test_what_is_exchanged_in_pairs_has_no_age():
    recorder = Recorder(["age", "updates"])
    setting = private_world().setting
    parameters = EdgeConsensusAdmmParameters(kind="edge_consensus_admm")
    world = World(setting, EdgeConsensusAdmm, parameters, recorder=recorder, every=4.0)
    drive(world)
    assert world.updates.sum() > 0
    assert set(recorder.trace()["metric"]) == {"updates"}
    assert recorder.agents(world)["age"].isna().all()


def test_the_other_measure_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="judged by accuracy, not by rmse") as caught:
        drive(private_world(Recorder(["rmse"]), every=1.0))
    assert caught.value.field == ("record", "metrics")
