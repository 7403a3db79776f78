"""The shipped comparisons: they check, run in small with their figures, and let all protocols meet one luck."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.analysis.targets import reached
from hushnet.simulator.engine.selection import engine_for
from hushnet.simulator.experiment import Experiment, run
from hushnet.simulator.figures import redraw
from hushnet.simulator.language.loading import load, opening_comment, shipped
from hushnet.simulator.network.network import Network
from hushnet.simulator.network.randomness import Draws, stable_ids

SMALL = ("seeds=1", "task.agents=7", "topology.k=3")
TINY = {
    "latency-sweep": (
        *SMALL,
        "sweep.mean delay (intervals)={zip: {network.latency.mean: [0.1, 10.0], stop.time: [20.0, 150.0]}}",
        "record.every=1.0",
        "tune.over={admm.rho: [0.1, 0.3]}",
    ),
    "dropout-sweep": (
        *SMALL,
        "sweep.share of time online={zip: {availability.online: [1.0, 0.5]}}",
        "stop.time=40",
        "record.every=1.0",
    ),
    "loss-sweep": (
        *SMALL,
        "sweep.share of messages lost={zip: {network.loss.loss_bad: [0.0, 1.0]}, labels: [0.0, 0.5]}",
        "stop.time=40",
    ),
    "stragglers": (
        *SMALL,
        "sweep.ratio of fast to slow rates={zip: {clock.rate.sigma: [0.001, 1.151]}, labels: [1, 100]}",
        "stop.time=60",
    ),
    "privacy-frontier": ("seeds=1", "task.agents=6", "stop.time=60", "record.every=30"),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A function that runs a tiny version of a comparison, once, and returns its folder."""
    ran = {}

    def folder(name):
        if name not in ran:
            ran[name] = tmp_path_factory.mktemp(name)
            run(name, overrides=TINY[name], out=ran[name], quick=True)
        return ran[name]

    return folder


def to_target(collection, x="time", **place):
    """Where every protocol met the target, at a place of the sweep."""
    found = reached(collection, None, x)
    for path, value in place.items():
        found = found[found[path] == value]
    return found.groupby("protocol")["value"].mean()


@pytest.mark.parametrize("name", TINY)
def test_a_comparison_checks_and_says_what_it_shows_what_to_expect_and_how_long_it_takes(name):
    loaded = load(name)
    assert len(loaded.points) > len(load(name, quick=True).points) > 1
    text = shipped()[name].read_text(encoding="utf-8")
    opening = text.partition("schema:")[0]
    assert opening_comment(shipped()[name])
    assert "# What to expect: " in opening
    assert "# Run time on 2 cores (--jobs 2): " in opening
    assert "--quick" in opening


@pytest.mark.parametrize("name", TINY)
def test_a_tiny_version_runs_from_end_to_end_with_its_figures(name, folders):
    folder = folders(name)
    collection = load_all(folder)
    assert {manifest["status"] for manifest in collection.manifests} == {"complete"}
    assert set(collection.labels) == set(load(name).scenario.protocols)
    drawn = {path.name for path in redraw(folder)}
    for figure in load(name).scenario.figures:
        assert {f"{figure.name}.{kind}" for kind in ("pdf", "png", "csv")} <= drawn


@pytest.mark.parametrize("name", [name for name in TINY if name != "privacy-frontier"])
def test_all_protocols_of_a_comparison_start_at_one_place_and_aim_at_one_optimum(name, folders):
    collection = load_all(folders(name))
    gaps = collection.trace.query("metric == 'objective' and statistic == 'gap' and time == 0")
    assert len(gaps) == len(set(collection.trace["run"]))
    assert np.ptp(gaps["value"]) < 1e-9 * gaps["value"].max()
    best = load_all(folders(name)).trace.query("metric == 'objective' and statistic == 'gap'")["value"].min()
    assert best > -1e-8 * gaps["value"].max()


@pytest.mark.parametrize("name", TINY)
def test_runs_of_one_seed_share_data_and_seeds_across_protocols_and_the_grid(name, folders):
    manifests = load_all(folders(name)).manifests
    for part in ("data_seed", "run_seed", "data", "topology"):
        assert len({str(manifest[part]) for manifest in manifests}) == 1


def test_long_delays_hold_up_rounds_and_not_asynchronous_coordinate_descent(folders):
    collection = load_all(folders("latency-sweep"))
    near, far = (to_target(collection, **{"mean delay (intervals)": delay}) for delay in (0.1, 10.0))
    assert far["cd-rounds"] > 2 * far["cd"]
    assert far["cd-rounds"] / near["cd-rounds"] > 2 * far["cd"] / near["cd"]
    assert far["cd"] < far["cd-patience"] < far["cd-rounds"]


def test_the_tuned_penalty_and_everything_tried_are_kept(folders):
    collection = load_all(folders("latency-sweep"))
    tuned = [manifest for manifest in collection.manifests if manifest["protocol"] == "admm"]
    assert {manifest["scenario"]["protocols"]["admm"]["rho"] for manifest in tuned} <= {0.1, 0.3}
    assert collection.index["tuning"]


def test_agents_that_never_come_back_stop_the_rounds_around_them_only_without_patience(folders):
    collection = load_all(folders("dropout-sweep"))
    rows = collection.trace.query("metric == 'updates' and statistic == 'max'")
    rows = rows[(rows["absences"] == "for good") & (rows["share of time online"] == 0.5)]
    last = rows.groupby("protocol")["value"].last()
    assert last["cd-rounds"] <= 7
    assert last["cd"] > 20
    assert last["cd-patience"] >= 7


def test_loss_makes_rounds_repeat_themselves(folders):
    collection = load_all(folders("loss-sweep"))
    where = {"losses": "independent", "share of messages lost": 0.5}
    lossy = to_target(collection, "vectors", **where)
    lossless = to_target(collection, "vectors", **{**where, "share of messages lost": 0.0})
    assert lossy["cd-rounds"] > 1.5 * lossless["cd-rounds"]


def test_where_agents_keep_their_own_pace_the_fastest_pays_most(folders):
    collection = load_all(folders("stragglers"))
    rows = collection.trace.query("metric == 'epsilon_verified' and statistic == 'worst'")
    last = rows[rows["ratio of fast to slow rates"] == 100].groupby("protocol")["value"].last()
    assert last["private"] > 2 * last["private-rounds"]


def test_every_private_protocol_stays_within_the_epsilon_of_its_place(folders):
    collection = load_all(folders("privacy-frontier"))
    private = [manifest for manifest in collection.manifests if manifest["privacy"]]
    assert {manifest["protocol"] for manifest in private} == set(collection.labels) - {"local", "cd"}
    for manifest in private:
        assert 0 < manifest["privacy"]["verified"] <= manifest["grid"]["epsilon"] * (1 + 1e-6)


class Log:
    """Wake-ups and fates of messages, as they happen."""

    def __init__(self):
        self.wakes, self.fates = {}, {}

    def woke(self, world, agent):
        self.wakes[agent.index, agent.tick] = world.now

    def sent(self, world, message, delay, lost):
        if message.kind == "model":
            # A repeat has luck of its own, and comes later.
            self.fates.setdefault((message.sender, message.receiver, message.tick), (delay, lost))

    def arrived(self, world, message, up, newest):
        """Not looked at."""


def wake_ups(clock, agents, end):
    """Every tick of every clock until then."""
    expected = {}
    for agent in range(agents):
        now, tick = 0.0, 0
        while (now := clock.next_time(agent, tick, now)) <= end:
            expected[agent, tick] = now
            tick += 1
    return expected


@pytest.mark.parametrize("name", ["latency-sweep", "stragglers"])
def test_wake_ups_and_delays_are_those_of_an_oracle_for_every_protocol(name):
    """Computed from the seed alone: the intervals of clocks, and the fate of the message of a tick on a link."""
    alone = ("stop.time=8", "sweep={}", "figures=[]", "tune=null")
    experiment = Experiment(load(name, overrides=(*SMALL, *alone)))
    logs = {}
    for each in experiment.runs():
        logs[each.protocol] = Log()
        world = experiment.world(each, observer=logs[each.protocol])
        engine_for(each.point.scenario.engine, world).run(world)
        setting, numbers = world.setting, stable_ids(world.setting.task.ids)
        draws, size = Draws(each.run_seed), 8 * setting.task.dimension
        clock = setting.clock.build(setting.task.ids, numbers, draws, None)
        network = Network(setting.network, setting.task.ids, numbers, draws)
        expected = wake_ups(clock, setting.graph.agents, 8.0)
        if each.protocol == "cd":
            assert logs["cd"].wakes == expected
        if each.protocol == "admm":
            # A tick that finds all links in session passes.
            assert logs["admm"].wakes.items() < expected.items()
        for (sender, receiver, tick), fate in logs[each.protocol].fates.items():
            delays, lost = network.delays_and_losses(sender, np.array([receiver]), tick, 0, 0.0, size)
            assert fate == (delays[0], lost[0])
    shared = logs["cd"].fates.keys() & logs["cd-rounds"].fates.keys() & logs["cd-patience"].fates.keys()
    assert len(shared) > 50
