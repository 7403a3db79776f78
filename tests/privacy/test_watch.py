"""A watch sees every draw and every step, and can lead a run along the transcript of another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.privacy.mechanisms import Release, WatchedStream
from hushnet.simulator.contract import ContractViolation
from hushnet.simulator.contract.bench import protocol_parameters, small_setting
from hushnet.simulator.contract.forcing import Forcing
from hushnet.simulator.contract.transcript import Recording
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
