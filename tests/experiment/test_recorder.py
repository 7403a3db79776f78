"""The recorder measures what it says and changes nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.availability import OnOff
from hushnet.agents.errors import InputError
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent, CoordinateDescentParameters
from hushnet.protocols.algorithms.edge_consensus_admm import EdgeConsensusAdmm, EdgeConsensusAdmmParameters
from hushnet.simulator.language.figure_parameters import BIN
from hushnet.simulator.metrics import recordable
from hushnet.simulator.metrics.metric import statistics
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World

from ..engine.driving import drive
from ..protocols.worlds import setting_of

LATE = {"kind": "exponential", "mean": 0.5}
PRIVATE = {
    "mechanism": "laplace",
    "budget": {"epsilon": 2.0, "delta": 1e-3},
    "updates": 6,
    "sensitivity": "clip",
    "clip": 1.0,
}


def world_of(recorder=None, *, every=None, activations=None, privacy=PRIVATE, time=12.0) -> World:
    away = OnOff(kind="on_off", online=0.7, mean_down=1.0)
    setting = setting_of(latency=LATE, loss=0.2, availability=away, stop=Stop(time=time), seed=3)
    fields = {"kind": "coordinate_descent", "mu": 0.5, "privacy": privacy}
    parameters = CoordinateDescentParameters.model_validate(fields)
    return World(setting, CoordinateDescent, parameters, recorder=recorder, every=every, activations=activations)


def models_of(world: World) -> bytes:
    drive(world)
    return world.state.agent["model"].values.tobytes()


def test_any_recorder_leaves_the_models_bitwise_as_none_would():
    reference = models_of(world_of())
    usual = [name for name in recordable() if name not in ("rmse", "mse")]
    choices = [usual, ["objective"], ["epsilon", "age"], []]
    for names, interval in itertools.product(choices, ({"every": 0.25}, {"activations": 1}, {"every": 5.0})):
        own = {"size": lambda snapshot: float(np.abs(snapshot.models).sum())}
        assert models_of(world_of(Recorder(names, own=own), **interval)) == reference


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
        drive(world_of(Recorder([], own={"vandal": vandal}), every=1.0))


def trace_of(names, **interval) -> tuple[pd.DataFrame, World, Recorder]:
    recorder = Recorder(names, protocol="cd", seed=4)
    world = world_of(recorder, **interval)
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
    drive(world_of(recorder, every=4.0))
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
    world = world_of(recorder, every=4.0, privacy=None)
    drive(world)
    trace = recorder.trace().query("metric == 'epsilon_verified' and statistic == 'worst'")
    assert trace["value"].iloc[0] == 0
    assert np.isinf(trace["value"].iloc[-1])


def test_what_is_exchanged_in_pairs_has_no_age():
    recorder = Recorder(["age", "updates"])
    setting = world_of().setting
    parameters = EdgeConsensusAdmmParameters(kind="edge_consensus_admm")
    world = World(setting, EdgeConsensusAdmm, parameters, recorder=recorder, every=4.0)
    drive(world)
    assert world.updates.sum() > 0
    assert set(recorder.trace()["metric"]) == {"updates"}
    assert recorder.agents(world)["age"].isna().all()


def test_the_other_measure_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="judged by accuracy, not by rmse") as caught:
        drive(world_of(Recorder(["rmse"]), every=1.0))
    assert caught.value.field == ("record", "metrics")
