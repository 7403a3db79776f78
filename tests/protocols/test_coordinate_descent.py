"""Coordinate descent, plain and private, against the equations of Bellet et al. 2018."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.losses import LOSSES, public_smoothness, spectral_smoothness
from hushnet.agents.tasks.task import Task
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent, CoordinateDescentParameters
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World

from ..engine.driving import drive
from .worlds import Watcher, setting_of

BUDGET = {"epsilon": 1.0, "delta": 1e-3}


def parameters(**fields) -> CoordinateDescentParameters:
    return CoordinateDescentParameters.model_validate({"kind": "coordinate_descent", **fields})


def private(**fields) -> dict:
    return {"mechanism": "laplace", "budget": BUDGET, "updates": 3, "sensitivity": "clip", "clip": 1.0, **fields}


def world_of(task: Task, spec: CoordinateDescentParameters, **stop) -> World:
    return World(setting_of(task=task, stop=Stop(**(stop or {"updates": 3})), seed=7), CoordinateDescent, spec)


class EveryStep(Watcher):
    """Checks the models before and after every single step."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, np.ndarray, np.ndarray]] = []
        self._before: tuple[int, np.ndarray] | None = None

    def _close(self, world: World) -> None:
        if self._before is not None:
            agent, models = self._before
            self.steps.append((agent, models, world.protocol.models(world.state).copy()))

    def woke(self, world, agent):
        self._close(world)
        self._before = (agent.index, world.protocol.models(world.state).copy())


@pytest.mark.parametrize("loss", sorted(name for name in LOSSES if LOSSES[name].smooth))
def test_every_step_moves_by_the_block_gradient_over_its_smoothness_and_descends(loss):
    """theta_i moves by exactly -g_i / L_i and Q drops by at least |g_i|^2 / (2 L_i) (proposition 1)."""
    base = small_task()
    task = Task(**{**base.__dict__, "loss": LOSSES[loss]})
    world = world_of(task, parameters(mu=0.7, confidence="relative"), updates=10)
    world.observer = steps = EveryStep()
    drive(world)
    objective, graph = world.protocol.objective(), world.setting.graph
    assert len(steps.steps) > 50
    for agent, before, after in steps.steps:
        smooth = spectral_smoothness(task.train.shard(agent).features, task.loss, float(task.regularisation[agent]))
        trust = 0.7 * world.protocol.confidence[agent]
        lipschitz = graph.strengths[agent] * (1 + trust * (smooth if len(task.train.shard(agent)) else 0.0))
        gradient = objective.gradient(before)[agent]
        np.testing.assert_allclose(after[agent] - before[agent], -gradient / lipschitz, atol=1e-13)
        drop = objective.value(before) - objective.value(after)
        assert drop >= gradient @ gradient / (2 * lipschitz) - 1e-12


def test_confidence_is_the_number_of_rows_or_its_share_or_a_list():
    task = small_task()
    counts = task.train.counts
    for confidence, expected in (
        ("count", counts),
        ("relative", counts / counts.max()),
        ([0.5] * 6, np.where(counts > 0, 0.5, 0.0)),
    ):
        world = world_of(task, parameters(confidence=confidence))
        np.testing.assert_array_equal(world.protocol.confidence, expected)
    with pytest.raises(InputError, match="one for each of the 6 agents") as caught:
        world_of(task, parameters(confidence=[1.0]))
    assert caught.value.field == ("confidence",)


def test_an_agent_falls_silent_before_noise_once_its_budget_is_spent():
    spec = parameters(privacy=private())
    world = world_of(small_task(empty=False), spec, time=50.0)
    vars(world.protocol)["limit"] = 1000
    world.ledger._updates = math.inf
    drive(world)
    assert max(agent.updates for agent in world.agents) == 3
    assert (world.ledger.epsilon("claimed", 1e-3) <= 1.0 + 1e-6).all()


def test_the_noise_of_one_update_has_the_scale_of_theorem_1():
    """Laplace scale 2 C / (eps m), times alpha mu c_i on the model; 40,000 draws, false alarm below 1e-6 at seed 7."""
    p = 40_000
    base = small_task(2, empty=False)
    task = Task(
        **{
            **base.__dict__,
            "train": type(base.train)(np.zeros((len(base.train.labels), p)), base.train.labels, base.train.offsets),
            "test": type(base.test)(np.zeros((2, p)), base.test.labels, base.test.offsets),
        }
    )
    spec = parameters(mu=0.3, smoothness="data", privacy=private(updates=1, budget={"epsilon": 0.5, "delta": 0.0}))
    world = world_of(task, spec, updates=1)
    drive(world)
    first = int(np.argmin([world.peers[i].now for i in range(2)]))
    m = task.train.counts[first]
    alpha, mu_c = world.state.agent["alpha"][first][0], world.state.agent["mu_c"][first][0]
    noise = world.state.agent["model"][first] / (alpha * mu_c)
    scale = 2 * 1.0 / (0.5 * m)
    assert abs(np.abs(noise).mean() / scale - 1) < 5 / math.sqrt(p)
    assert abs(noise.var() / (2 * scale**2) - 1) < 5 * math.sqrt(5 / p)


def test_claimed_sensitivity_keeps_the_proved_one_beside_it():
    """Cube points of dimension 3 have l1 norm up to 3, so the claimed L0 = 1 is three times too small."""
    claims = {"mechanism": "laplace", "budget": BUDGET, "updates": 3, "sensitivity": "claimed"}
    world = world_of(small_task(empty=False), parameters(privacy=claims), time=50.0)
    drive(world)
    claimed, verified = world.ledger.epsilon("claimed", 1e-3), world.ledger.epsilon("verified", 1e-3)
    np.testing.assert_allclose(claimed, 1.0, rtol=1e-9)
    assert (verified > 2.5).all()
    unbounded = world_of(_unbounded(), parameters(smoothness="data", privacy=claims))
    assert unbounded.protocol.noise.sensitivities(3) == (2 / 3, math.inf)


def _unbounded() -> Task:
    return Task(**{**small_task(empty=False).__dict__, "bounds": {}})


def test_private_step_sizes_come_from_a_public_bound_unless_asked_otherwise():
    task = small_task(empty=False)
    world = world_of(task, parameters(privacy=private(), radius=0.5))
    drive(world)
    smooth = public_smoothness(0.5, task.loss, float(task.regularisation[2]))
    mu_c = 0.04 * task.train.counts[2]
    assert world.state.agent["alpha"][2][0] == 1 / (1 + mu_c * smooth)
    assert not any("step sizes" in item for item in world.assumed_public)
    leaky = world_of(task, parameters(privacy=private(), smoothness="data"))
    assert any("step sizes" in item for item in leaky.assumed_public)


def test_shares_grow_by_the_contraction_of_a_round_of_all_over_the_agents_that_have_data():
    """Proposition 1: C = 1 - sigma / (n L_max); an agent's updates are expected n wake-ups of anybody apart."""
    task, mu = small_task(), 5.0  # the first agent has no rows
    world = world_of(task, parameters(mu=mu, privacy=private(allocation="late", updates=5)))
    strengths, counts = world.setting.graph.strengths[1:], task.train.counts[1:]
    smooth = [public_smoothness(task.bounds["l2"], task.loss, float(lam)) for lam in task.regularisation[1:]]
    convexity = mu * np.min(strengths * counts * 2 * task.regularisation[1:])
    contraction = 1 - convexity / (6 * np.max(strengths * (1 + mu * counts * np.array(smooth))))
    epsilons = np.array(world.protocol.noise.plans[0].epsilons)
    np.testing.assert_allclose(epsilons[1:] / epsilons[:-1], contraction ** (-6 / 3), rtol=1e-9)


def test_an_oracle_schedule_uses_the_true_global_indices():
    spec = parameters(mu=5.0, privacy=private(allocation="late", updates=4, oracle_schedule=True))
    world = world_of(small_task(empty=False), spec, updates=4)
    indices = world.protocol.problem.oracle(4)
    silent = world_of(small_task(empty=False), parameters(updates=4), time=100.0)
    silent.observer = steps = EveryStep()
    drive(silent)
    steps._close(silent)
    order = [agent for agent, _, _ in steps.steps]
    assert sorted(indices.ravel()) == list(range(24))
    for agent in range(6):
        np.testing.assert_array_equal(indices[agent], [k for k, woken in enumerate(order) if woken == agent])
    assert len(world.protocol.noise.plans) == 6
