"""Parts of one's own do what they say on both engines: protocols, subclasses of shipped ones, losses, networks."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar, Literal

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.parameters import Parameters
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.steps import Constants
from hushnet.simulator.contract.bench import protocol_parameters, run_small, small_setting
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine, declined
from hushnet.simulator.network.clocks import Clock, PoissonClock
from hushnet.simulator.network.latency import Exponential, Latency
from hushnet.simulator.network.network import Bernoulli, LossModel, NetworkParameters
from hushnet.simulator.network.randomness import quantise
from hushnet.simulator.world.world import World

from .driving import build_world, drive, fast_world
from .helpers import Stamp

SCHEDULES = {"broadcast": "async", "rounds": "rounds"}


class Frozen(CoordinateDescent):
    """Says its model, and never changes it."""

    decides = True

    def step(self, me):
        me.send("model", me.model, me.plain())


class Confident(CoordinateDescent):
    """Its step function is its parent's, and how many steps it takes is not."""

    def most_steps(self):
        return 2


class Stubborn(ModelPropagation):
    """Its step function is its parent's, and a constant of it is not."""

    def constants(self):
        return Constants(agent={"mu_c": 2.0 * self.mu_c})


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_subclass_runs_its_own_method_and_not_its_parents_function(schedule):
    fields = protocol_parameters(Frozen, {"mu": 0.5, "schedule": SCHEDULES[schedule]})
    engines = EventEngine(), BatchedEngine()
    reference, fast = (run_small(Frozen, fields, engine=engine) for engine in engines)
    assert fast.engine == "event, because Frozen decides by numbers what a step sends"
    assert np.array_equal(fast.state.agent["model"].values, reference.state.agent["model"].values)
    assert not np.array_equal(
        fast.state.agent["model"].values, run_small(CoordinateDescent, fields).state.agent["model"].values
    )


@pytest.mark.parametrize("kind", [Confident, Stubborn])
def test_a_subclass_with_other_constants_runs_by_these_on_both_engines(kind):
    fields = protocol_parameters(kind, {"mu": 0.5, "schedule": "async"})
    worlds = [run_small(kind, fields, engine=engine) for engine in (EventEngine(), BatchedEngine())]
    parent = run_small(kind.__base__, fields, engine=BatchedEngine())
    assert worlds[1].engine == "batched (steps in batches)"
    assert (worlds[1].updates.max() == 2) == (kind is Confident)
    models = [world.state.agent["model"].values.tobytes() for world in (*worlds, parent)]
    assert models[0] == models[1] != models[2]


class Steps(Latency):
    """One of two delays; without a distribution."""

    kind: Literal["steps"] = "steps"

    @property
    def average(self):
        return 1.0

    def delays(self, uniforms):
        return np.where(uniforms[:, 0] < 0.5, 0.5, 1.5)


class OddLaw(Steps):
    """Its distribution has a code that compiled code does not know."""

    distribution: ClassVar = (77, 1.0, 1.0)


class Doubled(Exponential):
    """Inherits a distribution that is not its own any more."""

    def delays(self, uniforms):
        return 2 * super().delays(uniforms)


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
    ({"latency": OddLaw()}, "steps delays have no compiled form"),
    ({"latency": Doubled(kind="exponential", mean=1.0)}, "exponential delays have no compiled form"),
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
