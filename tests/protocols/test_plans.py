"""Steps that are planned: what protocols declare is honoured, and a step that does otherwise, or fails, ends alike."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hushnet.agents.errors import Divergence, InputError, StepFailure
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.steps import Every, average, batched, local_gradient
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world, prepared
from .random_worlds import assert_same, check_engines_agree, random_setting

BATCHES, PLANNED, ONE_BY_ONE = "batched (steps in batches)", "batched (planned steps)", "event, "
SCHEDULES = ["async", "rounds", {"kind": "rounds", "patience": 1.0}]


class Parameters(ProtocolParameters):
    """What goes wrong at the sixth step of the agent 2."""

    kind: str = "plans"
    wrong: str = ""


class Alone(Protocol):
    """Averages and descends, one agent after the other."""

    Parameters = Parameters

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.model = me.agent
        me.send("model", me.model, me.public("a number"))

    @staticmethod
    def step(me):
        me.model = (me.model + average(me)) / 2 - 0.1 * local_gradient(me, me.model)
        if me.agent == 2 and me.updates == 5:
            go_wrong(me)
        me.message = me.model


class Together(Alone):
    """The same in batches."""

    @staticmethod
    @batched
    def step(me):
        me.model = (me.model + average(me)) / 2 - 0.1 * local_gradient(me, me.model)
        some = me.where((me.agent == 2) & (me.updates == 5))
        if len(some.agent):
            go_wrong(some)
        me.message = me.model


class PairsAlone(Alone):
    """Meets in the middle, one agent after the other."""

    traits = Traits(exchange="pairwise")

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"request": MessageKind(p), "reply": MessageKind(p)})

    def start(self, me):
        me.model = me.agent

    @staticmethod
    def request(me, partner):
        me.message = me.model

    @staticmethod
    def respond(me, partner, heard):
        me.message = me.model
        me.model = (me.model + heard) / 2
        if me.agent == 2 and me.updates > 4:
            go_wrong(me)

    @staticmethod
    def complete(me, partner, heard):
        me.model = (me.model + heard) / 2 - 0.1 * local_gradient(me, me.model)


class PairsTogether(PairsAlone):
    """The same in batches."""

    @staticmethod
    @batched
    def request(me):
        me.message = me.model

    @staticmethod
    @batched
    def respond(me, heard):
        me.message = me.model
        me.model = (me.model + heard) / 2
        some = me.where((me.agent == 2) & (me.updates > 4))
        if len(some.agent):
            go_wrong(some)

    @staticmethod
    @batched
    def complete(me, heard):
        me.model = (me.model + heard) / 2 - 0.1 * local_gradient(me, me.model)


def go_wrong(me):
    """As the parameters say."""
    if me.wrong == "raises":
        raise KeyError("no such luck")
    if me.wrong == "diverges":
        me.model = me.model * np.inf


@pytest.mark.parametrize("wrong", ["raises", "diverges"])
@pytest.mark.parametrize(
    ("kind", "engine", "schedule"),
    [
        *((Alone, PLANNED, schedule) for schedule in SCHEDULES),
        *((Together, BATCHES, schedule) for schedule in SCHEDULES),
        (PairsAlone, PLANNED, "async"),
        (PairsTogether, BATCHES, "async"),
    ],
)
def test_a_step_that_fails_in_the_middle_of_a_plan_ends_the_run_there(kind, engine, schedule, wrong):
    """Counters, charges and blocks are those of the event engine, which has not looked any further."""
    pairs = issubclass(kind, PairsAlone)
    spec = Parameters(wrong=wrong, **({} if pairs else {"schedule": schedule}))
    make, said = random_setting(3, loss="logistic", easy=not pairs), []
    recorders = [Recorder(["updates"]) for _ in range(2)]
    event = prepared(World(make(), kind, spec, recorder=recorders[0], every=0.25), EventEngine())
    planned = fast_world(make(), kind, spec, recorder=recorders[1], every=0.25)
    for world, recorder in zip((event, planned), recorders, strict=True):
        with pytest.raises(StepFailure if wrong == "raises" else Divergence, match="agent 2 at time") as error:
            drive(world)
        said.append(str(error.value))
        assert not world.ended
        assert world.now - 0.25 <= recorder.trace()["time"].max() <= world.now
    assert said[0] == said[1]
    assert wrong == "diverges" or re.search(r"failed at test_plans\.py:\d+, `raise KeyError", said[0])
    assert planned.engine == engine
    assert_same(planned, event)
    assert (planned.now, planned.events) == (event.now, event.events)
    assert event.updates[2] == 5 or pairs


class Quiet(Alone):
    """Says nothing at every third step, and falls silent at its seventh."""

    @staticmethod
    def step(me):
        me.model += 1.0
        if me.updates % 3 != 2:
            me.message = me.model
        return me.updates >= 6


class Ends(Alone):
    """Falls silent without a word at its third step, which then is none."""

    @staticmethod
    def step(me):
        if me.updates == 2:
            return True
        me.model += 1.0
        me.message = me.model
        return False


class Decides(Quiet):
    """Says so."""

    decides = True


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("kind", "last", "why"),
    [
        (Quiet, 7, "it "),
        (Ends, 2, "it ended an agent's steps at its step 3, against what Ends declares (test_plans.py:"),
        (Decides, 7, "Decides decides by numbers what a step sends"),
    ],
)
def test_plain_steps_that_send_otherwise_than_declared_are_made_one_by_one(kind, last, why, schedule):
    make = random_setting(3, loss="logistic", easy=True)
    world = check_engines_agree(make, kind, Parameters(schedule=schedule), engine=f"{ONE_BY_ONE}because {why}")
    assert world.updates.max() == last
    against = f"against what {kind.__name__} declares (test_plans.py:"
    assert [against in warning for warning in world.warnings] == [True] * (kind is not Decides)
    assert all(warning.endswith("), so its steps are made one by one") for warning in world.warnings)


@pytest.mark.parametrize(
    ("sends", "most", "said"),
    [
        (
            {"modle": Every()},
            None,
            r"plans\.py:\d+, `.*names the kind 'modle'; did you mean 'model'\? admissible",
        ),
        ({"model": Every(2, 2)}, None, r"sends has Every\(period=2, phase=2\) for 'model'; admissible: whole numbers"),
        ({"model": Every(1.5)}, None, "whole numbers"),
        ({"model": Every(np.ones(3, dtype=int))}, None, "one for each agent"),
        ({}, 0, "most_steps is 0; admissible: None, or numbers from 1"),
        ({}, np.ones(3), "one for each agent"),
    ],
)
def test_what_no_agent_could_keep_is_refused_before_the_first_step(sends, most, said):
    kind = type("Odd", (Alone,), {"sends": lambda self: sends, "most_steps": lambda self: most})
    with pytest.raises(InputError, match=said):
        World(random_setting(0, loss="logistic")(), kind, Parameters())
