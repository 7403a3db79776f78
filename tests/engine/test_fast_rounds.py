"""Lossless rounds on the batched engine: the events, models, tallies and records of the event engine."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hushnet.agents.availability import Always, OnOff, Window
from hushnet.agents.errors import Divergence, InputError
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.simulator.contract.bench import small_graph, small_task
from hushnet.simulator.engine.batched.eventful_rounds import EventfulRounds
from hushnet.simulator.network.clocks import Periodic, Poisson, Recorded
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.tables import tallies
from hushnet.simulator.world.world import World
from hypothesis import strategies as st

from .driving import build_world, drive, driver_of, fast_world
from .helpers import Stamp
from .test_fast import (
    Blend,
    BlendAtOnce,
    MixParameters,
    outcome,
)
from .test_rounds import Averaging, Limited, in_rounds


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
