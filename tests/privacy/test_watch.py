"""A watch sees every draw and step, changes no bit, and leads a run along another's transcript; streams only draw."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hushnet.protocols.algorithms.collaborative_admm import CollaborativeAdmm
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.dual_averaging import DualAveraging
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging
from hushnet.protocols.privacy.mechanisms import AgentStream, Release, WatchedStream
from hushnet.simulator.contract import ContractViolation
from hushnet.simulator.contract.bench import protocol_parameters, small_setting
from hushnet.simulator.contract.forcing import Forcing
from hushnet.simulator.contract.transcript import Recording
from hushnet.simulator.engine.selection import BatchedEngine
from hushnet.simulator.world.world import World

from ..engine.driving import drive

NOISY = {"mechanism": "laplace", "budget": {"epsilon": 1.0, "delta": 1e-3}, "updates": 3, "clip": 1.0}
PRIVATE = {
    "coordinate descent": (CoordinateDescent, {"mu": 0.5, "privacy": NOISY}),
    "objective perturbation": (PerturbedAdmm, {"noise": {"alpha": 3.0}}),
}


def made(protocol, fields, setting, watch=None):
    world = World(setting, protocol, protocol_parameters(protocol, fields), watch=watch)
    drive(world)
    return world


def with_other_records(setting):
    """Every agent's first record is replaced by its opposite."""
    features = setting.task.train.features.copy()
    features[setting.task.train.offsets[:-1]] *= -1
    return replace(setting, task=replace(setting.task, train=replace(setting.task.train, features=features)))


def test_a_record_that_moves_the_value_by_more_than_is_charged_is_found():
    class ClaimsATenth(CoordinateDescent):
        def prepare(self):
            super().prepare()
            sensitivities = self.noise.sensitivities
            self.noise.sensitivities = lambda count: tuple(number / 10 for number in sensitivities(count))

    setting, recording = small_setting(empty=False), Recording()
    made(ClaimsATenth, PRIVATE["coordinate descent"][1], setting, recording)
    with pytest.raises(ContractViolation, match="more than the sensitivity"):
        made(ClaimsATenth, PRIVATE["coordinate descent"][1], with_other_records(setting), Forcing(recording))


def test_a_solution_that_belongs_to_other_noise_is_found():
    release = Release(0, 0.0, "gamma", "l2", 1.0, "claimed", 1.0, 2.0, 0.5, 0.0, 1)
    stream = WatchedStream(np.random.default_rng(1), Recording())
    with pytest.raises(ContractViolation, match="other noise than was drawn"):
        release.perturb_objective(
            lambda noise: noise + 0.1, lambda solution: solution, size=3, rng=stream, log_jacobian=lambda solution: 0.0
        )


def test_what_a_record_moves_in_a_perturbed_objective_is_found_at_the_minimiser_that_was_noted():
    class ClaimsATenth(PerturbedAdmm):
        def prepare(self):
            super().prepare()
            proved = self.costs.proved
            self.costs.proved = lambda *where: (proved(*where)[0] / 10, proved(*where)[1])

    setting, recording = small_setting(empty=False), Recording()
    made(ClaimsATenth, PRIVATE["objective perturbation"][1], setting, recording)
    with pytest.raises(ContractViolation, match="more than the sensitivity"):
        made(ClaimsATenth, PRIVATE["objective perturbation"][1], with_other_records(setting), Forcing(recording))


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
NOISE_IN = [name for name in CASES if not name.startswith("exchanges")]


def made_by(name, setting, watch, engine):
    protocol, fields = CASES[name]
    world = World(setting, protocol, protocol_parameters(protocol, fields), watch=watch)
    engine.run(world)
    return world


def bits(world):
    blocks = {**world.state.agent, **world.state.edge}
    return {name: block.values.tobytes() for name, block in blocks.items()}


def charges(world):
    return [world.ledger.histogram(agent) for agent in range(world.setting.graph.agents)]


@pytest.mark.parametrize("name", CASES)
def test_a_watched_run_has_the_bits_of_the_planned_run(name):
    setting = small_setting(empty=False)
    usual = made_by(name, setting, None, BatchedEngine())
    watched = made_by(name, setting, Recording(), BatchedEngine())
    assert usual.engine.startswith("batched (steps in batches" if name != ASKING else "event, because")
    assert watched.engine == "event, because every step is watched"
    assert bits(usual) == bits(watched)
    assert usual.traffic == watched.traffic
    assert charges(usual) == charges(watched)


@pytest.mark.parametrize("name", NOISE_IN)
def test_steps_on_neighbouring_data_are_led_along_a_transcript(name):
    setting, recording = small_setting(empty=False), Recording()
    usual = made_by(name, setting, recording, BatchedEngine())
    forcing = Forcing(recording)
    forced = made_by(name, with_other_records(setting), forcing, BatchedEngine())
    forcing.finished()
    assert 0 < forcing.ratio <= 1
    assert [step.sent[0].vector.tobytes() for step in recording.steps if step.sent] == [
        step.sent[0].vector.tobytes() for step in forcing.steps if step.sent
    ]
    assert usual.traffic == forced.traffic


ASKED = {
    "bit_generator": lambda stream: stream.bit_generator,
    "_bit_generator": lambda stream: stream._bit_generator,
    "its state": lambda stream: stream.bit_generator.state,
    "state": lambda stream: stream.state,
    "spawn": lambda stream: stream.spawn(1),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "__getstate__": lambda stream: stream.__getstate__(),
    "__setstate__": lambda stream: stream.__setstate__({}),
    "__reduce__": lambda stream: stream.__reduce__(),
    "a subclass of it": lambda stream: type("Mine", (AgentStream,), {})(stream),
}
STREAMS = {
    "in a run": AgentStream,
    "in a replay": lambda stream: WatchedStream(stream, Recording()),
}


@pytest.mark.parametrize("where", STREAMS)
@pytest.mark.parametrize("asked", ASKED)
def test_a_stream_refuses_its_inner_state(asked, where):
    with pytest.raises(TypeError, match=r"a step's random stream is for drawing only: its state cannot be read"):
        ASKED[asked](STREAMS[where](np.random.default_rng(4)))


@pytest.mark.parametrize("where", STREAMS)
def test_a_stream_of_a_step_draws_the_numbers_of_its_generator(where):
    stream, plain = STREAMS[where](np.random.default_rng(4)), np.random.default_rng(4)
    assert np.array_equal(stream.normal(size=9), plain.normal(size=9))
    assert np.array_equal(stream.choice(50, 7, replace=False), plain.choice(50, 7, replace=False))
    assert np.array_equal(stream.permutation(8), plain.permutation(8))


@pytest.mark.parametrize("where", STREAMS)
def test_nothing_can_be_put_in_place_of_what_a_stream_draws(where):
    with pytest.raises(AttributeError):
        STREAMS[where](np.random.default_rng(4)).normal = lambda *_: 0.0
