"""Every benchmark runs at toy size, makes the wake-ups that it is measured by, and compares like with like."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hushnet.simulator.network.randomness import stable_ids
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world
from . import models, study
from .cases import CASES, ENGINES, MU, make_setting, protocol_of, random_regular, step_constants
from .floor import Floor
from .measure import RECORDED_PAIRS, measure
from .naive import NaiveWorld
from .run import HEADER, cells, table

UPDATES = 4.0


def wake_ups(setting):
    """How often the clocks tick before the time is up."""
    task = setting.task
    clock = setting.clock.build(task.ids, stable_ids(task.ids), setting.draws, None)
    count = 0
    for agent in range(task.agents):
        now, tick = 0.0, 0
        while (now := clock.next_time(agent, tick, now)) <= setting.stop.time:
            tick += 1
        count += tick
    return count


# Worlds with troubles are there to be compared with their base on the batched engine.
RUNS = [(name, engine) for name, case in CASES.items() for engine in ENGINES if engine == "batched" or not case.base]


@pytest.mark.parametrize(("name", "engine"), RUNS)
def test_a_benchmark_runs_and_makes_the_wake_ups_that_the_clocks_ask_for(name, engine):
    result = measure(name, engine, updates=UPDATES, repetitions=2, recorded_updates=2 * UPDATES, toy=True)
    case = CASES[name].toy
    if engine == "naive" and (case.family != "broadcast" or case.trouble.absences is not None):
        assert result.skipped.startswith("the naive engine knows ")
        assert result.runs == []
        return
    assert result.skipped == ""
    assert len(result.runs) == len(result.ratios) == len(result.floors) == 2
    if case.family == "broadcast" and case.trouble.absences is None:
        expected = wake_ups(make_setting(case, UPDATES))
        assert [run.wake_ups for run in result.runs] == [expected, expected]
        assert [run.messages for run in result.runs] == [expected * case.degree] * 2
    assert all(run.wake_ups > 0 and run.messages > 0 for run in result.runs)
    assert all(math.isfinite(ratio) and ratio > 0 for ratio in result.ratios)
    assert len(result.recording_shares) == (2 * RECORDED_PAIRS if case.recorded and engine != "naive" else 0)
    assert ("% at 8 (" in cells(result)[-1]) == bool(result.recording)
    assert result.peak > 0
    assert len(cells(result)) == len(HEADER)
    assert CASES[name].title in table([result])


@pytest.mark.parametrize("name", CASES)
def test_the_floor_makes_every_update_it_is_asked_for_and_moves_models(name):
    case = CASES[name].toy
    floor = Floor(make_setting(case, UPDATES), case.family, 50)
    before = floor.models.copy()
    assert floor.run()[1] == 50
    assert not np.array_equal(floor.models, before)


def test_the_floor_makes_the_same_updates_as_the_protocol_where_messages_take_no_time():
    """Clocks give the order; with no delay and no loss everybody reads the present models, as the floor does."""
    setting = make_setting(CASES["1k"].toy, UPDATES)
    network = type(setting.network).model_validate({"latency": 0.0})
    setting = type(setting)(**{**vars(setting), "network": network})
    order = []

    class Log:
        def woke(self, world, agent):
            order.append(agent.index)

        def sent(self, world, message, delay, lost):
            return

        def arrived(self, world, message, up, newest):
            return

    world = World(setting, *protocol_of("broadcast"), observer=Log())
    drive(world)
    floor = Floor(setting, "broadcast", len(order))
    floor.order = np.array(order)
    floor.run()
    np.testing.assert_allclose(floor.models, world.protocol.models(world.state), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "name", [n for n, case in CASES.items() if case.family == "broadcast" and case.trouble.absences is None]
)
def test_the_naive_engines_models_are_the_reference_engines(name):
    setting = make_setting(CASES[name].toy, 12.0)
    naive, world = NaiveWorld(setting), World(setting, *protocol_of("broadcast"))
    naive.run()
    drive(world)
    models = world.protocol.models(world.state)
    assert models is not None
    assert naive.wake_ups == world.activations
    assert naive.messages == world.traffic.links.sent
    assert world.traffic.links.lost > 0
    assert world.traffic.overtaken > 0
    assert np.abs(models).max() > 0
    np.testing.assert_allclose(naive.models, models, rtol=1e-10, atol=1e-13)  # sums are rounded otherwise


def test_step_constants_are_the_protocols_own():
    setting = make_setting(CASES["1k"].toy, 1.0)
    world = World(setting, *protocol_of("broadcast"))
    drive(world)
    alpha, mu_c = step_constants(setting.task)
    assert protocol_of("broadcast")[1].mu == MU
    assert np.array_equal(world.state.agent["alpha"].values, alpha)
    assert np.array_equal(world.state.agent["mu_c"].values, mu_c)


def test_gossip_in_batches_is_gossip_one_by_one():
    setting = make_setting(CASES["gossip-1k"].toy, 12.0)
    models = []
    for engine in (World, fast_world):
        world = engine(setting, *protocol_of("gossip"))
        drive(world)
        assert world.activations > 100
        models.append(world.protocol.models(world.state))
    assert np.abs(models[0]).max() > 0.01
    assert models[0].tobytes() == models[1].tobytes()


@pytest.mark.parametrize(("agents", "degree"), [(12, 11), (16, 5), (50, 10), (50, 30), (300, 11)])
def test_graphs_are_simple_regular_and_symmetric(agents, degree):
    graph = random_regular(agents, degree, np.random.default_rng(3))
    assert set(graph.degrees.tolist()) == {degree}
    assert not np.any(graph.tails == graph.heads)
    assert len(np.unique(graph.tails * agents + graph.heads)) == agents * degree
    assert np.array_equal(graph.tails[graph.reverse], graph.heads)


@pytest.mark.slow
def test_the_command_prints_and_writes_a_table(tmp_path):
    options = [
        "--toy",
        "--cases",
        "complete",
        "gossip-1k",
        "--engines",
        "naive",
        "--repetitions",
        "1",
        "--updates",
        "2",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *options, "--markdown", tmp_path / "table.md"],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "table.md").read_text()
    for text in (done.stdout, written):
        assert f"{CASES['complete'].title} | naive | 2 x 1 (reduced)" in text
        assert "not measured: the naive engine knows coordinate descent only" in text
        assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in text


def test_a_study_is_measured_by_protocol(capsys):
    study.main(["--toy"])
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"1 points x 1 seeds: {len(study.PROTOCOLS)} runs, ")
    assert [line.split(" | ")[0].strip("| ") for line in said[4:]] == list(study.PROTOCOLS)


def test_models_take_the_same_steps_one_by_one_and_batched():
    (_, one), (_, other) = (models.measure(models.MODELS["perceptron of 32"], name, 6, 3) for name in models.ENGINES)
    assert one.activations == other.activations == 18
    assert one.state.agent["model"].rows.tobytes() == other.state.agent["model"].rows.tobytes()
