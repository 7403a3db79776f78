"""Planned steps do what they do one by one, in any batch: the contract compares, and a proof rests on it."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.protocols import catalog
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.steps import average, batched, local_gradient, perturbed
from hushnet.simulator.contract import ContractViolation
from hushnet.simulator.contract.bench import protocol_parameters, run_small
from hushnet.simulator.contract.engine_checks import AGENTS, Cut, check_engines, functions_of

from ..protocols.test_contract import SHIPPED
from .mutations import LIST, planted
from .sampled_gossip import Texts, fields_of, verdict_of

GIVEN = {"mechanism": "gaussian", "multiplier": 2.0, "updates": 5, "clip": 0.2}
MORE = {
    "ad_psgd": [{"momentum": 0.5}],
    "choco_sgd": [{"keep": 2}, {"compression": "random_k", "batch": 2}, {"compression": "quantise", "levels": 3}],
    "collaborative_admm": [{"mu": 0.5}],
    "coordinate_descent": [{"mu": 0.5, "privacy": GIVEN}],
    "decentralised_sgd": [
        {"order": "adapt_then_combine", "local_steps": 3, "batch": 2},
        {"privacy": {**GIVEN, "unit": "agent"}, "shared_noise": 2.0, "seeds_lost": 0.2},
        {"order": "adapt_then_combine", "gossip_steps": 3, "gossip": "chebyshev", "privacy": GIVEN},
    ],
    "dual_averaging": [
        {"privacy": GIVEN, "sampling": "full", "gamma": 1.0},
        {"privacy": GIVEN, "batch": 2, "gamma": 1.0},
    ],
    "muffliato": [
        {},
        {"gossip": "simple", "schedule": "async", "privacy": {**GIVEN, "updates": 1}, "shared_noise": 2.0},
    ],
    "push_sum_dual_averaging": [{"batch": 2, "gamma": 1.0}, {"privacy": GIVEN, "batch": 2, "gamma": 1.0}],
}
"""Parameters of shipped protocols with steps in batches, beside those that `test_contract` compares with all else."""


def test_every_shipped_protocol_with_steps_in_batches_is_compared():
    kinds = {kind: catalog.resolve(kind) for kind in catalog.PROTOCOLS}
    batches = {kind for kind, made in kinds.items() if any(hasattr(one, "is_batched") for one in functions_of(made))}
    assert batches <= MORE.keys() | {kind for kind, _ in SHIPPED}


@pytest.mark.parametrize("kind", MORE)
def test_steps_of_shipped_protocols_are_the_same_in_every_batch(kind):
    protocol = catalog.resolve(kind)
    for fields in MORE[kind]:
        check_engines(protocol, protocol_parameters(protocol, fields))


def moved(me):
    return (1 - me.alpha) * me.model + me.alpha * (average(me) - me.mu_c * perturbed(me, local_gradient(me, me.model)))


class ByHand(CoordinateDescent):
    """Coordinate descent, to be made wrong."""

    start = CoordinateDescent.start
    last: list = []  # noqa: RUF012


def violation(step, **fields):
    made = type("Mine", (ByHand,), {"step": staticmethod(step)})
    with pytest.raises(ContractViolation) as found:
        check_engines(made, protocol_parameters(made, {"mu": 0.5, **fields}))
    return str(found.value)


MIX, BEFORE = np.linspace(-1.0, 1.0, 9).reshape(3, 3) / 3, [0.0]


def handed_over(me):
    """A number of the batch before."""
    before, BEFORE[0] = BEFORE[0], float(me.model[-1, 0])
    return before


def rounded_otherwise(me):
    return np.asfortranarray(np.repeat(moved(me) @ MIX, 40, axis=1) / 7).sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (lambda me: moved(me) / (1 + np.sum(me.model**2)), "where it reduces over agents, give axis"),
        (lambda me: moved(me) + 1e-6 * handed_over(me), "differ"),
        (
            lambda me: moved(me) + 1e-6 * (np.arange(len(me.model))[:, None] > 0),
            "in batches of 2 differ from steps one by one in model",
        ),
        (lambda me: rounded_otherwise(me) + me.model, "is rounded otherwise, use the operators"),
    ],
    ids=["a sum over all agents", "what a step hands over to the next batch", "the order of agents", "rounding"],
)
def test_what_depends_on_the_batch_is_found_and_says_what_to_do(model, said):
    @batched
    def step(me):
        me.model = model(me)
        me.message = me.model

    assert said in violation(step)


def test_a_step_in_batches_that_sends_otherwise_than_declared_is_found():
    @batched
    def step(me):
        me.model = moved(me)
        if np.all(me.updates < 3):
            me.message = me.model

    assert "against what Mine declares by sends: Every(period=1, phase=0)" in violation(step)


def test_plain_steps_are_compared_too():
    def step(me):
        me.model = moved(me)
        me.message = me.model

    made = type("Mine", (ByHand,), {"step": staticmethod(step)})
    check_engines(made, protocol_parameters(made, {"mu": 0.5, "privacy": GIVEN}))
    with planted(LIST["planned-scale-halved"].plant):
        assert "steps that are planned differ from steps one by one" in violation(step, privacy=GIVEN)


def test_batches_are_as_wide_as_asked():
    for engine, widest in ((Cut(1), 1), (Cut(2), 2), (Cut(7), 7), (Cut(), AGENTS)):
        seen = set()

        @batched
        def step(me):
            seen.add(len(me.model))  # noqa: B023
            me.model = moved(me)
            me.message = me.model

        made = type("Mine", (ByHand,), {"step": staticmethod(step)})
        fields = {"mu": 0.5, "schedule": "rounds"}
        run_small(made, protocol_parameters(made, fields), engine=engine, agents=AGENTS)
        assert max(seen) == widest


class LeaksInBatches(Texts):
    """Its proof would be right of every agent alone."""

    @staticmethod
    @batched
    def step(me):
        exact = local_gradient(me, me.model)
        me.model = me.model - 0.1 * (perturbed(me, exact) + (exact - exact.mean(axis=0)))
        me.message = me.model


def test_an_epsilon_of_steps_that_differ_in_batches_is_not_verified():
    verdict = verdict_of(LeaksInBatches, fields_of("gaussian"), engine="auto")
    assert verdict.status == "failed"
    assert "an agent's step must not depend on who else is in its batch" in verdict.details
