"""The batched engine gives the events, models, tallies and records of the event engine."""

from __future__ import annotations

from typing import Literal

import pytest
from hushnet.agents.availability import OnOff
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.steps import received

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
