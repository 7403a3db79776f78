"""Lossless rounds on the batched engine: the events, models, tallies and records of the event engine."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.availability import Always, OnOff, Window
from hushnet.agents.errors import Divergence, InputError, Stall
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES
from hushnet.protocols.algorithms.baselines import Local
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.simulator.contract.bench import small_graph, small_task
from hushnet.simulator.engine.batched.driver import LazyRounds
from hushnet.simulator.engine.batched.eventful import EventfulRounds
from hushnet.simulator.network.clocks import Periodic, Poisson, Recorded
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.tables import tallies
from hushnet.simulator.world.world import World
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .driving import build_world, drive, driver_of, fast_world
from .helpers import Chatter, EventLog, Stamp, random_graph
from .test_fast import (
    LATENCIES,
    LOSSES_OF_LINKS,
    PRIVATE,
    RECORDS,
    STOPS,
    Blend,
    BlendAtOnce,
    MixParameters,
    assert_same,
    outcome,
)
from .test_rounds import Averaging, Limited, Models, averaging, in_rounds
from .test_world_properties import availabilities, clocks


@st.composite
def settings_of_rounds(draw):
    agents = draw(st.integers(1, 6))
    return Setting(
        task=small_task(agents, empty=False),
        graph=random_graph(agents, draw(st.floats(0.2, 1)), np.random.default_rng(draw(st.integers(0, 99)))),
        clock=draw(clocks(agents).filter(lambda clock: clock.kind != "recorded")),
        network=NetworkParameters.model_validate(
            {
                "latency": draw(LATENCIES),
                "bandwidth": draw(st.sampled_from([None, 16.0, 100.0])),
                "header_bytes": draw(st.sampled_from([0, 16])),
                "start": draw(st.sampled_from(["known", "own", "zero"])),
            }
        ),
        availability=Always(kind="always"),
        stop=draw(STOPS),
        draws=Draws(draw(st.integers(0, 2**64 - 1))),
    )


def planned(**fields):
    """Protocols whose steps are planned, in rounds."""
    kinds = st.sampled_from([None, 1, 4])
    return st.one_of(
        kinds.map(lambda updates: (CoordinateDescent, descent(updates=updates, **fields))),
        st.sampled_from([Averaging, Limited]).map(lambda protocol: (protocol, in_rounds(protocol, **fields))),
        st.tuples(st.sampled_from([Blend, BlendAtOnce]), kinds).map(
            lambda drawn: (drawn[0], MixParameters(updates=drawn[1], **{"schedule": "rounds", **fields}))
        ),
    )


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_planned_rounds_give_the_same_run_bit_for_bit(data):
    setting, record = data.draw(settings_of_rounds()), data.draw(RECORDS)
    protocol, parameters = data.draw(planned())
    record["observed"] = data.draw(st.booleans())
    reference, fast = (outcome(engine, setting, protocol, parameters, **record) for engine in (World, fast_world))
    assert_same(fast, reference)


SCHEDULES = st.one_of(
    st.sampled_from(["never", 0.5, 2.0]).map(lambda after: {"kind": "rounds", "resend_after": after}),
    st.sampled_from([0.25, 1.0, 5.0]).map(lambda patience: {"kind": "rounds", "patience": patience}),
    st.just({"kind": "rounds"}),
)


@st.composite
def settings_of_harsh_rounds(draw, folder):
    setting = draw(settings_of_rounds())
    network = setting.network.model_copy(update={"loss": NetworkParameters(loss=draw(LOSSES_OF_LINKS)).loss})
    availability = draw(availabilities(setting.task.agents, folder)).model_copy(update={"joins": None, "leaves": None})
    stop = dataclasses.replace(setting.stop, time=min(setting.stop.time or 15.0, 15.0))
    return dataclasses.replace(setting, network=network, availability=availability, stop=stop, base=folder)


@given(data=st.data())
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_planned_rounds_on_harsh_networks_give_the_same_run_bit_for_bit(data, tmp_path):
    setting, runs = data.draw(settings_of_harsh_rounds(tmp_path)), []
    protocol, parameters = data.draw(planned(schedule=data.draw(SCHEDULES)))
    for engine in (World, fast_world):
        said, world = "", engine(setting, protocol, parameters)
        try:
            drive(world)
        except Stall as stall:
            said = str(stall)
        models = world.state.agent["model"].values.tolist()
        runs.append((said, world.ended, world.traffic, world.updates.tolist(), world.activations, models))
    assert runs[1] == runs[0]


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_longer_windows_of_rounds_change_nothing(data):
    setting = data.draw(settings_of_rounds())
    watched = fast_world(setting, CoordinateDescent, descent(), observer=EventLog())
    alone = fast_world(setting, CoordinateDescent, descent())
    for world in (watched, alone):
        drive(world)
    assert np.array_equal(watched.state.agent["model"].values, alone.state.agent["model"].values)
    assert watched.traffic == alone.traffic
    assert watched.ended == alone.ended


def descent(**fields):
    return in_rounds(CoordinateDescent, mu=0.1, **fields)


def plain_setting(task=None, **fields):
    setting = Setting(
        task=task or small_task(6, empty=False),
        graph=small_graph(6),
        clock=Poisson(kind="poisson"),
        network=NetworkParameters.model_validate({"latency": {"kind": "exponential", "mean": 0.5}}),
        availability=Always(kind="always"),
        stop=Stop(time=20.0),
        draws=Draws(5),
    )
    return dataclasses.replace(setting, **fields)


class Histories:
    """A recorder of the models that every step found, and of how far ahead of its neighbours an agent ever was."""

    def __init__(self):
        self.found, self.ahead = {}, 0

    def sample(self, world, *, final):
        updates, graph = world.updates, world.setting.graph
        for agent, count in enumerate(updates.tolist()):
            self.found.setdefault((count, agent), world.state.agent["model"][agent].copy())
        self.ahead = max(self.ahead, int((updates[graph.tails] - updates[graph.heads]).max()))

    after = Models.after


@pytest.mark.parametrize("latency", [0.0, 2.5, {"kind": "lognormal", "mean": 1.0, "sigma": 1.5}])
def test_rounds_without_events_are_bitwise_the_synchronous_loop(latency):
    setting = plain_setting(network=NetworkParameters.model_validate({"latency": latency}), stop=Stop(updates=10))
    log = Histories()
    world = fast_world(setting, Averaging, in_rounds(Averaging), recorder=log, activations=1)
    drive(world)
    assert type(driver_of(world)) is LazyRounds
    assert log.after(10).tobytes() == averaging(setting.task, setting.graph, 10).tobytes()
    assert log.ahead <= 1


def test_forty_agents_with_long_delays_make_the_pools_grow_and_change_nothing():
    rng = np.random.default_rng(3)
    setting = plain_setting(
        small_task(40, empty=False),
        graph=random_graph(40, 0.3, rng),
        clock=Poisson(kind="poisson", rate=rng.uniform(0.2, 2.0, 40).tolist()),
        network=NetworkParameters.model_validate({"latency": {"kind": "exponential", "mean": 10}}),
        stop=Stop(time=150.0),
    )
    reference = outcome(World, setting, Limited, in_rounds(Limited), every=25.0)
    assert outcome(fast_world, setting, Limited, in_rounds(Limited), every=25.0) == reference


@pytest.mark.parametrize("latency", [0.0, 0.5, 3.0])
def test_an_agent_falls_silent_while_its_neighbour_waits_for_two_others(latency):
    """Agent 0 ends its last round 2 while the centre of the star still waits for round 1 of two slow agents."""
    matrix = np.zeros((4, 4))
    matrix[1, [0, 2, 3]] = matrix[[0, 2, 3], 1] = 1.0
    setting = plain_setting(
        small_task(4, empty=False),
        graph=Graph.from_matrix(matrix),
        clock=Periodic(kind="periodic", period=[0.25, 0.25, 7.0, 11.0], phase="common"),
        network=NetworkParameters.model_validate({"latency": latency}),
        stop=Stop(time=80.0),
    )
    (events, end), fast = (
        outcome(engine, setting, Limited, in_rounds(Limited), every=1.0) for engine in (World, fast_world)
    )
    assert fast == (events, end)
    ended = {event[2:4]: event[1] for event in events if event[0] == "woke"}
    assert ended[0, 1] < 7.0 < 11.0 < ended[1, 1]


def test_agents_without_neighbours_go_through_their_rounds_alone():
    setting = plain_setting(small_task(1, empty=False), graph=small_graph(1))
    for protocol, parameters in ((Blend, MixParameters(schedule="rounds")), (CoordinateDescent, descent())):
        reference, fast = (outcome(engine, setting, protocol, parameters, every=5.0) for engine in (World, fast_world))
        assert fast == reference
        assert reference[1][1] > 10


def test_agents_that_are_all_silent_from_the_start_end_the_run_at_once():
    setting = plain_setting(stop=Stop(activations=10))
    ends = [outcome(engine, setting, Local, in_rounds(Local), every=1.0) for engine in (World, fast_world)]
    assert ends[0] == ends[1]
    assert ends[1][1][:3] == ("every agent has finished", 0, 0.0)


def test_what_is_sent_to_a_silent_agent_does_not_pile_up():
    """Agent 0 takes one step or none; its neighbours write to it for 2,000 rounds, of which a few are under way."""
    setting = plain_setting(stop=Stop(time=2500.0))
    world = fast_world(setting, CoordinateDescent, descent())
    world.agents[0].silent = True
    nodes, rows = len(world.transport.tables.nodes.free), len(world.transport.tables.pool)
    drive(world)
    run = world.transport.tables
    assert world.agents[0].updates == 0
    assert min(agent.updates for agent in world.agents[1:]) > 500
    assert len(run.nodes.free) == nodes
    assert len(run.pool) - run.counts[tallies.FREE_ROWS] <= rows
    assert world.traffic.conserved
    assert world.traffic.links.in_flight <= 2 * len(setting.graph.heads)


def test_private_rounds_are_the_same_bit_for_bit_on_both_engines():
    parameters = descent(privacy={**PRIVATE, "clip": 1.0})
    reference, fast = (
        outcome(engine, plain_setting(), CoordinateDescent, parameters, every=1.0) for engine in (World, fast_world)
    )
    assert fast == reference
    assert any(row[1] == "laplace" for row in fast[1][4])


@pytest.mark.parametrize("when", [{"every": 0.7}, {"activations": 5}])
def test_recorders_see_the_same_rounds(when):
    traces = []
    for engine in (World, fast_world):
        recorder = Recorder(["objective", "accuracy", "epsilon", "traffic", "age", "updates"])
        world = engine(plain_setting(), CoordinateDescent, descent(), recorder=recorder, **when)
        drive(world)
        traces.append((recorder.trace(), recorder.agents(world)))
    for one, other in zip(*traces, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_rounds_that_diverge_say_the_same_on_both_engines():
    task = small_task(6, empty=False)
    task = dataclasses.replace(task, loss=LOSSES["squared"], regularisation=np.full(6, 1.0))
    parameters = descent(radius=1.0, smoothness="public", start="constant", start_value=1.0)
    parameters = parameters.model_copy(update={"mu": 1e9, "radius": 1e-300, "start_value": 1e308})
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


def test_two_messages_of_one_kind_to_one_neighbour_in_a_round_are_refused():
    world = fast_world(plain_setting(), Chatter, in_rounds(Chatter))
    with pytest.raises(ValueError, match=r"agent \d sent agent \d two messages of one kind in a round"):
        drive(world)


@pytest.mark.parametrize(
    ("fields", "schedule"),
    [
        ({"network": NetworkParameters.model_validate({"loss": 0.1})}, "rounds"),
        ({"availability": OnOff(kind="on_off", online=0.7, mean_down=1)}, "rounds"),
        ({}, {"kind": "rounds", "patience": 2.0}),
        ({}, {"kind": "rounds", "resend_after": 2.0}),
    ],
)
def test_rounds_that_need_events_have_them_in_compiled_windows(fields, schedule):
    world = build_world("auto", plain_setting(**fields), Averaging, in_rounds(Averaging, schedule=schedule))
    assert type(driver_of(world)) is EventfulRounds
    assert world.engine == "batched (planned steps)"


@pytest.mark.parametrize("schedule", ["rounds", {"kind": "rounds", "resend_after": "never"}])
def test_lossless_rounds_run_on_the_fast_engine(schedule):
    world = build_world("auto", plain_setting(), Averaging, in_rounds(Averaging, schedule=schedule))
    assert type(driver_of(world)) is LazyRounds
    assert world.engine == "batched (planned steps)"
    assert build_world("batched", plain_setting(), CoordinateDescent, descent()).engine == "batched (steps in batches)"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"clock": Recorded(kind="recorded", order=[0, 1])}, ("clock", "kind")),
        ({"availability": Always(kind="always", joins=Window(share=0.5, between=[1, 2]))}, ("availability", "joins")),
        ({"availability": Always(kind="always", leaves=Window(share=0.5, between=[1, 2]))}, ("availability", "leaves")),
    ],
)
def test_what_rounds_cannot_do_is_refused_alike_on_both_engines(fields, field):
    said = []
    for engine in ("event", "batched"):
        with pytest.raises(InputError) as error:
            build_world(engine, plain_setting(**fields), Stamp, in_rounds(Stamp))
        assert error.value.field == field
        said.append(str(error.value))
    assert said[0] == said[1]
