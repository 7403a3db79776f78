"""Push-sum dual averaging runs the same as Python and compiled: updates and charges exactly, models to 1e-10."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging, PushSumDualAveragingParameters
from hushnet.simulator.contract.charges import books_of
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.world.world import World

from ..engine.driving import drive, prepared
from ..oracles.push_sum import PushSumByWake
from .test_texts_dual_averaging import PRIVACY, parameters
from .text_worlds import check_forms, random_setting


def push_parameters(rng: np.random.Generator, *, privacy, schedule) -> PushSumDualAveragingParameters:
    drawn = parameters(rng, privacy=privacy).model_dump(exclude_unset=True)
    fields = {**drawn, "kind": "push_sum_dual_averaging", "privacy": privacy, "schedule": schedule}
    return PushSumDualAveragingParameters.model_validate(fields)


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 30))])
@pytest.mark.parametrize("schedule", ["async", "rounds"])
def test_all_forms_agree_on_random_worlds(schedule, seed):
    rng = np.random.default_rng(2000 + seed)
    privacy = PRIVACY[seed % len(PRIVACY)]
    losses = ["logistic", "hinge", "smoothed_hinge"] + ["squared"] * (privacy is None)
    make = random_setting(seed, loss=str(rng.choice(losses)), easy=bool(seed % 2))
    world = check_forms(make, PushSumDualAveraging, push_parameters(rng, privacy=privacy, schedule=schedule))
    assert world.activations >= 10


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("schedule", ["async", "rounds"])
def test_the_text_does_what_the_method_did(schedule, seed):
    """Updates, traffic and charges are equal, blocks to 1e-10."""
    rng = np.random.default_rng(3000 + seed)
    privacy = PRIVACY[seed % len(PRIVACY)]
    spec = push_parameters(rng, privacy=privacy, schedule=schedule)
    make = random_setting(seed, loss="logistic", easy=bool(seed % 2))
    text, method = (
        drive(prepared(World(make(), kind, spec), EventEngine())) for kind in (PushSumDualAveraging, PushSumByWake)
    )
    assert text.activations == method.activations >= 10
    assert text.traffic == method.traffic
    assert [agent.updates for agent in text.agents] == [agent.updates for agent in method.agents]
    for agent in range(text.ledger.agents):
        assert books_of(text, agent, exact=True) == books_of(method, agent, exact=True)
    for kind in ("agent", "edge"):
        for name, block in getattr(method.state, kind).items():
            values = getattr(text.state, kind)[name].values
            np.testing.assert_allclose(values, block.values, rtol=1e-10, atol=1e-10, err_msg=name)
