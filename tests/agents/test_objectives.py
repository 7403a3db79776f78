"""Global objectives, their exact minimisers, and the cache of minima."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES, local_gradient, local_loss
from hushnet.agents.objectives import minima
from hushnet.agents.objectives.consensus_objective import ConsensusObjective
from hushnet.agents.objectives.minima import cached_minimum
from hushnet.agents.objectives.objectives import (
    GraphRegularised,
    LocalOnly,
    local_gradients,
    local_losses,
    local_models,
    row_scores,
)
from hushnet.agents.objectives.pooled_objective import PooledObjective
from hushnet.agents.objectives.propagation_objective import Propagation
from hushnet.agents.objectives.row_sums import RowSums
from hushnet.agents.tables import Table
from hushnet.agents.tasks.task import Task
from hushnet.simulator.contract.bench import small_graph, small_task
from hypothesis import given, settings
from hypothesis import strategies as st

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "linear_12_agents.npz")
NAMES = sorted(name for name in LOSSES if LOSSES[name].smooth)


def a_task(features, labels, owners, agents, regularisation, loss="logistic") -> Task:
    table = Table.from_owners(features, labels, owners, agents)
    metric = "rmse" if loss == "squared" else "accuracy"
    return Task("test", list(range(agents)), table, table, LOSSES[loss], regularisation, metric)


@pytest.fixture
def golden_task() -> Task:
    return a_task(GOLDEN["X"], GOLDEN["Y"], GOLDEN["own"], 12, GOLDEN["lam"])


@pytest.mark.parametrize("changed", [0, 1, 4, 5, 9, 12])
def test_sums_over_rows_of_changed_agents_are_those_over_all(changed):
    """In every bit, whoever has no rows, and with as many agents changed as are looked at one by one or not."""
    rng = np.random.default_rng(3)
    owners = np.sort(rng.integers(0, 10, 400))  # two of twelve have no rows
    table = Table.from_owners(rng.normal(size=(400, 7)), np.sign(rng.normal(size=400)), owners, 12)
    loss, models = LOSSES["logistic"], rng.normal(size=(12, 7))
    seen: list[int] = []
    sums = RowSums(table, lambda scores, labels: seen.append(len(scores)) or loss.value(scores, labels))
    expected = lambda: table.sums(loss.value(row_scores(table, models), table.labels))  # noqa: E731
    assert sums.at(models).tobytes() == expected().tobytes()
    models = models.copy()
    models[rng.permutation(12)[:changed]] += 1.0
    assert sums.at(models).tobytes() == expected().tobytes()
    assert sum(seen[1:]) < 400 if changed <= 6 else seen == [400, 400]
    assert sums.at(models).tobytes() == expected().tobytes()


def golden_objective(task: Task, mu: float) -> GraphRegularised:
    return GraphRegularised(task, Graph.from_matrix(GOLDEN["W"]), mu, GOLDEN["c"])


def a_ragged_objective(loss: str) -> GraphRegularised:
    """Six agents: agent 2 has no data, agent 4 no neighbour, agent 5 neither."""
    rng = np.random.default_rng(11)
    owners = np.repeat([0, 1, 3, 4], [7, 2, 9, 5])
    features = rng.standard_normal((len(owners), 3))
    labels = rng.choice([-1.0, 1.0], size=len(owners))
    task = a_task(features, labels, owners, 6, np.array([0.1, 0.5, 0.0, 0.2, 0.3, 0.0]), loss)
    graph = Graph.from_edges(6, np.array([0, 0, 1]), np.array([1, 2, 3]), np.array([1.0, 0.4, 2.0]))
    return GraphRegularised(task, graph, 0.7, np.array([1.0, 0.3, 1.0, 0.8, 0.5, 1.0]))


@pytest.mark.parametrize("mu", ["0.04", "4"])
def test_value_minimum_and_minimiser_agree_with_the_golden_instance(golden_task, mu):
    objective = golden_objective(golden_task, float(mu))
    assert objective.value(GOLDEN["local"]) == pytest.approx(float(GOLDEN[f"Qloc_mu{mu}"]), rel=1e-12)
    models, minimum = objective.minimise()
    assert minimum == pytest.approx(float(GOLDEN[f"Qstar_mu{mu}"]), abs=1e-9)
    assert np.linalg.norm(objective.gradient(models)) < 1e-12
    # The golden minimiser has a gradient of some 1e-8, hence the tolerance on models.
    np.testing.assert_allclose(models, GOLDEN[f"opt_mu{mu}"], atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_objective_is_the_sum_that_the_paper_writes(name):
    objective = a_ragged_objective(name)
    task, graph = objective.task, objective.graph
    models = np.random.default_rng(3).standard_normal((6, 3))
    expected = 0.0
    for tail, head, weight in zip(graph.tails, graph.heads, graph.weights, strict=True):
        expected += 0.5 * weight * np.sum((models[tail] - models[head]) ** 2) * (tail < head)
    for agent in range(6):
        own = local_loss(models[agent], task.train.shard(agent), task.loss, task.regularisation[agent])
        expected += 0.7 * graph.strengths[agent] * objective.confidence[agent] * own
    assert objective.value(models) == pytest.approx(expected, rel=1e-13)


@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    dimension=st.integers(1, 11),
    density=st.sampled_from([0.0, 0.3, 1.0]),
    name=st.sampled_from(sorted(LOSSES)),
    precision=st.sampled_from(["float64", "float32"]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=150, deadline=None)
def test_compiled_sums_are_those_of_each_agents_own_rows(counts, dimension, density, name, precision, seed):
    rng = np.random.default_rng(seed)
    agents, offsets = len(counts), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    features = rng.standard_normal((offsets[-1], dimension)).astype(precision)
    table = Table(features, rng.choice([-1.0, 1.0], size=offsets[-1]), offsets)
    lam = rng.uniform(0, 1, agents)
    task = Task("test", list(range(agents)), table, table, LOSSES[name], lam, "accuracy")
    weights = np.triu(rng.uniform(0.1, 2.0, (agents, agents)) * (rng.random((agents, agents)) < density), 1)
    objective = GraphRegularised(task, Graph.from_matrix(weights + weights.T), 0.7, rng.uniform(0, 2, agents))
    models = rng.standard_normal((agents, dimension))
    models.flags.writeable = bool(seed % 2)
    shards = [table.shard(agent) for agent in range(agents)]
    own = zip(models, shards, strict=True)
    scores = np.concatenate([[], *(shard.features @ model for model, shard in own)])
    np.testing.assert_allclose(row_scores(table, models), scores, rtol=1e-12, atol=1e-14 * dimension)
    losses = [local_loss(models[i], shards[i], task.loss, lam[i]) for i in range(agents)]
    gradients = [local_gradient(models[i], shards[i], task.loss, lam[i]) for i in range(agents)]
    np.testing.assert_allclose(local_losses(task, models), losses, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(local_gradients(task, models), gradients, rtol=1e-12, atol=1e-13)
    apart = 0.5 * sum(
        weights[i, j] * np.sum((models[i] - models[j]) ** 2) for i in range(agents) for j in range(i + 1, agents)
    )
    assert objective.value(models) == pytest.approx(apart + objective.data_weights @ losses, rel=1e-12, abs=1e-14)


def test_a_model_that_is_not_finite_shows_in_the_objective(golden_task):
    for planted in (np.nan, np.inf):
        models = np.zeros((12, golden_task.dimension))
        models[3, 1] = planted
        assert not np.isfinite(golden_objective(golden_task, 4.0).value(models))


@pytest.mark.parametrize("name", NAMES)
def test_no_value_is_below_the_minimum_by_more_than_rounding(name):
    """The recorded gap to the minimum is a difference of two values of the same function."""
    objective = a_ragged_objective(name)
    models, minimum = objective.minimise()
    rng = np.random.default_rng(8)
    for size in (0.0, 1e-16, 1e-12, 1e-9):
        nearby = models + size * rng.standard_normal(models.shape)
        assert objective.value(nearby) >= minimum - 4 * np.finfo(float).eps * abs(minimum)
    assert objective.value(models) == minimum


@pytest.mark.parametrize("name", NAMES)
def test_gradients_agree_with_finite_differences(name):
    ragged = a_ragged_objective(name)
    models = 0.4 * np.random.default_rng(4).standard_normal((6, 3))
    for objective in (ragged, LocalOnly(ragged.task)):
        value, gradient = objective.value_and_gradient(models)
        assert value == objective.value(models)
        assert np.array_equal(gradient, objective.gradient(models))
        for index in np.ndindex(6, 3):
            moved = np.zeros((6, 3))
            moved[index] = 1e-6
            difference = (objective.value(models + moved) - objective.value(models - moved)) / 2e-6
            assert gradient[index] == pytest.approx(difference, abs=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_agents_without_data_or_neighbours_have_their_place_in_the_minimiser(name):
    objective = a_ragged_objective(name)
    models, minimum = objective.minimise()
    alone = local_models(objective.task)
    np.testing.assert_allclose(models[2], models[0], atol=1e-12)
    assert np.array_equal(models[4], alone[4])
    assert not models[5].any()
    assert not alone[2].any()
    assert np.linalg.norm(objective.gradient(models)) < 1e-12
    rng = np.random.default_rng(5)
    for size in (1e-4, 1e-2, 1.0):
        assert objective.value(models + size * rng.standard_normal((6, 3))) > minimum


def test_rows_in_very_different_units_do_not_stop_the_minimiser():
    rng = np.random.default_rng(7)
    features = rng.standard_normal((90, 4)) * np.array([1.0, 1e3, 1e-3, 10.0])
    labels = rng.choice([-1.0, 1.0], size=90)
    task = a_task(features, labels, np.arange(90) % 3, 3, np.full(3, 1 / 30))
    objective = GraphRegularised(task, Graph.from_matrix(np.ones((3, 3))), 1.0, np.ones(3))
    start = np.linalg.norm(objective.gradient(np.zeros((3, 4))))
    assert np.linalg.norm(objective.gradient(objective.minimise()[0])) <= 1e-11 * start


def test_the_fingerprint_changes_with_everything_that_the_objective_depends_on(golden_task):
    objective = golden_objective(golden_task, 4.0)
    other_graph = Graph.from_matrix(2 * GOLDEN["W"])
    other_task = replace(golden_task, regularisation=2 * GOLDEN["lam"])
    variants = [
        objective,
        replace(objective, mu=4.5),
        replace(objective, confidence=np.ones(12)),
        replace(objective, graph=other_graph),
        replace(objective, task=other_task),
        LocalOnly(golden_task),
        LocalOnly(other_task),
    ]
    assert len({variant.fingerprint for variant in variants}) == len(variants)
    assert golden_objective(golden_task, 4.0).fingerprint == objective.fingerprint


@pytest.fixture
def empty_cache(monkeypatch):
    monkeypatch.setattr(minima, "_MINIMA", {})
    return minima._MINIMA


def test_a_minimum_is_computed_once(golden_task, empty_cache, monkeypatch):
    objective = golden_objective(golden_task, 4.0)
    models, minimum = cached_minimum(objective, None)
    monkeypatch.setattr(GraphRegularised, "minimise", lambda self: pytest.fail("computed twice"))
    again, same = cached_minimum(golden_objective(golden_task, 4.0), None)
    assert again is models
    assert same == minimum
    with pytest.raises(ValueError, match="read-only"):
        models[0, 0] = 1.0


def test_a_minimum_on_disk_serves_another_process(golden_task, empty_cache, monkeypatch, tmp_path):
    objective = golden_objective(golden_task, 4.0)
    models, minimum = cached_minimum(objective, tmp_path / "cache")
    assert [file.name for file in (tmp_path / "cache").iterdir()] == [f"minimum-{objective.fingerprint}.npz"]
    empty_cache.clear()
    monkeypatch.setattr(GraphRegularised, "minimise", lambda self: pytest.fail("computed twice"))
    loaded, same = cached_minimum(objective, tmp_path / "cache")
    assert np.array_equal(loaded, models)
    assert same == minimum


@pytest.mark.parametrize(
    "damage", ["truncated", "no archive", "another minimum", "another shape", "missing array", "no minimum", "nearly"]
)
def test_a_damaged_cache_file_is_computed_anew_and_replaced(golden_task, empty_cache, tmp_path, damage):
    objective = golden_objective(golden_task, 4.0)
    models, minimum = cached_minimum(objective, tmp_path)
    (file,) = tmp_path.iterdir()
    intact = file.read_bytes()
    if damage == "truncated":
        file.write_bytes(intact[: len(intact) // 2])
    elif damage == "no archive":
        file.write_bytes(b"nothing of the kind")
    elif damage == "another minimum":
        np.savez(file, models=models + 0.1, value=minimum)
    elif damage == "another shape":
        np.savez(file, models=models[:3], value=minimum)
    elif damage in ("no minimum", "nearly"):
        other = models * (0.0 if damage == "no minimum" else 1.0 + 1e-3)
        np.savez(file, models=other, value=objective.value(other))
    else:
        np.savez(file, models=models)
    empty_cache.clear()
    again, same = cached_minimum(objective, tmp_path)
    assert np.array_equal(again, models)
    assert same == minimum
    empty_cache.clear()
    assert np.array_equal(np.load(file)["models"], models)


def every_objective(task, graph):
    """One of each kind, smooth and kinked."""
    kinked = replace(task, loss=LOSSES["hinge"])
    counts = np.maximum(task.train.counts, 1)
    return {
        "graph": GraphRegularised(task, graph, 2.0, counts / counts.max()),
        "local": LocalOnly(task),
        "pooled": PooledObjective.mean_of_agents(task, 0.1),
        "pooled hinge": PooledObjective.mean_of_agents(kinked, 0.1),
        "consensus": ConsensusObjective(task, 2.0, 0.5),
        "propagation": Propagation(graph, np.random.default_rng(1).normal(size=(task.agents, 3)), np.ones(task.agents)),
    }


@pytest.mark.parametrize("kind", ["graph", "local", "pooled", "pooled hinge", "consensus", "propagation"])
def test_a_minimum_is_told_from_what_is_none(kind):
    objective = every_objective(small_task(), small_graph())[kind]
    models, minimum = objective.minimise()
    assert objective.is_minimum(models)
    for other in (models * 0.9, models + 0.1, np.zeros_like(models)):
        assert objective.value(other) > minimum + 1e-6
        assert not objective.is_minimum(other)
    assert not objective.is_minimum(np.full_like(models, np.inf))


def test_models_that_differ_are_no_minimum_over_agreeing_ones_though_they_lie_below_it():
    objective = every_objective(small_task(), small_graph())["consensus"]
    models, minimum = objective.minimise()
    apart = models + 0.05 * np.sign(-objective.gradient(models))
    assert objective.minimum_over == "agreeing"
    assert objective.value(apart) < minimum
    assert not objective.is_minimum(apart)
