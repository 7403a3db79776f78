"""Planned steps: what protocols declare is honoured, and what is drawn and charged is that of the event engine."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from hushnet.agents.errors import Divergence, InputError, StepFailure
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.steps import Every, average, batched, local_gradient, perturbed, post_processed
from hushnet.simulator.contract import check_contract, check_replay
from hushnet.simulator.contract.bench import protocol_parameters, run_small
from hushnet.simulator.contract.violation import ContractViolation
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world, prepared
from .noisy_steps import MECHANISMS, Noisy, NoisyPairs, NoisyPairsTogether, NoisyParameters, NoisyTogether
from .random_worlds import assert_same, check_engines_agree, joining, random_setting

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


NOISY = {"mu": 0.5, "privacy": {"mechanism": "gaussian", "sensitivity": "clip", "clip": 1.0, "multiplier": 2.0}}


@pytest.mark.parametrize(
    ("protocol", "engine", "mechanism"),
    [
        *((NoisyTogether, BATCHES, mechanism) for mechanism in MECHANISMS),
        (Noisy, PLANNED, "gamma"),
        (NoisyPairs, PLANNED, "laplace"),
        (NoisyPairsTogether, BATCHES, "gaussian"),
    ],
)
def test_planned_steps_draw_the_noise_of_the_event_engine(protocol, engine, mechanism):
    """In exchanges, too, where an agent may answer several times between two ticks of its clock."""
    make = random_setting(0, loss="logistic")
    for arranged in (make, joining(make)):
        world = check_engines_agree(arranged, protocol, NoisyParameters(mechanism=mechanism), engine=engine)
        charged = world.ledger.to_frame()
        assert set(charged["mechanism"]) == {mechanism}
        assert charged["count"].sum() > 10


class Tells(CoordinateDescent):
    """Draws its noise at its first step, and none later."""

    @staticmethod
    def step(me):
        gradient = local_gradient(me, me.model)
        if me.updates == 0:
            gradient = perturbed(me, gradient)
        me.model = 0.9 * me.model - 0.1 * gradient
        me.message = me.model


class TellsTogether(CoordinateDescent):
    """The same in batches."""

    @staticmethod
    @batched
    def step(me):
        first, later = me.where(me.updates == 0), me.where(me.updates > 0)
        first.model = 0.9 * first.model - 0.1 * perturbed(first, local_gradient(first, first.model))
        later.model = 0.9 * later.model - 0.1 * local_gradient(later, later.model)
        me.message = me.model


class TwiceNoisy(CoordinateDescent):
    """Draws twice a step."""

    @staticmethod
    def step(me):
        me.model -= 0.1 * (perturbed(me, local_gradient(me, me.model)) + perturbed(me, me.model))
        me.message = me.model


def check(protocol, fields, engine):
    make = random_setting(3, loss="logistic", easy=True)
    return check_engines_agree(make, protocol, protocol_parameters(protocol, {"radius": 0.8, **fields}), engine=engine)


@pytest.mark.parametrize(("protocol", "engine"), [(Tells, PLANNED), (TellsTogether, BATCHES)])
def test_what_leaves_without_noise_that_was_to_be_drawn_is_charged_as_plain(protocol, engine):
    world = check(protocol, NOISY, engine)
    assert {"gaussian", "none"} == set(world.ledger.to_frame()["mechanism"])
    assert np.isinf(world.ledger.epsilon("verified", 1e-5)).any()


def test_noise_that_is_drawn_twice_is_charged_twice():
    world = check(TwiceNoisy, NOISY, PLANNED)
    for agent, count in world.ledger.to_frame().set_index("agent")["count"].items():
        assert count == 2 * world.updates[agent]


class ReadsState(CoordinateDescent):
    """Its release depends on what a step has computed."""

    def release(self, me):
        usual = super().release(me)
        return dataclasses.replace(usual, reason=f"at {np.sum(me.model):g}")


class ReadsStateLater(CoordinateDescent):
    """Its release depends on that from its second step on."""

    def release(self, me):
        assert me.updates == 0 or me.model is not None
        return super().release(me)


class SaysHalf(CoordinateDescent):
    """Its release names half of the noise that `scales` has."""

    def release(self, me):
        usual = super().release(me)
        return dataclasses.replace(usual, scale=usual.scale / 2) if usual.noisy else usual


class SaysHalfLater(CoordinateDescent):
    """Its release names half of the noise that `scales` has, in later stages."""

    def release(self, me):
        usual = super().release(me)
        return dataclasses.replace(usual, scale=usual.scale / 2) if usual.noisy and me.updates else usual


def test_steps_whose_release_reads_the_state_are_made_one_by_one_and_say_where():
    fields = protocol_parameters(ReadsState, NOISY)
    reference, batched = (run_small(ReadsState, fields, engine=one) for one in (EventEngine(), BatchedEngine()))
    assert "its release reads me.model (test_plans.py:" in batched.engine
    assert "me.model" in batched.engine
    assert batched.ledger.to_frame().equals(reference.ledger.to_frame())


STAGED = {
    "mu": 0.5,
    "privacy": {
        "mechanism": "laplace",
        "sensitivity": "clip",
        "clip": 1.0,
        "budget": {"epsilon": 5.0, "delta": 0.0},
        "updates": 4,
        "allocation": "proposition2",
    },
}


@pytest.mark.parametrize(
    ("protocol", "complaint"),
    [
        (ReadsStateLater, r"release of ReadsStateLater reads me\.model at stage 1 of agent \d"),
        (SaysHalfLater, r"agent \d at stage 1 has the scale \S+ by the scales\(\) of SaysHalfLater's noise, and its "),
    ],
)
def test_what_only_a_later_stage_shows_ends_the_run_with_a_sentence(protocol, complaint):
    fields = protocol_parameters(protocol, STAGED)
    run_small(protocol, fields, engine=EventEngine())
    with pytest.raises(StepFailure, match=complaint):
        run_small(protocol, fields, engine=BatchedEngine())


def test_a_release_of_another_scale_than_its_noise_is_a_violation():
    with pytest.raises(StepFailure, match=r"at stage 0 has the scale \S+ by the scales\(\) of SaysHalf's noise"):
        run_small(SaysHalf, protocol_parameters(SaysHalf, NOISY), engine=BatchedEngine())
    with pytest.raises(ContractViolation, match=r"and its release says \S+; planned steps draw the first"):
        check_contract(SaysHalf, NOISY)


class CallsDataPostProcessing(CoordinateDescent):
    """Tells an exact gradient's model as if it followed from what was told before."""

    @staticmethod
    def step(me):
        me.model -= 0.1 * local_gradient(me, me.model)
        post_processed(me)
        me.message = me.model


def test_the_replay_finds_data_that_a_step_calls_post_processing():
    with pytest.raises(ContractViolation, match="as public"):
        check_replay(CallsDataPostProcessing, protocol_parameters(CallsDataPostProcessing, NOISY))
