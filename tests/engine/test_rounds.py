"""Neighbour-barrier rounds: the synchronous loop on every network, its clock time, repeats, patience and stalls."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.availability import OnOff, Trace
from hushnet.agents.errors import Stall
from hushnet.protocols.base import Layout, MessageKind, Protocol, Traits
from hushnet.protocols.schedule import RoundsSchedule
from hushnet.simulator.contract import protocol_parameters
from hushnet.simulator.engine.batched.eventful import EventfulRounds
from hushnet.simulator.network.clocks import Periodic
from hushnet.simulator.network.setting import Stop

from .driving import build_world, drive, driver_of
from .helpers import EventLog, StampParameters, world_of

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


@pytest.mark.parametrize(
    ("fields", "schedule"),
    [
        ({"loss": 0.1}, "rounds"),
        ({"availability": AWAY}, "rounds"),
        ({}, {"kind": "rounds", "patience": 2.0}),
        ({}, {"kind": "rounds", "resend_after": 2.0}),
    ],
)
def test_rounds_that_need_events_have_them_in_compiled_windows(fields, schedule):
    parameters = in_rounds(Averaging, schedule=schedule)
    setting = world_of(Averaging, parameters, **fields).setting
    world = build_world("auto", setting, Averaging, parameters)
    assert type(driver_of(world)) is EventfulRounds
    assert world.engine == "batched (planned steps)"
