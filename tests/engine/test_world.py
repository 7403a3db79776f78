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
from hushnet.simulator.contract.bench import small_graph, small_task
from hushnet.simulator.network.clocks import Periodic, Poisson, Recorded
from hushnet.simulator.network.network import Network
from hushnet.simulator.network.randomness import Draws, stable_ids
from hushnet.simulator.network.rates import StragglerRates
from hushnet.simulator.network.setting import Stop

from .driving import drive
from .helpers import Chatter, EventLog, run, world_of

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


def test_a_receiver_that_is_down_at_arrival_never_sees_the_message(tmp_path):
    """Agent 1 is up only in odd half-units; nothing that arrives while it is down changes what it reads."""
    up = present(tmp_path, "".join(f"1,{k},{k + 0.5}\n" for k in range(1, 12)))
    clock = Periodic(kind="periodic", period=[0.25, 1.25], phase="common")
    world, log = run(graph=pair(), agents=2, clock=clock, latency=0.125, **up)
    dropped = {event[2][2] for event in log.of("arrived") if event[2][1] == 1 and not event[4]}
    assert world.traffic.links.dropped == len(dropped) > 10
    versions = list(read(log, 1).values())
    assert versions == sorted(versions)
    assert len(versions) > 3
    assert not dropped & set(versions)


def test_absences_do_not_move_the_other_wake_ups_nor_the_luck_of_messages(tmp_path):
    network = {"latency": {"kind": "exponential", "mean": 2.0}, "loss": 0.3}
    _, always = run(**network)
    _, absent = run(**network, **present(tmp_path, "2,1,2\n4,3,9\n"))
    assert set(absent.wakes()) < set(always.wakes())
    assert set(always.wakes()) - set(absent.wakes()) == {
        (time, agent, tick)
        for time, agent, tick in always.wakes()
        if (agent == 2 and not 1 <= time < 2) or (agent == 4 and not 3 <= time < 9)
    }
    delays = always.delays()
    assert all(delays[key] == delay for key, delay in absent.delays().items())
    assert absent.losses() == always.losses() & set(absent.delays())


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


def test_an_agent_that_has_left_neither_wakes_nor_receives_again():
    availability = Always(kind="always", leaves=Window(share=0.5, between=[4.0, 4.0]))
    world, log = run(clock=TOGETHER, latency=0.5, availability=availability)
    gone = {a for a in range(6) if max(time for time, agent, _ in log.wakes() if agent == a) < 4}
    assert 0 < len(gone) < 6
    for _, now, (_, receiver, _), _, up, _ in log.of("arrived"):
        assert up == (receiver not in gone or now <= 4.0)
    assert world.traffic.links.dropped > 0


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


def logistic_gradient(model, features, labels, regularisation):
    if not len(labels):
        return np.zeros_like(model)
    slopes = -labels / (1 + np.exp(labels * (features @ model)))
    return slopes @ features / len(labels) + 2 * regularisation * model


def test_zero_latency_is_the_sequential_loop():
    """Bellet et al. (2018), equation (4), written out over the order of the wake-ups."""
    mu, task, graph = 0.3, small_task(), small_graph()
    _, log = run(CoordinateDescent, descent(mu=mu, confidence="count"), task=task, latency=0.0, stop=Stop(time=20.0))
    weights, models = np.zeros((6, 6)), np.zeros((6, task.dimension))
    weights[graph.tails, graph.heads] = graph.weights
    for _, _, i, _, _, seen in log.of("woke"):
        assert np.allclose(models[graph.neighbours(i)], seen, rtol=0, atol=1e-12)
        shard, lam = task.train.shard(i), task.regularisation[i]
        mu_c = mu * len(shard)
        smooth = 0.25 * np.linalg.norm(shard.features, 2) ** 2 / len(shard) + 2 * lam if len(shard) else 0.0
        alpha = 1 / (1 + mu_c * smooth)
        around = weights[i] @ models / weights[i].sum()
        gradient = logistic_gradient(models[i], shard.features, shard.labels, lam)
        models[i] = (1 - alpha) * models[i] + alpha * (around - mu_c * gradient)
    assert len(log.wakes()) > 80
    world, _ = run(CoordinateDescent, descent(mu=mu, confidence="count"), task=task, latency=0.0, stop=Stop(time=20.0))
    assert np.allclose(world.protocol.models(world.state), models, rtol=0, atol=1e-12)


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


@pytest.mark.parametrize("start", ["own", "zero"])
def test_a_neighbour_that_was_never_heard_shows_the_own_model_or_zeros(start):
    world, log = run(start=start, latency=4.0, clock=TOGETHER, stop=Stop(time=6.0))
    assert world.traffic.start_vectors == 0
    for _, now, agent, tick, heard, seen in log.of("woke"):
        assert set(heard) == ({-2} if now < 5 else {tick - 4})
        if now < 5:
            assert set(seen) == {(agent + 1.0, tick - 1.0) if start == "own" else (0.0, 0.0)}


# Stop


def test_a_run_stops_when_everybody_has_made_its_updates():
    world, _ = run(clock=Poisson(kind="poisson", rate=[0.2, 1.0, 1.0, 3.0, 1.0, 1.0]), stop=Stop(updates=5))
    assert min(agent.updates for agent in world.agents) == 5
    assert sum(agent.updates == 5 for agent in world.agents) >= 1
    assert world.ended == "every agent has made its updates"


def test_agents_that_are_done_do_not_shorten_a_run_with_a_time():
    world, _ = run(CoordinateDescent, descent(updates=1), stop=Stop(time=50.0))
    assert (world.now, world.ended) == (50.0, "the time was up")


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


def test_a_broadcast_is_one_message_and_a_vector_for_each_neighbour():
    world, log = run(clock=Recorded(kind="recorded", order=[0, 1, 0]), stop=Stop(time=10.0))
    degrees = world.setting.graph.degrees
    assert world.traffic.messages == 3
    assert world.traffic.vectors == len(log.of("sent")) == 2 * degrees[0] + degrees[1]


def test_an_overtaken_message_counts_as_delivered_and_changes_nothing():
    """Delays fall with the tick: found on the event log, where a newer send had already arrived."""
    world, log = run(latency={"kind": "uniform", "high": 9.0}, stop=Stop(time=30.0))
    newest: dict[tuple[int, int], int] = {}
    overtaken = 0
    for _, _, (sender, receiver, tick), _, up, was_newest in log.of("arrived"):
        assert up
        assert was_newest == (tick > newest.get((sender, receiver), -1))
        newest[sender, receiver] = max(tick, newest.get((sender, receiver), -1))
        overtaken += not was_newest
    assert world.traffic.overtaken == overtaken > 20
    assert world.traffic.links.delivered == len(log.of("arrived"))


# Protocols that react or keep every message


def test_every_message_of_one_step_has_its_own_luck():
    """Leg of a message: attempt times 2^8, plus the rank of its kind."""
    clock = Recorded(kind="recorded", order=[0])
    world, log = run(Chatter, clock=clock, latency={"kind": "exponential", "mean": 1.0}, stop=Stop(time=3.0))
    network = Network(world.setting.network, list(range(6)), stable_ids(list(range(6))), Draws(1))
    assert world.setting.graph.neighbours(0).tolist() == [1, 3, 5]
    transmissions = {1: [0, 256, 1, 257], 3: [0, 256, 1, 257], 5: [0, 256, 512, 1, 257]}
    for receiver, expected in transmissions.items():
        delays = [event[3] for event in log.of("sent") if event[2] == (0, receiver, 0)]
        assert delays == [
            network.delays_and_losses(0, np.array([receiver]), 0, transmission, 1.0, 8)[0][0]
            for transmission in expected
        ]
        assert len(set(delays)) == len(delays)
    assert world.traffic.links.sent == 13


# Knowing the schedule


def test_the_oracle_knows_everybodys_first_wake_ups():
    clock = Poisson(kind="poisson", rate=StragglerRates(kind="stragglers", share=0.5, slow=0.3))
    world, log = run(clock=clock, stop=Stop(time=60.0))
    ranks = world.protocol.problem.oracle(4)
    seen = [agent for _, agent, _ in log.wakes()]
    first = [agent for k, agent in enumerate(seen) if seen[:k].count(agent) < 4]  # after four updates all are silent
    expected = [[k for k, agent in enumerate(first) if agent == a] for a in range(6)]
    assert ranks.tolist() == expected


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
