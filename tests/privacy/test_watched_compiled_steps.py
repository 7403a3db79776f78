"""Compiled steps are watched as Python ones are: their draws are seen and led, and mistakes in them are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents import streams
from hushnet.agents.compilation.compiled import inlined
from hushnet.protocols.algorithms.collaborative_admm import CollaborativeAdmm
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.dual_averaging import DualAveraging
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.steps import noise_forms
from hushnet.simulator.audit.audit import Options, audit_subjects
from hushnet.simulator.contract import ContractViolation
from hushnet.simulator.contract.bench import protocol_parameters, small_setting
from hushnet.simulator.contract.charges import check_charges
from hushnet.simulator.contract.forcing import Forcing
from hushnet.simulator.contract.transcript import Recording
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.world.world import World

from .mutations.cases import subject_of
from .mutations.seams import planted

GIVEN = {"mechanism": "gaussian", "multiplier": 2.0, "updates": 5, "clip": 0.2}
CASES = {
    "laplace": (CoordinateDescent, {"mu": 0.5, "privacy": {**GIVEN, "mechanism": "laplace"}}),
    "gaussian in rounds": (CoordinateDescent, {"mu": 0.5, "privacy": GIVEN, "schedule": "rounds"}),
    "sampled rows": (DualAveraging, {"privacy": GIVEN, "batch": 2, "gamma": 1.0}),
    "objective perturbation": (PerturbedAdmm, {"noise": {"alpha": 3.0, "updates": 5}}),
}


def made(name, setting, watch, engine):
    protocol, fields = CASES[name]
    world = World(setting, protocol, protocol_parameters(protocol, fields), watch=watch)
    engine.run(world)
    return world


def with_other_records(setting):
    """Every agent's first record is replaced by its opposite."""
    features = setting.task.train.features.copy()
    features[setting.task.train.offsets[:-1]] *= -1
    return replace(setting, task=replace(setting.task, train=replace(setting.task.train, features=features)))


@pytest.mark.parametrize("name", CASES)
def test_a_watch_sees_the_same_of_compiled_steps_as_of_python_ones(name):
    setting = small_setting(empty=False)
    python, compiled = Recording(), Recording()
    usual = made(name, setting, python, EventEngine())
    world = made(name, setting, compiled, BatchedEngine())
    assert world.engine == "batched (compiled step, watched)"
    check_charges(world, compiled)
    assert sum(map(len, python.draws.values())) > 10
    assert len(python.steps) == len(compiled.steps)
    for agent, draws in python.draws.items():
        for one, other in zip(draws, compiled.draws[agent], strict=True):
            np.testing.assert_allclose(one.exact, other.exact, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(one.noisy, other.noisy, rtol=1e-9, atol=1e-12)
            assert (one.log_jacobian is None) == (other.log_jacobian is None)
    for agent in range(setting.graph.agents):
        assert usual.ledger.histogram(agent) == world.ledger.histogram(agent)
    for one, other in zip(python.steps, compiled.steps, strict=True):
        for sent, told in zip(one.sent, other.sent, strict=True):
            assert (sent.kind, sent.to, sent.release.mechanism) == (told.kind, told.to, told.release.mechanism)
            np.testing.assert_allclose(sent.vector, told.vector, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_a_watched_compiled_run_is_the_compiled_run(name):
    setting = small_setting(empty=False)
    protocol, fields = CASES[name]
    usual = World(setting, protocol, protocol_parameters(protocol, fields))
    BatchedEngine().run(usual)
    watched = made(name, setting, Recording(), BatchedEngine())
    assert usual.engine == "batched (compiled step)"
    np.testing.assert_allclose(*(one.protocol.models(one.state) for one in (usual, watched)), rtol=1e-12)
    assert usual.traffic == watched.traffic
    for agent in range(setting.graph.agents):
        assert usual.ledger.histogram(agent) == watched.ledger.histogram(agent)


@pytest.mark.parametrize("name", CASES)
def test_compiled_steps_on_neighbouring_data_are_led_along_a_transcript(name):
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


def halved(plant):
    """Compiled Gaussian noise has half of its scale."""

    @inlined
    def fill(stream, scale, out):  # pragma: no cover - compiled
        streams.fill_normal(stream, scale / 2, out)

    plant.put(noise_forms, "NOISES", {**noise_forms.NOISES, "gaussian": ("normal", fill)})


def test_half_the_noise_in_a_compiled_word_is_seen_by_an_audit_of_the_form_that_runs_and_only_by_that():
    python, options = subject_of("descent-gaussian"), Options(tiers=("A",))
    with planted(halved):
        [unseen] = audit_subjects([python], options, ".")
        [seen] = audit_subjects([replace(python, engine="auto")], options, ".")
    assert unseen.failures == []
    assert any("scale of gaussian noise: 0.5" in failure for failure in seen.failures)


def test_a_compiled_step_that_counts_none_of_its_draws_is_seen_by_the_contract(monkeypatch):
    setting, recording = small_setting(empty=False), Recording()
    protocol, fields = CASES["laplace"]
    world = World(setting, protocol, protocol_parameters(protocol, fields), watch=recording)
    driver = BatchedEngine().prepare(world)
    monkeypatch.setattr(world.steps.kernel.charges, "settle", lambda ledger, now: None)
    driver.run()
    with pytest.raises(ContractViolation, match="drawn noise"):
        check_charges(world, recording)


@pytest.mark.parametrize("protocol", [ModelPropagation, CollaborativeAdmm])
def test_a_watch_sees_both_halves_of_compiled_exchanges(protocol):
    parameters = protocol_parameters(protocol, {"alpha": 0.5} if protocol is ModelPropagation else {"mu": 0.5})
    setting, seen = small_setting(empty=False), []
    for engine in (EventEngine(), BatchedEngine()):
        recording = Recording()
        world = World(setting, protocol, parameters, watch=recording)
        engine.run(world)
        check_charges(world, recording)
        seen.append((world, recording.steps))
    (usual, python), (world, compiled) = seen
    assert world.engine == "batched (compiled step, watched)"
    assert {step.phase for step in compiled} == {"start", "request", "respond", "complete"}
    assert len(python) == len(compiled) > 30
    for one, other in zip(python, compiled, strict=True):
        assert (one.phase, one.agent, one.now, one.silent) == (other.phase, other.agent, other.now, other.silent)
        for sent, told in zip(one.sent, other.sent, strict=True):
            assert (sent.kind, sent.to, sent.release.mechanism) == (told.kind, told.to, told.release.mechanism)
            np.testing.assert_allclose(sent.vector, told.vector, rtol=1e-6, atol=1e-9)
    for agent in range(setting.graph.agents):
        assert usual.ledger.histogram(agent) == world.ledger.histogram(agent)
