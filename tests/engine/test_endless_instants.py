"""Agents that answer each other's messages at one instant without end are stopped; what ends by itself is not."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Literal

import pytest
from hushnet.agents.errors import LimitReached
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.simulator.contract import ContractViolation, bench, checks
from hushnet.simulator.contract.bench import protocol_parameters, small_setting
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.setting import Limits
from hushnet.simulator.recording.recorder import Recorder

from .driving import build_world, drive


class RallyParameters(ProtocolParameters):
    """Parameters of `Rally`."""

    kind: Literal["rally"] = "rally"
    strokes: int | None = None


class Rally(Protocol):
    """Whoever wakes serves a ball to a neighbour, and every ball is played back: for ever, or so many strokes."""

    decides = True

    Parameters = RallyParameters
    traits = Traits(trigger="message")

    def layout(self):
        return Layout(agent={"model": 1}, messages={"ball": MessageKind(1)})

    def start(self, me):
        return

    def step(self, me):
        if len(me.neighbours):
            self.play(me, int(me.neighbours[0]), 0.0)

    def react(self, me, message):
        if self.parameters.strokes is None or message.vector[0] < self.parameters.strokes:
            self.play(me, message.sender, message.vector[0] + 1.0)

    def play(self, me, to, stroke):
        me.send("ball", [stroke], me.public("a ball"), to=to)


class Storm(Rally):
    """Every ball is played back to everybody."""

    def play(self, me, to, stroke):
        me.send("ball", [stroke], me.public("balls"))


def limited(setting, protocol, **fields):
    """The sentence with which a run ends, and its world."""
    world = build_world("auto", setting, protocol, protocol.Parameters(), **fields)
    with pytest.raises(LimitReached) as error:
        drive(world)
    return str(error.value), world


def test_a_rally_without_delays_ends_the_run_with_agents_kind_and_time():
    recorder = Recorder(["traffic"])
    said, world = limited(small_setting(), Rally, recorder=recorder, every=0.01)
    first = world.now
    assert first > 0.02
    assert said.startswith("agents ")
    assert f" at time {first:.6g}: 6,001 reactions to messages that send 'ball' at one instant" in said
    assert "network.latency" in said
    named = said.removeprefix("agents ").partition(" at time")[0].split(", ")
    assert len(named) == 2
    assert not world.ended
    assert world.traffic.conserved
    times = recorder.trace()["time"]
    assert first - 0.01 <= times.max() < first


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        (Limits(at_once=50), 51),
        (Limits(at_once_each=7), 43),
        (Limits(at_once=50, at_once_each=7), 43),
    ],
)
def test_the_first_of_both_limits_counts(limits, count):
    said, world = limited(dataclasses.replace(small_setting(), limits=limits), Rally)
    assert f": {count:,} reactions" in said
    assert world.reactions.at_once == count


def test_a_storm_with_delays_ends_once_it_is_larger_than_the_run_may_be():
    network = NetworkParameters.model_validate({"latency": 0.1})
    said, world = limited(dataclasses.replace(small_setting(network=network), limits=Limits(reactions=500)), Storm)
    assert ": 501 reactions to messages that send 'ball'; let receive answer fewer" in said
    assert world.reactions.at_once < 501


def test_the_contract_counts_an_endless_instant_as_a_refusal(monkeypatch):
    monkeypatch.setattr(bench, "Limits", partial(Limits, at_once_each=50))
    refused = checks.check_networks(Rally, Rally.Parameters(), small=partial(small_setting, time=1.0))
    assert len(refused) == 1
    assert refused[0].startswith("under Constant(kind='constant', value=0.0): agents ")
    assert "reactions to messages that send 'ball' at one instant" in refused[0]


def test_a_protocol_that_runs_on_no_network_breaks_the_contract(monkeypatch):
    monkeypatch.setattr(bench, "MOST_REACTIONS", 60)
    with pytest.raises(ContractViolation, match="answer each other's messages without end under"):
        checks.check_networks(Storm, protocol_parameters(Storm, {}))
