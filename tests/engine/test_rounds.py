"""Neighbour-barrier rounds: the synchronous loop on every network, its clock time, repeats, patience and stalls."""

from __future__ import annotations

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

AWAY = OnOff(kind="on_off", online=0.6, mean_down=2.0)


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


def test_without_repeats_the_run_names_the_agent_and_the_round_that_can_never_begin():
    never = {"kind": "rounds", "resend_after": "never"}
    log = EventLog()
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
    patient = in_rounds(Averaging, schedule={"kind": "rounds", "patience": 2.0})
    world = drive(world_of(Averaging, patient, stop=Stop(updates=5), **fields))
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
