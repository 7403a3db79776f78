"""Pairwise exchange on the batched engine gives the run of the event engine: steps, models, tallies and records."""

from __future__ import annotations

import copy
import dataclasses

import pytest
from hushnet.agents.availability import Always, OnOff, Window
from hushnet.agents.errors import StepFailure
from hushnet.protocols.base import Layout, Protocol
from hushnet.protocols.steps import batched
from hushnet.simulator.contract.bench import small_graph, small_task
from hushnet.simulator.network.clocks import Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.world.world import World

from .driving import drive, driver_of, fast_world
from .exchange import Gossip, called
from .test_sessions import SLOWLY, Astray, Everybody, Mute, Twice, up


class Log:
    """Observer and recorder: who called, what it had heard then, and everything that a recorder may look at."""

    def __init__(self):
        self.events = []

    def woke(self, world, agent):
        slots = world.setting.graph.edges_of(agent.index)
        heard = tuple(tuple(ticks[slots].tolist()) for ticks in world.inbox.tick.values())
        self.events.append(("woke", world.now, agent.index, agent.tick, agent.reactions, heard))

    def sent(self, world, message, delay, lost):
        vector = tuple(message.vector.tolist())
        self.events.append(("sent", world.now, *self._key(message), message.size, delay, lost, vector))

    def arrived(self, world, message, up, newest):
        self.events.append(("arrived", world.now, *self._key(message), message.sent_at, up, newest))

    def _key(self, message):
        return message.sender, message.receiver, message.kind, message.order, message.tick, message.edge

    def sample(self, world, *, final):
        traffic = copy.deepcopy(world.traffic)
        assert traffic.conserved
        inbox = [
            (world.inbox.sent_at[kind].tolist(), world.inbox.order[kind].tolist(), world.inbox.tick[kind].tolist())
            for kind in world.layout.messages
        ]
        values = [block.values.tolist() for block in world.inbox.values.values()]
        people = [*zip(world.updates.tolist(), world.started.tolist(), strict=True)]
        blocks = [block.values.tolist() for block in (*world.state.agent.values(), *world.state.edge.values())]
        name = "final" if final else "record"
        quiet = world.quiet_edges.all()
        counts = world.activations, world.events
        self.events.append((name, world.now, counts, quiet, traffic, inbox, people, values, blocks))


def outcome(engine, setting, protocol, parameters, *, observed=True, **kwargs):
    """Everything that a run shows: events and samples, and its end."""
    log = Log()
    world = engine(setting, protocol, parameters, observer=log if observed else None, recorder=log, **kwargs)
    drive(world)
    calls = getattr(world.protocol, "calls", None)
    return log.events, (world.ended, world.now, calls, world.ledger.to_frame().values.tolist())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


class Averaging(Gossip):
    """The exchange of `Gossip` as functions of one agent."""

    decides = False
    partner = Protocol.partner

    @staticmethod
    def request(me, partner):
        me.message = me.model

    @staticmethod
    def respond(me, partner, heard):
        me.message = got = (heard - me.model) / 2
        me.got[partner] += got
        me.model += got

    @staticmethod
    def complete(me, partner, heard):
        me.got[partner] -= heard
        me.model -= heard


class Quick(Averaging):
    """The same of many agents at once."""

    @staticmethod
    @batched
    def request(me):
        me.message = me.model

    @staticmethod
    @batched
    def respond(me, heard):
        me.message = got = (heard - me.model) / 2
        me.here.got = me.here.got + got
        me.model = me.model + got

    @staticmethod
    @batched
    def complete(me, heard):
        me.here.got = me.here.got - heard
        me.model = me.model - heard


class QuickForgetful(Quick):
    """The same without edge variables."""

    def layout(self):
        return Layout(agent={"model": 2}, messages=super().layout().messages)

    @staticmethod
    @batched
    def respond(me, heard):
        me.message = got = (heard - me.model) / 2
        me.model = me.model + got

    @staticmethod
    @batched
    def complete(me, heard):
        me.model = me.model - heard


def without_reactions(events):
    return [(*event[:4], *event[5:]) if event[0] == "woke" else event for event in events]


def plain_setting(agents=6, **fields):
    setting = Setting(
        task=small_task(agents),
        graph=small_graph(agents),
        clock=Poisson(kind="poisson"),
        network=NetworkParameters.model_validate({"latency": {"kind": "exponential", "mean": 1.0}, "loss": 0.3}),
        availability=OnOff(kind="on_off", online=0.8, mean_down=1.0),
        stop=Stop(time=40.0),
        draws=Draws(5),
    )
    return dataclasses.replace(setting, **fields)


def leaving(**windows):
    return {
        "availability": Always(kind="always", **{name: Window(share=1, between=at) for name, at in windows.items()})
    }


CORNERS = {
    "a partner is gone before the request arrives": lambda folder: up(folder, _1=2.5),
    "a partner is gone before its reply arrives": lambda folder: up(folder, _1=4.5),
    "only the partner that is gone has changed": lambda folder: up(folder, _0=[(0, 6), (8, 100)], _1=4.5),
    "a caller is gone": lambda folder: up(folder, _0=2.0),
    "a caller is gone when its timer is due": lambda folder: up(folder, _0=3.0),
    "a caller is absent for a while": lambda folder: up(folder, _0=[(0, 2), (8, 100)]),
    "a partner is absent for a while": lambda folder: up(folder, _1=[(5.5, 100)]),
    "everybody is there": lambda folder: {},
    "everybody joins late": lambda folder: leaving(joins=[0.5, 0.5]),
    "everybody leaves when a timer is due": lambda folder: leaving(leaves=[3.0, 3.0]),
    "everybody leaves when the clock ticks": lambda folder: leaving(leaves=[1.0, 1.0]),
    "everybody leaves when the request arrives": lambda folder: leaving(leaves=[4.0, 4.0]),
    "nobody ever comes": lambda folder: leaving(joins=[3.0, 3.0], leaves=[2.0, 2.0]),
}


@pytest.mark.parametrize("protocol", [Averaging, Quick, QuickForgetful])
@pytest.mark.parametrize("time", [None, 12.0])
@pytest.mark.parametrize("corner", CORNERS)
def test_a_session_whose_ends_come_and_go_ends_alike_on_both_engines(corner, time, protocol, folder):
    """Agent 0 calls at 1 and 2; a message takes 3; the timer is due at 3, 5, ...; without a time all must end."""
    fields = {"availability": Always(kind="always"), **CORNERS[corner](folder)}
    network = NetworkParameters.model_validate({"latency": SLOWLY})
    setting = plain_setting(2, clock=called(0, 0), network=network, stop=Stop(time=time), **fields)
    parameters = protocol.Parameters(schedule={"kind": "exchange", "resend_after": 2.0, "timeout": 2.0})
    reference = outcome(World, setting, protocol, parameters, every=0.5)
    fast = outcome(fast_world, setting, protocol, parameters, every=0.5)
    assert without_reactions(fast[0]) == without_reactions(reference[0])
    assert fast[1] == reference[1]
    assert reference[1][0] == ("every agent has finished" if time is None else "the time was up")


def test_timers_of_closed_sessions_take_no_room_for_ever():
    parameters = QuickForgetful.Parameters(schedule={"kind": "exchange", "timeout": 1e5})
    setting = plain_setting(network=NetworkParameters(), availability=Always(kind="always"), stop=Stop(time=300.0))
    worlds = [engine(setting, QuickForgetful, parameters) for engine in (World, fast_world)]
    for world in worlds:
        drive(world)
    assert worlds[1].activations == worlds[0].activations > 1000
    assert len(driver_of(worlds[1]).agenda.heap) < 200


def test_a_message_repeated_more_often_than_there_are_draws_is_an_error_on_both_engines():
    network = NetworkParameters.model_validate({"loss": 0.999999})
    setting = plain_setting(
        2, clock=called(0), network=network, availability=Always(kind="always"), stop=Stop(time=70_000.0)
    )
    parameters = Quick.Parameters(schedule={"kind": "exchange", "resend_after": 1.0})
    with pytest.raises(ValueError, match="too often within one tick"):
        drive(fast_world(setting, Quick, parameters))


@pytest.mark.parametrize(
    ("protocol", "complaint"),
    [
        (Twice, "it sends exactly one 'request' to its partner, agent 1"),
        (Everybody, "exactly one 'request' to its partner, agent 1, and not 'request' to everybody"),
        (Mute, "agent 1 .* the respond of Mute failed: it sends exactly one message"),
        (Astray, "partner of agent 0 must be the rank of one of its 1 neighbours, got 1"),
    ],
)
def test_a_protocol_that_breaks_the_rules_of_an_exchange_is_told(protocol, complaint):
    setting = plain_setting(2, clock=called(0), network=NetworkParameters())
    with pytest.raises((ValueError, StepFailure), match=complaint):
        drive(fast_world(setting, protocol, protocol.Parameters()))
