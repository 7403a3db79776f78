"""Neighbour-barrier rounds: the synchronous loop on every network, its clock time, repeats, patience and stalls."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hushnet.agents.availability import Always, OnOff, Trace, Window
from hushnet.agents.errors import InputError, Stall
from hushnet.protocols.base import Layout, MessageKind, Protocol, Traits
from hushnet.protocols.schedule import RoundsSchedule
from hushnet.simulator.contract import protocol_parameters
from hushnet.simulator.network.clocks import Periodic, Poisson, Recorded
from hushnet.simulator.network.setting import Stop

from .driving import drive, waits
from .helpers import EventLog, Stamp, StampParameters, run, world_of

LATENCIES = {
    "zero": 0.0,
    "constant": 2.5,
    "exponential": {"kind": "exponential", "mean": 1.5},
    "lognormal": {"kind": "lognormal", "mean": 1.0, "sigma": 1.5},
}
AWAY = OnOff(kind="on_off", online=0.6, mean_down=2.0)
AGENTS, ROUNDS = 6, 10


class Averaging(Protocol):
    """Synchronous averaging with equal weights, from the mean of the own rows."""

    Parameters = StampParameters
    traits = Traits(trigger="round", inbox="per_round")

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.model = me.data.features.mean(axis=0)
        me.send("model", me.model, me.plain())

    @staticmethod
    def step(me):
        heard = me.heard
        me.message = me.model = (me.model + heard.sum(axis=0)) / (1 + len(heard))


class Limited(Averaging):
    """Agent i falls silent with its update number 2 + i, saying its last model."""

    def most_steps(self):
        return 2 + np.arange(self.problem.graph.agents)


class Speechless(Averaging):
    """Agent 0 falls silent in round 3 without a word."""

    decides = True

    def step(self, me):
        if me.agent == 0 and me.round == 3:
            me.fall_silent()
            return
        Averaging.step(me)


def in_rounds(protocol, *, schedule="rounds", **fields):
    return protocol_parameters(protocol, {"schedule": schedule, **fields})


def rounds_of(protocol, *args, schedule="rounds", updates=ROUNDS, fields=None, log=None, **kwargs):
    """Run at least so many rounds of every agent, all models of all steps beside it: models[k, i]."""
    log = log or Models()
    world = world_of(
        protocol,
        in_rounds(protocol, schedule=schedule, **(fields or {})),
        log=log,
        stop=Stop(updates=updates),
        **kwargs,
    )
    log.watch(world)
    drive(world)
    return world, log


class Models(EventLog):
    """Also the models that every step found, and how far ahead of its neighbours an agent ever was."""

    def __init__(self):
        super().__init__()
        self.found, self.ahead = {}, 0

    def woke(self, world, agent):
        super().woke(world, agent)
        self.found[agent.tick, agent.index] = world.state.agent["model"][agent.index].copy()
        for j in world.setting.graph.neighbours(agent.index).tolist():
            self.ahead = max(self.ahead, agent.tick - world.agents[j].tick)

    def sent(self, world, message, delay, lost):
        assert world.agents[message.sender].up
        super().sent(world, message, delay, lost)

    def after(self, rounds):
        """(rounds, agents, p) what everybody had after so many rounds, from 0 on."""
        agents = 1 + max(agent for _, agent in self.found)
        return np.array([[self.found[k, i] for i in range(agents)] for k in range(rounds)])


def averaging(task, graph, rounds):
    """Synchronous averaging, by hand."""
    models = np.array([task.train.shard(i).features.mean(axis=0) for i in range(task.agents)])
    history = [models]
    for _ in range(rounds - 1):
        old, models = models, np.empty_like(models)
        for i in range(task.agents):
            around = graph.neighbours(i)
            models[i] = (old[i] + old[around].sum(axis=0)) / (1 + len(around))
        history.append(models)
    return np.array(history)


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("start", ["known", "own", "zero"])
def test_lossless_rounds_are_bitwise_the_synchronous_loop(latency, start):
    world, log = rounds_of(Averaging, latency=LATENCIES[latency], start=start)
    expected = averaging(world.setting.task, world.setting.graph, ROUNDS)
    if start == "known":
        np.testing.assert_allclose(log.after(ROUNDS), expected, rtol=1e-13, atol=1e-15)
    else:
        assert (log.after(ROUNDS)[1] != expected[1]).any()
        again = rounds_of(Averaging, start=start)[1].after(ROUNDS)
        assert log.after(ROUNDS).tobytes() == again.tobytes()


def test_without_repeats_the_run_names_the_agent_and_the_round_that_can_never_begin():
    never = {"kind": "rounds", "resend_after": "never"}
    log = Models()
    world = world_of(Averaging, in_rounds(Averaging, schedule=never), log=log, loss=0.1)
    log.watch(world)
    with pytest.raises(
        Stall, match=r"^agent \d at time [\d.]+: round \d+ can never begin, because the message"
    ) as error:
        drive(world)
    words = str(error.value).split()
    waits, number = int(words[1]), int(words[6])
    lost = log.losses()
    neighbour = int(str(error.value).split("from agent ")[1][0])
    assert (neighbour, waits, number - 2) in lost
    assert number == 1 + min(tick for sender, receiver, tick in lost) + 1
    assert world.traffic.links.in_flight == 0
    assert max(agent.updates for agent in world.agents) - min(agent.updates for agent in world.agents) <= 3


@pytest.mark.parametrize("resend_after", ["never", 1.0, None])
def test_an_agent_that_goes_for_good_stalls_the_others_and_is_named(tmp_path, resend_after):
    (tmp_path / "up.csv").write_text("agent,up_from,up_to\n2,0,5.5\n")
    away = Trace(kind="trace", path="up.csv", others="up")
    schedule = RoundsSchedule(resend_after=resend_after)
    clock = Periodic(kind="periodic", phase="common")
    fields = {"availability": away, "base": tmp_path, "clock": clock}
    with pytest.raises(
        Stall, match=r"agent [13] at time \d.*: round 7 .* agent 2 went for good before it had sent its"
    ):
        drive(world_of(Averaging, in_rounds(Averaging, schedule=schedule), **fields))
    world, _ = rounds_of(Averaging, schedule={"kind": "rounds", "patience": 2.0}, updates=5, **fields)
    assert world.agents[1].updates >= 5


def test_nothing_is_repeated_to_agents_that_never_come_back(tmp_path):
    (tmp_path / "up.csv").write_text("agent,up_from,up_to\n0,0,1.2\n")
    away, schedule = Trace(kind="trace", path="up.csv", others="up"), RoundsSchedule(resend_after=0.25)
    world = world_of(
        Stamp,
        in_rounds(Stamp, schedule=schedule),
        clock=Periodic(kind="periodic", phase="common"),
        latency=1.0,
        availability=away,
        base=tmp_path,
        log=(log := Models()),
    )
    with pytest.raises(Stall):
        drive(world)
    assert log.events[-1][1] > 3
    later = [event[2] for event in log.of("sent") if event[1] > 1.5 and event[2][1] == 0 and event[5] == "model"]
    assert len(set(later)) == len(later) > 0


@pytest.mark.parametrize("away", [None, AWAY])
@pytest.mark.parametrize("latency", LATENCIES)
def test_with_patience_a_run_never_stalls(latency, away):
    schedule = {"kind": "rounds", "patience": 1.0}
    world, log = rounds_of(Stamp, schedule=schedule, latency=LATENCIES[latency], loss=0.6, availability=away)
    assert waits(world)[0] == math.inf
    assert min(agent.updates for agent in world.agents) >= ROUNDS
    for _, _, agent, tick, heard, _ in log.of("woke"):
        earlier = [event[4] for event in log.of("woke") if event[2] == agent and event[3] == tick - 1]
        assert all(now >= before for before in earlier for now, before in zip(heard, before, strict=True))


def recursion(world, rounds):
    """When every round of everybody ends: intervals and delays through a max-plus recursion."""
    graph, agents = world.setting.graph, world.setting.graph.agents
    ends = np.zeros((rounds + 1, agents))
    arrived = np.zeros((agents, agents))
    for k in range(1, rounds + 1):
        for i in range(agents):
            begin = max([ends[k - 1, i], *(arrived[j, i] for j in graph.neighbours(i))])
            ends[k, i] = world.clock.next_time(i, k - 1, begin)
        for i in range(agents):
            delays, _ = world.network.delays_and_losses(i, graph.neighbours(i), k - 1, 0, 0.0, world.network.size(2))
            arrived[i, graph.neighbours(i)] = ends[k, i] + delays
    return ends[1:]


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("rate", [1.0, [1.0, 1.0, 1.0, 0.2, 1.0, 1.0]])
def test_the_time_of_every_round_follows_from_intervals_and_delays(latency, rate):
    world, log = rounds_of(Stamp, clock=Poisson(kind="poisson", rate=rate), latency=LATENCIES[latency])
    expected = recursion(world, ROUNDS)
    ended = {(tick, agent): time for time, agent, tick in log.wakes()}
    assert np.array_equal([[ended[k, i] for i in range(AGENTS)] for k in range(ROUNDS)], expected)


@pytest.mark.parametrize("loss", [0.0, 0.4])
def test_the_last_message_of_an_agent_that_fell_silent_stands_for_all_later_rounds(loss):
    world, _ = run(Limited, in_rounds(Limited), loss=loss, latency=1.0, stop=Stop(activations=1000))
    assert world.ended == "every agent has finished"
    assert [agent.updates for agent in world.agents] == [2 + i for i in range(AGENTS)]
    expected, graph = averaging(world.setting.task, world.setting.graph, 2)[0], world.setting.graph
    for k in range(2 + AGENTS):
        old = expected.copy()
        for i in range(AGENTS):
            around = graph.neighbours(i)
            if k < 2 + i:
                expected[i] = (old[i] + old[around].sum(axis=0)) / (1 + len(around))
    assert world.state.agent["model"].rows.tobytes() == expected.tobytes()


@pytest.mark.parametrize("loss", [0.0, 0.4])
def test_falling_silent_without_a_word_is_said_by_the_engine(loss):
    world = world_of(Speechless, in_rounds(Speechless), loss=loss, latency=1.0, stop=Stop(time=60.0), header_bytes=1)
    drive(world)
    assert world.agents[0].updates == 2
    assert min(agent.updates for agent in world.agents[1:]) > 5


@pytest.mark.parametrize(
    ("fields", "field", "complaint"),
    [
        ({"clock": Recorded(kind="recorded", order=[0, 1])}, ("clock", "kind"), "no intervals for rounds to last"),
        (
            {"availability": Always(kind="always", joins=Window(share=0.5, between=[1, 2]))},
            ("availability", "joins"),
            "none may join or leave",
        ),
        (
            {"availability": Always(kind="always", leaves=Window(share=0.5, between=[1, 2]))},
            ("availability", "leaves"),
            "none may join or leave",
        ),
    ],
)
def test_what_rounds_cannot_do_is_refused_with_a_sentence(fields, field, complaint):
    with pytest.raises(InputError, match=complaint) as error:
        world_of(Stamp, in_rounds(Stamp), **fields)
    assert error.value.field == field
