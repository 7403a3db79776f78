"""The objective at record instants is that of the models then, and is held against its minimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents.availability import Always, OnOff
from hushnet.agents.errors import Divergence
from hushnet.agents.losses import LOSSES
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent, CoordinateDescentParameters
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.recording.objective_reading import ObjectiveReading
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world
from ..protocols.worlds import setting_of


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
        def value(self, reading):
            return super().value(reading) * (1e9 if self.world.now >= 4.0 else 1.0)

    recorder = Recorder(["objective"])
    world = world_of(recorder, every=1.0)
    recorder._reading = Exploding(world.protocol.objective(), world)
    with pytest.raises(Divergence, match=r"at time 4: model has exploded; the objective grew from"):
        drive(world)
