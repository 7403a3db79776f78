"""A text is read once for all worlds that run it; what it knows from outside is looked up for each of them."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
from hushnet.agents.losses import LOSSES
from hushnet.protocols.algorithms.collaborative_admm import CollaborativeAdmm
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.steps import building, heard_sum, local_gradient, weighted_sum
from hushnet.protocols.steps.rewriting import Rewritten
from hushnet.simulator.contract.bench import protocol_parameters, run_small, small_setting
from hushnet.simulator.engine.batched import step_forms, windows
from hushnet.simulator.engine.selection import BatchedEngine
from hushnet.simulator.world.world import World

SHARE = 0.5
PRIVATE = {"mu": 0.5, "privacy": {"mechanism": "gaussian", "multiplier": 3.0, "sensitivity": "clip", "clip": 2.0}}


class Shared(CoordinateDescent):
    """Its step knows a number and a function of its module."""

    @staticmethod
    def step(me):
        me.model = SHARE * moved(me)
        me.message = me.model


class Summing(CoordinateDescent):
    """Its step is one word."""

    @staticmethod
    def step(me):
        me.model = heard_sum(me)
        me.message = me.model


def moved(me):
    """A part of the step."""
    return me.model - 0.1 * local_gradient(me, me.model) + 1.0


def moved_otherwise(me):
    """What somebody puts in its place."""
    return me.model + 2.0


def build(kind=Shared, **fields):
    """A world whose step is built."""
    return BatchedEngine().driver(World(small_setting(), kind, protocol_parameters(kind, fields)))


@pytest.fixture
def keys(monkeypatch):
    """The contents of what was compiled, which here is not."""
    monkeypatch.setattr(building, "_made", {})
    monkeypatch.setattr(building, "_compile", lambda key, *_, **__: building._made.update({key: windows.no_step}))
    return building._made


@pytest.mark.usefixtures("keys")
def test_the_second_world_of_a_text_neither_reads_nor_rewrites_it(monkeypatch):
    build(mu=0.1)
    monkeypatch.setattr(inspect, "getsource", lambda one: pytest.fail(f"{one.__name__} was read again"))
    monkeypatch.setattr(Rewritten, "function", lambda _, text: pytest.fail(f"{text.tree.name} was rewritten again"))
    assert build(mu=0.1).engine == "batched (compiled step)"


def test_numbers_of_a_run_make_no_other_step_but_schemes_do(keys):
    build(CollaborativeAdmm, schedule="rounds")
    build(CollaborativeAdmm, schedule="rounds", rho=0.7)
    assert len(keys) == 1
    build(CollaborativeAdmm, schedule="rounds", local_steps=3)
    assert len(keys) == 2


def test_what_a_text_never_reaches_is_not_compiled_with_it(keys):
    def build_for(loss, **fields):
        task = dataclasses.replace(small_setting().task, loss=LOSSES[loss])
        setting = dataclasses.replace(small_setting(), task=task)
        parameters = protocol_parameters(CollaborativeAdmm, {"mu": 0.5, "schedule": "rounds", **fields})
        BatchedEngine().driver(World(setting, CollaborativeAdmm, parameters))

    for loss in ("logistic", "squared"):
        build_for(loss)
    assert len(keys) == 1  # both are minimised by a function that steps call at its address
    for loss in ("logistic", "squared"):
        build_for(loss, local_steps=2)
    assert len(keys) == 3


def test_watched_steps_are_the_compiled_form_that_every_run_has(keys):
    noisy = protocol_parameters(CoordinateDescent, PRIVATE)
    world = World(small_setting(), CoordinateDescent, noisy)
    assert step_forms.kernel_of(world)[0] is not None
    assert step_forms.watched_steps(world)[0] is not None
    assert len(keys) == 1


def test_what_a_text_knows_from_outside_is_part_of_what_is_compiled(monkeypatch, keys):
    build(mu=0.1)
    monkeypatch.setattr(f"{__name__}.SHARE", 0.25)
    build(mu=0.1)
    assert len(keys) == 2
    monkeypatch.setattr(f"{__name__}.moved", moved_otherwise)
    build(mu=0.1)
    assert len(keys) == 3


def test_a_number_outside_a_text_is_read_again_by_the_next_world(monkeypatch):
    def models(share):
        monkeypatch.setattr(f"{__name__}.SHARE", share)
        world = run_small(Shared, protocol_parameters(Shared, {"mu": 0.1}), engine=BatchedEngine())
        assert world.engine == "batched (compiled step)"
        return world.state.agent["model"].values.max()

    zero, first = models(0.0), models(0.5)
    assert zero == 0.0
    assert first > 0.1


def test_a_word_under_the_name_of_another_makes_another_step(keys, monkeypatch):
    build(Summing, mu=0.1)
    monkeypatch.setattr(f"{__name__}.heard_sum", weighted_sum)  # which reads the same fields
    build(Summing, mu=0.1)
    assert len(keys) == 2
