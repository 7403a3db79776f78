"""Pairwise exchange on a bad network: both ends agree, nothing is applied twice, and the mean is kept."""

from __future__ import annotations

import pytest
from hushnet.agents.errors import InputError, StepFailure
from hushnet.protocols.base import Layout, MessageKind, Traits
from hushnet.simulator.network.setting import Stop

from .driving import drive
from .exchange import Gossip, Scripted, called, exchange_world, run_exchange

SLOWLY = {"kind": "constant", "value": 3.0}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_when_requests_cross_the_session_of_the_lower_agent_wins(order):
    latency = {"kind": "constant", "value": 0.5}
    world, log = run_exchange(agents=2, clock=called(*order, spacing=0.25), latency=latency)
    assert world.protocol.count("request") == 2
    assert world.protocol.calls[-2:] == [("respond", 1, 0), ("complete", 0, 1)]
    assert world.protocol.count("respond") == world.activations == 1
    assert world.quiet_edges.all()
    assert [event[1] for event in log.of("arrived", "reply")] == [0.25 * (1 + order.index(0)) + 1.0]


def test_a_repeat_is_answered_from_the_stored_reply_and_charged_once():
    """Requests go at 1, 2, ..., 6; those of 1, 2 and 3 arrive before the reply of 4 does, at 7."""
    world, log = exchange_world(
        Scripted,
        agents=2,
        clock=called(0),
        latency=SLOWLY,
        schedule={"kind": "exchange", "resend_after": 1.0},
        stop=Stop(),
    )
    charged = []
    commit = world.ledger.commit
    world.ledger.commit = lambda release, vector: (charged.append(release), commit(release, vector))
    drive(world)
    assert [event[1] for event in log.of("sent", "request")] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert [event[1] for event in log.of("sent", "reply")] == [4.0, 5.0, 6.0]
    assert {event[5] for event in log.of("sent")} == {0}, "replies and repeats belong to the tick that opened"
    assert world.protocol.calls == [("request", 0, 1), ("respond", 1, 0), ("complete", 0, 1)]
    assert len({id(release) for release in charged}) == 2
    assert world.traffic.vectors == 6 * 1 + 3 * 3
    assert world.ended == "every agent has finished"


class Twice(Scripted):
    decides = True

    def request(self, me, partner):
        super().request(me, partner)
        super().request(me, partner)


class Everybody(Scripted):
    decides = True

    def request(self, me, partner):
        me.send("request", me.model, me.plain())


class Mute(Scripted):
    decides = True

    def respond(self, me, partner, vector):
        return


class Astray(Gossip):
    def partner(self, me, uniform):
        return len(me.neighbours)


class Kindless(Gossip):
    def layout(self):
        return Layout(agent={"model": 2}, messages={"request": MessageKind(2), "answer": MessageKind(2)})


class Reacting(Gossip):
    traits = Traits(exchange="pairwise", trigger="message")


@pytest.mark.parametrize(
    ("protocol", "complaint"),
    [
        (Twice, "it sends exactly one 'request' to its partner, agent 1"),
        (Everybody, "exactly one 'request' to its partner, agent 1, and not 'request' to everybody"),
        (Mute, "agent 1 .* the respond of Mute failed: it sends exactly one message"),
        (Astray, "partner of agent 0 must be the rank of one of its 1 neighbours, got 1"),
        (Kindless, "must include 'request' and 'reply' and must not include 'refusal'; they are: request, answer"),
        (Reacting, "its trigger must be 'wake'"),
    ],
)
def test_a_protocol_that_breaks_the_rules_of_an_exchange_is_told(protocol, complaint):
    with pytest.raises((InputError, ValueError, StepFailure), match=complaint):
        run_exchange(protocol, agents=2, clock=called(0))
