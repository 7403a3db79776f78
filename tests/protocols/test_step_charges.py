"""What planned steps draw, and are charged, is what the event engine draws and charges; what releases may read."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hushnet.agents.errors import StepFailure
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.steps import batched, local_gradient, perturbed, post_processed
from hushnet.simulator.contract import check_contract, check_replay
from hushnet.simulator.contract.bench import protocol_parameters, run_small
from hushnet.simulator.contract.violation import ContractViolation
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine

from .noisy_steps import MECHANISMS, Noisy, NoisyPairs, NoisyPairsTogether, NoisyParameters, NoisyTogether
from .random_worlds import check_engines_agree, joining, random_setting

BATCHES, PLANNED, ONE_BY_ONE = "batched (steps in batches)", "batched (planned steps)", "event, "
NOISY = {"mu": 0.5, "privacy": {"mechanism": "gaussian", "sensitivity": "clip", "clip": 1.0, "multiplier": 2.0}}


@pytest.mark.parametrize(
    ("protocol", "engine", "mechanism"),
    [
        *((NoisyTogether, BATCHES, mechanism) for mechanism in MECHANISMS),
        (Noisy, PLANNED, "gamma"),
        (NoisyPairs, PLANNED, "laplace"),
        (NoisyPairsTogether, BATCHES, "gaussian"),
    ],
)
def test_planned_steps_draw_the_noise_of_the_event_engine(protocol, engine, mechanism):
    """In exchanges, too, where an agent may answer several times between two ticks of its clock."""
    make = random_setting(0, loss="logistic")
    for arranged in (make, joining(make)):
        world = check_engines_agree(arranged, protocol, NoisyParameters(mechanism=mechanism), engine=engine)
        charged = world.ledger.to_frame()
        assert set(charged["mechanism"]) == {mechanism}
        assert charged["count"].sum() > 10


class Tells(CoordinateDescent):
    """Draws its noise at its first step, and none later."""

    @staticmethod
    def step(me):
        gradient = local_gradient(me, me.model)
        if me.updates == 0:
            gradient = perturbed(me, gradient)
        me.model = 0.9 * me.model - 0.1 * gradient
        me.message = me.model


class TellsTogether(CoordinateDescent):
    """The same in batches."""

    @staticmethod
    @batched
    def step(me):
        first, later = me.where(me.updates == 0), me.where(me.updates > 0)
        first.model = 0.9 * first.model - 0.1 * perturbed(first, local_gradient(first, first.model))
        later.model = 0.9 * later.model - 0.1 * local_gradient(later, later.model)
        me.message = me.model


class TwiceNoisy(CoordinateDescent):
    """Draws twice a step."""

    @staticmethod
    def step(me):
        me.model -= 0.1 * (perturbed(me, local_gradient(me, me.model)) + perturbed(me, me.model))
        me.message = me.model


def check(protocol, fields, engine):
    make = random_setting(3, loss="logistic", easy=True)
    return check_engines_agree(make, protocol, protocol_parameters(protocol, {"radius": 0.8, **fields}), engine=engine)


@pytest.mark.parametrize(("protocol", "engine"), [(Tells, PLANNED), (TellsTogether, BATCHES)])
def test_what_leaves_without_noise_that_was_to_be_drawn_is_charged_as_plain(protocol, engine):
    world = check(protocol, NOISY, engine)
    assert {"gaussian", "none"} == set(world.ledger.to_frame()["mechanism"])
    assert np.isinf(world.ledger.epsilon("verified", 1e-5)).any()


def test_noise_that_is_drawn_twice_is_charged_twice():
    world = check(TwiceNoisy, NOISY, PLANNED)
    for agent, count in world.ledger.to_frame().set_index("agent")["count"].items():
        assert count == 2 * world.updates[agent]


class ReadsState(CoordinateDescent):
    """Its release depends on what a step has computed."""

    def release(self, me):
        usual = super().release(me)
        return dataclasses.replace(usual, reason=f"at {np.sum(me.model):g}")


class ReadsStateLater(CoordinateDescent):
    """Its release depends on that from its second step on."""

    def release(self, me):
        assert me.updates == 0 or me.model is not None
        return super().release(me)


class SaysHalf(CoordinateDescent):
    """Its release names half of the noise that `scales` has."""

    def release(self, me):
        usual = super().release(me)
        return dataclasses.replace(usual, scale=usual.scale / 2) if usual.noisy else usual


class SaysHalfLater(CoordinateDescent):
    """Its release names half of the noise that `scales` has, in later stages."""

    def release(self, me):
        usual = super().release(me)
        return dataclasses.replace(usual, scale=usual.scale / 2) if usual.noisy and me.updates else usual


def test_steps_whose_release_reads_the_state_are_made_one_by_one_and_say_where():
    fields = protocol_parameters(ReadsState, NOISY)
    reference, batched = (run_small(ReadsState, fields, engine=one) for one in (EventEngine(), BatchedEngine()))
    assert "its release reads me.model (test_step_charges.py:" in batched.engine
    assert "me.model" in batched.engine
    assert batched.ledger.to_frame().equals(reference.ledger.to_frame())


STAGED = {
    "mu": 0.5,
    "privacy": {
        "mechanism": "laplace",
        "sensitivity": "clip",
        "clip": 1.0,
        "budget": {"epsilon": 5.0, "delta": 0.0},
        "updates": 4,
        "allocation": "proposition2",
    },
}


@pytest.mark.parametrize(
    ("protocol", "complaint"),
    [
        (ReadsStateLater, r"release of ReadsStateLater reads me\.model at stage 1 of agent \d"),
        (SaysHalfLater, r"agent \d at stage 1 has the scale \S+ by the scales\(\) of SaysHalfLater's noise, and its "),
    ],
)
def test_what_only_a_later_stage_shows_ends_the_run_with_a_sentence(protocol, complaint):
    fields = protocol_parameters(protocol, STAGED)
    run_small(protocol, fields, engine=EventEngine())
    with pytest.raises(StepFailure, match=complaint):
        run_small(protocol, fields, engine=BatchedEngine())


def test_a_release_of_another_scale_than_its_noise_is_a_violation():
    with pytest.raises(StepFailure, match=r"at stage 0 has the scale \S+ by the scales\(\) of SaysHalf's noise"):
        run_small(SaysHalf, protocol_parameters(SaysHalf, NOISY), engine=BatchedEngine())
    with pytest.raises(ContractViolation, match=r"and its release says \S+; planned steps draw the first"):
        check_contract(SaysHalf, NOISY)


class CallsDataPostProcessing(CoordinateDescent):
    """Tells an exact gradient's model as if it followed from what was told before."""

    @staticmethod
    def step(me):
        me.model -= 0.1 * local_gradient(me, me.model)
        post_processed(me)
        me.message = me.model


def test_the_replay_finds_data_that_a_step_calls_post_processing():
    with pytest.raises(ContractViolation, match="as public"):
        check_replay(CallsDataPostProcessing, protocol_parameters(CallsDataPostProcessing, NOISY))
