"""The batched engine gives the events, models, tallies and records of the event engine."""

from __future__ import annotations

import copy
import dataclasses
from typing import Literal

import numpy as np
import pytest
from hushnet.agents.availability import Always, OnOff
from hushnet.agents.errors import Divergence
from hushnet.agents.losses import LOSSES
from hushnet.agents.tasks.linear_classification import LinearClassification
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent, CoordinateDescentParameters
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.steps import Every, batched, received, segment_sum
from hushnet.simulator.contract.bench import small_graph, small_task
from hushnet.simulator.network.clocks import Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.world.world import World

from .driving import build_world, drive, fast_world
from .helpers import Collect, EventLog, Stamp, random_graph


class MixParameters(ProtocolParameters):
    """Parameters of `Mix`."""

    kind: Literal["mix"] = "mix"
    updates: int | None = None


class Mix(Protocol):
    """Agents move half-way to the mean of what they hear, with some noise; some fall silent after a while."""

    decides = True

    Parameters = MixParameters

    def layout(self):
        return Layout(agent={"model": 3}, messages={"model": MessageKind(3, mirrors="model")})

    def start(self, me):
        me.model = me.agent
        me.send("model", me.model, me.plain())

    def step(self, me):
        model = me.model
        if len(me.neighbours):
            model += 0.5 * (me.heard.mean(axis=0) - model)
        model += me.stream("noise").normal(size=3)
        me.send("model", model, me.plain())
        if self.parameters.updates is not None and me.updates + 1 >= self.parameters.updates:
            me.fall_silent()


class Blend(Mix):
    """Its steps are functions of one agent, and do the same without noise."""

    def most_steps(self):
        return self.parameters.updates

    decides = False

    @staticmethod
    def step(me):
        if me.degree:
            me.model += 0.5 * (received(me).mean(axis=0) - me.model)
        me.model += np.sin(me.now + me.agent)
        me.message = me.model


class BlendAtOnce(Blend):
    """The same, of many agents at once; every other message is not sent."""

    def sends(self):
        return {"model": Every(2)}

    @staticmethod
    @batched
    def step(me):
        around = segment_sum(me, received(me)) / np.maximum(me.degree, 1)
        me.model = np.where(me.degree > 0, 0.5 * (me.model + around), me.model) + np.sin(me.now + me.agent)
        if me.updates[0] % 2 == 0:
            me.message = me.model


class Log(EventLog):
    """An event log that also looks at everything that a recorder may look at."""

    def sample(self, world, *, final):
        super().sample(world, final=final)
        traffic = copy.deepcopy(world.traffic)
        assert traffic.conserved
        inbox = [(a.tolist(), world.inbox.order[k].tolist()) for k, a in world.inbox.sent_at.items()]
        values = [block.values.tolist() for block in world.inbox.values.values()]
        updates = [*zip(world.updates.tolist(), world.started.tolist(), strict=True)]
        self.events.append(("record", (world.now, world.events), traffic, inbox, values, updates))


def outcome(engine, setting, protocol, parameters, *, observed=True, **kwargs):
    """Everything that a run shows: events and samples, and its end."""
    log = Log()
    world = engine(setting, protocol, parameters, observer=log if observed else None, recorder=log, **kwargs)
    drive(world)
    blocks = [block.values.tolist() for block in (*world.state.agent.values(), *world.state.edge.values())]
    end = (world.ended, world.activations, world.now, blocks, world.ledger.to_frame().values.tolist())
    end = (*end, world.counted)
    return log.events, end


def assert_same(fast, reference):
    """What runs show is the same; an observer of planned steps is told after each, so what stands for who was never
    heard has changed."""
    (events, end), (others, other_end) = fast, reference
    assert end == other_end
    assert len(events) == len(others)
    for one, other in zip(events, others, strict=True):
        assert one[:5] == other[:5] if one[0] == "woke" else one == other


@pytest.mark.parametrize("seed", range(12))
def test_an_observer_sees_a_last_step_that_sends_nothing_as_its_agent_makes_it(seed):
    """Not as things stand when the window is over: slow links deliver much in the meantime."""
    setting = Setting(
        task=small_task(6, empty=False),
        graph=random_graph(6, 1.0, np.random.default_rng(0)),
        clock=Poisson(kind="poisson"),
        network=NetworkParameters(bandwidth=16.0),
        availability=Always(kind="always"),
        stop=Stop(time=4.0),
        draws=Draws(seed),
    )
    given = (setting, BlendAtOnce, MixParameters(updates=4))
    assert_same(*(outcome(engine, *given, every=0.25) for engine in (fast_world, World)))


def plain_setting(task=None, **fields):
    setting = Setting(
        task=task or small_task(6),
        graph=small_graph(6),
        clock=Poisson(kind="poisson"),
        network=NetworkParameters.model_validate({"latency": {"kind": "exponential", "mean": 0.5}, "loss": 0.2}),
        availability=OnOff(kind="on_off", online=0.7, mean_down=2.0),
        stop=Stop(time=20.0),
        draws=Draws(5),
    )
    return dataclasses.replace(setting, **fields)


def descent(**fields):
    return CoordinateDescentParameters.model_validate({"kind": "coordinate_descent", "mu": 0.1, **fields})


def test_a_run_that_diverges_says_the_same_on_both_engines():
    task = small_task(6, empty=False)
    task = dataclasses.replace(task, loss=LOSSES["squared"], regularisation=np.full(6, 1.0))
    parameters = descent(radius=1.0, smoothness="public", start="constant", start_value=1.0, mu=1e9)
    parameters = parameters.model_copy(
        update={"radius": 1e-300, "start_value": 1e308}
    )  # beyond what a scenario may say
    said = []
    for engine in (World, fast_world):
        world = engine(plain_setting(task), CoordinateDescent, parameters)
        world.protocol.smoothness[:] = 0.0
        with pytest.raises(Divergence) as error:
            drive(world)
        # What overflows first, a sum or a difference, is up to the order of summation.
        text = str(error.value).replace("infinite", "not a number")
        said.append((text, world.activations, world.traffic, [agent.updates for agent in world.agents]))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("traits", "what"),
    [(Traits(inbox="every"), "reads every message"), (Traits(trigger="message"), "reacts to single messages")],
)
def test_steps_that_are_not_planned_because_of_single_messages_are_remarked(traits, what):
    class Nosy(Blend):
        """It has a step function, which is called when each step is due."""

    Nosy.traits = traits
    world = fast_world(plain_setting(), Nosy, MixParameters())
    assert world.remarks == (f"Nosy {what} that it is sent, so its steps are made one by one",)
    assert world.engine == f"event, because Nosy {what} that it is sent"
    assert not fast_world(plain_setting(), Collect, Stamp.Parameters()).remarks
    assert drive(world).activations > 20


BY_NUMBERS = "Stamp decides by numbers what a step sends"


def test_the_engine_can_be_chosen():
    setting = plain_setting()
    assert build_world("event", setting, Stamp, Stamp.Parameters()).engine == "event, as asked"
    assert build_world("auto", setting, Stamp, Stamp.Parameters()).engine == f"event, because {BY_NUMBERS}"
    assert build_world("auto", setting, CoordinateDescent, descent()).engine == "batched (steps in batches)"
    assert build_world("auto", setting, Blend, MixParameters()).engine == "batched (planned steps)"
    assert build_world("batched", setting, Stamp, Stamp.Parameters()).engine == f"event, because {BY_NUMBERS}"


@pytest.mark.parametrize("loss", ["logistic", "squared", "smoothed_hinge"])
def test_data_in_single_precision_give_the_same_models_on_both_engines(loss):
    fields = {"kind": "linear_classification", "agents": 8, "dimension": 7, "samples": [0, 9], "points": "ball"}
    task = LinearClassification(**fields, loss=loss, precision="float32").build(
        rng=np.random.default_rng(4), data_dir=None
    )
    assert task.train.features.dtype == np.float32
    setting = dataclasses.replace(plain_setting(task), graph=random_graph(8, 0.5, np.random.default_rng(2)))
    models = []
    for engine in (World, fast_world):
        world = engine(setting, CoordinateDescent, descent(mu=0.5))
        drive(world)
        models.append(world.protocol.models(world.state))
    assert np.abs(models[0]).max() > 0.01
    assert models[1].tobytes() == models[0].tobytes()
