"""Collaborative learning by ADMM against section 4.2 and supplement D of Vanhaesebrouck et al. 2017."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES
from hushnet.agents.objectives.objectives import GraphRegularised, local_models
from hushnet.agents.tables import Table
from hushnet.agents.tasks.task import Task
from hushnet.protocols.algorithms.collaborative_admm import CollaborativeAdmm, CollaborativeAdmmParameters
from hushnet.protocols.algorithms.model_propagation import ModelPropagation, ModelPropagationParameters
from hushnet.protocols.base import Problem
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network.clocks import Recorded
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World

from ..engine.driving import drive
from .worlds import Watcher, setting_of

GOLDEN = dict(np.load(Path(__file__).parents[1] / "golden" / "linear_12_agents.npz"))


def parameters(**fields) -> CollaborativeAdmmParameters:
    return CollaborativeAdmmParameters.model_validate({"kind": "collaborative_admm", **fields})


def world_of(spec, *, protocol=CollaborativeAdmm, recorder=None, activations=None, **setting) -> World:
    """A world that is ready to run; further arguments are those of `setting_of`."""
    setting.setdefault("task", small_task(empty=False))
    return World(setting_of(**setting), protocol, spec, recorder=recorder, activations=activations)


class EveryActivation(Watcher):
    """The models at the start and after every activation."""

    def __init__(self):
        self.models = []

    def sample(self, world, *, final):
        if not final:
            self.models.append(world.state.agent["model"].rows.copy())


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


def squared_task() -> Task:
    return Task(**{**small_task().__dict__, "loss": LOSSES["squared"]})


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


class Scripted(CollaborativeAdmm):
    """Partners and start models of an independent implementation."""

    def start(self, me):
        super().start(me)
        me.sent_.clear()
        me.model = me.z_own = GOLDEN["local"][me.agent]
        me.send("solitary", me.model, me.plain("a solitary model"))

    def partner(self, me, uniform):
        own = GOLDEN["neighbour"][GOLDEN["order"] == me.agent]
        return int(np.searchsorted(me.neighbours, own[me.tick]))


def golden_task(loss: str, regularisation: np.ndarray) -> Task:
    base = small_task(12).__dict__
    train = Table.from_owners(GOLDEN["X"], GOLDEN["Y"], GOLDEN["own"], 12)
    test = Table.from_owners(GOLDEN["target"], np.ones(12), np.arange(12), 12)
    fields = {"train": train, "test": test, "loss": LOSSES[loss], "regularisation": regularisation}
    return Task(**{**base, **fields})


def golden_run(task: Task, **fields):
    recorder = EveryActivation()
    world = world_of(
        parameters(**fields),
        protocol=Scripted,
        task=task,
        graph=Graph.from_matrix(GOLDEN["W"]),
        clock=Recorded(kind="recorded", order=GOLDEN["order"].tolist(), spacing=1.0),
        stop=Stop(),
        recorder=recorder,
        activations=1,
    )
    drive(world)
    assert world.activations == 200
    return world, np.array(recorder.models)


def test_gossip_with_gradient_steps_follows_an_independent_implementation_step_by_step():
    task = golden_task("logistic", GOLDEN["lam"])
    fields = {"objective": "bellet", "mu": 4.0, "confidence": "relative", "rho": 0.1, "local_steps": 10}
    world, models = golden_run(task, **fields)
    np.testing.assert_allclose(models, GOLDEN["admm_logit_mu4_rho0.1_K10"], atol=1e-10)
    assert world.protocol.objective().value(GOLDEN["opt_mu4"]) == pytest.approx(float(GOLDEN["Qstar_mu4"]), abs=1e-9)


def test_gossip_on_the_hinge_follows_an_independent_implementation_step_by_step():
    """Its local problems are solved to about 1e-5 there."""
    world, models = golden_run(golden_task("hinge", np.zeros(12)), mu=0.25, rho=0.3, start="zero")
    np.testing.assert_allclose(models, GOLDEN["cladmm_hinge_mu0.25_rho0.3"], atol=1e-4)
    assert world.protocol.objective() is None


@pytest.mark.slow
def test_rounds_on_the_hinge_end_at_the_optimum_that_an_independent_implementation_found():
    spec = parameters(mu=0.25, rho=0.1, start="zero", schedule="rounds")
    task, graph = golden_task("hinge", np.zeros(12)), Graph.from_matrix(GOLDEN["W"])
    world = world_of(spec, task=task, graph=graph, stop=Stop(updates=300))
    drive(world)
    models = world.state.agent["model"].rows
    np.testing.assert_allclose(models, GOLDEN["clopt_hinge_mu0.25"], atol=1e-6)
    value = 2 * GraphRegularised(task, graph, 0.25 / 2, world.protocol.confidence).value(models)
    assert value == pytest.approx(float(GOLDEN["Qcl_mu0.25"]), abs=1e-8)
