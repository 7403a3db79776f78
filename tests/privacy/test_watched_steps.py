"""A watched world makes its steps one by one, on the event engine, with the bits of planned ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hushnet.protocols.algorithms.collaborative_admm import CollaborativeAdmm
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.dual_averaging import DualAveraging
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging
from hushnet.simulator.audit.audit import Options, audit_subjects
from hushnet.simulator.contract.bench import protocol_parameters, small_setting
from hushnet.simulator.contract.forcing import Forcing
from hushnet.simulator.contract.transcript import Recording
from hushnet.simulator.engine.selection import BatchedEngine
from hushnet.simulator.world.world import World

from .mutations import LIST, planted
from .mutations.cases import subject_of

GIVEN = {"mechanism": "gaussian", "multiplier": 2.0, "updates": 5, "clip": 0.2}
CASES = {
    "laplace": (CoordinateDescent, {"mu": 0.5, "privacy": {**GIVEN, "mechanism": "laplace"}}),
    "gaussian in rounds": (CoordinateDescent, {"mu": 0.5, "privacy": GIVEN, "schedule": "rounds"}),
    "sampled rows": (DualAveraging, {"privacy": GIVEN, "batch": 2, "gamma": 1.0}),
    "samples by chance": (DualAveraging, {"privacy": GIVEN, "batch": 2, "gamma": 1.0, "sampling": "poisson"}),
    "steps that ask for their budget": (PushSumDualAveraging, {"privacy": GIVEN, "batch": 2, "gamma": 1.0}),
    "objective perturbation": (PerturbedAdmm, {"noise": {"alpha": 3.0, "updates": 5}}),
    "exchanges": (ModelPropagation, {"alpha": 0.5}),
    "exchanges with duals": (CollaborativeAdmm, {"mu": 0.5}),
}
ASKING = "steps that ask for their budget"
NOISY = [name for name in CASES if not name.startswith("exchanges")]


def made(name, setting, watch, engine):
    protocol, fields = CASES[name]
    world = World(setting, protocol, protocol_parameters(protocol, fields), watch=watch)
    engine.run(world)
    return world


def bits(world):
    blocks = {**world.state.agent, **world.state.edge}
    return {name: block.values.tobytes() for name, block in blocks.items()}


def charges(world):
    return [world.ledger.histogram(agent) for agent in range(world.setting.graph.agents)]


def with_other_records(setting):
    """Every agent's first record is replaced by its opposite."""
    features = setting.task.train.features.copy()
    features[setting.task.train.offsets[:-1]] *= -1
    return replace(setting, task=replace(setting.task, train=replace(setting.task.train, features=features)))


@pytest.mark.parametrize("name", CASES)
def test_a_watched_run_has_the_bits_of_the_planned_run(name):
    setting = small_setting(empty=False)
    usual = made(name, setting, None, BatchedEngine())
    watched = made(name, setting, Recording(), BatchedEngine())
    assert usual.engine.startswith("batched (steps in batches" if name != ASKING else "event, because")
    assert watched.engine == "event, because every step is watched"
    assert bits(usual) == bits(watched)
    assert usual.traffic == watched.traffic
    assert charges(usual) == charges(watched)


@pytest.mark.parametrize("name", NOISY)
def test_steps_on_neighbouring_data_are_led_along_a_transcript(name):
    setting, recording = small_setting(empty=False), Recording()
    usual = made(name, setting, recording, BatchedEngine())
    forcing = Forcing(recording)
    forced = made(name, with_other_records(setting), forcing, BatchedEngine())
    forcing.finished()
    assert 0 < forcing.ratio <= 1
    assert [step.sent[0].vector.tobytes() for step in recording.steps if step.sent] == [
        step.sent[0].vector.tobytes() for step in forcing.steps if step.sent
    ]
    assert usual.traffic == forced.traffic


def test_an_audit_looks_at_steps_one_by_one_so_noise_of_plans_is_left_to_the_contract():
    subject, options = replace(subject_of("descent-gaussian"), engine="auto"), Options(tiers=("A",))
    with planted(LIST["planned-scale-halved"].plant):
        [unseen] = audit_subjects([subject], options, ".")
    with planted(LIST["scale-halved"].plant):
        [seen] = audit_subjects([subject], options, ".")
    assert unseen.failures == []
    assert any("scale of gaussian noise: 0.5" in failure for failure in seen.failures)
    assert LIST["planned-scale-halved"].guard == "contract"
