"""What is compiled serves only what it was written for, and its errors end a run instead of spoiling it."""

from __future__ import annotations

import dataclasses
import math
from types import MethodType
from typing import ClassVar, Literal

import numba
import numpy as np
import pytest
from hushnet.agents.availability import Always, Availability
from hushnet.agents.compilation.callbacks import compiled_callback
from hushnet.agents.compilation.compiled import form_of
from hushnet.agents.errors import InputError, StepFailure
from hushnet.agents.losses import Squared
from hushnet.agents.parameters import Parameters
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.kernel import RESPONDING, Kernel, PairKernel, PlainCharges
from hushnet.protocols.steps import Constants
from hushnet.protocols.steps.signatures import EXCHANGE, STEP
from hushnet.simulator.contract.bench import protocol_parameters, run_small, small_setting
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine, declined
from hushnet.simulator.network.clocks import Clock, Poisson, PoissonClock
from hushnet.simulator.network.latency import Exponential, Latency
from hushnet.simulator.network.network import Bernoulli, LossModel, NetworkParameters
from hushnet.simulator.network.randomness import quantise
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World

from ..benchmarks.hand.arrays import ranks, table_of, vector
from .driving import build_world, drive, fast_world
from .exchange import Gossip
from .helpers import Stamp

SCHEDULES = {"broadcast": "async", "rounds": "rounds"}


class Frozen(CoordinateDescent):
    """Says its model, and never changes it."""

    def wake(self, view, out):
        out.send("model", view.state["model"], out.plain())


class Sevens(ModelPropagation):
    """Its text is not its parent's."""

    @staticmethod
    def step(me):
        me.model[:] = 7.0
        me.message = me.model


class Confident(CoordinateDescent):
    """Its text is its parent's, and a constant of it is not."""

    def constants(self):
        return Constants(run={"limit": 2.0})


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_subclass_runs_its_own_step_and_not_its_parents_compiled_one(schedule):
    fields = protocol_parameters(Frozen, {"mu": 0.5, "schedule": SCHEDULES[schedule]})
    engines = EventEngine(), BatchedEngine()
    reference, fast = (run_small(Frozen, fields, engine=engine) for engine in engines)
    assert fast.engine == "batched (Python step, because Frozen has a method wake beside its text)"
    assert np.array_equal(fast.state.agent["model"].values, reference.state.agent["model"].values)
    assert not np.array_equal(
        fast.state.agent["model"].values, run_small(CoordinateDescent, fields).state.agent["model"].values
    )


@pytest.mark.parametrize("schedule", ["rounds", "async"])
def test_a_subclass_runs_its_own_text_compiled(schedule):
    fields = protocol_parameters(Sevens, {"mu": 0.5, "schedule": schedule})
    world = run_small(Sevens, fields, engine=BatchedEngine())
    assert world.engine == "batched (compiled step)"
    stepped = world.updates > 0
    assert stepped.sum() > 3
    assert (world.state.agent["model"].rows[stepped] == 7.0).all()


def test_a_subclass_with_other_constants_is_compiled_with_these():
    fields = protocol_parameters(Confident, {"mu": 0.5})
    worlds = [run_small(Confident, fields, engine=engine) for engine in (EventEngine(), BatchedEngine())]
    assert worlds[1].engine == "batched (compiled step)"
    for world in worlds:
        assert world.updates.max() == 2
    np.testing.assert_allclose(*(world.state.agent["model"].values for world in worlds), rtol=0, atol=1e-12)


@dataclasses.dataclass(frozen=True)
class Steeper(Squared):
    """A loss of somebody's own with the name of another."""

    def slope(self, scores, labels):
        return 3 * super().slope(scores, labels)


def test_a_loss_of_ones_own_has_no_compiled_step_whatever_its_name():
    setting = small_setting()
    setting = dataclasses.replace(setting, task=dataclasses.replace(setting.task, loss=Steeper()))
    fields = protocol_parameters(CoordinateDescent, {"mu": 0.5})
    engine = fast_world(setting, CoordinateDescent, fields).engine
    assert engine == "batched (Python step, because the task's loss is not one of hushnet's own)"


def test_an_object_with_a_replaced_method_is_not_served():
    world = fast_world(small_setting(), Refusing, protocol_parameters(Refusing, {}))
    protocol = world.protocol
    assert form_of(protocol, "kernel") is not None
    protocol.wake = MethodType(Frozen.wake, protocol)
    assert form_of(protocol, "kernel") is None
    other = World(small_setting(), CoordinateDescent, protocol_parameters(CoordinateDescent, {"mu": 0.5}))
    other.protocol.wake = MethodType(Frozen.wake, other.protocol)
    assert BatchedEngine().driver(other).engine == (
        "batched (Python step, because a method of this very CoordinateDescent was replaced)"
    )


def refuse(agent, tick, now, updates, first, last, known, pool, rows, table):
    """Fail in one of several ways at an agent's third step, having said something before."""
    message = pool[rows[0]]
    models, way = vector(table, 0), ranks(table, 1)[0]
    message[:] = models[2 * agent]
    models[2 * agent] += 1.0
    if updates >= 2 and agent == 4:
        if way == 0:
            message[len(message) + way] = 1.0
        elif way == 1:
            message[0] = 1 / (way - 1)
        elif way == 2:
            message[0] = np.linalg.inv(np.zeros((2, 2)))[0, 0]
        else:
            raise ValueError("no such luck")
    return 0


WORDS = [
    r"IndexError \(index is out of bounds\)",
    r"ZeroDivisionError \(division by zero\)",
    r"LinAlgError \(Matrix is singular to machine precision.\)",
    r"ValueError \(no such luck\)",
]
refusing = compiled_callback(STEP)(refuse)


class Refusing(Stamp):
    """Its compiled step raises."""

    way, failing = 0, refusing

    def kernel(self, state):
        return Kernel(self.failing, table_of([state.agent["model"].values, np.array([self.way])]), PlainCharges(""))


class Heir(Refusing):
    """Its steps are its parent's, whose compiled form it does not vouch for."""


def test_a_step_that_is_compiled_by_hand_serves_the_class_that_defines_it():
    fields = protocol_parameters(Heir, {})
    assert fast_world(small_setting(), Refusing, fields).engine == "batched (compiled step)"
    heir = fast_world(small_setting(), Heir, fields)
    assert heir.engine == "batched (Python step, because Heir does not define kernel itself)"
    assert heir.remarks == ("Heir does not define kernel itself, so its steps run in Python",)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("way", range(4))
def test_an_error_in_a_compiled_step_ends_the_run_and_names_agent_time_and_step(schedule, way, monkeypatch, capsys):
    monkeypatch.setattr(Refusing, "way", way)
    recorder = Recorder(["updates"])
    fields = protocol_parameters(Refusing, {"schedule": SCHEDULES[schedule]})
    world = fast_world(small_setting(), Refusing, fields, recorder=recorder, every=0.25)
    with pytest.raises(StepFailure, match=WORDS[way]) as error:
        drive(world)
    said = str(error.value)
    assert said.startswith("agent 4 at time ")
    assert "the compiled step of Refusing raised" in said
    assert "after 2 updates" in said
    assert not world.ended
    assert world.updates[4] == 2
    assert world.activations == world.updates.sum() > 2
    assert world.traffic.conserved
    times = recorder.trace()["time"]
    assert world.now - 0.25 <= times.max() <= world.now
    assert f"at time {world.now:.6g}:" in said
    assert "Exception ignored" not in capsys.readouterr().err


def test_a_c_function_of_numbas_is_as_safe(monkeypatch):
    monkeypatch.setattr(Refusing, "failing", numba.cfunc(STEP)(refuse))
    with pytest.raises(StepFailure, match="IndexError"):
        run_small(Refusing, protocol_parameters(Refusing, {}), engine=BatchedEngine())


@compiled_callback(EXCHANGE)
def stumble(phase, agent, tick, now, updates, edge, first, last, known, pool, heard, message, table):
    """Fail in one phase."""
    message[:] = 0.0
    models = vector(table, 0)
    if phase == ranks(table, 1)[0] and updates >= 1:
        models[len(models)] = 1.0
    return 0


class Stumbling(Gossip):
    """Its compiled exchange raises."""

    phase = RESPONDING

    def kernel(self, state):
        return PairKernel(stumble, table_of([state.agent["model"].values, np.array([self.phase])]), PlainCharges(""))


@pytest.mark.parametrize(("phase", "word"), [(1, "request"), (2, "respond"), (3, "complete")])
def test_an_error_in_a_compiled_exchange_ends_the_run_and_names_agent_time_and_half(phase, word, monkeypatch):
    monkeypatch.setattr(Stumbling, "phase", phase)
    setting = dataclasses.replace(small_setting(), stop=Stop(time=20.0))
    world = fast_world(setting, Stumbling, protocol_parameters(Stumbling, {}))
    complaint = rf"^agent \d at time .*: the compiled {word} of an exchange of Stumbling raised IndexError .* after 1"
    with pytest.raises(StepFailure, match=complaint):
        drive(world)
    assert not world.ended


@pytest.mark.parametrize(("step", "name"), [(None, "None"), (stumble, "stumble"), (refuse, "refuse")])
def test_what_is_no_compiled_step_is_refused_with_a_sentence(step, name, monkeypatch):
    monkeypatch.setattr(Refusing, "failing", staticmethod(step) if callable(step) else step)
    with pytest.raises(ValueError, match=f"{name} is no compiled step; make it with .*compiled_callback"):
        build_world("auto", small_setting(), Refusing, protocol_parameters(Refusing, {}))


class Steps(Latency):
    """One of two delays; without a law."""

    kind: Literal["steps"] = "steps"

    @property
    def average(self):
        return 1.0

    def delays(self, uniforms):
        return np.where(uniforms[:, 0] < 0.5, 0.5, 1.5)


class NoLaw(Steps):
    """Its law is an attribute that says that there is none."""

    law: ClassVar[None] = None


class OddLaw(Steps):
    """Its law has a code that compiled code does not know."""

    law: ClassVar = (77, 1.0, 1.0)


class Doubled(Exponential):
    """Inherits a law that is not its own any more."""

    def delays(self, uniforms):
        return 2 * super().delays(uniforms)


class Bare(Latency):
    """Nothing but delays."""

    kind: Literal["bare"] = "bare"
    average: ClassVar[float] = 1.25

    def delays(self, uniforms):
        return np.full(len(uniforms), 1.25)


class EveryOther(LossModel):
    """Copies with an even time of sending, in quarters, are lost."""

    kind: Literal["every_other"] = "every_other"

    def begin(self, numbers, draws):
        return lambda sender, receivers, now: np.full(len(receivers), float(math.floor(4 * now) % 2 == 0))


class Worse(Bernoulli):
    """Inherits a chance that is not its own any more."""

    def begin(self, numbers, draws):
        return lambda sender, receivers, now: np.full(len(receivers), 1.0)


class HourHand(Clock):
    """Wakes the agents one after the other."""

    def next_time(self, agent, tick, now):
        return quantise(tick + (1 + agent) / 8)


class Hours(Parameters):
    """Builds `HourHand`."""

    kind: Literal["hours"] = "hours"

    def build(self, ids, numbers, draws, base):
        return HourHand()


class Slower(PoissonClock):
    """Inherits a form that is not its own any more."""

    def interval(self, agent, tick):
        return 2 * super().interval(agent, tick)


class Slow(Parameters):
    """Builds `Slower`."""

    kind: Literal["slow"] = "slow"

    def build(self, ids, numbers, draws, base):
        return Slower(np.ones(len(ids)), numbers, draws)


INVENTED = [
    ({"latency": Steps()}, "steps delays have no compiled form"),
    ({"latency": NoLaw()}, "steps delays have no compiled form"),
    ({"latency": OddLaw()}, "steps delays have no compiled form"),
    ({"latency": Doubled(kind="exponential", mean=1.0)}, "exponential delays have no compiled form"),
    ({"latency": Bare()}, "bare delays have no compiled form"),
    ({"loss": EveryOther()}, "losses of the kind every_other have no compiled form"),
    ({"loss": Worse(kind="bernoulli", probability=0.0)}, "losses of the kind bernoulli have no compiled form"),
    ({"clock": Hours()}, "clocks of the kind HourHand have no compiled form"),
    ({"clock": Slow()}, "clocks of the kind Slower have no compiled form"),
]


def invented_setting(fields):
    network = {name: fields[name] for name in ("latency", "loss") if name in fields}
    setting = small_setting(network=NetworkParameters.model_construct(**network))
    return dataclasses.replace(setting, clock=fields.get("clock", setting.clock))


@pytest.mark.parametrize(("fields", "why"), INVENTED, ids=[why for _, why in INVENTED])
def test_what_has_no_compiled_form_runs_on_the_event_engine_and_says_why(fields, why):
    setting = invented_setting(fields)
    world = build_world("auto", setting, Stamp, Stamp.Parameters())
    assert declined(world) == why
    assert world.engine == f"event, because {why}"
    drive(world)
    reference = World(setting, Stamp, Stamp.Parameters())
    drive(reference)
    assert world.traffic == reference.traffic
    assert world.activations == reference.activations > 20
    for make in (fast_world, lambda *parts: build_world("batched", *parts)):
        with pytest.raises(InputError, match=why):
            make(setting, Stamp, Stamp.Parameters())


def test_invented_kinds_do_on_the_event_engine_what_they_say():
    late = build_world("auto", invented_setting({"latency": Bare()}), Stamp, Stamp.Parameters())
    drive(late)
    assert late.traffic.links.in_flight > 0
    lossy = build_world("auto", invented_setting({"loss": EveryOther()}), Stamp, Stamp.Parameters())
    drive(lossy)
    assert 0.2 < lossy.traffic.links.lost / lossy.traffic.links.sent < 0.8
    on_the_hour = build_world("auto", invented_setting({"clock": Hours()}), Stamp, Stamp.Parameters())
    drive(on_the_hour)
    assert on_the_hour.updates.tolist() == [8] * 6


@pytest.mark.parametrize("schedule", [None, "rounds"])
def test_a_loss_that_inherits_that_it_loses_nothing_is_not_believed(schedule):
    setting = invented_setting({"loss": Worse(kind="bernoulli", probability=0.0)})
    assert not setting.network.lossless
    parameters = protocol_parameters(Stamp, {"schedule": schedule})
    assert build_world("auto", setting, Stamp, parameters).engine.startswith("event, because")


class Flickering(Availability):
    """Says more often than necessary that agents are up, and never that they are down."""

    kind: Literal["flickering"] = "flickering"

    def timelines(self, ids, numbers, *, draw, round_time, base=None):
        return [((float(k), True) for k in range(10**6)) for _ in ids]


class Absent(Always):
    """Inherits that nobody is ever down, which is not so."""

    def timelines(self, ids, numbers, *, draw, round_time, base=None):
        return [iter([(0.0, True), (2.0, False), (5.0, True), (5.5, True)]) for _ in ids]


@pytest.mark.parametrize("availability", [Flickering(), Absent(kind="always")])
def test_invented_availabilities_give_the_same_run_on_both_engines(availability):
    setting = dataclasses.replace(small_setting(), availability=availability)
    worlds = [make(setting, Stamp, Stamp.Parameters()) for make in (World, fast_world)]
    for world in worlds:
        drive(world)
    assert worlds[0].traffic == worlds[1].traffic
    assert (worlds[0].updates == worlds[1].updates).all()
    assert worlds[0].activations < 48 or type(availability) is Flickering
    rounds = protocol_parameters(Stamp, {"schedule": "rounds"})
    worlds = [make(setting, Stamp, rounds) for make in (World, fast_world)]
    for world in worlds:
        drive(world)
    assert worlds[0].traffic == worlds[1].traffic
    assert (worlds[0].updates == worlds[1].updates).all()


def test_shipped_kinds_have_the_forms_that_they_had():
    for fields in (
        {"latency": {"kind": "gamma", "mean": 1.0}},
        {"loss": {"kind": "gilbert_elliott", "mean_good": 1, "mean_bad": 1}},
        {"latency": {"kind": "uniform", "high": 1.0}, "loss": 0.1},
    ):
        setting = small_setting(network=NetworkParameters.model_validate(fields))
        assert declined(World(setting, Stamp, Stamp.Parameters())) is None
    assert (
        Poisson(kind="poisson").build([1], np.zeros(1, dtype=np.uint64), small_setting().draws, None).form is not None
    )
