"""Operators: an agent's row of a batch has the bits that it has alone; values; and what does not fit is refused."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hushnet.agents.clipping import clip_rows, norms
from hushnet.agents.losses import LOSSES, clipped_gradient
from hushnet.agents.losses import local_gradient as gradient_of
from hushnet.agents.losses import local_loss as loss_of
from hushnet.agents.optimisation.solvers import minimise_local
from hushnet.agents.optimisation.splitting import minimise_rows
from hushnet.agents.tables import Shard
from hushnet.protocols.steps import (
    accumulate,
    add_scaled,
    average,
    batched,
    bends,
    choice,
    clipped,
    draw_each,
    draw_rows,
    heard_of,
    heard_sum,
    local_gradient,
    local_loss,
    loss_gradient,
    median,
    minimised,
    mixed,
    mixing_weights,
    normal,
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
    trimmed_mean,
    uniform,
    weighted_sum,
)
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world, prepared
from .noisy_steps import BOUND, Noisy, NoisyParameters
from .random_worlds import random_graph, random_setting, random_task

AGENTS = 11


def setting_of(loss, features=None):
    """Eleven agents, of which the first has no data and the last no neighbours."""
    rng = np.random.default_rng(5)
    task = random_task(rng, loss=loss, dimension=4, agents=AGENTS)
    if features is not None:
        train = dataclasses.replace(task.train, features=features(task.train.features))
        task = dataclasses.replace(task, train=train)
    made = random_setting(5, loss=loss, easy=True)()
    stop = dataclasses.replace(made.stop, time=6.0)
    return dataclasses.replace(made, task=task, graph=random_graph(rng, AGENTS, alone=True), stop=stop)


def run(kind, *, event=False, loss="logistic", features=None, **fields):
    """A world after its run."""
    given = setting_of(loss, features), kind, NoisyParameters(**fields)
    return drive(prepared(World(*given), EventEngine()) if event else fast_world(*given))


def column_of(values):
    """Values over edges as a column, of one agent or of a batch."""
    return np.reshape(values, (-1, 1))


OPERATORS = {
    "average": average,
    "heard_sum": heard_sum,
    "weighted_sum": lambda me: weighted_sum(me, 2.0 * me.weights),
    "median": median,
    "trimmed_mean": lambda me: trimmed_mean(me, np.minimum(1, np.maximum(me.degree - 1, 0) // 2)),
    "mixed": lambda me: mixed(me, me.model, me.weights / 7.0),
    "uniform": lambda me: uniform(me) + uniform(me, 4),
    "normal": lambda me: normal(me, 4) + normal(me),
    "choice": lambda me: choice(me, 2 + me.degree) + choice(me, 4 + me.degree, 4),
    "local_loss": lambda me: local_loss(me, me.model),
    "age": lambda me: segment_sum(me, column_of(np.where(me.was_heard, me.age, 7.0))),
    "is_new": lambda me: segment_sum(me, column_of(me.is_new)),
    "segment_sum": lambda me: segment_sum(me, received(me) - per_edge(me, me.model)),
    "local_gradient": lambda me: local_gradient(me, me.model),
    "loss_gradient": lambda me: loss_gradient(me, 2 * me.model),
    "loss_gradient of drawn rows": lambda me: loss_gradient(me, me.model, draw_rows(me, 2)),
    "loss_gradient of one drawn row": lambda me: loss_gradient(me, me.model, draw_rows(me, 1)),
    "loss_gradient of rows drawn each": lambda me: loss_gradient(me, me.model, draw_each(me, 1 / (1 + me.rows))),
    "size of a drawn sample": lambda me: sample_size(me, draw_each(me, 0.5)),
    "minimised": lambda me: minimised(me, 1.0, 0.5 + me.degree, average(me), me.model, 1e-9),
    "perturbed": lambda me: perturbed(me, me.model) + perturbed(me, me.model),
    "perturbed_minimiser": lambda me: perturbed_minimiser(me, 1.0, 0.5, average(me), me.model, 1e-9, 0.3),
    "clipped": lambda me: clipped(me.model, 0.5),
}
SIZES = set()


class All(Noisy):
    """Keeps what all operators come to, of one agent."""

    asks_what_is_new = True

    def layout(self):
        p, made = self.problem.task.dimension, super().layout()
        return dataclasses.replace(made, agent={"model": p, "found": p * len(OPERATORS), "part": p * len(OPERATORS)})

    def start(self, me):
        me.model = 1.0 + me.agent
        super().start(me)

    @staticmethod
    def step(me):
        me.found = np.concatenate([one(me) * np.ones(4) for one in OPERATORS.values()])
        if me.agent % 3 == 1:
            me.part = np.concatenate([one(me) * np.ones(4) for one in OPERATORS.values()])
        me.model = (average(me) + perturbed(me, me.model)) / (2 + me.updates)
        me.message = me.model


class AllTogether(All):
    """The same of a batch."""

    @staticmethod
    @batched
    def step(me):
        SIZES.add(len(me.model))
        me.found = np.concatenate([one(me) * np.ones(4) for one in OPERATORS.values()], axis=1)
        part = me.where(me.agent % 3 == 1)
        part.part = np.concatenate([one(part) * np.ones(4) for one in OPERATORS.values()], axis=1)
        me.model = (average(me) + perturbed(me, me.model)) / (2 + me.updates)
        me.message = me.model


@pytest.mark.parametrize("schedule", ["async", "rounds"])
@pytest.mark.parametrize(
    ("loss", "fields"),
    [
        ("logistic", {"mechanism": "laplace", "norm": "l1"}),
        ("squared", {"mechanism": "gaussian", "norm": "l2"}),
        ("hinge", {"mechanism": None, "norm": None}),
        ("smoothed_hinge", {"mechanism": "gamma", "norm": None}),
    ],
)
def test_a_row_of_a_batch_has_the_bits_that_it_has_alone_on_either_engine(loss, fields, schedule):
    SIZES.clear()
    alone = run(All, event=True, loss=loss, schedule={"kind": schedule}, **fields).state.agent
    for kind in (All, AllTogether):
        for event in (False, True):
            world = run(kind, event=event, loss=loss, schedule={"kind": schedule}, **fields)
            for name in ("model", "found", "part"):
                np.testing.assert_array_equal(world.state.agent[name].rows, alone[name].rows, err_msg=name)
    assert {1} < SIZES
    assert max(SIZES) >= (10 if schedule == "rounds" else 3)
    assert np.isfinite(alone["found"].rows).all()
    assert (np.abs(alone["found"].rows.reshape(AGENTS, -1, 4)).sum(axis=(0, 2)) > 0).all()


def test_mixing_weights_have_names():
    graph = random_graph(np.random.default_rng(5), AGENTS, alone=True)
    for rule, doubly in (("metropolis", True), ("lazy", True), ("uniform", False), ("column_uniform", True)):
        matrix = np.zeros((AGENTS, AGENTS))
        matrix[graph.tails, graph.heads] = mixing_weights(graph, rule)
        if rule == "column_uniform":
            matrix += np.diag(1 - matrix.sum(axis=0))  # what j keeps is of its own column
        else:
            matrix += np.diag(1 - matrix.sum(axis=1))
        assert (matrix.diagonal() > 0).all()
        assert np.allclose(matrix.sum(axis=0), 1) == doubly
        if rule == "lazy":
            assert np.linalg.eigvalsh(matrix).min() >= -1e-12
        if rule == "uniform":
            alike = np.isclose(matrix, matrix.diagonal()[:, None]) | (matrix == 0)
            assert alike.all()


class Checks(All):
    """Computes again with NumPy what operators come to."""

    @staticmethod
    def step(me):
        task, close = TASK["task"], {"rtol": 1e-12, "atol": 1e-12}
        shard, loss, model, heard = Shard(me.features, me.labels), task.loss, me.model, me.heard
        np.testing.assert_array_equal(heard[~me.was_heard], np.broadcast_to(model, (sum(~me.was_heard), 4)))
        np.testing.assert_allclose(heard_sum(me), heard.sum(axis=0), **close)
        assert uniform(me).shape == normal(me).shape == ()
        assert (len(uniform(me, 3)), len(normal(me, 0)), len(choice(me, 9, 2))) == (3, 0, 2)
        assert sorted(choice(me, 5, 5)) == [0, 1, 2, 3, 4]
        np.testing.assert_allclose(local_loss(me, model), loss_of(model, shard, loss, me.regularisation), **close)
        around = heard if me.degree else model[None]
        np.testing.assert_allclose(median(me), np.median(around, axis=0), **close)
        cut = (len(around) - 1) // 2
        for few in range(cut + 1):
            kept = np.sort(around, axis=0)[few : len(around) - few]
            np.testing.assert_allclose(trimmed_mean(me, few), kept.mean(axis=0), **close)
        mixing = me.weights / 7.0
        np.testing.assert_allclose(mixed(me, model, mixing), (1 - mixing.sum()) * model + mixing @ heard, **close)
        np.testing.assert_array_equal(np.isinf(me.age), ~me.was_heard)
        assert (me.age >= 0.0).all()
        np.testing.assert_array_equal(me.is_new[~me.was_heard], False)
        np.testing.assert_allclose(weighted_sum(me, me.weights), me.weights @ heard, **close)
        np.testing.assert_allclose(segment_sum(me, heard), heard.sum(axis=0), **close)
        if me.degree:
            np.testing.assert_allclose(average(me), me.weights @ heard / me.weights.sum(), **close)
            np.testing.assert_array_equal(heard_of(me, -1), heard[-1])
        gradient = gradient_of(model, shard, loss, me.regularisation)
        np.testing.assert_allclose(local_gradient(me, model), gradient, **close)
        found = minimised(me, 1.0, 0.5, model, np.zeros(4), 1e-10)
        terms = {"weight": 1.0, "curvature": 0.5, "linear": model, "start": model, "tolerance": 1e-10}
        np.testing.assert_allclose(found, minimise_local(shard, loss, **terms)[0], atol=1e-9)
        assert len(draw_rows(me, 2)) == sample_size(me, draw_rows(me, 2)) == min(2, me.rows)
        assert set(draw_each(me, 0.5).tolist()) <= set(range(me.rows))
        if me.rows:
            ranks, scores = np.array([0, -1, 0]), me.features @ model
            np.testing.assert_allclose(scores_of(me, model, ranks), scores[ranks], **close)
            np.testing.assert_allclose(sum_of_rows(me, scores), me.features.T @ scores, **close)
            np.testing.assert_allclose(slopes(me, scores), loss.slope(scores, me.labels), **close)
            np.testing.assert_allclose(bends(me, scores), loss.second_slope(scores, me.labels), **close)
            sample = Shard(me.features[ranks], me.labels[ranks])
            np.testing.assert_allclose(loss_gradient(me, model, ranks), gradient_of(model, sample, loss, 0.0), **close)
            linear = np.geomspace(1e-3, 1e3, me.rows)
            each = rows_minimised(me, 0.3, linear)
            np.testing.assert_array_equal(each, minimise_rows(loss, me.labels, curvature=0.3, linear=linear))
            assert (abs(slopes(me, each) + 0.3 * each - linear) <= 1e-9 + 1e-13 * linear).all()
        me.model = average(me) / 2 + 1.0
        me.message = me.model


TASK = {"task": setting_of("logistic").task}


@pytest.mark.parametrize("event", [False, True])
def test_operators_come_to_what_they_say(event):
    assert run(Checks, event=event, mechanism=None, norm=None).activations > 30


EXTREME = [np.nan, np.inf, -1.0, 0.0, 3.0, 1e155, -1e-200]


class Gradients(Noisy):
    """Keeps the gradient at a model of its own."""

    @staticmethod
    @batched
    def step(me):
        me.model = loss_gradient(me, np.arange(1.0, 5.0) + me.agent)
        me.message = perturbed(me, 0.0 * me.model)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_examples_are_clipped_whatever_their_rows_and_count_as_zero_without_a_direction(loss, norm):
    rows = np.array([*itertools.product(EXTREME, repeat=2)])

    def wild(features):
        places = np.arange(len(features))
        made = features.copy()
        made[:, :2] = rows[places % len(rows)]
        return made

    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        world = run(Gradients, loss=loss, features=wild, mechanism="gaussian", norm=norm)
        found, task = world.state.agent["model"].rows, world.setting.task
        for agent in range(AGENTS):
            shard = task.train.shard(agent)
            expected = clipped_gradient(np.arange(1.0, 5.0) + agent, shard, task.loss, 0.0, norm, BOUND)
            np.testing.assert_allclose(found[agent], expected, rtol=1e-12, atol=1e-15)
    assert np.isfinite(found).all()


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
    "trimmed_mean": lambda me, p, rows: trimmed_mean(me, (me.degree + 1) // 2),
    "trimmed_mean of a part": lambda me, p, rows: trimmed_mean(me, 0.5),
    "trimmed_mean by a debt": lambda me, p, rows: trimmed_mean(me, -1),
    "mixed": lambda me, p, rows: mixed(me, me.model, np.ones(me.degree + 1)),
    "mixing_weights": lambda me, p, rows: mixing_weights(me.tables_.graph, "metropolitan"),
    "local_loss": lambda me, p, rows: local_loss(me, np.ones(p + 1)),
    "uniform": lambda me, p, rows: uniform(me, -1),
    "normal": lambda me, p, rows: normal(me, 2.0),
    "choice": lambda me, p, rows: choice(me, 3, 4),
    "choice of none": lambda me, p, rows: choice(me, 0),
    "choice of a part": lambda me, p, rows: choice(me, 2.5),
    "draw_rows": lambda me, p, rows: draw_rows(me, 0.5),
    "heard_of": lambda me, p, rows: heard_of(me, me.degree),
    "heard_of before": lambda me, p, rows: heard_of(me, -me.degree - 1),
    "slopes": lambda me, p, rows: slopes(me, np.ones(1)),
    "bends": lambda me, p, rows: bends(me, np.ones(1)),
    "scores_of": lambda me, p, rows: scores_of(me, me.model, np.ones(rows + 1, dtype=bool)),
    "sum_of_rows": lambda me, p, rows: sum_of_rows(me, np.ones(rows), np.array([rows])),
    "rows_minimised": lambda me, p, rows: rows_minimised(me, 1.0, np.ones(1)),
    "add_scaled": lambda me, p, rows: add_scaled(me.model, 0.5, np.ones(p - 1)),
    "accumulate": lambda me, p, rows: accumulate(me.model, np.ones(p), np.ones(1)),
}
TOGETHER = {
    "local_gradient": lambda me: local_gradient(me, np.ones(4)),
    "minimised": lambda me: minimised(me, 1.0, 1.0, me.model[:-1], me.model, 1e-9),
    "perturbed": lambda me: perturbed(me, np.ones((2, 4))),
    "weighted_sum": lambda me: weighted_sum(me, me.weights[1:]),
    "segment_sum": lambda me: segment_sum(me, me.model),
    "trimmed_mean": lambda me: trimmed_mean(me, np.ones((3, 1), dtype=int)),
    "mixed": lambda me: mixed(me, me.model, me.weights[1:]),
    "choice": lambda me: choice(me, np.ones((3, 1), dtype=int)),
    "a column of other agents": lambda me: minimised(me, np.ones((3, 1)), 1.0, me.model, me.model, 1e-9),
}


class Misfits(Noisy):
    """Gives operators what they cannot take."""

    @staticmethod
    def step(me):
        if me.agent == 1:  # which has seven rows, and neighbours
            for name, call in WRONG.items():
                with pytest.raises((ValueError, IndexError)):
                    pytest.fail(f"{name} came to {call(me, 4, 7)}")
        me.message = perturbed(me, me.model)


class MisfitsTogether(Noisy):
    """The same of a batch."""

    @staticmethod
    @batched
    def step(me):
        if len(me.model) > 3:
            SIZES.add(len(me.model))
            for name, call in TOGETHER.items():
                with pytest.raises(ValueError, match=r"shape|values|weights"):
                    pytest.fail(f"{name} came to {call(me)}")
        me.message = perturbed(me, me.model)


@pytest.mark.parametrize("event", [False, True])
def test_what_does_not_fit_an_agent_is_refused(event):
    assert run(Misfits, event=event).updates[1] > 0


def test_what_does_not_fit_a_batch_is_refused():
    SIZES.clear()
    run(MisfitsTogether)
    assert SIZES


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


def test_a_factor_solves_and_has_to_fit():
    rng = np.random.default_rng(5)
    for size in (1, 2, 7):
        matrix = rng.normal(size=(size, size))
        matrix = matrix @ matrix.T + np.eye(size)
        factor, right = np.linalg.cholesky(matrix).ravel(), rng.normal(size=size)
        np.testing.assert_allclose(matrix @ solved_by(factor, right), right, atol=1e-10)
        with pytest.raises(ValueError, match="as many numbers as the square"):
            solved_by(factor, np.ones(size + 1))
