"""Steps over split features: engines agree, and they are what methods were; kinds that only some agents send."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hushnet.agents.availability import Always
from hushnet.agents.errors import StepFailure
from hushnet.protocols.algorithms.feature_sgd import FeatureSgd, FeatureSgdParameters
from hushnet.protocols.algorithms.feature_sharing import FeatureSharing, FeatureSharingParameters
from hushnet.protocols.algorithms.split_features import widths
from hushnet.protocols.algorithms.stale_feature_sharing import StaleFeatureSharing, StaleFeatureSharingParameters
from hushnet.protocols.base import Layout, MessageKind
from hushnet.protocols.steps import Constants, heard_of, heard_sum, scores_of, sum_of_rows
from hushnet.simulator.network.clocks import Periodic, Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop

from ..engine.driving import drive, fast_world
from .columns import split_task, star
from .random_worlds import AWAY, LATE, check_engines_agree

SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 30))]
PLANNED, ONE_BY_ONE = "batched (planned steps)", "event, because "


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


def engine_of(spec: Any) -> str:
    """How steps are made, as far as the protocol and its budget say."""
    if spec.kind == "stale_feature_sharing":
        return f"{ONE_BY_ONE}StaleFeatureSharing decides by numbers what a step sends"
    limited = spec.kind == "feature_sharing" and spec.privacy is not None and spec.privacy.updates is not None
    return f"{ONE_BY_ONE}FeatureSharing asks for its budget" if limited else PLANNED


@pytest.mark.parametrize(
    ("protocol", "parameters"),
    [(FeatureSgd, sgd_parameters), (FeatureSharing, sharing_parameters), (StaleFeatureSharing, stale_parameters)],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_engines_agree_in_random_worlds(seed, protocol, parameters):
    spec = parameters(seed)
    world = check_engines_agree(random_columns(seed), protocol, spec, engine=engine_of(spec))
    assert world.activations >= 10


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

    def sends(self):
        return {}

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

    world = check_engines_agree(setting, Partial, sgd_parameters(seed), engine=PLANNED)
    seen, parties = world.state.agent["seen"].rows, world.ledger.agents - 1
    assert seen[0, 1:3].tolist() == [3 * parties, 0]
    assert (seen[1:, 1:3] == [0, 2]).all()
    assert (seen[:, 0] != 0).all()


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Wrong, "the layout has no message of kind 'own' for this agent to send"),
        (OtherRow, "IndexError"),
        (OtherLength, "ValueError"),
    ],
)
def test_what_does_not_fit_ends_the_run_with_one_sentence(kind, why):
    world = fast_world(random_columns(0)(), kind, sgd_parameters(0))
    with pytest.raises(StepFailure, match=why):
        drive(world)
