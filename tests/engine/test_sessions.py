"""Pairwise exchange on a bad network: both ends agree, nothing is applied twice, and the mean is kept."""

from __future__ import annotations

import pytest
from hushnet.agents.errors import InputError, StepFailure
from hushnet.protocols.base import Layout, MessageKind, Traits

from .exchange import Gossip, Scripted, called, run_exchange


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_when_requests_cross_the_session_of_the_lower_agent_wins(order):
    latency = {"kind": "constant", "value": 0.5}
    world, log = run_exchange(agents=2, clock=called(*order, spacing=0.25), latency=latency)
    assert world.protocol.count("request") == 2
    assert world.protocol.calls[-2:] == [("respond", 1, 0), ("complete", 0, 1)]
    assert world.protocol.count("respond") == world.activations == 1
    assert world.quiet_edges.all()
    assert [event[1] for event in log.of("arrived", "reply")] == [0.25 * (1 + order.index(0)) + 1.0]


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
