"""Starts that no data enter are made for all agents at once; what they come to, `test_kept_numbers` has."""

from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents.errors import Divergence
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.base import Layout, MessageKind, Protocol, PublicStart
from hushnet.protocols.catalog import names, resolve
from hushnet.simulator.contract.bench import protocol_parameters
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World

from ..protocols.random_worlds import random_setting
from .driving import drive, fast_world


def run(kind, fields, *, stop=None):
    """A world after its run, and the agents that were started one by one."""
    setting = random_setting(3, loss="logistic")()
    world = fast_world(replace(setting, stop=stop or setting.stop), kind, protocol_parameters(kind, fields))
    started, one_by_one = [], World.start
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(World, "start", lambda self, agent: (started.append(agent.index), one_by_one(self, agent)))
        drive(world)
    return world, started


def test_nobody_is_started_alone_where_no_data_enter():
    _, started = run(CoordinateDescent, {"mu": 0.5})
    assert started == []


def test_a_start_that_is_not_finite_ends_the_run_as_ever():
    class Endless(CoordinateDescent):
        """Begins at infinity."""

        def public_start(self):
            return PublicStart({"model": np.inf}, sent={"model": "model"})

    with pytest.raises(Divergence, match=r"agent .* at time 0: model became infinite after 0 updates"):
        run(Endless, {"mu": 0.5})


def test_a_subclass_with_a_start_of_its_own_starts_by_that():
    class Elsewhere(CoordinateDescent):
        """Begins elsewhere."""

        def start(self, me):
            super().start(me)
            me.model = 1.0

    world, started = run(Elsewhere, {"mu": 0.5}, stop=Stop(time=0.0))
    assert len(started) == len(world.agents)
    assert (world.state.agent["model"].values == 1.0).all()
    assert world.engine == "batched (steps in batches)"


def test_a_protocol_without_any_start_says_so():
    class Nowhere(Protocol):
        """Begins nowhere."""

        def layout(self):
            return Layout(agent={"model": 2}, messages={"model": MessageKind(2)})

    with pytest.raises(TypeError, match="Nowhere has neither a start nor a public_start"):
        run(Nowhere, {})


def test_every_shipped_protocol_says_how_its_agents_start():
    assert all(resolve(name).has_start() for name in names())
