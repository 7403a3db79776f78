"""Steps that take time, and transfers that take turns: what begins when, what is heard, and how long copies wait."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.availability import OnOff, Trace
from hushnet.agents.errors import InputError
from hushnet.agents.graph import Graph
from hushnet.protocols.base import Traits
from hushnet.simulator.api import run as simulate
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.metrics import METRICS, Reading
from hushnet.simulator.network.clocks import Periodic, Poisson, Times
from hushnet.simulator.network.compute import COMPUTE_TIMES
from hushnet.simulator.network.graph_changes import GRAPH_CHANGES
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.network.topology import TOPOLOGIES

from ..campaigns.mixed_worlds import examine
from ..campaigns.world_cases import Case, random_setting
from ..campaigns.worlds import EVERY
from .driving import drive
from .exchange import Gossip, exchange_world
from .helpers import Collect, Echo, EventLog, Stamp, world_of
from .test_rounds import Averaging

PAIR = Graph.from_edges(2, np.array([0]), np.array([1]), np.ones(1))
AWAY = OnOff(kind="on_off", online=0.7, mean_down=2.0)
LATE = {"latency": {"kind": "exponential", "mean": 0.6}}


def run(protocol, **fields):
    """Run a world, of exchanges or of others, with a log that checks balances after every event."""
    if protocol is Gossip:
        world, log = exchange_world(protocol, **fields)
    else:
        log = EventLog()
        world = world_of(protocol, log=log, **fields)
        log.watch(world)
    return drive(world), log


def compute(kind="constant", **fields):
    return COMPUTE_TIMES[kind].model_validate({"kind": kind, **fields})


def alone(tmp_path, first, second, wakes):
    """Fields of a world of two agents whose steps take these times, and who wake at times of a file."""
    lines = [f"{agent},{time}" for agent, times in ((0, first), (1, second)) for time in times]
    (tmp_path / "steps.csv").write_text("agent,duration\n" + "\n".join(lines) + "\n")
    (tmp_path / "wakes.csv").write_text("agent,time\n" + "\n".join(wakes) + "\n")
    clock = Times(kind="times", path="wakes.csv")
    given = {"clock": clock, "compute": compute("trace", path="steps.csv", power=2.0), "base": tmp_path}
    return {"agents": 2, "graph": PAIR, **given}


def test_a_step_hears_what_was_there_at_its_begin_and_wake_ups_meanwhile_are_skipped(tmp_path):
    """Agent 0 computes from 1 to 2.5 and from 3 to 5; agent 1 says something at 2 and 2.5, which the second hears."""
    wakes = ["0,1", "0,2", "0,3", "0,4.5", "1,2", "1,2.5"]
    world, log = run(Stamp, **alone(tmp_path, [1.5, 2], [0], wakes), energy_per_byte=0.25)
    own = [(event[1], event[3], event[4]) for event in log.of("woke") if event[2] == 0]
    assert own == [(2.5, 0, (-1,)), (5.0, 2, (1,))]
    assert [event[1] for event in log.of("sent") if event[2][0] == 0] == [2.5, 5.0]
    assert world.computing.spent(world.now).tolist() == [3.5, 0.0]
    assert world.computing.spent(4.0)[0] == 2.5
    joules = dict(METRICS["energy"].compute(Reading(world, None, 1e-3, world.started)))
    assert joules == {"computing": 2.0 * 3.5, "sending": 0.25 * 4 * 16, "total": 7.0 + 16.0}


def test_every_message_is_counted_by_one_step(tmp_path):
    wakes = ["0,1", "0,3", "0,6", "1,0.5", "1,2", "1,3", "1,4"]
    world, log = run(Collect, **alone(tmp_path, [1.5], [0], wakes))
    said = [event[6][0] for event in log.of("sent") if event[2][0] == 0]
    assert said == [2, 3, 5]  # the start and that of 0.5, then of 2, then of 3 and 4
    assert world.updates.tolist() == [3, 4]


def test_who_is_down_at_the_end_of_its_step_makes_it_when_it_is_up_and_never_if_it_does_not_come_back(tmp_path):
    (tmp_path / "up.csv").write_text("agent,up_from,up_to\n0,0,1.5\n0,4,1000\n1,0,2.5\n")
    fields = alone(tmp_path, [1.0], [2.0], ["0,1", "0,3", "0,5", "1,2"])
    for rounds in (False, True):
        if rounds:
            fields |= {"clock": Periodic(kind="periodic", period=1.0, phase="common"), "stop": Stop(activations=1)}
        protocol = Averaging if rounds else Stamp
        world, log = run(protocol, availability=Trace(kind="trace", path="up.csv"), **fields)
        assert [time for time, agent, _ in log.wakes() if agent == 0] == ([4.0] if rounds else [4.0, 6.0])
        assert world.updates.tolist() == [len(log.wakes()), 0]


@pytest.mark.parametrize("engine", ["event", "batched"])
def test_what_is_recorded_at_the_end_of_a_step_has_what_came_while_it_was_computed(engine, tmp_path):
    told = {
        "schema": 1,
        "scenario": "ages",
        "engine": engine,
        "topology": {"kind": "complete"},
        "compute": 0.3,
        "task": {"kind": "linear_classification", "agents": 5, "dimension": 2, "samples": [4, 8]},
        "network": {"latency": {"kind": "uniform", "low": 0.1, "high": 0.9}},
        "protocols": {"learning": {"kind": "epidemic_learning"}},
        "stop": {"time": 8},
        "record": {"activations": 3, "metrics": ["age"], "messages": {"agents": 5, "between": [0, 8]}},
    }
    result = simulate(told, out=tmp_path)
    log = pd.read_parquet(tmp_path / result.collection.runs[0] / "messages.parquet")
    came = log[(log["what"] == "message") & log["fate"].isin(["delivered", "overtaken"])]
    ages = result.trace.query("statistic == 'mean'")
    assert len(ages) == 8
    for now, recorded in zip(ages["time"], ages["value"], strict=True):
        newest = came[came["end"] <= now].groupby(["agent", "other"])["start"].max()
        assert recorded == pytest.approx((now - newest).mean(), rel=1e-12)


@pytest.mark.parametrize("latency", [0.0, 0.75])
def test_a_round_lasts_its_interval_and_its_step_and_the_models_stay_those_of_the_synchronous_loop(latency):
    fields = {"clock": Periodic(kind="periodic", phase="common"), "stop": Stop(updates=8), "latency": latency}
    fields["latency"] = {"kind": "constant", "value": latency}
    (quick, _), (slow, log) = (run(Averaging, compute=compute(value=value), **fields) for value in (0.0, 0.5))
    assert quick.state.agent["model"].rows.tobytes() == slow.state.agent["model"].rows.tobytes()
    assert {time for time, _, _ in log.wakes()} == {1.5 * k + latency * (k - 1) for k in range(1, 9)}


def test_a_caller_computes_before_it_calls_and_answers_meanwhile():
    world, log = run(Gossip, compute=compute(value=0.5), stop=Stop(time=30.0), availability=AWAY, **LATE)
    asked, answered = log.of("sent", "request"), log.of("sent", "reply")
    _, quick = run(Gossip, stop=Stop(time=30.0), availability=AWAY, **LATE)
    assert 20 < len({event[3:6] for event in asked}) < len({event[3:6] for event in quick.of("sent", "request")})
    arrivals = {(event[1], event[3]) for event in log.of("arrived", "request")}
    assert {(event[1], event[4]) for event in answered} <= arrivals  # an answer takes no time
    ticks = {}
    for _, time, _, sender, _, tick, _ in asked:
        begun, ends = ticks.setdefault(sender, {}), world.clock
        begun.setdefault(tick, time)
        wake = 0.0
        for number in range(tick + 1):
            wake = ends.next_time(sender, number, wake)
        assert begun[tick] >= wake + 0.5


def test_a_caller_waits_for_a_reply_that_has_its_turn_after_the_callee_has_gone(tmp_path):
    """Request 1 to 5, reply 5 to 9 by 16 bytes over 4 a unit; the callee goes at 6, and both clocks have ended."""
    (tmp_path / "up.csv").write_text("agent,up_from,up_to\n0,0,100\n1,0,6\n")
    fields = alone(tmp_path, [0.0], [0.0], ["0,1"]) | {"availability": Trace(kind="trace", path="up.csv")}
    patient = {"kind": "exchange", "resend_after": 2.5}
    world, log = run(Gossip, schedule=patient, downlink=4.0, stop=Stop(activations=100), **fields)
    assert log.of("arrived", "reply") == [("arrived", 9.0, "reply", 1, 0, 0, True)]
    assert world.updates.tolist() == [1, 0]


@pytest.mark.parametrize("protocol", [Stamp, Collect, Echo, Averaging, Gossip])
def test_nothing_is_lost_where_steps_take_time_and_links_are_shared(protocol):
    """`EventLog.watch` balances messages and bytes after every event."""
    fields = {"loss": 0.0 if protocol is Averaging else 0.2, "uplink": 50.0, "downlink": 40.0, **LATE}
    slow = compute(value=0.4, speed={"kind": "stragglers", "share": 0.3, "slow": 0.1})
    world, log = run(protocol, compute=slow, availability=AWAY, stop=Stop(time=40.0), **fields)
    assert len(log.of("arrived")) > 30
    ends = {}
    for _, time, agent, *_ in log.of("woke"):
        assert time - ends.get(agent, 0.0) >= world.computing.times.of(agent, 0)
        ends[agent] = time


class OneWay(Stamp):
    """A protocol for directed graphs."""

    traits = Traits(directed=True)


def waits_of(link, *, senders=6, load=0.6):
    """Departures or arrivals at a shared link of service time 1, and the times that copies wait there."""
    ends = np.arange(1, senders + 1), np.zeros(senders, dtype=np.int64)
    if link == "uplink":
        ends = ends[::-1]
    graph = Graph.from_directed_edges(senders + 1, *ends, np.ones(senders))
    # Copies of one message come together: an uplink's queue is of batches, a downlink's of single copies.
    rate = [1e-9] * (senders + 1)
    for agent in range(1, senders + 1) if link == "downlink" else [0]:
        rate[agent] = load / senders
    clock = Poisson(kind="poisson", rate=rate)
    given = {"agents": senders + 1, "graph": graph, "clock": clock, "seed": 1, "stop": Stop(time=300.0)}
    _, log = run(OneWay, latency={"kind": "constant", "value": 0.5}, **given, **{link: 16.0})
    sent = np.array([event[1] for event in log.of("sent")])
    landed = np.sort([event[1] for event in log.of("arrived")])
    return sent[: len(landed)], landed - sent[: len(landed)] - 0.5 - 1.0


@pytest.mark.parametrize("link", ["uplink", "downlink"])
def test_copies_on_a_shared_link_take_turns_as_lindley_has_it(link):
    """W(n+1) = max(0, W(n) + D - A(n)), with service time D = 1 and A(n) between copies n and n + 1."""
    sent, waited = waits_of(link)
    expected = np.zeros(len(sent))
    for n, between in enumerate(np.diff(sent)):
        expected[n + 1] = max(0.0, expected[n] + 1.0 - between)
    assert len(sent) > 100
    assert waited.tolist() == expected.tolist()


def test_times_of_steps_follow_rows_width_and_speed(tmp_path):
    task = small_task(3)
    rows, numbers = np.diff(task.train.offsets), np.arange(3, dtype=np.uint64)
    made = compute("by_size", each=0.25, base=1.0, rows=4, speed=[1.0, 2.0, 0.5]).build(task, numbers, Draws(1), None)
    expected = (1.0 + 0.25 * np.minimum(rows, 4) * task.dimension) / [1.0, 2.0, 0.5]
    assert [made.of(agent, 7) for agent in range(3)] == expected.tolist()
    drawn = compute(value=1.0, speed={"kind": "stragglers", "share": 0.5, "slow": 0.1})
    times = [drawn.build(small_task(200), np.arange(200, dtype=np.uint64), Draws(3), None).of(k, 0) for k in range(200)]
    assert {round(time, 6) for time in times} == {1.0, 10.0}
    for content, says in (
        ("agent,duration\n0,1\n9,1\n", r"steps.csv:3: '9' is not the id of an agent"),
        ("agent,duration\n0,-1\n", r"steps.csv:2: duration -1.0 must be at least 0"),
        ("agent,duration\n0,1\n2,1\n", "lists no step of agent 1"),
    ):
        (tmp_path / "steps.csv").write_text(content)
        with pytest.raises(InputError, match=says):
            compute("trace", path="steps.csv").build(task, numbers, Draws(1), tmp_path)


ALIKE = [
    ("gossip_learning", {}, "complete"),
    ("decentralised_sgd", {}, "ring"),
    ("decentralised_sgd", {"schedule": {"kind": "rounds", "resend_after": 1.5}}, "ring"),
    ("edge_consensus_admm", {}, "ring"),
    ("ad_psgd", {}, "ring"),
    ("stochastic_gradient_push", {"schedule": "async"}, "exponential"),
    ("stochastic_gradient_push", {"schedule": {"kind": "rounds", "patience": 0.75}}, "exponential"),
    ("epidemic_learning", {"schedule": "async"}, "directed_ring"),
]


@pytest.mark.parametrize(
    ("kind", "fields", "graph", "ties"), [(*one, bool(rank % 2)) for rank, one in enumerate(ALIKE)]
)
def test_steps_links_and_graphs_are_alike_on_both_engines(kind, fields, graph, ties, tmp_path):
    """Event by event, also where clocks, ends of steps, copies and absences meet; counted anew from the history."""
    case, rng = Case(kind, fields, agents=6), np.random.default_rng(5)
    setting = random_setting(case, rng, tmp_path)
    agents, shared = range(setting.task.agents), {"uplink": 90.0, "downlink": 70.0, **LATE}
    fixed = {"compute": compute(value=0.4), "stop": Stop(time=15.0)}
    made = TOPOLOGIES[graph].model_validate({"kind": graph})
    if made.kind == "complete":
        made = made.model_copy(
            update={"changes": GRAPH_CHANGES["sample"].model_validate({"kind": "sample", "peers": 2})}
        )
    fixed |= {"graph": made.build(setting.task, rng=rng, base=None), "changes": made.changes}
    if ties:
        rows = [f"{agent},{time}" for agent in agents for time in (0.5, 0.25, 1.0)]
        (tmp_path / "steps.csv").write_text("\n".join(["agent,duration", *rows]) + "\n")
        rows = [f"{agent},{5 * k},{5 * k + 2 + agent % 2}" for agent in agents for k in range(4)]
        (tmp_path / "up.csv").write_text("\n".join(["agent,up_from,up_to", *rows]) + "\n")
        shared = {"uplink": 64.0, "downlink": 64.0, "latency": {"kind": "constant", "value": 0.5}}
        fixed |= {"compute": compute("trace", path="steps.csv"), "availability": Trace(kind="trace", path="up.csv")}
        fixed["clock"] = Periodic(kind="periodic", phase="common", period=0.5)
    network = {"loss": 0.2 if fields and "ring" in graph else 0.0, **shared}
    setting = replace(setting, **fixed, network=NetworkParameters.model_validate(network))
    assert examine(case, setting, EVERY[0]) == ("batched (steps in batches)", [])


def test_a_copy_needs_latency_and_its_bytes_over_both_links_if_nothing_else_is_there():
    parameters = NetworkParameters.model_validate({"uplink": 16.0, "downlink": 8.0, "bandwidth": 4.0})
    _, log = run(Stamp, agents=2, graph=PAIR, stop=Stop(activations=1), **parameters.model_dump())
    assert [event[3] for event in log.of("sent")] == [16 / 16 + 16 / 4]
