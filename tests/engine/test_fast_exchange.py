"""Pairwise exchange on the batched engine gives the run of the event engine: steps, models, tallies and records."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
from hushnet.agents.availability import Always, OnOff, Window
from hushnet.agents.errors import Divergence, StepFailure
from hushnet.protocols.base import Layout, Protocol
from hushnet.protocols.steps import batched
from hushnet.simulator.contract.bench import small_graph, small_task
from hushnet.simulator.network.clocks import Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.world.world import World
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .driving import build_world, drive, driver_of, fast_world
from .exchange import Gossip, called
from .helpers import random_graph
from .test_fast import RECORDS, settings_of_runs
from .test_sessions import SCHEDULES, SLOWLY, Astray, Everybody, Mute, Twice, up


@st.composite
def settings_of_exchanges(draw, folder):
    setting = draw(settings_of_runs(folder))
    if setting.stop.time is None:
        # Callers that give up before any answer can come never finish the sessions asked for.
        setting = dataclasses.replace(setting, stop=dataclasses.replace(setting.stop, time=30.0))
    return setting


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


class QuickChoosy(Quick):
    """A law of its own, and a start message, which is read."""

    def start(self, me):
        super().start(me)
        me.send("reply", me.model, me.plain())
        me.send("request", me.model, me.plain())

    def partner_law(self):
        return self.problem.graph.weights


PLANNED = st.sampled_from([Averaging, Quick, QuickForgetful, QuickChoosy])


@given(data=st.data())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_planned_exchanges_give_the_same_run_bit_for_bit(data, folder):
    setting = data.draw(settings_of_exchanges(folder))
    protocol = data.draw(PLANNED)
    parameters = protocol.Parameters(schedule=data.draw(SCHEDULES))
    record, observed = data.draw(RECORDS), data.draw(st.booleans())
    (events, end), (fast, fast_end) = (
        outcome(engine, setting, protocol, parameters, observed=observed, **record) for engine in (World, fast_world)
    )
    # Nobody counts the reactions of an agent whose steps are planned.
    cut, fast = without_reactions(events), without_reactions(fast)
    for one, other in zip(cut, fast, strict=False):
        assert other == one
    assert len(fast) == len(cut)
    assert fast_end == end


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


@pytest.mark.parametrize("protocol", [Averaging, Quick, QuickForgetful, QuickChoosy])
def test_longer_windows_change_nothing(protocol):
    parameters = protocol.Parameters(schedule="exchange")
    setting = plain_setting(stop=Stop(time=200.0))
    watched = fast_world(setting, protocol, parameters, observer=Log(), recorder=Log(), every=0.5)
    alone = fast_world(setting, protocol, parameters)
    for world in (watched, alone):
        drive(world)
    assert watched.activations > 30
    assert watched.activations == alone.activations
    assert watched.traffic == alone.traffic
    for name in alone.state.agent:
        assert np.array_equal(watched.state.agent[name].values, alone.state.agent[name].values)


class Mean:
    """A recorder that looks at the mean of all models whenever no session is open."""

    def __init__(self):
        self.sums = []

    def sample(self, world, *, final):
        if world.quiet_edges.all():
            self.sums.append(world.state.agent["model"].rows.sum(axis=0))


def test_gossip_with_edge_variables_keeps_its_mean_at_quiet_instants():
    recorder = Mean()
    parameters = Quick.Parameters(schedule={"kind": "exchange", "resend_after": 0.3})
    network = NetworkParameters.model_validate({"latency": {"kind": "exponential", "mean": 0.1}, "loss": 0.3})
    setting = plain_setting(network=network, availability=Always(kind="always"), stop=Stop(time=100.0))
    drive(fast_world(setting, Quick, parameters, recorder=recorder, every=0.25))
    assert len(recorder.sums) > 10
    start = np.array([(i, (1 + i) ** 2) for i in range(6)], dtype=float).sum(axis=0)
    np.testing.assert_allclose(recorder.sums, np.tile(start, (len(recorder.sums), 1)), rtol=1e-12)


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


@pytest.mark.parametrize("seed", range(6))
def test_who_joins_late_is_told_the_starts_of_the_others(seed):
    """Not what they have said in sessions since; in most of these worlds some agents join at 6 and some do not."""
    setting = plain_setting(
        clock=called(*(list(range(6)) * 3), spacing=0.5),
        network=NetworkParameters(),
        availability=Always(kind="always", joins=Window(share=0.4, between=[6.0, 6.0])),
        stop=Stop(time=10.0),
        draws=Draws(seed),
    )
    reference, fast = (
        outcome(engine, setting, QuickChoosy, QuickChoosy.Parameters(), every=1.0) for engine in (World, fast_world)
    )
    assert without_reactions(fast[0]) == without_reactions(reference[0])
    assert fast[1] == reference[1]


def test_forty_agents_with_long_delays_make_everything_grow_and_change_nothing():
    rng = np.random.default_rng(3)
    setting = plain_setting(
        40,
        graph=random_graph(40, 0.3, rng),
        clock=Poisson(kind="poisson", rate=rng.uniform(0.5, 4.0, 40).tolist()),
        network=NetworkParameters.model_validate({"latency": {"kind": "exponential", "mean": 30}, "loss": 0.05}),
        availability=OnOff(
            kind="on_off",
            online=0.8,
            mean_down=1.0,
            joins=Window(share=0.3, between=[0, 20]),
            leaves=Window(share=0.2, between=[10, 40]),
        ),
        stop=Stop(time=50.0),
    )
    parameters = Quick.Parameters(schedule={"kind": "exchange", "resend_after": 1.0})
    reference, fast = (drive(engine(setting, Quick, parameters)) for engine in (World, fast_world))
    assert len(fast.sessions.copies) > 104
    assert len(driver_of(fast).agenda.heap) > 144
    assert fast.traffic == reference.traffic
    assert np.array_equal(fast.state.agent["model"].values, reference.state.agent["model"].values)


def test_timers_of_closed_sessions_take_no_room_for_ever():
    parameters = QuickForgetful.Parameters(schedule={"kind": "exchange", "timeout": 1e5})
    setting = plain_setting(network=NetworkParameters(), availability=Always(kind="always"), stop=Stop(time=300.0))
    worlds = [engine(setting, QuickForgetful, parameters) for engine in (World, fast_world)]
    for world in worlds:
        drive(world)
    assert worlds[1].activations == worlds[0].activations > 1000
    assert len(driver_of(worlds[1]).agenda.heap) < 200


@pytest.mark.parametrize(
    ("stop", "reached"),
    [
        (Stop(updates=3), lambda world: min(agent.updates for agent in world.agents) == 3),
        (Stop(activations=11), lambda world: world.activations == 11),
        (Stop(vectors=41), lambda world: world.traffic.vectors == 44),
    ],
)
def test_a_run_that_ends_by_numbers_ends_between_two_exchanges(stop, reached):
    setting = plain_setting(network=NetworkParameters(), availability=Always(kind="always"), stop=stop)
    world = fast_world(setting, Quick, Quick.Parameters())
    drive(world)
    assert reached(world)
    assert world.quiet_edges.all()


def test_the_event_that_ends_a_run_is_completed():
    """Agent 1 calls at 0.25, agent 0 at 0.5; the second request makes the first void at 1, and is answered then."""
    network = NetworkParameters.model_validate({"latency": {"kind": "constant", "value": 0.5}})
    clock = called(1, 0, spacing=0.25)
    setting = plain_setting(
        2, clock=clock, network=network, availability=Always(kind="always"), stop=Stop(time=9.0, vectors=2)
    )
    worlds = [
        World(setting, Quick, Quick.Parameters()),
        fast_world(setting, Quick, Quick.Parameters()),
    ]
    for world in worlds:
        drive(world)
        assert (world.ended, world.now, world.traffic.vectors) == ("the vectors were sent", 1.0, 2 + 3)
    assert worlds[0].traffic == worlds[1].traffic


def test_a_message_repeated_more_often_than_there_are_draws_is_an_error_on_both_engines():
    network = NetworkParameters.model_validate({"loss": 0.999999})
    setting = plain_setting(
        2, clock=called(0), network=network, availability=Always(kind="always"), stop=Stop(time=70_000.0)
    )
    parameters = Quick.Parameters(schedule={"kind": "exchange", "resend_after": 1.0})
    with pytest.raises(ValueError, match="too often within one tick"):
        drive(fast_world(setting, Quick, parameters))


def exploding(me, partner, heard):
    """Equal models share nothing, and grow until they overflow."""
    me.message = (heard - me.model) / 2
    me.model = me.model * 3.0


class Exploding(Averaging):
    """Models grow until they overflow."""

    def start(self, me):
        me.model = 1e308

    respond = staticmethod(exploding)


class ExplodingAtOnce(Quick):
    """The same of many agents at once."""

    start = Exploding.start
    respond = staticmethod(batched(lambda me, heard: exploding(me, None, heard)))


@pytest.mark.parametrize("protocol", [Exploding, ExplodingAtOnce])
def test_a_run_that_diverges_says_the_same_on_both_engines(protocol):
    said = []
    for engine in (World, fast_world):
        world = engine(plain_setting(), protocol, protocol.Parameters())
        with pytest.raises(Divergence) as error:
            drive(world)
        said.append((str(error.value), world.activations, world.traffic, world.updates.tolist()))
    assert said[0] == said[1]


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


def test_the_engine_can_be_chosen():
    parameters = Quick.Parameters()
    assert build_world("auto", plain_setting(), Quick, parameters).engine == "batched (steps in batches)"
    assert build_world("auto", plain_setting(), Averaging, parameters).engine == "batched (planned steps)"
    why = "Gossip picks partners by a method of its own"
    assert build_world("auto", plain_setting(), Gossip, parameters).engine == f"event, because {why}"
    assert build_world("batched", plain_setting(), Gossip, parameters).engine == f"event, because {why}"
    assert build_world("event", plain_setting(), Quick, parameters).engine == "event, as asked"
