"""Penalty perturbation, and what theorem 4.1 of Zhang, Khalili and Liu 2018 says that it costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES, local_gradient
from hushnet.agents.tables import Shard, Table
from hushnet.agents.tasks.task import Task
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm, PerturbedAdmmParameters
from hushnet.protocols.base import Problem
from hushnet.protocols.privacy.accounting import Charge, verified
from hushnet.simulator.network.clocks import Periodic
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World
from scipy import stats

from ..engine.driving import drive
from .worlds import setting_of

LOGISTIC = LOSSES["logistic"]


def ring(agents: int) -> Graph:
    first = np.arange(agents)
    return Graph.from_edges(agents, first, (first + 1) % agents, np.ones(agents))


def task_of(counts: list[int], dimension: int, *, seed: int = 0, **fields) -> Task:
    """Rows of norm at most 1."""
    rng, owners = np.random.default_rng(seed), np.repeat(np.arange(len(counts)), counts)
    rows = rng.normal(size=(len(owners), dimension))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
    train = Table.from_owners(rows, rng.choice([-1.0, 1.0], len(owners)), owners, len(counts))
    task = Task(
        name="rows in the unit ball",
        ids=list(range(len(counts))),
        train=train,
        test=train,
        loss=LOGISTIC,
        regularisation=np.zeros(len(counts)),
        metric="accuracy",
        bounds={"l2": 1.0},
    )
    return replace(task, **fields)


def parameters(**fields) -> PerturbedAdmmParameters:
    noise = fields.pop("noise", {})
    noise = noise if "target" in noise else {"alpha": 3.0, **noise}
    return PerturbedAdmmParameters.model_validate({"kind": "perturbed_admm", "noise": noise, **fields})


def world_of(task: Task, spec, *, rounds: int, graph: Graph | None = None, protocol=PerturbedAdmm) -> World:
    """A world that has run for so many rounds."""
    periodic = {"clock": Periodic(kind="periodic"), "stop": Stop(time=float(rounds)), "seed": 11}
    setting = setting_of(task=task, graph=graph or ring(task.agents), **periodic)
    world = World(setting, protocol, spec)
    drive(world)
    return world


def models_of(world: World) -> np.ndarray:
    return world.protocol.models(world.state)


@pytest.fixture(scope="module")
def adult_sizes() -> Task:
    """As many rows as UCI Adult has on five agents, of one feature: epsilon depends on nothing else."""
    task = task_of([9045, 9045, 9044, 9044, 9044], 1)
    return replace(task, train=replace(task.train, features=np.zeros_like(task.train.features)))


@pytest.mark.parametrize(
    ("growth", "noise_growth", "rounds", "expected"),
    [(1.0, 1.0, 1, 0.6482198142), (1.05, 1.03, 100, 27.4334004620), (1.0, 1.0, 100, 64.8219814241)],
)
def test_claims_add_up_to_p_of_t(adult_sizes, growth, noise_growth, rounds, expected):
    """P(t) on a ring of five with C = 1750, eta(1) = .5, alpha(1) = 3; the worst agents are those with 9,044 rows."""
    spec = parameters(loss_weight=1750.0, penalty_growth=growth, noise={"growth": noise_growth})
    world = world_of(adult_sizes, spec, rounds=rounds)
    claims = world.ledger.epsilon("claimed", 1e-5)
    assert claims.max() == pytest.approx(expected, abs=1e-9)
    assert claims.argmax() == 2
    verified = world.ledger.epsilon("verified", 1e-5)
    assert (verified < claims).all()


def test_a_verified_release_is_a_pure_one_of_its_noise_and_its_determinant(adult_sizes):
    """alpha C/(eta V B) + log(1 + C c1/(B (rho/N + 2 eta V))), composed as randomised response."""
    world = world_of(adult_sizes, parameters(loss_weight=1750.0), rounds=3)
    epsilon = 3 * 1750 / (0.5 * 2 * 9044) + np.log1p(1750 / 4 / 9044 / (1 / 5 + 2 * 0.5 * 2))
    expected = verified({Charge("gamma", 1 / epsilon, 1.0, 1.0, 1.0, 0.0): 3}, 1e-5)
    assert world.ledger.epsilon("verified", 1e-5)[2] == pytest.approx(expected, rel=1e-9)


def log_density(model, shard, weight, ridge, linear, penalty, degree, alpha) -> float:
    """Of the solution of (25) at a model, up to a constant: what noise leads there, and the determinant."""
    gradient = weight * local_gradient(model, shard, LOGISTIC, 0.0) + ridge * model - linear
    noise = -gradient / (2 * penalty * degree)
    bends = LOGISTIC.second_slope(shard.features @ model, shard.labels)
    jacobian = weight / len(shard) * (shard.features.T * bends) @ shard.features + ridge * np.eye(len(model))
    return -alpha * np.linalg.norm(noise) + np.linalg.slogdet(jacobian)[1]


@pytest.mark.parametrize("alpha", [0.01, 2.0])
def test_no_two_adjacent_data_sets_give_a_model_with_densities_further_apart_than_is_verified(alpha):
    """Theorem 4.1 on the density itself, at 3,000 models and pairs of data sets, and what is verified is nearly met."""
    task, weight, penalty = task_of([4] * 5, 2), 3.0, 0.6
    spec = parameters(loss_weight=weight, penalty=penalty, noise={"alpha": alpha})
    protocol = PerturbedAdmm(spec, Problem(task, ring(5)))
    claimed, verified = protocol.epsilons(0, 1, 4, 2)
    ridge, rng, worst = 1 / 5 + 2 * penalty * 2, np.random.default_rng(5), 0.0
    for trial in range(3000):
        rows, labels = rng.normal(size=(4, 2)), rng.choice([-1.0, 1.0], 4)
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        model = rng.normal(size=2) * 10.0 ** rng.uniform(-4, 4)
        along = model / np.linalg.norm(model)
        across = along[::-1] * [1, -1]
        # For the noise, two rows that are told apart by nothing but their side, both misclassified by a long model; for
        # the determinant, an orthogonal row instead of a parallel one; and anything.
        back = -0.05 * labels[0] * along
        pairs = [(back + 0.998 * across, back - 0.998 * across), (along, across), (rows[0], rng.normal(size=2) / 9)]
        other = rows.copy()
        rows[0], other[0] = pairs[trial % 3]
        other[0] /= max(1.0, np.linalg.norm(other[0]))
        linear = rng.normal(size=2) * 10.0 ** rng.uniform(-2, 4)
        one, two = (
            log_density(model, Shard(data, labels), weight, ridge, linear, penalty, 2, alpha) for data in (rows, other)
        )
        worst = max(worst, abs(one - two))
    assert 0.9 * verified < worst <= verified < claimed


def test_the_noise_that_leads_to_a_model_is_gamma_noise_of_the_round():
    """From (12) with 2 eta V eps added: norms Gamma(d, 1/alpha(t)), directions uniform.

    300 agents, 3 rounds; two Kolmogorov-Smirnov tests at false alarm 1e-6 each, at seed 11.
    """
    task, spec = task_of([2] * 300, 3), parameters(penalty_growth=1.2, noise={"alpha": 2.0, "growth": 0.5})
    worlds = [world_of(task, spec, rounds=rounds) for rounds in (1, 2, 3)]
    old, norms, cosines = np.zeros((300, 3)), [], []
    for number, world in enumerate(worlds, start=1):
        new, penalty = models_of(world), 0.5 * 1.2 ** (number - 1)
        for i in range(300):
            neighbours = [(i - 1) % 300, (i + 1) % 300]
            gradient = local_gradient(new[i], task.train.shard(i), LOGISTIC, 0.0) + new[i] / 300
            gradient += 2 * world.state.agent["dual"][i]
            gradient += penalty * sum(2 * new[i] - old[i] - old[j] for j in neighbours)
            noise = -gradient / (2 * penalty * 2)
            norms.append(np.linalg.norm(noise) * 2.0 * 0.5 ** (number - 1))
            cosines.append(noise[0] / np.linalg.norm(noise))
        old = new
    assert stats.kstest(norms, stats.gamma(3).cdf).pvalue > 1e-6
    assert stats.kstest(cosines, stats.uniform(-1, 2).cdf).pvalue > 1e-6
