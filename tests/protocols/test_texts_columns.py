"""Protocols over split features run the same as Python and compiled, and as their methods did before they were texts.

Updates, traffic and charges are equal, models to 1e-10.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hushnet.agents.availability import Always
from hushnet.agents.clipping import norms
from hushnet.agents.errors import StepFailure
from hushnet.agents.losses import LOSSES
from hushnet.agents.optimisation.splitting import minimise_rows
from hushnet.protocols.algorithms.feature_sgd import FeatureSgd, FeatureSgdParameters
from hushnet.protocols.algorithms.feature_sharing import FeatureSharing, FeatureSharingParameters
from hushnet.protocols.algorithms.split_features import widths
from hushnet.protocols.algorithms.stale_feature_sharing import StaleFeatureSharing, StaleFeatureSharingParameters
from hushnet.protocols.base import Layout, MessageKind
from hushnet.protocols.steps import (
    Constants,
    clipped,
    heard_of,
    heard_sum,
    rows_minimised,
    scores_of,
    solved_by,
    sum_of_rows,
)
from hushnet.protocols.steps.word_form import Categories, NoForm
from hushnet.simulator.contract.charges import books_of
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.network.clocks import Periodic, Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world, prepared
from ..oracles.feature_sgd import FeatureSgdByWake
from ..oracles.feature_sharing import FeatureSharingByWake
from ..oracles.stale_feature_sharing import StaleFeatureSharingByWake
from .columns import split_task, star
from .text_worlds import AWAY, LATE, check_forms

SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 30))]


def random_columns(seed: int, *, time: float = 25.0) -> Callable[[], Setting]:
    """Makes the same setting again and again: a star around the labels, with loss, delays and absences or without."""
    rng = np.random.default_rng(seed)
    loss = str(rng.choice(["logistic", "smoothed_hinge"]))
    task = split_task(
        rng.integers(1, 5, int(rng.integers(1, 6))).tolist(), int(rng.integers(1, 30)), loss=loss, seed=seed
    )
    graph = star(task)
    network = dict(LATE) if rng.random() < 0.7 else {}
    if rng.random() < 0.4:
        network["loss"] = 0.15
    away = rng.random() < 0.4
    clock = Periodic(kind="periodic") if rng.random() < 0.3 else Poisson(kind="poisson")
    return lambda: Setting(
        task=task,
        graph=graph,
        clock=clock,
        network=NetworkParameters.model_validate(network),
        availability=AWAY if away else Always(kind="always"),
        stop=Stop(time=time),
        draws=Draws(seed),
    )


def sgd_parameters(seed: int) -> FeatureSgdParameters:
    rng = np.random.default_rng(1000 + seed)
    fields = {"batch": int(rng.integers(1, 40)), "ridge": float(rng.choice([0.0, 1.0])), "step_size": 0.4}
    return FeatureSgdParameters.model_validate(
        {"kind": "feature_sgd", **fields, "decay": float(rng.choice([0.0, 0.1]))}
    )


def check_equal(text: World, method: World) -> None:
    assert text.activations == method.activations
    assert text.traffic == method.traffic
    assert [agent.updates for agent in text.agents] == [agent.updates for agent in method.agents]
    assert [agent.silent for agent in text.agents] == [agent.silent for agent in method.agents]
    for agent in range(text.ledger.agents):
        assert books_of(text, agent, exact=True) == books_of(method, agent, exact=True)
    for kind in ("agent", "edge"):
        for name, block in getattr(method.state, kind).items():
            if name in ("factor", "root"):
                continue  # which the method kept outside the state
            values = getattr(text.state, kind)[name].values
            np.testing.assert_allclose(values, block.values, rtol=1e-10, atol=1e-10, err_msg=name)


PRIVACY = {"mechanism": "gaussian", "sensitivity": "clip", "clip": 2.0}
NOISES = [
    {},
    {"privacy": {**PRIVACY, "multiplier": 0.5}},
    {"privacy": {**PRIVACY, "multiplier": 1.0, "updates": 4}},
    {"privacy": {**PRIVACY, "target": {"verified": 2.0, "delta": 1e-5}, "updates": 5}},
    {"noise": {"scale": 2.0}},
    {"privacy": {**PRIVACY, "multiplier": 0.0}},
]


def sharing_parameters(seed: int) -> FeatureSharingParameters:
    rng = np.random.default_rng(2000 + seed)
    fields = {"rho": float(rng.choice([0.3, 1.0])), "ridge": float(rng.choice([0.5, 1.0])), **NOISES[seed % 6]}
    fields["order"] = "jacobi" if rng.random() < 0.5 else "gauss_seidel"
    if rng.random() < 0.3:
        fields["parties"] = int(rng.integers(1, 4))
    return FeatureSharingParameters.model_validate({"kind": "feature_sharing", **fields})


def stale_parameters(seed: int) -> StaleFeatureSharingParameters:
    rng = np.random.default_rng(3000 + seed)
    fields = {"rho": float(rng.choice([0.3, 1.0])), "ridge": float(rng.choice([0.5, 1.0]))}
    fields |= {key: value for key, value in NOISES[seed % 6].items() if key == "privacy"}
    fields["staleness"] = [1, 2, 4, "unbounded"][int(rng.integers(4))]
    fields["damping"] = float(rng.choice([0.0, 0.5]))
    return StaleFeatureSharingParameters.model_validate({"kind": "stale_feature_sharing", **fields})


GRADIENTS = pytest.param(FeatureSgd, FeatureSgdByWake, sgd_parameters, id="minibatch-gradients")
SHARING = pytest.param(FeatureSharing, FeatureSharingByWake, sharing_parameters, id="sharing")
STALE = pytest.param(StaleFeatureSharing, StaleFeatureSharingByWake, stale_parameters, id="stale-sharing")
ALL = pytest.mark.parametrize(("protocol", "by_wake", "parameters"), [GRADIENTS, SHARING, STALE])


@ALL
@pytest.mark.parametrize("seed", SEEDS)
def test_all_forms_agree(seed, protocol, by_wake, parameters):
    world = check_forms(random_columns(seed), protocol, parameters(seed))
    assert world.activations >= 10


@ALL
@pytest.mark.parametrize("seed", range(30))
def test_the_text_does_what_the_method_did(seed, protocol, by_wake, parameters):
    make, spec = random_columns(seed), parameters(seed)
    text, method = (drive(prepared(World(make(), kind, spec), EventEngine())) for kind in (protocol, by_wake))
    assert text.activations >= 10
    check_equal(text, method)


class Partial(FeatureSgd):
    """Kinds of messages that only the centre or only parties send, which both read; one differs by party."""

    def layout(self):
        agents = len(self.columns)
        return Layout(
            agent={"model": [len(held) for held in self.columns], "seen": 4},
            messages={
                "own": MessageKind(widths(agents, centre=0, party=3)),
                "share": MessageKind(widths(agents, centre=2, party=0), addressed=True),
            },
        )

    def constants(self):
        return Constants(run={"late": 0.0})

    @staticmethod
    def step(me):
        me.seen[0] += me.heard_own.sum() + heard_sum(me).sum() + me.heard_share.sum()
        me.seen[1], me.seen[2] = me.heard_own.size, me.heard_share.size
        if me.degree > 0:
            me.seen[3] += heard_of(me, 0).sum()
        if me.agent == 0:
            shares = np.ones((me.degree, 2))
            for rank in range(me.degree):
                shares[rank] = rank + me.updates
            me.message_share = shares
        else:
            me.message_own = sum_of_rows(me, scores_of(me, me.features[0]))[0] + np.ones(3) * me.agent


class Wrong(Partial):
    """A party sends what only the centre does."""

    @staticmethod
    def step(me):
        if me.agent == 0 and me.updates > 2:
            me.message_own = 1.0
        elif me.agent > 0:
            me.message_own = np.ones(3)


class OtherRow(Partial):
    """Asks for a row that is not there."""

    @staticmethod
    def step(me):
        if me.updates > 2:
            me.seen[0] = scores_of(me, me.features[0], np.array([len(me.features)]))[0]
        if me.agent > 0:
            me.message_own = np.ones(3)


class OtherLength(Partial):
    """Gives one number too few."""

    @staticmethod
    def step(me):
        if me.updates > 2:
            me.seen[0] = sum_of_rows(me, np.ones(len(me.features) - 1)).sum()
        if me.agent > 0:
            me.message_own = np.ones(3)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_kinds_that_only_some_agents_send_are_heard_as_zeros_where_nobody_sends_them(seed, single):
    make = random_columns(seed)

    def setting():
        made = make()
        train = made.task.train
        features = train.features.astype(np.float32) if single else train.features
        return replace(made, task=replace(made.task, train=replace(train, features=features)))

    world = check_forms(setting, Partial, sgd_parameters(seed))
    seen, parties = world.state.agent["seen"].rows, world.ledger.agents - 1
    assert seen[0, 1:3].tolist() == [3 * parties, 0]
    assert (seen[1:, 1:3] == [0, 2]).all()
    assert (seen[:, 0] != 0).all()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Wrong, "the layout has no message of kind 'own' for this agent to send"),
        (OtherRow, "IndexError"),
        (OtherLength, "ValueError"),
    ],
)
def test_what_does_not_fit_ends_the_run_with_one_sentence(kind, why, compiled):
    world = fast_world(random_columns(0)(), kind, sgd_parameters(0), compiled=compiled)
    with pytest.raises(StepFailure, match=why):
        drive(world)


class Own(NamedTuple):
    """What a word reads of a record."""

    labels: np.ndarray


VECTORS = [
    np.zeros(3),
    np.array([0.3, -0.4]),
    np.array([3.0, -4.0, 1e-9]),
    np.array([1e160, 2.0, -1e159]),
    np.array([1e-200, 1e-170]),
    np.array([1.0, np.nan, 1.0]),
    np.array([np.inf, 1.0]),
    np.empty(0),
]


@pytest.mark.parametrize("bound", [0.5, 2.0, 1e-60, 1e150, np.inf])
def test_vectors_are_clipped_alike_in_both_forms_and_never_stay_longer(bound):
    compiled = clipped.compiled_form.make(Categories(loss="", mechanism="", clip=""))
    for vector in VECTORS:
        expected, found = clipped(vector, bound), compiled(vector, bound)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=0.0)
        if np.isfinite(bound):
            assert norms(found[None, :])[0] <= bound


class Rows(NamedTuple):
    """What a word reads of a record."""

    features: np.ndarray


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", [0, 1, 7, 8, 9, 30])
def test_products_with_rows_are_alike_in_both_forms_whatever_the_width(width, dtype):
    rng = np.random.default_rng(width)
    rows, model, every = Rows(rng.normal(size=(13, width)).astype(dtype)), rng.normal(size=width), rng.normal(size=13)
    scores, summed = (
        word.compiled_form.make(Categories(loss="", mechanism="", clip="")) for word in (scores_of, sum_of_rows)
    )
    features = rows.features.astype(np.float64)
    np.testing.assert_allclose(scores(rows, model), features @ model, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(summed(rows, every), every @ features, rtol=1e-12, atol=1e-12)
    for ranks in (np.array([3, 0, 3, -1, 12, -13]), np.empty(0, dtype=np.int64)):
        weights = every[: len(ranks)]
        np.testing.assert_allclose(scores(rows, model, ranks), features[ranks] @ model, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(summed(rows, weights, ranks), weights @ features[ranks], rtol=1e-12, atol=1e-12)
    for outside in (13, -14):
        for word, given in ((scores, model), (summed, np.ones(2))):
            with pytest.raises(IndexError, match="none of that rank"):
                word(rows, given, np.array([1, outside]))


@pytest.mark.parametrize("loss", ["logistic", "smoothed_hinge"])
def test_rows_are_minimised_alike_in_both_forms(loss):
    rng = np.random.default_rng(4)
    labels, linear = rng.choice([-1.0, 1.0], 200), rng.normal(size=200) * 10.0 ** rng.integers(-3, 7, 200)
    compiled = rows_minimised.compiled_form.make(Categories(loss=loss, mechanism="", clip=""))
    for curvature in (1e-3, 0.3, 50.0):
        found = compiled(Own(labels), curvature, linear)
        expected = minimise_rows(LOSSES[loss], labels, curvature=curvature, linear=linear)
        limit = 1e-9 + 1e-13 * abs(linear)
        assert (abs(LOSSES[loss].slope(found, labels) + curvature * found - linear) <= limit).all()
        assert (abs(found - expected) <= 2 * limit / curvature).all()


def test_rows_of_a_loss_without_a_bracket_have_no_compiled_form():
    with pytest.raises(NoForm, match="the rows of the squared loss have no bracket"):
        rows_minimised.compiled_form.make(Categories(loss="squared", mechanism="", clip=""))


def test_a_factor_solves_alike_in_both_forms_and_has_to_fit():
    rng = np.random.default_rng(5)
    compiled = solved_by.compiled_form.make(Categories(loss="", mechanism="", clip=""))
    for size in (1, 2, 7):
        matrix = rng.normal(size=(size, size))
        matrix = matrix @ matrix.T + np.eye(size)
        factor, right = np.linalg.cholesky(matrix).ravel(), rng.normal(size=size)
        for form in (solved_by, compiled):
            np.testing.assert_allclose(matrix @ form(factor, right), right, atol=1e-10)
            with pytest.raises(ValueError, match="as many numbers as the square"):
                form(factor, np.ones(size + 1))
