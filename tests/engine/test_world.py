"""Rules of the world by hand: order of equal times, who knows the schedule, divergence, what is disclosed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hushnet.agents.availability import Always, Diurnal, OnOff, Trace, Window
from hushnet.agents.errors import Divergence
from hushnet.agents.graph import Graph
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent, CoordinateDescentParameters
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network.clocks import Periodic
from hushnet.simulator.network.setting import Stop

from .driving import drive
from .helpers import EventLog, run, world_of

TOGETHER = Periodic(kind="periodic", phase="common")
CHURN = OnOff(kind="on_off", online=0.6, mean_down=1.5)


def descent(**fields):
    return CoordinateDescentParameters(kind="coordinate_descent", **fields)


def pair():
    return Graph.from_matrix(np.array([[0.0, 1.0], [1.0, 0.0]]))


def present(tmp_path, rows, others="up"):
    (tmp_path / "up.csv").write_text("agent,up_from,up_to\n" + rows)
    return {"availability": Trace(kind="trace", path="up.csv", others=others), "base": tmp_path}


def read(log, agent):
    """Tick of the first neighbour's message that an agent read at each of its steps, by time."""
    return {event[1]: event[4][0] for event in log.of("woke") if event[2] == agent}


def test_a_message_that_arrives_at_the_instant_of_a_wake_up_is_read_there():
    _, log = run(graph=pair(), agents=2, clock=TOGETHER, latency=2.0, stop=Stop(time=5.0))
    assert read(log, 0) == read(log, 1) == {1.0: -1, 2.0: -1, 3.0: 0, 4.0: 1, 5.0: 2}


def test_arrivals_come_before_going_down_and_wake_ups_after(tmp_path):
    """Agent 1 is down from 3 to 5; a message due at 3 reaches it, one due at 5 does not, and it wakes at 5."""
    up = present(tmp_path, "1,0,3\n1,5,99\n")
    world, log = run(graph=pair(), agents=2, clock=TOGETHER, latency=1.0, stop=Stop(time=6.0), **up)
    assert [time for time, agent, _ in log.wakes() if agent == 1] == [1.0, 2.0, 5.0, 6.0]
    assert [event[1] for event in log.of("arrived") if event[2][1] == 1 and not event[4]] == [4.0, 5.0]
    assert read(log, 1) == {1.0: -1, 2.0: 0, 5.0: 1, 6.0: 4}
    assert world.traffic.links.dropped == 2


def test_nobody_knows_the_schedule_where_agents_may_be_absent():
    for availability in (
        CHURN,
        Diurnal(kind="diurnal", period=4.0, online=0.5),
        Always(kind="always", joins=Window(share=0.1, between=[0.0, 1.0])),
    ):
        assert world_of(availability=availability).protocol.problem.oracle is None


@pytest.mark.parametrize("planted", ["label", "feature"])
def test_a_planted_nan_names_agent_time_and_field(planted):
    task = dataclasses.replace(small_task(empty=False), ids=[f"peer{k}" for k in range(6)])
    shard = task.train.shard(3)
    (shard.labels if planted == "label" else shard.features)[...] = np.nan
    log = EventLog()
    parameters = descent(mu=0.5, smoothness="public")
    world = world_of(CoordinateDescent, parameters, task=task, log=log, recorder=log, every=0.25)
    with pytest.raises(Divergence, match=r"agent 'peer3' at time \d.*: model became not a number") as error:
        drive(world)
    first = min(time for time, agent, _ in log.wakes() if agent == 3)
    assert world.now == first
    assert f"at time {first:.6g}:" in str(error.value)
    assert len(log.of("record")) == int(first / 0.25) + 1, "what was recorded is kept"


class SummedNoise(CoordinateDescent):
    """Sends the sum of three noisy zeros under the last one's release, and owns up to the other two."""

    decides = True
    asks_for_budget = True

    def step(self, me):
        terms = [Release(me.agent, me.now, "laplace", "l1", 1.0, "clip", 1.0, 10.0, 0.1, 0.0, 1) for _ in range(3)]
        total = sum(term.perturb(np.zeros(me.model.shape), rng=me.stream("noise")) for term in terms)
        for term in terms[:-1]:
            me.disclose(term)
        me.send("model", total, terms[-1])


def test_what_a_step_discloses_is_charged_beside_what_it_sends():
    world, _ = run(SummedNoise, descent(mu=0.5))
    assert [world.ledger.releases(agent) for agent in range(len(world.agents))] == (3 * world.updates).tolist()
    assert world.updates.min() > 0
