"""Operators: an agent's row of a batch has the bits that it has alone; values; and what does not fit is refused."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hushnet.agents.clipping import clip_rows, norms
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES, clipped_gradient
from hushnet.agents.losses import local_gradient as gradient_of
from hushnet.agents.optimisation.solvers import minimise_local
from hushnet.agents.optimisation.splitting import minimise_rows
from hushnet.agents.tables import Shard
from hushnet.protocols.steps import (
    add_scaled,
    average,
    bends,
    clipped,
    draw_each,
    draw_rows,
    heard_of,
    heard_sum,
    local_gradient,
    loss_gradient,
    minimised,
    per_edge,
    perturbed,
    perturbed_minimiser,
    received,
    rows_minimised,
    sample_size,
    scores_of,
    segment_sum,
    slopes,
    solved_by,
    sum_of_rows,
    take_in,
    weighted_sum,
)
from hushnet.protocols.steps.record import Batch, One
from hushnet.simulator.engine.batched.plan import STEP

from ..engine.driving import drive, driver_of, fast_world
from .noisy_steps import BOUND, MECHANISMS, NoisyParameters, NoisyTogether
from .random_worlds import random_graph, random_setting, random_task

AGENTS, ROWS = 11, 40
TICK, UPDATES, NOW = 7, 3, 9.5


class Steps:
    """Steps of all agents at once, that have heard anything from anybody.

    Parameters
    ----------
    loss : str
    **fields
        Of `NoisyParameters`.
    """

    def __init__(self, loss="logistic", *, features=None, **fields):
        rng = np.random.default_rng(5)
        task = random_task(rng, loss=loss, dimension=4, agents=AGENTS)
        if features is not None:
            train = dataclasses.replace(task.train, features=features(task.train.features))
            task = dataclasses.replace(task, train=train)
        graph = random_graph(rng, AGENTS, alone=True)
        setting = dataclasses.replace(random_setting(5, loss=loss, easy=True)(), task=task, graph=graph)
        if features is None:
            setting = dataclasses.replace(setting, stop=dataclasses.replace(setting.stop, time=2.0))
        world = drive(fast_world(setting, NoisyTogether, NoisyParameters(**fields)))
        assert world.engine == "batched (steps in batches)"
        self.world, self.graph, self.task, planned = world, graph, task, driver_of(world).planned
        self.tables, self.source = planned.tables, planned.source
        self.steps = np.zeros(AGENTS, dtype=STEP)
        self.steps["agent"], self.steps["tick"], self.steps["updates"] = np.arange(AGENTS), TICK, UPDATES
        self.steps["first"], self.steps["now"] = graph.offsets[:-1], NOW
        self.plan = planned.plan._replace(reads=rng.integers(-1, ROWS, len(graph.heads)))
        self.pool = rng.normal(size=(ROWS, 4))

    def batch(self, agents):
        """The record of some agents."""
        agents = np.array(agents)
        steps = self.steps[agents]
        self.source.begin(self.plan, self.pool, agents, steps)
        passing = {"updates": UPDATES, "tick": TICK, "round": UPDATES + 1, "now": NOW}
        columns = {name: np.full((len(agents), 1), value) for name, value in passing.items()}
        return Batch(self.tables, self.source, agents, {"message": "model"}, columns)

    def one(self, agent):
        """The record of one agent."""
        me = One(self.tables, self.source, agent)
        self.source.begin(self.plan, self.pool, me.agents_, self.steps[agent : agent + 1])
        me.begin_({"message": "model"}, UPDATES, TICK, NOW)
        return me


OPERATORS = {
    "average": average,
    "heard_sum": heard_sum,
    "weighted_sum": lambda me: weighted_sum(me, 2.0 * me.weights),
    "segment_sum": lambda me: segment_sum(me, received(me) - per_edge(me, me.model)),
    "local_gradient": lambda me: local_gradient(me, me.model),
    "loss_gradient": lambda me: loss_gradient(me, 2 * me.model),
    "loss_gradient of drawn rows": lambda me: loss_gradient(me, me.model, draw_rows(me, 2)),
    "loss_gradient of one drawn row": lambda me: loss_gradient(me, me.model, draw_rows(me, 1)),
    "loss_gradient of each": lambda me: loss_gradient(me, me.model, draw_each(me, 1 / (1 + me.rows))),
    "sample_size": lambda me: sample_size(me, draw_each(me, 0.5)) * np.ones(1),
    "minimised": lambda me: minimised(me, 1.0, 0.5 + me.degree, average(me), me.model, 1e-9),
    "perturbed": lambda me: perturbed(me, me.model) + perturbed(me, me.model),
    "perturbed_minimiser": lambda me: perturbed_minimiser(me, 1.0, 0.5, average(me), me.model, 1e-9, 0.3),
    "clipped": lambda me: clipped(me.model, 0.5),
}
SIZES = [[4], [2, 9], [10, 0, 3, 7, 1, 8, 5], list(range(AGENTS))]


@pytest.mark.parametrize(
    ("loss", "fields"),
    [
        ("logistic", {"mechanism": "laplace", "norm": "l1"}),
        ("squared", {"mechanism": "gaussian", "norm": "l2"}),
        ("hinge", {"mechanism": None, "norm": None}),
        ("smoothed_hinge", {"mechanism": "gamma", "norm": None}),
    ],
)
def test_a_row_of_a_batch_has_the_bits_that_it_has_alone(loss, fields):
    steps = Steps(loss, **fields)
    for name, operator in OPERATORS.items():
        alone = [np.atleast_1d(operator(steps.one(agent))) for agent in range(AGENTS)]
        assert np.any(np.concatenate(alone)), name
        for agents in SIZES:
            found = operator(steps.batch(agents))
            np.testing.assert_array_equal(found, np.stack([alone[agent] for agent in agents]), err_msg=name)
        part = steps.batch(range(AGENTS)).where(steps.batch(range(AGENTS)).agent % 3 == 1)
        if "draw" not in name and "each" not in name and name != "sample_size":
            expected = np.stack([alone[agent] for agent in range(1, AGENTS, 3)])
            np.testing.assert_array_equal(operator(part), expected, err_msg=name)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_of_a_batch_is_that_of_its_agents(mechanism):
    steps = Steps(mechanism=mechanism)
    alone = np.stack([perturbed(steps.one(agent), np.zeros(4)) for agent in range(AGENTS)])
    assert (np.any(alone, axis=1) == (steps.task.train.counts > 0)).all()
    for agents in SIZES:
        np.testing.assert_array_equal(perturbed(steps.batch(agents), np.zeros((len(agents), 4))), alone[agents])


def test_operators_are_what_they_say():
    steps = Steps(mechanism=None, norm=None)
    for agent in range(AGENTS):
        me, shard = steps.one(agent), steps.task.train.shard(agent)
        edges, loss = steps.graph.edges_of(agent), steps.task.loss
        index, weights = steps.plan.reads[edges], steps.graph.weights[edges]
        heard = np.where(index[:, None] >= 0, steps.pool[index], me.model)
        np.testing.assert_array_equal(me.heard, heard)
        np.testing.assert_array_equal(me.was_heard, index >= 0)
        close = {"rtol": 1e-12, "atol": 1e-12}
        np.testing.assert_allclose(heard_sum(me), heard.sum(axis=0), **close)
        if len(weights):
            np.testing.assert_allclose(average(me), weights @ heard / weights.sum(), **close)
            np.testing.assert_array_equal(heard_of(me, -1), heard[-1])
        np.testing.assert_allclose(weighted_sum(me, weights), weights @ heard, **close)
        decay = steps.task.regularisation[agent]
        np.testing.assert_allclose(local_gradient(me, me.model), gradient_of(me.model, shard, loss, decay), **close)
        np.testing.assert_allclose(loss_gradient(me, me.model), gradient_of(me.model, shard, loss, 0.0), **close)
        expected, _ = minimise_local(
            shard, loss, weight=1.0, curvature=0.5, linear=me.model, start=me.model, tolerance=1e-10
        )
        found = minimised(me, 1.0, 0.5, me.model, np.zeros(4), 1e-10)
        np.testing.assert_allclose(found, expected, atol=1e-9)
        assert len(draw_rows(me, 2)) == min(2, len(shard))
        assert set(draw_each(me, 0.5).tolist()) <= set(range(len(shard)))
        if not len(shard):
            continue
        ranks, scores = np.array([0, -1, 0]), shard.features @ me.model
        np.testing.assert_allclose(scores_of(me, me.model, ranks), scores[ranks], **close)
        np.testing.assert_allclose(sum_of_rows(me, scores), shard.features.T @ scores, **close)
        np.testing.assert_allclose(slopes(me, scores), loss.slope(scores, shard.labels), **close)
        np.testing.assert_allclose(bends(me, scores), loss.second_slope(scores, shard.labels), **close)
        sample = Shard(shard.features[ranks], shard.labels[ranks])
        found = loss_gradient(me, me.model, ranks)
        np.testing.assert_allclose(found, gradient_of(me.model, sample, loss, 0.0), **close)


EXTREME = [np.nan, np.inf, -1.0, 0.0, 3.0, 1e155, -1e-200]


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_examples_are_clipped_whatever_their_rows_and_count_as_zero_without_a_direction(loss, norm):
    rows = np.array([*itertools.product(EXTREME, repeat=2)])

    def wild(features):
        places = np.arange(len(features))
        made = features.copy()
        made[:, :2] = rows[places % len(rows)]
        return made

    steps = Steps(loss, features=wild, mechanism="gaussian", norm=norm)
    models = np.random.default_rng(1).normal(size=(AGENTS, 4))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        found = loss_gradient(steps.batch(range(AGENTS)), models)
        assert np.isfinite(found).all()
        for agent in range(AGENTS):
            shard = steps.task.train.shard(agent)
            expected = clipped_gradient(models[agent], shard, LOSSES[loss], 0.0, norm, BOUND)
            np.testing.assert_allclose(found[agent], expected, rtol=1e-12, atol=1e-15)


WRONG = {
    "local_gradient": lambda me, p, rows: local_gradient(me, np.ones(p + 1)),
    "loss_gradient": lambda me, p, rows: loss_gradient(me, np.ones((p, p))),
    "row behind the last": lambda me, p, rows: loss_gradient(me, me.model, np.array([rows])),
    "row before the first": lambda me, p, rows: loss_gradient(me, me.model, np.array([-rows - 1])),
    "rows by numbers": lambda me, p, rows: loss_gradient(me, me.model, np.array([0.0])),
    "rows by a mask": lambda me, p, rows: loss_gradient(me, me.model, np.ones(rows, dtype=bool)),
    "minimised": lambda me, p, rows: minimised(me, 1.0, 1.0, np.ones(p + 1), me.model, 1e-9),
    "start": lambda me, p, rows: minimised(me, 1.0, 1.0, me.model, np.ones(p - 1), 1e-9),
    "perturbed_minimiser": lambda me, p, rows: perturbed_minimiser(me, 1.0, 1.0, me.model, np.ones(p + 1), 1e-9, 0.5),
    "weighted_sum": lambda me, p, rows: weighted_sum(me, np.ones(me.degree - 1)),
    "segment_sum": lambda me, p, rows: segment_sum(me, np.ones((me.degree + 1, p))),
    "heard_of": lambda me, p, rows: heard_of(me, me.degree),
    "heard_of before": lambda me, p, rows: heard_of(me, -me.degree - 1),
    "slopes": lambda me, p, rows: slopes(me, np.ones(1)),
    "bends": lambda me, p, rows: bends(me, np.ones(1)),
    "scores_of": lambda me, p, rows: scores_of(me, me.model, np.ones(rows + 1, dtype=bool)),
    "sum_of_rows": lambda me, p, rows: sum_of_rows(me, np.ones(rows), np.array([rows])),
    "rows_minimised": lambda me, p, rows: rows_minimised(me, 1.0, np.ones(1)),
    "add_scaled": lambda me, p, rows: add_scaled(me.model, 0.5, np.ones(p - 1)),
    "take_in": lambda me, p, rows: take_in(me.model, np.ones(p), np.ones(1)),
}
TOGETHER = {
    "local_gradient": lambda me: local_gradient(me, np.ones(4)),
    "minimised": lambda me: minimised(me, 1.0, 1.0, me.model[:-1], me.model, 1e-9),
    "perturbed": lambda me: perturbed(me, np.ones((2, 4))),
    "weighted_sum": lambda me: weighted_sum(me, me.weights[1:]),
    "segment_sum": lambda me: segment_sum(me, me.model),
    "a column of other agents": lambda me: minimised(me, np.ones((3, 1)), 1.0, me.model, me.model, 1e-9),
}


@pytest.fixture(scope="module")
def steps():
    return Steps()


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_one_agent_is_refused(name, steps):
    agent = 1  # which has seven rows
    with pytest.raises((ValueError, IndexError)):
        WRONG[name](steps.one(agent), 4, 7)


@pytest.mark.parametrize("name", TOGETHER)
def test_what_does_not_fit_a_batch_is_refused(name, steps):
    with pytest.raises(ValueError, match=r"shape|values"):
        TOGETHER[name](steps.batch(range(AGENTS)))


@pytest.mark.parametrize("bound", [0.5, 2.0, 1e-60, 1e150, np.inf])
def test_vectors_are_clipped_and_never_stay_longer(bound):
    for vector in ([0.0, 0.0], [0.3, -0.4], [3.0, -4.0, 1e-9], [1e160, 2.0], [1e-200, 1e-170], [1.0, np.nan], []):
        given = np.array(vector)
        found = clipped(given, bound)
        if np.isinf(bound):
            assert found is given
        else:
            np.testing.assert_array_equal(found, clip_rows(given[None, :], bound)[0])
            assert norms(found[None, :])[0] <= bound


def test_rows_are_minimised_one_by_one(steps):
    me = steps.one(1)
    linear = np.random.default_rng(4).normal(size=7) * 10.0 ** np.arange(-3, 4)
    found = rows_minimised(me, 0.3, linear)
    np.testing.assert_array_equal(found, minimise_rows(steps.task.loss, me.labels, curvature=0.3, linear=linear))
    assert (abs(slopes(me, found) + 0.3 * found - linear) <= 1e-9 + 1e-13 * abs(linear)).all()


def test_a_factor_solves_and_has_to_fit():
    rng = np.random.default_rng(5)
    for size in (1, 2, 7):
        matrix = rng.normal(size=(size, size))
        matrix = matrix @ matrix.T + np.eye(size)
        factor, right = np.linalg.cholesky(matrix).ravel(), rng.normal(size=size)
        np.testing.assert_allclose(matrix @ solved_by(factor, right), right, atol=1e-10)
        with pytest.raises(ValueError, match="as many numbers as the square"):
            solved_by(factor, np.ones(size + 1))
