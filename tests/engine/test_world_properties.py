"""The rules of the world on random scenarios, against an oracle without an event loop."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hushnet.agents.availability import Always, Diurnal, OnOff, Trace, Window
from hushnet.simulator.network.clocks import Periodic, Poisson, Recorded
from hushnet.simulator.network.setting import Stop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .helpers import Oracle, random_graph, run


def delays(most):
    """Durations that a scenario may give: none, or at least a few quanta."""
    return st.just(0.0) | st.floats(1e-8, most)


EXACT = st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0, 30.0])
LATENCIES = st.one_of(
    EXACT.map(lambda value: {"kind": "constant", "value": value}),
    delays(30).map(lambda mean: {"kind": "exponential", "mean": mean}),
    delays(30).map(lambda high: {"kind": "uniform", "low": high / 3, "high": high}),
    st.tuples(delays(5), st.floats(0.1, 2)).map(lambda p: {"kind": "lognormal", "mean": p[0], "sigma": p[1]}),
    st.floats(0.3, 4).map(lambda shape: {"kind": "gamma", "mean": 2.0, "shape": shape}),
)
LOSSES = st.one_of(
    st.just(0.0),
    st.floats(0, 0.5),
    st.just({"kind": "gilbert_elliott", "mean_good": 3.0, "mean_bad": 2.0, "loss_good": 0.1, "loss_bad": 0.9}),
)
WINDOWS = st.one_of(
    st.none(),
    st.tuples(st.sampled_from([0.4, 1.0]), EXACT, EXACT).map(
        lambda w: Window(share=w[0], between=[min(w[1:]), max(w[1:])])
    ),
)


@st.composite
def clocks(draw, agents):
    kind = draw(st.sampled_from(["poisson", "periodic", "random phase", "recorded"]))
    if kind == "poisson":
        return Poisson(kind="poisson", rate=draw(st.lists(st.floats(0.2, 3), min_size=agents, max_size=agents)))
    if kind == "recorded":
        return Recorded(kind="recorded", order=draw(st.lists(st.integers(0, agents - 1), max_size=40)), spacing=0.25)
    periods = draw(st.lists(st.sampled_from([0.5, 1.0, 1.5]), min_size=agents, max_size=agents))
    common = kind == "periodic"
    return Periodic(
        kind="periodic", period=periods, jitter=0.0 if common else 0.3, phase="common" if common else "random"
    )


@st.composite
def availabilities(draw, agents, folder):
    windows = {"joins": draw(WINDOWS), "leaves": draw(WINDOWS)}
    kind = draw(st.sampled_from(["always", "exponential", "lognormal", "diurnal", "trace"]))
    if kind == "always":
        return Always(kind="always", **windows)
    if kind == "diurnal":
        return Diurnal(kind="diurnal", period=draw(st.floats(0.5, 8)), online=draw(st.floats(0.1, 0.9)), **windows)
    if kind != "trace":
        return OnOff(kind="on_off", online=draw(st.floats(0.2, 1)), mean_down=2.0, distribution=kind, **windows)
    lines = ["agent,up_from,up_to"]
    for agent in range(agents):
        points = sorted(draw(st.sets(st.integers(0, 24), max_size=6)))
        lines += [f"{agent},{a / 2},{b / 2}" for a, b in zip(points[::2], points[1::2], strict=False)]
    name = f"{abs(hash(tuple(lines)))}.csv"
    (folder / name).write_text("\n".join(lines) + "\n")
    return Trace(kind="trace", path=name, others=draw(st.sampled_from(["up", "down"])), **windows)


@st.composite
def scenarios(draw, folder):
    agents = draw(st.integers(1, 6))
    return {
        "agents": agents,
        "graph": random_graph(agents, draw(st.floats(0.2, 1)), np.random.default_rng(draw(st.integers(0, 99)))),
        "clock": draw(clocks(agents)),
        "availability": draw(availabilities(agents, folder)),
        "stop": Stop(time=draw(st.sampled_from([4.0, 10.0, 12.25]))),
        "seed": draw(st.integers(0, 2**64 - 1)),
        "base": folder,
        "latency": draw(LATENCIES),
        "loss": draw(LOSSES),
        "bandwidth": draw(st.sampled_from([None, 16.0, 100.0])),
        "header_bytes": draw(st.sampled_from([0, 16])),
        "start": draw(st.sampled_from(["known", "own", "zero"])),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


@given(data=st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_world_keeps_its_rules_on_random_scenarios(data, folder):
    world, log = run(**data.draw(scenarios(folder)))
    oracle = Oracle(world.setting)
    up_agents_wake_at_every_tick(log, oracle)
    every_message_meets_its_fate(log, oracle, world.traffic)
    every_step_reads_the_newest_that_arrived(log, oracle, world)
    equal_times_are_ordered(log)


def up_agents_wake_at_every_tick(log, oracle):
    assert sorted(log.wakes()) == oracle.wakes


def every_message_meets_its_fate(log, oracle, traffic):
    sent = {key: (now, now + delay, lost) for _, now, key, delay, lost, *_ in log.of("sent")}
    assert sent == {key: fate[:3] for key, fate in oracle.messages.items()}
    arrived = {key: (now, up) for _, now, key, _, up, _ in log.of("arrived")}
    assert len(arrived) == len(log.of("arrived"))
    landed = {k: (at, got) for k, (_, at, lost, got) in oracle.messages.items() if not lost and at <= oracle.end}
    assert arrived == landed
    tally, size = traffic.links, world_size(oracle)
    assert tally.sent == len(sent)
    assert tally.lost == sum(lost for *_, lost in sent.values())
    assert tally.delivered == sum(got for _, got in landed.values())
    assert tally.dropped == len(landed) - tally.delivered
    assert tally.in_flight == tally.sent - tally.lost - len(landed)
    assert traffic.vectors == tally.sent
    assert traffic.overtaken == sum(up and not newest for *_, up, newest in log.of("arrived"))
    for fate in ("sent", "delivered", "lost", "dropped", "in_flight"):
        assert getattr(traffic.bytes, fate) == size * getattr(tally, fate)


def world_size(oracle):
    return 16 + oracle.setting.network.header_bytes


def every_step_reads_the_newest_that_arrived(log, oracle, world):
    start = world.setting.network.start
    last = {agent: (agent + 1.0, -1.0) for agent in range(world.setting.graph.agents)}
    for _, now, agent, tick, heard, read in log.of("woke"):
        for neighbour, version, vector in zip(oracle.graph.neighbours(agent).tolist(), heard, read, strict=True):
            assert version == oracle.known(neighbour, agent, now)
            unheard = (0.0, 0.0) if start == "zero" else last[agent]
            assert vector == (unheard if version == -2 else (neighbour + 1.0, float(version)))
        last[agent] = (agent + 1.0, float(tick))


def equal_times_are_ordered(log):
    events = [event for event in log.events if event[0] in ("woke", "arrived")]
    for one, other in itertools.pairwise(events):
        assert one[1] <= other[1]
        if one[1] == other[1] and (one[0], other[0]) == ("woke", "arrived"):
            assert other[3] == other[1], "what arrives after a wake-up of the same instant was sent by it"
            assert other[2][0] == one[2]
    for _, wakes in itertools.groupby(log.of("woke"), key=lambda event: event[1]):
        agents = [event[2] for event in wakes]
        assert agents == sorted(agents)
