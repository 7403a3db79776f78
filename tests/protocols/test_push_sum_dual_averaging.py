"""Push-sum dual averaging: its parent where nothing is late, at the optimum where much is, and no mass is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES
from hushnet.agents.tasks.task import Task
from hushnet.protocols.algorithms.dual_averaging import DualAveraging
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging
from hushnet.simulator.contract import check_contract, protocol_parameters
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network.clocks import Periodic, Poisson
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world
from .worlds import BAD, setting_of

FIELDS = {"mu": 0.1, "gamma": 2.0, "sampling": "full"}
COMMON = Periodic(kind="periodic", phase="common")
STRAGGLERS = Poisson.model_validate({"kind": "poisson", "rate": {"kind": "stragglers", "share": 0.4, "slow": 0.2}})
NOISE = {"mechanism": "gaussian", "multiplier": 1.0, "sensitivity": "clip", "clip": 1.0}


def ring(agents: int = 6) -> Graph:
    tails = np.arange(agents)
    return Graph.from_edges(agents, tails, (tails + 1) % agents, np.ones(agents))


def world_of(protocol=PushSumDualAveraging, *, time=50.0, recorder=None, fields=FIELDS, **setting) -> World:
    """A world that has run; further arguments are those of `setting_of`."""
    setting = setting_of(stop=Stop(time=time), **setting)
    world = drive(fast_world(setting, protocol, protocol_parameters(protocol, fields), recorder=recorder, every=1.0))
    assert world.traffic.conserved
    return world


def models_of(world: World) -> np.ndarray:
    return world.protocol.models(world.state)


@pytest.mark.parametrize("step_weights", ["linear", "constant"])
@pytest.mark.parametrize("more", [{"sampling": "full"}, {"sampling": "uniform", "batch": 2}, {"privacy": NOISE}])
def test_on_a_ring_with_periodic_clocks_and_delays_below_a_period_it_is_its_parent(step_weights, more):
    """Everybody answers in every period, w_i stays 1, Metropolis's matrix of a ring splits evenly; noise included."""
    task = Task(**{**small_task().__dict__, "loss": LOSSES["hinge"]})
    fields = {"mu": 0.1, "gamma": 2.0, "step_weights": step_weights, **more}
    same = {"task": task, "graph": ring(), "clock": COMMON, "time": 40.0, "fields": fields}
    variant = world_of(latency={"kind": "uniform", "low": 0.1, "high": 0.9}, **same)
    parent = world_of(DualAveraging, **same)
    assert [agent.updates for agent in variant.agents] == [agent.updates for agent in parent.agents] == [40] * 6
    np.testing.assert_allclose(models_of(variant), models_of(parent), atol=1e-12)


def conserved(**fields) -> dict[str, np.ndarray]:
    recorder = Recorder(["conserved"])
    world_of(recorder=recorder, **fields)
    return {name: rows["value"].to_numpy() for name, rows in recorder.trace().groupby("statistic")}


def test_where_nothing_new_was_heard_the_totals_are_told_again_for_free():
    """With slow neighbours and lost messages, many wake-ups have nothing to answer."""
    world = world_of(fields={**FIELDS, "privacy": NOISE}, clock=STRAGGLERS, task=small_task(empty=False), **BAD)
    for agent in world.agents:
        steps = world.state.agent["progress"][agent.index][1]
        assert world.ledger.releases(agent.index) == steps
        assert 0 < steps <= agent.updates
    assert sum(agent.updates for agent in world.agents) > 1.2 * world.state.agent["progress"].rows[:, 1].sum()


@pytest.mark.parametrize(
    "fields", [pytest.param({}, marks=pytest.mark.slow), {"step_weights": "constant", "privacy": NOISE}]
)
def test_it_keeps_the_contract(fields):
    check_contract(PushSumDualAveraging, {**FIELDS, **fields})
