"""Delays that are dear to draw are drawn only when they have to be known; until then, bounds of them say enough."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hushnet.agents.availability import Always, OnOff, Window
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network import latency
from hushnet.simulator.network.clocks import Poisson
from hushnet.simulator.network.latency import BRACKETS, GAMMA, Exponential, Gamma, brackets_of
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.world.world import World

from .driving import drive, fast_world
from .helpers import EventLog, random_graph
from .test_fast import Mix, MixParameters, outcome


def setting(*, seed=1, **fields):
    """Seven agents that wake often, so that many copies overtake each other on slow links."""
    made = Setting(
        task=small_task(7, empty=False),
        graph=random_graph(7, 0.8, np.random.default_rng(seed)),
        clock=Poisson(kind="poisson"),
        network=NetworkParameters.model_validate(
            {"latency": {"kind": "gamma", "mean": 3.0, "shape": 0.7}, "loss": 0.1, "bandwidth": 50.0}
        ),
        availability=Always(kind="always"),
        stop=Stop(time=60.0),
        draws=Draws(seed),
    )
    return dataclasses.replace(made, **fields)


def run(engine, made, **options):
    return outcome(engine, made, Mix, MixParameters(), observed=False, every=0.9, **options)


@pytest.mark.parametrize("shape", [1e-3, 0.1, 0.5, 1.0, 2.0, 30.0, 1e3, 1e5])
@pytest.mark.parametrize("mean", [1e-3, 0.2, 1e4])
def test_bounds_hold_for_every_draw(shape, mean):
    """200,000 uniforms (seed 5), among them the ends of all parts and their neighbours among the floats."""
    law = Gamma(kind="gamma", mean=mean, shape=shape).law
    ends = np.arange(1, BRACKETS) / BRACKETS
    rare = np.array([2.0**-54, 1 - 2.0**-53])
    drawn = np.random.default_rng(5).random(200_000)
    u = np.concatenate([drawn[drawn > 0], ends, np.nextafter(ends, 0), np.nextafter(ends, 1), rare])
    exact = Gamma(kind="gamma", mean=mean, shape=shape).delays(np.stack([u, u, u], axis=1))
    low, high = brackets_of(law)[(u * BRACKETS).astype(int)].T
    assert (low <= exact).all()
    assert (exact <= high).all()


def test_only_laws_that_are_dear_to_draw_have_bounds():
    assert len(brackets_of(Exponential(kind="exponential", mean=1.0).law)) == 0
    assert len(brackets_of((GAMMA, 1.0, 2.0))) == BRACKETS


@pytest.mark.parametrize("seed", range(5))
def test_runs_whose_delays_are_drawn_late_are_those_of_the_event_engine(seed):
    made = setting(seed=seed)
    assert run(fast_world, made) == run(World, made)


@pytest.mark.parametrize("margin", [0.05, 0.5, 1.0])
def test_bounds_that_say_less_change_nothing(margin, monkeypatch):
    expected = run(fast_world, setting())
    monkeypatch.setattr(latency, "MARGIN", margin)
    assert run(fast_world, setting()) == expected


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_wrong_bounds_show(factor, monkeypatch):
    """That the bounds are used at all; what they decide wrongly is seen in the records."""
    expected = run(fast_world, setting())
    monkeypatch.setattr("hushnet.simulator.world.run_tables.brackets_of", lambda law: factor * brackets_of(law))
    assert run(fast_world, setting()) != expected


def brackets(made, **options):
    world = fast_world(made, Mix, MixParameters(), **options)
    drive(world)
    return len(world.transport.tables.brackets)


def test_delays_are_drawn_at_once_where_their_very_time_matters():
    """It does to who comes and goes, and to who observes."""
    assert brackets(setting()) == BRACKETS
    assert brackets(setting(), observer=EventLog()) == 0
    assert brackets(setting(availability=OnOff(kind="on_off", online=0.9, mean_down=1.0))) == 0
    assert brackets(setting(availability=Always(kind="always", leaves=Window(share=1.0, between=[1.0, 9.0])))) == 0
    assert brackets(setting(network=NetworkParameters.model_validate({"latency": 0.3}))) == 0
