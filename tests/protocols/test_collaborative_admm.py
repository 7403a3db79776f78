"""Collaborative learning by ADMM against section 4.2 and supplement D of Vanhaesebrouck et al. 2017."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.losses import LOSSES
from hushnet.agents.objectives.objectives import local_models
from hushnet.agents.tasks.base import Task
from hushnet.protocols.algorithms.collaborative_admm import CollaborativeAdmm
from hushnet.protocols.algorithms.model_propagation import ModelPropagation, ModelPropagationParameters
from hushnet.protocols.base import Problem
from hushnet.simulator.contract import check_contract
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network.setting import Stop
from pydantic import ValidationError

from ..engine.driving import drive, sessions_of
from .collaborative import EveryActivation, parameters, world_of
from .worlds import AWAY, BAD, Watcher, after_every_event, quiet_edges


class Naive:
    """The algorithm as printed, for the squared loss: copies are not eliminated, and every variable has its name.

    ``primal[i, k]`` is Theta_i^k; ``z`` and ``dual`` of (i, j, k) are Z_ei^k and Lambda_ei^k for e = (i, j).
    """

    def __init__(self, world):
        protocol, self.task, self.graph = world.protocol, world.setting.task, world.setting.graph
        self.rho, self.mu, self.confidence = protocol.parameters.rho, protocol.parameters.mu_c, protocol.confidence
        self.half = 0.5 if protocol.parameters.objective == "bellet" else 1.0
        models = local_models(self.task)
        self.primal = {(i, i): models[i] for i in range(self.task.agents)}
        self.z, self.dual = {}, {}
        for i, j in zip(self.graph.tails.tolist(), self.graph.heads.tolist(), strict=True):
            self.z[i, j, i], self.z[i, j, j] = models[i], models[j]
            self.dual[i, j, i] = self.dual[i, j, j] = np.zeros(self.task.dimension)

    def minimise(self, i):
        """Step 1: one linear system for Theta_i^i and all Theta_i^j at once."""
        around = self.graph.neighbours(i).tolist()
        weights, p = self.half * self.graph.weights[self.graph.edges_of(i)], self.task.dimension
        everybody, shard = [i, *around], self.task.train.shard(i)
        matrix, right = np.zeros((len(everybody), p, len(everybody), p)), np.zeros((len(everybody), p))
        trust = self.mu * self.graph.strengths[i] * self.confidence[i] if len(shard) else 0.0
        share = 2 * trust / max(1, len(shard))
        matrix[0, :, 0, :] += share * shard.features.T @ shard.features
        matrix[0, :, 0, :] += 2 * trust * self.task.regularisation[i] * np.eye(p)
        right[0] += share * shard.features.T @ shard.labels
        for k, (j, weight) in enumerate(zip(around, weights, strict=True), start=1):
            for a, b, sign in ((0, 0, 1), (k, k, 1), (0, k, -1), (k, 0, -1)):
                matrix[a, :, b, :] += sign * weight * np.eye(p)
            for a, who in ((0, i), (k, j)):
                matrix[a, :, a, :] += self.rho * np.eye(p)
                right[a] += self.rho * self.z[i, j, who] - self.dual[i, j, who]
        size = len(everybody) * p
        solution = np.linalg.solve(matrix.reshape(size, size), right.ravel()).reshape(-1, p)
        for who, theta in zip(everybody, solution, strict=True):
            self.primal[i, who] = theta

    def settle(self, i, j):
        """Steps 2 and 3 on one edge, at both ends."""
        for who in (i, j):
            duals = (self.dual[i, j, who] + self.dual[j, i, who]) / self.rho
            z = (duals + self.primal[i, who] + self.primal[j, who]) / 2
            for one, other in ((i, j), (j, i)):
                self.z[one, other, who] = z
                self.dual[one, other, who] = self.dual[one, other, who] + self.rho * (self.primal[one, who] - z)

    @property
    def models(self):
        return np.array([self.primal[i, i] for i in range(self.task.agents)])


class Calls(EveryActivation):
    """Also who called whom."""

    def __init__(self):
        super().__init__()
        self.pairs = []

    def sent(self, world, message, delay, lost):
        if message.kind == "request":
            self.pairs.append((message.sender, message.receiver))


def squared_task() -> Task:
    return Task(**{**small_task().__dict__, "loss": LOSSES["squared"]})


@pytest.mark.parametrize("objective", ["vanhaesebrouck", "bellet"])
def test_gossip_is_the_printed_algorithm_of_section_4_2(objective):
    calls = Calls()
    spec = parameters(objective=objective, mu=0.3, rho=0.4)
    world = world_of(spec, task=squared_task(), recorder=calls, activations=1, stop=Stop(activations=150))
    world.observer = calls
    naive = Naive(world)
    drive(world)
    np.testing.assert_array_equal(calls.models[0], naive.models)
    for (caller, callee), models in zip(calls.pairs, calls.models[1:], strict=True):
        naive.minimise(caller)
        naive.minimise(callee)
        naive.settle(caller, callee)
        np.testing.assert_allclose(models, naive.models, atol=1e-12)


class Rounds(Watcher):
    """The models that every round found."""

    def __init__(self):
        self.found = {}

    def woke(self, world, agent):
        self.found[agent.tick, agent.index] = world.state.agent["model"][agent.index].copy()

    def after(self, rounds, agents):
        return np.array([[self.found[k, i] for i in range(agents)] for k in range(rounds)])


def in_rounds(spec, rounds=25, **network) -> np.ndarray:
    world = world_of(spec, task=squared_task(), stop=Stop(updates=rounds), **network)
    world.observer = found = Rounds()
    drive(world)
    return found.after(rounds, 6)


def test_rounds_are_the_printed_algorithm_of_supplement_d():
    spec = parameters(mu=0.3, rho=0.4, schedule="rounds")
    naive = Naive(world_of(spec, task=squared_task()))
    graph = naive.graph
    for models in in_rounds(spec):
        np.testing.assert_allclose(models, naive.models, atol=1e-12)
        for i in range(graph.agents):
            naive.minimise(i)
        for i, j in zip(graph.tails.tolist(), graph.heads.tolist(), strict=True):
            if i < j:
                naive.settle(i, j)


@pytest.mark.parametrize("loss", ["logistic", "squared", "smoothed_hinge"])
@pytest.mark.parametrize(
    "fields",
    [
        {"objective": "vanhaesebrouck"},
        {"objective": "bellet", "local_steps": 10, "start": "zero"},
        {"objective": "bellet", "schedule": "rounds"},
        {"schedule": {"kind": "rounds", "patience": 0.5}, "local_steps": 2},
    ],
)
def test_the_models_converge_to_the_exact_minimiser(loss, fields):
    task = Task(**{**small_task().__dict__, "loss": LOSSES[loss]})
    world = world_of(parameters(mu=0.5, rho=1.0, **fields), task=task, stop=Stop(time=250.0))
    drive(world)
    expected, _ = world.protocol.objective().minimise()
    np.testing.assert_allclose(world.state.agent["model"].rows, expected, atol=1e-6)


class EdgeLog(Watcher):
    """After every SimPy event, both ends of an edge without an open session agree.

    Also how many sessions of a caller were interrupted by one that it accepted, on another edge or on the same one.
    """

    def __init__(self, world):
        self.world, self.checked, self.interleaved, self.crossed = world, 0, 0, 0
        world.observer = self
        after_every_event(world, self.check)

    def check(self):
        edge, back, quiet = self.world.state.edge, self.world.setting.graph.reverse, quiet_edges(self.world)
        met = edge["met"].rows[:, 0] > 0
        np.testing.assert_array_equal(met[quiet], met[back][quiet])
        quiet &= met
        self.checked += int(quiet.sum())
        np.testing.assert_array_equal(edge["z_own"].rows[quiet], edge["z_peer"].rows[back][quiet])
        apart = edge["dual_own"].rows + edge["dual_peer"].rows[back]
        np.testing.assert_allclose(apart[quiet], 0.0, atol=1e-14)

    def arrived(self, world, message, up, newest):
        if message.kind == "request" and newest:
            self.crossed += message.edge in sessions_of(world)
            callers = [session.caller for session in sessions_of(world).values() if session.edge != message.edge]
            self.interleaved += message.receiver in callers


def test_two_ends_agree_on_every_quiet_edge_whatever_is_late_lost_or_absent():
    checked = interleaved = crossed = 0
    for seed in range(4):
        world = world_of(parameters(mu=0.5, rho=0.5), availability=AWAY, stop=Stop(time=40.0), seed=seed, **BAD)
        log = EdgeLog(world)
        drive(world)
        assert world.traffic.conserved
        checked, interleaved, crossed = checked + log.checked, interleaved + log.interleaved, crossed + log.crossed
    assert checked > 2000
    assert interleaved > 50
    assert crossed > 5


def test_an_activation_moves_eight_vectors_and_the_start_two_for_every_edge():
    world = world_of(parameters(), stop=Stop(activations=50))
    drive(world)
    assert world.traffic.vectors == 8 * 50
    assert world.traffic.start_vectors == len(world.setting.graph.heads)
    synchronous = world_of(parameters(schedule="rounds"), stop=Stop(updates=1))
    drive(synchronous)
    degrees = synchronous.setting.graph.degrees
    assert synchronous.traffic.vectors == 4 * sum(agent.updates * degrees[agent.index] for agent in synchronous.agents)


def test_models_go_out_without_noise_so_epsilon_is_infinite_but_for_agents_without_data():
    world = world_of(parameters(), task=small_task(), stop=Stop(time=5.0))
    drive(world)
    assert world.ledger.epsilon("verified", 1e-3).tolist() == [0.0] + [np.inf] * 5


def test_gradient_steps_on_a_loss_with_kinks_are_refused():
    task = Task(**{**small_task().__dict__, "loss": LOSSES["hinge"]})
    with pytest.raises(InputError, match="use local_steps: exact") as caught:
        world_of(parameters(local_steps=10), task=task)
    assert caught.value.field == ("local_steps",)
    with pytest.raises(ValidationError):
        parameters(local_steps=0)


def test_alpha_is_one_over_one_plus_mu_and_only_one_of_them_is_given():
    assert parameters(alpha=0.8).mu_c == pytest.approx(0.25)
    assert parameters(mu=0.25).mu_c == 0.25
    with pytest.raises(ValidationError, match="give one of alpha and mu"):
        parameters(alpha=0.5, mu=1.0)


WARM = {"start": {"kind": "propagation", "alpha": 0.7, "confidence": "count"}}


@pytest.mark.parametrize("schedule", [None, "rounds"])
def test_a_warm_start_is_where_model_propagation_ends(schedule):
    """Section 4.2: Theta(0) and Z(0) from the solution of section 3, Lambda(0) = 0."""
    fields = WARM | ({} if schedule is None else {"schedule": schedule})
    world = world_of(parameters(mu=0.5, **fields), stop=Stop(activations=1))
    agents = world.setting.task.agents
    for agent in world.agents:
        world.start(agent)
    propagation = ModelPropagationParameters.model_validate(
        {"kind": "model_propagation", "alpha": 0.7, "confidence": "count", "closed_form": True}
    )
    expected = ModelPropagation(propagation, Problem(world.setting.task, world.setting.graph)).closed_form
    models = np.array([world.state.agent["model"][agent] for agent in range(agents)])
    np.testing.assert_allclose(models, expected, atol=1e-12)
    assert np.abs(models - local_models(world.setting.task)).max() > 0.01
    for edge, tail in enumerate(world.setting.graph.tails.tolist()):
        np.testing.assert_array_equal(world.state.edge["z_own"][edge], models[tail])
        np.testing.assert_array_equal(world.state.edge["dual_own"][edge], 0.0)


def test_a_warm_start_is_said_to_be_central_and_fits_the_contract():
    world = world_of(parameters(mu=0.5, **WARM), stop=Stop(activations=1))
    assert world.traits.central
    check_contract(CollaborativeAdmm, {**WARM, "schedule": "rounds"})
