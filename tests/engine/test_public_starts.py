"""Starts that no data enter: made for all agents at once where steps are planned, with what one by one gives."""

from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents.availability import Always
from hushnet.agents.errors import Divergence
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging
from hushnet.protocols.base import Layout, MessageKind, Protocol, PublicStart
from hushnet.protocols.catalog import names, resolve
from hushnet.simulator.contract.bench import protocol_parameters
from hushnet.simulator.network.setting import NetworkParameters, Stop
from hushnet.simulator.tables.run import EVENTS_BEFORE_POLL
from hushnet.simulator.tables.tallies import BARRIER
from hushnet.simulator.world.world import World

from ..protocols.random_worlds import random_setting
from .driving import drive, fast_world

NOISE = {"mechanism": "gaussian", "sensitivity": "clip", "clip": 1.0}
BUDGET = {"budget": {"epsilon": 5.0, "delta": 1e-5}, "updates": 4}
LATE_ONES = Always.model_validate({"kind": "always", "joins": {"share": 0.4, "between": [1.0, 9.0]}})
TIMED = {"constants": EVENTS_BEFORE_POLL, "counts": BARRIER}
"""What depends on when a window looked at its processor time."""
CASES_OF_STARTS = [
    (CoordinateDescent, {"mu": 0.5}),
    (CoordinateDescent, {"mu": 0.5, "start": "constant", "start_value": 0.25, "updates": 5}),
    (CoordinateDescent, {"mu": 0.5, "smoothness": "data", "confidence": "relative"}),
    (CoordinateDescent, {"mu": 0.5, "radius": 0.7}),
    (CoordinateDescent, {"mu": 0.5, "radius": 1.0, "privacy": {**NOISE, **BUDGET}}),
    (CoordinateDescent, {"mu": 0.5, "radius": 1.0, "privacy": {**NOISE, "multiplier": 0.0, "updates": 3}}),
    (PushSumDualAveraging, {"mu": 0.1, "sampling": "full"}),
]


def run(make, kind, fields, *, at_once=True, join=False, start="known", stop=None):
    setting = make()
    network = NetworkParameters.model_validate({**setting.network.model_dump(), "start": start})
    setting = replace(setting, network=network, stop=stop or setting.stop)
    if join:
        setting = replace(setting, availability=LATE_ONES)
    world = fast_world(setting, kind, protocol_parameters(kind, fields))
    started = []
    one_by_one = World.start
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(World, "start", lambda self, agent: (started.append(agent.index), one_by_one(self, agent)))
        if not at_once:
            patch.setattr(Protocol, "starts_at_once", None)
        drive(world)
    return world, started


def check_same(one, other):
    """Everything that is left of two runs is the same, bit by bit."""
    assert one.engine == other.engine
    assert one.traffic == other.traffic
    assert one.activations == other.activations
    for name, left in one.transport.tables._asdict().items():
        if name == "read":  # addresses
            continue
        right = getattr(other.transport.tables, name)
        if name in TIMED:
            left, right = np.delete(left, TIMED[name]), np.delete(right, TIMED[name])
        assert np.array_equal(left, right, equal_nan=left.dtype.kind == "f"), name
    for mine, theirs in ((one.state.agent, other.state.agent), (one.state.edge, other.state.edge)):
        for name, block in mine.items():
            assert block.values.tobytes() == theirs[name].values.tobytes(), name
    assert one.ledger.to_frame().equals(other.ledger.to_frame())
    everybody = range(one.ledger.agents)
    assert one.ledger.unverified(everybody) == other.ledger.unverified(everybody)
    assert one.ledger.epsilon("claimed", 1e-5).tolist() == other.ledger.epsilon("claimed", 1e-5).tolist()
    assert one.started.tolist() == other.started.tolist()
    assert [vars_of(agent) for agent in one.agents] == [vars_of(agent) for agent in other.agents]


def vars_of(agent):
    return agent.index, agent.updates, agent.silent


@pytest.mark.parametrize("start", ["known", "own", "zero"])
@pytest.mark.parametrize(("kind", "fields"), CASES_OF_STARTS)
def test_starts_of_all_agents_at_once_are_those_of_one_by_one(kind, fields, start):
    make = random_setting(3, loss="logistic")
    at_once, started = run(make, kind, fields, start=start)
    one_by_one, each = run(make, kind, fields, start=start, at_once=False)
    assert at_once.engine == "batched (steps in batches)"
    assert started == []
    assert each == list(range(len(at_once.agents)))
    check_same(at_once, one_by_one)


def test_a_start_that_is_not_finite_ends_the_run_as_ever():
    class Endless(CoordinateDescent):
        """Begins at infinity."""

        def public_start(self):
            return PublicStart({"model": np.inf}, sent={"model": "model"})

    with pytest.raises(Divergence, match=r"agent .* at time 0: model became infinite after 0 updates"):
        run(random_setting(3, loss="logistic"), Endless, {"mu": 0.5})


def test_a_subclass_with_a_start_of_its_own_starts_by_that():
    class Elsewhere(CoordinateDescent):
        """Begins elsewhere."""

        def start(self, me):
            super().start(me)
            me.model = 1.0

    world, started = run(random_setting(3, loss="logistic"), Elsewhere, {"mu": 0.5}, stop=Stop(time=0.0))
    assert len(started) == len(world.agents)
    assert (world.state.agent["model"].values == 1.0).all()
    assert world.engine == "batched (steps in batches)"


def test_a_protocol_without_any_start_says_so():
    class Nowhere(Protocol):
        """Begins nowhere."""

        def layout(self):
            return Layout(agent={"model": 2}, messages={"model": MessageKind(2)})

    with pytest.raises(TypeError, match="Nowhere has neither a start nor a public_start"):
        run(random_setting(3, loss="logistic"), Nowhere, {})


def test_every_shipped_protocol_says_how_its_agents_start():
    assert all(resolve(name).has_start() for name in names())
