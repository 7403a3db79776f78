"""Protocols come to what they are for in small worlds without delays and losses."""

import pytest
from hushnet.protocols.catalog import resolve

from .worlds import example, relative_gap

DUAL = {"sampling": "full", "mu": 0.1, "gamma": 1.0}


@pytest.mark.parametrize(
    ("kind", "fields", "most"),
    [
        ("collaborative_admm", {}, 0.01),
        ("consensus_admm", {}, 0.01),
        ("coordinate_descent", {"mu": 0.5}, 1e-9),
        ("dual_averaging", DUAL, 0.05),
        ("edge_consensus_admm", {}, 0.01),
        ("feature_sgd", {"split": True}, 0.5),
        ("feature_sharing", {"split": True, "rho": 1.0}, 1e-4),
        ("model_propagation", {"time": 250.0}, 0.01),
        ("push_sum_dual_averaging", DUAL, 0.05),
        ("stale_feature_sharing", {"split": True, "rho": 1.0}, 1e-6),
    ],
)
def test_a_protocol_comes_near_the_minimum_of_its_objective(kind, fields, most):
    assert abs(relative_gap(example(resolve(kind), **fields))) < most


@pytest.mark.parametrize("kind", ["local_dp", "local_dp_descent"])
def test_perturbed_examples_keep_to_their_budget(kind):
    privacy = {"mechanism": "laplace", "budget": {"epsilon": 1.0, "delta": 0.0}, "updates": 1, "clip": 1.0}
    assert (example(resolve(kind), privacy=privacy).ledger.epsilon("verified", 1e-5) <= 1.0).all()


def test_who_learns_alone_sends_nothing_and_who_gives_its_rows_away_has_the_model_of_all():
    assert example(resolve("local")).traffic.vectors == 0
    assert example(resolve("solitary")).state.agent["model"].rows.any()
    models = example(resolve("consensus")).state.agent["model"].rows
    assert (models == models[0]).all()


def test_gossip_agrees_and_perturbed_penalties_have_a_finite_epsilon():
    world = example(resolve("muffliato"), gossip="simple", time=200.0)
    assert world.protocol.objective().value(world.protocol.models(world.state)) < 1e-12
    ledger = example(resolve("perturbed_admm"), noise={"alpha": 3.0}).ledger
    assert (ledger.epsilon("verified", 1e-5) < 100).all()
