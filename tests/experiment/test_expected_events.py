"""Events that a run has at least: counted from numbers, never more than it has, and refused before it starts."""

from __future__ import annotations

import pytest
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.base import Layout, MessageKind, Protocol
from hushnet.simulator.cli import main
from hushnet.simulator.engine.selection import engine_for
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.language.loading import load
from hushnet.simulator.limits.events import Degrees, least_events
from hushnet.simulator.network.clocks import Periodic, Poisson, Recorded

from ..engine.driving import drive, prepared

SCENARIO = {
    "schema": 1,
    "scenario": "counted",
    "task": {"kind": "linear_classification", "agents": 8, "dimension": 2, "samples": [3, 6], "test_samples": 2},
    "topology": {"kind": "watts_strogatz"},
    "network": {"latency": {"kind": "exponential", "mean": 0.3}, "loss": 0.1},
    "engine": "event",
}
PROTOCOLS = [
    {"kind": "coordinate_descent"},
    {"kind": "coordinate_descent", "schedule": "rounds"},
    {"kind": "model_propagation"},
    {"kind": "model_propagation", "schedule": "async"},
    {"kind": "collaborative_admm"},
    {"kind": "collaborative_admm", "schedule": "rounds"},
    {"kind": "consensus_admm"},
    {"kind": "edge_consensus_admm"},
    {"kind": "dual_averaging"},
    {"kind": "push_sum_dual_averaging"},
]
CLOCKS = [
    {"kind": "poisson", "rate": 2.0},
    {"kind": "poisson", "rate": {"kind": "uniform", "low": 0.5, "high": 2.0}},
    {"kind": "periodic", "jitter": 0.5},
]


def world_of(clock, protocol, stop, **changes):
    """What `least_events` is asked for, and the world of the run."""
    loaded = load({**SCENARIO, "clock": clock, "protocols": {"p": protocol}, "stop": stop, **changes})
    experiment = Experiment(loaded)
    run = next(experiment.runs())
    world = experiment.world(run)
    return loaded.scenario, loaded.code.protocol(protocol["kind"]), prepared(world, engine_for("auto", world))


@pytest.mark.parametrize("stop", [{"time": 20.0}, {"activations": 150}, {"updates": 15}], ids=str)
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_no_run_has_fewer_events_than_it_has_at_least(protocol, stop):
    """The seed is fixed; a wrong one would fail with a probability below e^-18 for each of the clocks."""
    for clock in CLOCKS:
        scenario, kind, world = world_of(clock, protocol, stop)
        least = least_events(scenario, kind, world.protocol.parameters, 8, Degrees.of(world.setting.graph))
        drive(world)
        assert least <= world.events
        in_rounds = "rounds" in protocol.values() or protocol["kind"] in ("consensus_admm", "dual_averaging")
        if in_rounds and "time" in stop:
            assert least == 0
        elif "updates" in stop or "activations" in stop:
            assert least > 0.05 * world.events


@pytest.mark.parametrize(
    ("protocol", "changes"),
    [
        ({"kind": "local"}, {}),
        ({"kind": "coordinate_descent", "updates": 3}, {}),
        (
            {"kind": "coordinate_descent"},
            {"availability": {"kind": "always", "leaves": {"share": 0.5, "between": [1.0, 2.0]}}},
        ),
        ({"kind": "coordinate_descent"}, {"topology": {"kind": "ring", "allow_isolated": True}}),
    ],
    ids=str,
)
def test_nothing_is_expected_of_agents_that_may_fall_silent_or_leave(protocol, changes):
    scenario, kind, _ = world_of(CLOCKS[0], protocol, {"time": 20.0}, **changes)
    assert least_events(scenario, kind, scenario.protocols["p"], 8) == 0


class Quiet(CoordinateDescent):
    """It inherits all but falls silent at once."""

    decides = True

    def layout(self) -> Layout:
        return Layout(agent={"model": 2}, messages={"model": MessageKind(2)})

    def step(self, me):
        me.fall_silent()


def test_what_a_class_promises_is_not_inherited():
    scenario, kind, _ = world_of(CLOCKS[0], PROTOCOLS[0], {"time": 20.0})
    assert least_events(scenario, kind, scenario.protocols["p"], 8) > 0
    assert least_events(scenario, Quiet, scenario.protocols["p"], 8) == 0
    assert Protocol.least_sent(None) is None


def test_wake_ups_of_clocks_are_rates_times_time():
    assert Poisson(kind="poisson", rate=2.0).wakes(10.0, 5).expected == pytest.approx(100)
    listed = Poisson(kind="poisson", rate=[1.0, 3.0]).wakes(10.0, 2)
    assert (listed.expected, listed.each) == (pytest.approx(40), pytest.approx(10))
    assert Periodic(kind="periodic", period=0.5).wakes(10.0, 3).expected == pytest.approx(57)
    recorded = Recorded(kind="recorded", order=[0, 1, 0], spacing=1.0)
    assert recorded.wakes(100.0, 2).expected == 3
    assert Recorded(kind="recorded", path="clock.txt").wakes(100.0, 2).expected == 0


TEXT = """\
schema: 1
scenario: endless
task: {kind: linear_classification, agents: 100, dimension: 2, samples: [1, 2], test_samples: 1}
topology: {kind: complete}
protocols: {cd: {kind: coordinate_descent}, alone: {kind: local}}
stop: {time: 4000000}
record: {every: 100000}
"""


def test_a_run_that_cannot_end_below_its_limit_is_refused_before_it_starts(tmp_path, capsys):
    """400 million wake-ups, and 99 copies at each of them."""
    (tmp_path / "s.yaml").write_text(TEXT)
    for command in (["check"], ["run", "--quiet", "--out", str(tmp_path / "out")]):
        assert main([*command, str(tmp_path / "s.yaml")]) == 5
        said = capsys.readouterr().err
        assert "endless: protocol cd: has at least 39,98" in said
        assert "limits.events admits 1,000,000,000; raise it, or stop earlier" in said
        assert len(said.strip().splitlines()) == 1
    assert not list((tmp_path / "out").glob("*/manifest.json"))


def test_check_counts_a_copy_for_each_wake_up_where_degrees_are_drawn(tmp_path, capsys):
    """400 million wake-ups of agents that have a neighbour each, or the graph is refused."""
    (tmp_path / "s.yaml").write_text(TEXT.replace("kind: complete", "kind: erdos_renyi, probability: 0.1"))
    assert main(["check", str(tmp_path / "s.yaml"), "--set", "limits.events=700000000"]) == 5
    assert "endless: protocol cd: has at least 798," in capsys.readouterr().err
    assert main(["check", str(tmp_path / "s.yaml"), "--set", "limits.events=800000000"]) == 0


BOUNDED = [{}, {"latency": 0.4}, {"latency": {"kind": "uniform", "low": 0.1, "high": 1.5}}]
ENDLESS = {"time": 20000.0}


@pytest.mark.parametrize("network", BOUNDED, ids=str)
@pytest.mark.parametrize("clock", [CLOCKS[0], CLOCKS[2], {"kind": "poisson", "rate": [0.5] * 7 + [4.0]}], ids=str)
def test_rounds_and_calls_are_counted_where_delays_are_bounded_and_nothing_is_lost(network, clock):
    for protocol in PROTOCOLS:
        scenario, kind, world = world_of(clock, protocol, {"time": 15.0}, network=network)
        degrees = Degrees.of(world.setting.graph)
        parameters = world.protocol.parameters
        least = least_events(scenario, kind, parameters, 8, degrees)
        drive(world)
        assert least <= world.events
        longer = scenario.model_copy(update={"stop": scenario.stop.model_copy(update=ENDLESS)})
        much = least_events(longer, kind, parameters, 8, degrees)
        assert much > 0.05 * world.events * ENDLESS["time"] / 15.0
        expected = least_events(longer, kind, parameters, 8, Degrees.expected(scenario.topology, 8))
        assert 0 < expected <= much


def test_rounds_are_not_counted_where_nobody_knows_how_long_they_take():
    for network in ({"loss": 0.1}, {"latency": {"kind": "gamma", "mean": 0.1}}, {"bandwidth": 1e6}):
        scenario, kind, world = world_of(CLOCKS[0], PROTOCOLS[1], ENDLESS, network=network)
        assert least_events(scenario, kind, world.protocol.parameters, 8, Degrees.of(world.setting.graph)) == 0


def test_a_run_that_is_there_is_not_refused(tmp_path, capsys):
    (tmp_path / "s.yaml").write_text(TEXT)
    command = ["run", str(tmp_path / "s.yaml"), "--quiet", "--out", str(tmp_path / "out"), "--set", "stop.time=20"]
    command += ["--set", "record.every=10", "--set", "task.agents=6", "--set", "engine=reference"]
    assert main([*command, "--set", "limits.events=50"]) == 5
    assert "has at least" in capsys.readouterr().err
    assert main(command) == 0
    assert main([*command, "--set", "limits.events=50"]) == 0
