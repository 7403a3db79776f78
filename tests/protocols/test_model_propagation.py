"""Model propagation against the equations of Vanhaesebrouck et al. 2017 and independent golden values."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.availability import Always, Window
from hushnet.agents.errors import InputError
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES
from hushnet.agents.objectives.propagation_objective import Propagation
from hushnet.agents.solitary import GradientSteps, solitary_models
from hushnet.agents.tables import Table
from hushnet.agents.tasks.task import Task
from hushnet.protocols.algorithms.model_propagation import ModelPropagation, ModelPropagationParameters
from hushnet.simulator.contract.bench import run_small, small_graph, small_task
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World

from ..engine.driving import drive
from .worlds import setting_of

FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = np.load(FOLDER / "linear_12_agents.npz")
PATH = json.loads((FOLDER / "tiny.json").read_text())["vanhaesebrouck2017_path"]
PRIVATE = {"mechanism": "laplace", "budget": {"epsilon": 2.0, "delta": 0.0}, "updates": 1, "sensitivity": "claimed"}


def parameters(**fields) -> ModelPropagationParameters:
    return ModelPropagationParameters.model_validate({"kind": "model_propagation", **fields})


def golden_task() -> Task:
    train = Table.from_owners(GOLDEN["X"], GOLDEN["Y"], GOLDEN["own"], 12)
    return Task("golden", list(range(12)), train, train, LOSSES["logistic"], GOLDEN["lam"], "accuracy")


def world_of(task, graph, spec, *, protocol=ModelPropagation, clock=None, recorder=None, **stop):
    setting = setting_of(task=task, graph=graph, clock=clock, stop=Stop(**stop), seed=7)
    return World(setting, protocol, spec, recorder=recorder, activations=1 if recorder else None)


# The objective


def path_objective() -> Propagation:
    graph = Graph.from_edges(3, np.array([0, 1]), np.array([1, 2]), np.array([1.0, 2.0]))
    return Propagation(graph, np.array([[1.0], [0.0], [-1.0]]), np.array([1.0, 0.5, 0.25]))


def test_the_minimiser_on_a_path_is_the_golden_one():
    """tests/golden/tiny.json, vanhaesebrouck2017_path."""
    models, value = path_objective().minimise()
    np.testing.assert_allclose(models[:, 0], PATH["optimum"], atol=PATH["tolerance"])
    assert value == path_objective().value(models)


def test_the_gradient_is_the_derivative_of_the_value_and_vanishes_at_the_minimiser():
    objective = path_objective()
    point = np.array([[0.3], [-0.4], [2.0]])
    gradient = objective.gradient(point)
    for agent in range(3):
        step = np.zeros((3, 1))
        step[agent] = 1e-6
        slope = (objective.value(point + step) - objective.value(point - step)) / 2e-6
        assert gradient[agent, 0] == pytest.approx(slope, abs=1e-8)
    assert np.abs(objective.gradient(objective.minimise()[0])).max() < 1e-15


@pytest.mark.parametrize("alpha", [0.2, 0.9, 0.99])
def test_the_closed_form_is_the_fixed_point_of_both_iterations(alpha):
    """Equation (5) of the paper in its own letters, and (16) of Bellet et al. 2018; to 1e-12."""
    task, graph = golden_task(), Graph.from_matrix(GOLDEN["W"])
    protocol = world_of(task, graph, parameters(alpha=alpha), time=1.0).protocol
    optimum, _ = protocol.objective().minimise()
    c, rows = GOLDEN["c"][:, None], GOLDEN["W"] / GOLDEN["W"].sum(axis=1, keepdims=True)
    synchronous = (alpha * rows @ optimum + (1 - alpha) * c * GOLDEN["local"]) / (alpha + (1 - alpha) * c)
    np.testing.assert_allclose(synchronous, optimum, atol=1e-12)
    mu = (1 - alpha) / alpha
    np.testing.assert_allclose((rows @ optimum + mu * c * GOLDEN["local"]) / (1 + mu * c), optimum, atol=1e-12)


def test_confidence_is_a_share_of_rows_one_half_or_a_list():
    task, graph = small_task(), small_graph()
    counts = task.train.counts
    for confidence, expected in (
        ("relative", counts / counts.max()),
        ("count", counts),
        ("uniform", np.where(counts > 0, 0.5, 0.0)),
        ([0.3] * 6, np.where(counts > 0, 0.3, 0.0)),
    ):
        protocol = world_of(task, graph, parameters(mu=1.0, confidence=confidence), time=1.0).protocol
        np.testing.assert_allclose(protocol.mu_c, expected, rtol=1e-15)


def test_solitary_models_by_gradient_steps_are_plain_steps_on_the_summed_loss():
    task, largest = golden_task(), GOLDEN["m"].max()
    found = solitary_models(task, GradientSteps(steps=3, step_size=0.5))
    for agent in range(12):
        mine, model = GOLDEN["own"] == agent, np.zeros(4)
        rows, labels = GOLDEN["X"][mine], GOLDEN["Y"][mine]
        for _ in range(3):
            slopes = -labels / (1 + np.exp(labels * (rows @ model)))
            model = model - 0.5 * (slopes @ rows + 2 * model) / largest  # m lambda_i = 1
        np.testing.assert_allclose(found[agent], model, atol=1e-12)


# Privacy


def test_who_is_not_there_yet_pays_for_the_closed_form_that_its_model_is_part_of():
    late = Always(kind="always", joins=Window(share=0.6, between=[50.0, 60.0]))
    fields = {"time": 3.0, "availability": late}
    world = run_small(ModelPropagation, parameters(privacy=PRIVATE, closed_form=True), **fields)
    assert world.started.tolist() == [False, False, True, False, True, False]
    np.testing.assert_array_equal(world.ledger.epsilon("claimed", 0.0), [0.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    plain = run_small(ModelPropagation, parameters(closed_form=True), **fields)
    assert np.isinf(plain.ledger.epsilon("verified", 1e-5)).tolist() == [False, True, True, True, True, True]


# Contract and mistakes


def test_a_loss_without_gradient_or_regularisation_needs_steps():
    task = Task(**{**small_task().__dict__, "loss": LOSSES["hinge"], "regularisation": np.zeros(6)})
    with pytest.raises(InputError, match="a few gradient steps"):
        drive(world_of(task, small_graph(), parameters(), time=1.0))
    drive(world_of(task, small_graph(), parameters(solitary={"steps": 2}), time=1.0))
