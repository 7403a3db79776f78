"""The batched engine gives the events, models, tallies and records of the event engine."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
import pytest
from hushnet.agents.availability import OnOff
from hushnet.agents.errors import Divergence
from hushnet.agents.losses import LOSSES
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent, CoordinateDescentParameters
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.steps import received
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.world.world import World

from ..protocols.worlds import setting_of
from .driving import drive, fast_world
from .helpers import Collect, Stamp


class MixParameters(ProtocolParameters):
    """Parameters of `Mix`."""

    kind: Literal["mix"] = "mix"


class Mix(Protocol):
    """Agents move half-way to the mean of what they hear."""

    Parameters = MixParameters

    def layout(self):
        return Layout(agent={"model": 3}, messages={"model": MessageKind(3, mirrors="model")})

    def start(self, me):
        me.model = me.agent
        me.send("model", me.model, me.plain())

    @staticmethod
    def step(me):
        if me.degree:
            me.model += 0.5 * (received(me).mean(axis=0) - me.model)
        me.message = me.model


def plain_setting(task=None):
    away = OnOff(kind="on_off", online=0.7, mean_down=2.0)
    return setting_of(task=task, availability=away, latency={"kind": "exponential", "mean": 0.5}, loss=0.2, seed=5)


def descent(**fields):
    return CoordinateDescentParameters.model_validate({"kind": "coordinate_descent", "mu": 0.1, **fields})


def test_a_run_that_diverges_says_the_same_on_both_engines():
    task = small_task(6, empty=False)
    task = dataclasses.replace(task, loss=LOSSES["squared"], regularisation=np.full(6, 1.0))
    parameters = descent(radius=1.0, smoothness="public", start="constant", start_value=1.0, mu=1e9)
    parameters = parameters.model_copy(
        update={"radius": 1e-300, "start_value": 1e308}
    )  # beyond what a scenario may say
    said = []
    for engine in (World, fast_world):
        world = engine(plain_setting(task), CoordinateDescent, parameters)
        world.protocol.smoothness[:] = 0.0
        with pytest.raises(Divergence) as error:
            drive(world)
        # What overflows first, a sum or a difference, is up to the order of summation.
        text = str(error.value).replace("infinite", "not a number")
        said.append((text, world.activations, world.traffic, [agent.updates for agent in world.agents]))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("traits", "what"),
    [(Traits(inbox="every"), "reads every message"), (Traits(trigger="message"), "reacts to single messages")],
)
def test_steps_that_are_not_planned_because_of_single_messages_are_remarked(traits, what):
    class Nosy(Mix):
        """It has a step function, which is called when each step is due."""

    Nosy.traits = traits
    world = fast_world(plain_setting(), Nosy, MixParameters())
    assert world.warnings == (f"Nosy {what} that it is sent, so its steps are made one by one",)
    assert world.engine == f"event, because Nosy {what} that it is sent"
    assert not fast_world(plain_setting(), Collect, Stamp.Parameters()).warnings
    assert drive(world).activations > 20
