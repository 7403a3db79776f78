"""The batched engine gives the events, models, tallies and records of the event engine."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.availability import Always, OnOff, Window
from hushnet.agents.errors import Divergence
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES
from hushnet.agents.parameters import LONGEST
from hushnet.agents.tables import Table
from hushnet.agents.tasks.linear_classification import LinearClassification
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent, CoordinateDescentParameters
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.steps import Every, batched, received, segment_sum
from hushnet.simulator.contract.bench import small_graph, small_task
from hushnet.simulator.network.clocks import Poisson, Recorded
from hushnet.simulator.network.network import Network, NetworkParameters
from hushnet.simulator.network.randomness import BEYOND, QUANTUM, Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .driving import build_world, drive, fast_world
from .helpers import Collect, EventLog, Stamp, random_graph
from .test_world_properties import EXACT, availabilities, clocks, delays

LATENCIES = st.one_of(
    EXACT.map(lambda value: {"kind": "constant", "value": value}),
    delays(30).map(lambda mean: {"kind": "exponential", "mean": mean}),
    delays(30).map(lambda high: {"kind": "uniform", "low": high / 3, "high": high}),
    st.tuples(delays(5), st.floats(0.1, 2)).map(lambda p: {"kind": "lognormal", "mean": p[0], "sigma": p[1]}),
    st.tuples(delays(5), st.floats(0.3, 4)).map(lambda p: {"kind": "gamma", "mean": p[0], "shape": p[1]}),
)
LOSSES_OF_LINKS = st.one_of(
    st.sampled_from([0.0, 0.1, 0.5]),
    st.floats(0.3, 9).map(
        lambda mean: {"kind": "gilbert_elliott", "mean_good": mean, "mean_bad": 2.0, "loss_good": 0.1}
    ),
)
STOPS = st.one_of(
    st.sampled_from([4.0, 10.0, 40.0]).map(lambda time: Stop(time=time)),
    st.integers(1, 60).map(lambda count: Stop(time=12.0, activations=count)),
    st.integers(1, 200).map(lambda count: Stop(time=12.0, vectors=count)),
    st.integers(1, 8).map(lambda count: Stop(time=12.0, updates=count)),
    st.just(Stop(updates=3, activations=60)),
)


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


@st.composite
def settings_of_runs(draw, folder):
    agents = draw(st.integers(1, 6))
    clock = draw(clocks(agents))
    stop = draw(STOPS)
    availability = draw(availabilities(agents, folder))
    if stop.time is None and availability.kind != "always":
        # An agent that is always down when its clock ticks never makes its updates.
        stop = dataclasses.replace(stop, time=30.0)
    return Setting(
        task=small_task(agents, empty=False),
        graph=random_graph(agents, draw(st.floats(0.2, 1)), np.random.default_rng(draw(st.integers(0, 99)))),
        clock=clock,
        network=NetworkParameters.model_validate(
            {
                "latency": draw(LATENCIES),
                "loss": draw(LOSSES_OF_LINKS),
                "bandwidth": draw(st.sampled_from([None, 16.0, 100.0])),
                "header_bytes": draw(st.sampled_from([0, 16])),
                "start": draw(st.sampled_from(["known", "own", "zero"])),
            }
        ),
        availability=availability,
        stop=stop,
        draws=Draws(draw(st.integers(0, 2**64 - 1))),
        base=folder,
    )


@pytest.mark.parametrize(
    ("network", "clock"),
    [
        ({"latency": {"kind": "lognormal", "mean": float(LONGEST), "sigma": 10.0}}, {"kind": "poisson", "rate": 1.0}),
        ({"latency": 0.5, "bandwidth": 1e-12}, {"kind": "poisson", "rate": 1.0}),
        ({"latency": 0.5}, {"kind": "poisson", "rate": {"kind": "lognormal", "mean": 1e-6, "sigma": 10.0}}),
    ],
    ids=["delays", "bandwidth", "clocks"],
)
def test_durations_beyond_every_end_leave_sums_exact_on_both_engines(network, clock):
    setting = Setting(
        task=small_task(5, empty=False),
        graph=random_graph(5, 1.0, np.random.default_rng(1)),
        clock=Poisson.model_validate(clock),
        network=NetworkParameters.model_validate(network),
        availability=OnOff(kind="on_off", online=0.999, mean_down=float(LONGEST), distribution="lognormal", sigma=10.0),
        stop=Stop(time=float(LONGEST), activations=300),
        draws=Draws(4),
    )
    found = [outcome(engine, setting, Blend, MixParameters(), every=2.0**20) for engine in (World, fast_world)]
    assert found[0] == found[1]
    times = [event[1] for event in found[0][0] if event[0] in ("woke", "final")]
    assert max(times) <= LONGEST
    assert all((time / QUANTUM).is_integer() for time in times)
    uniforms = setting.draws.messages(1, np.arange(500, dtype=np.uint64), 3, 0)
    drawn = setting.network.latency.delays(uniforms)
    delays, _ = Network(setting.network, range(500), np.arange(500, dtype=np.uint64), setting.draws).delays_and_losses(
        0, np.arange(500), 3, 0, 0.0, 8
    )
    assert delays.max() <= BEYOND
    assert delays.max() == BEYOND or (drawn.max() < 1e3 and network.get("bandwidth") is None)


RECORDS = st.one_of(
    st.sampled_from([0.25, 1.0, 7.3]).map(lambda every: {"every": every}),
    st.integers(1, 7).map(lambda count: {"activations": count}),
)


def assert_same(fast, reference):
    """What runs show is the same; an observer of planned steps is told after each, so what stands for who was never
    heard has changed."""
    (events, end), (others, other_end) = fast, reference
    assert end == other_end
    assert len(events) == len(others)
    for one, other in zip(events, others, strict=True):
        assert one[:5] == other[:5] if one[0] == "woke" else one == other


PLANNED = st.sampled_from([None, 1, 4]).flatmap(
    lambda updates: st.sampled_from(
        [
            (CoordinateDescent, CoordinateDescentParameters(kind="coordinate_descent", mu=0.1, updates=updates)),
            (Blend, MixParameters(updates=updates)),
            (BlendAtOnce, MixParameters(updates=updates)),
        ]
    )
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


@given(data=st.data())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_planned_steps_give_the_same_run_bit_for_bit(data, folder):
    setting = data.draw(settings_of_runs(folder))
    protocol, parameters = data.draw(PLANNED)
    record, observed = data.draw(RECORDS), data.draw(st.booleans())
    reference, fast = (
        outcome(engine, setting, protocol, parameters, observed=observed, **record) for engine in (World, fast_world)
    )
    assert_same(fast, reference)


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


@given(data=st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_longer_windows_change_nothing(data, folder):
    setting = data.draw(settings_of_runs(folder))
    parameters = CoordinateDescentParameters(kind="coordinate_descent", mu=0.1)
    watched = fast_world(setting, CoordinateDescent, parameters, observer=EventLog())
    alone = fast_world(setting, CoordinateDescent, parameters)
    for world in (watched, alone):
        drive(world)
    assert np.array_equal(watched.state.agent["model"].values, alone.state.agent["model"].values)
    assert watched.traffic == alone.traffic
    assert watched.ended == alone.ended


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


@pytest.mark.parametrize("radius", [None, 0.7])
@pytest.mark.parametrize("loss", ["logistic", "squared", "smoothed_hinge"])
def test_fifty_steps_in_batches_are_those_made_one_by_one_bit_for_bit(loss, radius):
    setting = plain_setting(dataclasses.replace(small_task(6), loss=LOSSES[loss]), stop=Stop(activations=300, time=99))
    plain, fast = (drive(engine(setting, CoordinateDescent, descent(radius=radius))) for engine in (World, fast_world))
    assert fast.engine == "batched (steps in batches)"
    assert min(agent.updates for agent in fast.agents) > 30
    assert fast.state.agent["model"].rows.tobytes() == plain.state.agent["model"].rows.tobytes()


PRIVATE = {"mechanism": "laplace", "budget": {"epsilon": 1.0, "delta": 1e-3}, "updates": 5, "sensitivity": "clip"}


def test_private_runs_are_the_same_bit_for_bit_on_both_engines():
    parameters = descent(privacy={**PRIVATE, "clip": 1.0})
    reference, fast = (
        outcome(engine, plain_setting(), CoordinateDescent, parameters, every=1.0) for engine in (World, fast_world)
    )
    assert fast == reference
    assert any(row[1] == "laplace" for row in fast[1][4])


@pytest.mark.parametrize("when", [{"every": 0.7}, {"activations": 5}])
def test_recorders_see_the_same_run(when):
    metrics = ["objective", "accuracy", "epsilon", "traffic", "age", "updates"]
    traces = []
    for engine in (World, fast_world):
        recorder = Recorder(metrics)
        world = engine(plain_setting(), CoordinateDescent, descent(), recorder=recorder, **when)
        drive(world)
        traces.append((recorder.trace(), recorder.agents(world)))
    for one, other in zip(*traces, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_a_recorded_order_gives_the_trace_of_the_reference_engine():
    order = np.random.default_rng(8).integers(0, 6, 300).tolist()
    setting = plain_setting(clock=Recorded(kind="recorded", order=order), stop=Stop(activations=150, time=400))
    events, _ = outcome(World, setting, CoordinateDescent, descent(), activations=50)
    fast, _ = outcome(fast_world, setting, CoordinateDescent, descent(), activations=50)
    assert_same((fast, None), (events, None))
    assert any(event[0] == "woke" for event in events)


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


def test_what_waits_for_a_step_at_the_end_of_a_run_is_there():
    world = drive(World(plain_setting(), Collect, Stamp.Parameters()))
    waiting = [[message.order for message in world.inbox.pending[agent.index]] for agent in world.agents]
    assert any(waiting)
    assert all(len(orders) == len(set(orders)) for orders in waiting)


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


GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "linear_12_agents.npz")


class Models:
    """A recorder that keeps all models."""

    def __init__(self):
        self.rows = []

    def sample(self, world, *, final):
        self.rows.append(world.protocol.models(world.state).copy())


@pytest.mark.parametrize("engine", [World, fast_world])
@pytest.mark.parametrize("mu", ["0.04", "4"])
def test_coordinate_descent_follows_the_golden_trace_on_both_engines(engine, mu):
    features, labels, owners = GOLDEN["X"], GOLDEN["Y"], GOLDEN["own"]
    task = dataclasses.replace(
        small_task(12),
        train=Table.from_owners(features, labels, owners, 12),
        test=Table.from_owners(features, labels, owners, 12),
        regularisation=GOLDEN["lam"],
    )
    setting = Setting(
        task=task,
        graph=Graph.from_matrix(GOLDEN["W"]),
        clock=Recorded(kind="recorded", order=GOLDEN["order"].tolist()),
        network=NetworkParameters(),
        availability=Always(kind="always"),
        stop=Stop(activations=200),
        draws=Draws(0),
    )
    parameters = descent(mu=float(mu), confidence=GOLDEN["c"].tolist(), start="local")
    models = Models()
    drive(engine(setting, CoordinateDescent, parameters, recorder=models, activations=1))
    np.testing.assert_allclose(models.rows[:201], GOLDEN[f"cd_mu{mu}"], atol=1e-9)


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


def test_forty_agents_with_long_delays_make_the_pools_grow_and_change_nothing():
    rng = np.random.default_rng(3)
    setting = Setting(
        task=small_task(40),
        graph=random_graph(40, 0.3, rng),
        clock=Poisson(kind="poisson", rate=rng.uniform(0.2, 2.0, 40).tolist()),
        network=NetworkParameters.model_validate({"latency": {"kind": "exponential", "mean": 30}, "loss": 0.05}),
        availability=OnOff(
            kind="on_off",
            online=0.8,
            mean_down=1.0,
            joins=Window(share=0.3, between=[0, 20]),
            leaves=Window(share=0.2, between=[10, 40]),
        ),
        stop=Stop(time=50.0),
        draws=Draws(6),
    )
    reference = outcome(World, setting, Blend, MixParameters(), every=5.0)
    assert_same(outcome(fast_world, setting, Blend, MixParameters(), every=5.0), reference)


class DrawsItsStart(Blend):
    """Starts are drawn."""

    def start(self, me):
        me.model = me.stream("noise").normal(size=3) + me.tick
        me.send("model", me.model, me.plain())


def test_an_agent_that_joins_late_starts_at_the_same_tick_with_the_same_draws_on_both_engines():
    setting = Setting(
        task=small_task(),
        graph=small_graph(),
        clock=Poisson(kind="poisson", rate=3.0),
        network=NetworkParameters.model_validate({"latency": 0.3}),
        availability=Always(kind="always", joins=Window(share=0.6, between=[2.0, 6.0])),
        stop=Stop(time=12.0),
        draws=Draws(3),
    )
    one, other = (outcome(engine, setting, DrawsItsStart, MixParameters()) for engine in (World, fast_world))
    assert_same(other, one)
