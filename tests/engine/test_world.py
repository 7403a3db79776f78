"""The rules of the world one by one: order of equal times, presence, network, start, stop, traffic, divergence."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.availability import Always, Diurnal, OnOff, Trace, Window
from hushnet.agents.errors import Divergence
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES
from hushnet.agents.tables import Table
from hushnet.agents.tasks.task import Task
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent, CoordinateDescentParameters
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network.clocks import Periodic, Recorded
from hushnet.simulator.network.setting import Stop

from .driving import drive
from .helpers import EventLog, run, world_of

GOLDEN = Path(__file__).parent.parent / "golden" / "linear_12_agents.npz"
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


# Order of equal times


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


# Presence


def test_joining_agents_and_their_neighbours_exchange_their_newest_reliably():
    """Everybody but the early ones joins at 3.5 under total loss, so only the reliable exchange can be read."""
    availability = Always(kind="always", joins=Window(share=0.5, between=[3.5, 3.5]))
    world, log = run(
        clock=TOGETHER, loss={"kind": "gilbert_elliott", "mean_good": 1.0, "mean_bad": 1.0, "loss_good": 1.0},
        availability=availability, stop=Stop(time=6.0),
    )  # fmt: skip
    graph = world.setting.graph
    late = {a for a in range(6) if min(time for time, agent, _ in log.wakes() if agent == a) > 3.5}
    assert 0 < len(late) < 6
    for _, now, agent, _, heard, _ in log.of("woke"):
        for neighbour, version in zip(graph.neighbours(agent).tolist(), heard, strict=True):
            if agent in late:
                assert version == (-1 if neighbour in late else 2)
            else:
                assert version == (-2 if neighbour in late and now < 3.5 else -1)
    assert world.traffic.start_vectors == len(graph.heads)
    assert world.traffic.links.delivered == 0


# Luck


NETWORK = {"latency": {"kind": "lognormal", "mean": 1.5, "sigma": 1.0}, "loss": 0.2}


def test_protocols_meet_the_same_wake_ups_delays_and_losses():
    _, stamps = run(availability=CHURN, **NETWORK)
    _, models = run(CoordinateDescent, descent(mu=0.5), availability=CHURN, **NETWORK)
    assert stamps.wakes() == models.wakes()
    assert stamps.delays() == models.delays()
    assert stamps.losses() == models.losses()


def test_luck_belongs_to_the_users_ids():
    """The same four people in another order, and a stranger between them, meet the same wake-ups and delays."""

    def of(names):
        task = dataclasses.replace(small_task(len(names), empty=False), ids=names)
        complete = Graph.from_matrix(np.ones((len(names), len(names))))
        _, log = run(task=task, graph=complete, agents=len(names), latency={"kind": "exponential", "mean": 1.0})
        wakes = {(time, names[agent], tick) for time, agent, tick in log.wakes()}
        return wakes, {(names[s], names[r], tick): delay for (s, r, tick), delay in log.delays().items()}

    wakes, delays = of(["ada", "bob", "cyd"])
    more_wakes, more_delays = of(["cyd", "eve", "ada", "bob"])
    assert wakes < more_wakes
    assert delays.items() < more_delays.items()


# Zero latency


@pytest.mark.parametrize(("mu", "objective"), [("0.04", None), ("4", 40.2839595719)])
def test_coordinate_descent_reproduces_the_golden_trace(mu, objective):
    """tests/golden/README.md, keys cd_mu*: an independent implementation's models before and after each of 200
    activations at zero latency in the recorded order, and the objective that it ends with at mu = 4."""
    golden = np.load(GOLDEN)
    train = Table.from_owners(golden["X"], golden["Y"], golden["own"], 12)
    task = Task("golden", list(range(12)), train, train, LOSSES["logistic"], golden["lam"], "accuracy")
    models = []

    class Copies:
        def sample(self, world, *, final):
            if not final:
                models.append(world.protocol.models(world.state).copy())

    world, log = run(
        CoordinateDescent,
        descent(mu=float(mu), confidence="relative", start="local"),
        task=task,
        graph=Graph.from_matrix(golden["W"]),
        clock=Recorded(kind="recorded", order=golden["order"].tolist()),
        stop=Stop(activations=200),
        recorder=Copies(),
        activations=1,
    )
    assert [agent for _, agent, _ in log.wakes()] == golden["order"].tolist()
    assert np.allclose(models, golden[f"cd_mu{mu}"], rtol=0, atol=1e-8)
    if objective is not None:
        assert world.protocol.objective().value(models[-1]) == pytest.approx(objective, abs=1e-9)


# Start


# Stop


def test_a_run_ends_when_everybody_has_left():
    availability = Always(kind="always", leaves=Window(share=1.0, between=[2.0, 6.0]))
    for stop, ended in (
        (Stop(activations=10**6), "every agent has finished"),
        (Stop(updates=10**6), "every agent has made its updates"),
    ):
        world, log = run(availability=availability, stop=stop)
        assert 2 <= world.now <= 6
        assert max(time for time, *_ in log.wakes()) <= world.now
        assert world.ended == ended


# Traffic


# Protocols that react or keep every message


# Knowing the schedule


def test_nobody_knows_the_schedule_where_agents_may_be_absent():
    for availability in (
        CHURN,
        Diurnal(kind="diurnal", period=4.0, online=0.5),
        Always(kind="always", joins=Window(share=0.1, between=[0.0, 1.0])),
    ):
        assert world_of(availability=availability).protocol.problem.oracle is None


# What goes wrong


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
