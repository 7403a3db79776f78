"""ADMM sharing with bounded staleness: its parent where nothing is stale, at its optimum where much is."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.protocols.algorithms.feature_sharing import FeatureSharing
from hushnet.protocols.algorithms.stale_feature_sharing import StaleFeatureSharing
from hushnet.simulator.contract import checks as contract
from hushnet.simulator.network.clocks import Periodic
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world
from .columns import EveryRound, split_task, star
from .worlds import AWAY, BAD, LATE, setting_of


def made(
    protocol=StaleFeatureSharing,
    *,
    make=World,
    time=300.0,
    task=None,
    recorder=None,
    every=1.0,
    seed=5,
    fields=None,
    **setting,
) -> World:
    """A world that is ready to run; further arguments are those of `setting_of`."""
    task = task or split_task()
    setting = setting_of(task=task, graph=star(task), stop=Stop(time=time), seed=seed, **setting)
    spec = contract.protocol_parameters(protocol, fields or {})
    return make(setting, protocol, spec, recorder=recorder, every=every)


def world_of(*args, **kwargs) -> World:
    """The same, and it has run."""
    world = drive(made(*args, make=fast_world, **kwargs))
    assert world.traffic.conserved
    return world


def model_of(world: World) -> np.ndarray:
    return world.protocol.models(world.state)[0]


class Watched:
    """A run, and at every step of the centre the parties' models, z, y and the age of the oldest scores."""

    def __init__(self, **kwargs):
        world = made(**kwargs)
        steps, blocks = world.protocol.steps, world.state.agent
        make = steps.make
        self.models, self.z, self.y, self.ages = [], [], [], []

        def watched(phase, me):
            if me.role == "party" or phase == "start":
                make(phase, me)
                return
            before, stamps = me.step[0], [scores[-1] for scores in me.heard_scores]
            make(phase, me)
            if me.step[0] > before:
                self.models.append(model_of(world).copy())
                self.z.append(blocks["z"][0].copy())
                self.y.append(blocks["y"][0].copy())
                self.ages.append(before - min(stamps))

        steps.make = watched
        drive(world)


class EveryEpoch(EveryRound):
    """The parent's centre as well."""

    def __init__(self):
        super().__init__()
        self.z, self.y = [], []

    def sample(self, world, *, final):
        super().sample(world, final=final)
        self.z.append(world.state.agent["z"][0].copy())
        self.y.append(world.state.agent["y"][0].copy())


@pytest.mark.parametrize(("network", "availability"), [({}, None), (LATE, AWAY), (BAD, AWAY)])
def test_without_staleness_its_steps_are_the_epochs_of_the_parent_on_every_network(network, availability):
    fields, epochs = {"rho": 0.8}, 12
    variant = Watched(availability=availability, fields={**fields, "staleness": 1}, **network)
    common = Periodic(kind="periodic", phase="common")
    parent = EveryEpoch()
    world_of(FeatureSharing, time=2.0 * epochs, clock=common, recorder=parent, every=2.0, fields=fields)
    assert len(variant.models) >= epochs
    assert set(variant.ages) == {0.0}
    for one, other in ((variant.models, parent.models), (variant.z, parent.z), (variant.y, parent.y)):
        np.testing.assert_allclose(one[:epochs], other[1 : epochs + 1], atol=1e-8)


def conserved(**world) -> dict[str, np.ndarray]:
    recorder = Recorder(["conserved"])
    world_of(recorder=recorder, **world)
    return {name: rows["value"].to_numpy() for name, rows in recorder.trace().groupby("statistic")}


def test_y_is_the_slope_at_z_whatever_is_late_and_lost_and_the_sum_is_right_in_the_end():
    found = conserved(time=1500.0, every=5.0, fields={"rho": 0.3}, availability=AWAY, **BAD)
    assert set(found) == {"slopes", "scores"}
    assert found["slopes"].max() < 1e-8
    assert found["scores"].max() > 1e-3
    assert found["scores"][-1] < 1e-7
