"""Push-sum dual averaging runs the same as Python and compiled: updates and charges exactly, models to 1e-10."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents.availability import Always, Window
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging, PushSumDualAveragingParameters
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.steps import heard_sum, local_gradient
from hushnet.simulator.contract.charges import books_of
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world, prepared
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


@pytest.mark.parametrize("seed", range(6))
def test_who_joins_late_is_told_what_it_was_given_before_whatever_the_form(seed):
    spec = push_parameters(np.random.default_rng(seed), privacy=None, schedule="async")
    made = random_setting(seed, loss="logistic", easy=True)()
    made = replace(made, availability=Always(kind="always", joins=Window(share=0.5, between=[5.0, 9.0])))
    fast = drive(fast_world(made, PushSumDualAveraging, spec))
    assert "who joins late is told what it was sent last" in fast.engine
    event = drive(prepared(World(made, PushSumDualAveraging, spec), EventEngine()))
    assert fast.traffic == event.traffic
    np.testing.assert_array_equal(fast.state.agent["mass"].values, event.state.agent["mass"].values)


class Mute(Protocol):
    """Says nothing at its start."""

    Parameters = ProtocolParameters

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p)})

    def start(self, view, out):
        view.state["model"][:] = view.agent

    @staticmethod
    def step(me):
        me.model = 0.5 * me.model + heard_sum(me) / 9.0 - 0.1 * local_gradient(me, me.model)
        me.message = me.model


@pytest.mark.parametrize("seed", range(6))
def test_who_joins_late_is_told_what_compiled_steps_have_said_where_nothing_was_said_at_the_start(seed):
    make = random_setting(seed, loss="logistic", easy=True)
    joining = Always(kind="always", joins=Window(share=0.5, between=[5.0, 9.0]))
    world = check_forms(lambda: replace(make(), availability=joining), Mute, ProtocolParameters(kind="mute"))
    assert (world.traffic.start_vectors > 0) == (world.setting.network.start == "known")
