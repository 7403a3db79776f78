"""What compiled steps are charged is what they draw, and what releases may read is said in a sentence."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hushnet.agents.errors import StepFailure
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.steps import local_gradient, post_processed
from hushnet.simulator.contract import check_contract, check_replay
from hushnet.simulator.contract.bench import protocol_parameters, run_small
from hushnet.simulator.contract.violation import ContractViolation
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine

NOISY = {"mu": 0.5, "privacy": {"mechanism": "gaussian", "sensitivity": "clip", "clip": 1.0, "multiplier": 2.0}}


class ReadsState(CoordinateDescent):
    """Its release depends on what a step has computed."""

    def release(self, view):
        usual = super().release(view)
        return dataclasses.replace(usual, reason=f"at {np.sum(view.state['model']):g}")


class ReadsStateLater(CoordinateDescent):
    """Its release depends on that from its second step on."""

    def release(self, view):
        assert view.updates == 0 or view.state is not None
        return super().release(view)


class SaysHalf(CoordinateDescent):
    """Its release names half of the noise that `scales` has."""

    def release(self, view):
        usual = super().release(view)
        return dataclasses.replace(usual, scale=usual.scale / 2) if usual.noisy else usual


class SaysHalfLater(CoordinateDescent):
    """Its release names half of the noise that `scales` has, in later stages."""

    def release(self, view):
        usual = super().release(view)
        return dataclasses.replace(usual, scale=usual.scale / 2) if usual.noisy and view.updates else usual


def test_a_release_that_reads_the_state_makes_steps_run_as_python_and_says_where():
    fields = protocol_parameters(ReadsState, NOISY)
    reference, batched = (run_small(ReadsState, fields, engine=one) for one in (EventEngine(), BatchedEngine()))
    assert "its release reads view.state (test_step_charges.py:" in batched.engine
    assert "view.state['model']" in batched.engine
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
        (ReadsStateLater, r"release of ReadsStateLater reads view\.state at stage 1 of agent \d"),
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
    with pytest.raises(ContractViolation, match=r"and its release says \S+; compiled steps draw the first"):
        check_contract(SaysHalf, NOISY)


class CallsDataPostProcessing(CoordinateDescent):
    """Tells an exact gradient's model as if it followed from what was told before."""

    @staticmethod
    def step(me):
        me.model -= 0.1 * local_gradient(me, me.model)
        post_processed(me)
        me.message = me.model


@pytest.mark.parametrize("engine", [EventEngine(), BatchedEngine()])
def test_a_step_that_says_it_is_post_processing_is_charged_nothing(engine):
    world = run_small(CallsDataPostProcessing, protocol_parameters(CallsDataPostProcessing, NOISY), engine=engine)
    assert world.activations > 0
    assert [world.ledger.releases(agent) for agent in range(world.ledger.agents)] == [0] * world.ledger.agents


def test_the_replay_finds_data_that_a_step_calls_post_processing():
    with pytest.raises(ContractViolation, match="as public"):
        check_replay(CallsDataPostProcessing, protocol_parameters(CallsDataPostProcessing, NOISY))
