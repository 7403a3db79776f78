"""How long rounds take, as theory says: the slowest of those that wait for each other, and the way between them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hushnet.agents.graph import Graph
from hushnet.simulator.contract.bench import small_graph
from hushnet.simulator.network.clocks import Periodic, Poisson
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World
from scipy import stats

from .driving import drive, fast_world
from .helpers import Stamp, world_of
from .test_rounds import in_rounds

ENGINES = {"event": World, "batched": fast_world}
BOTH = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)


class Ends:
    """When every step of every agent was made: ``times[tick, agent]``."""

    def __init__(self):
        self.times = {}

    def woke(self, world, agent):
        self.times[agent.tick, agent.index] = world.now

    def sent(self, world, message, delay, lost):
        """Not looked at."""

    arrived = sent


def ends_of_rounds(engine, rounds, *, schedule="rounds", **fields):
    """(rounds, agents) times at which rounds end."""
    log = Ends()
    setting = world_of(stop=Stop(updates=rounds), **fields).setting
    drive(engine(setting, Stamp, in_rounds(Stamp, schedule=schedule), observer=log))
    return np.array([[log.times[k, i] for i in range(setting.graph.agents)] for k in range(rounds)])


def complete(agents):
    return Graph.from_matrix(np.ones((agents, agents)) - np.eye(agents))


def mean_of_slowest(rates):
    """Expected maximum of independent exponential times, by inclusion and exclusion."""
    every = range(1, len(rates) + 1)
    return sum(-((-1) ** size) / sum(some) for size in every for some in itertools.combinations(rates, size))


@BOTH
def test_agents_out_of_phase_fall_into_step_within_the_diameter_of_the_graph(engine):
    ends = ends_of_rounds(engine, 20, clock=Periodic(kind="periodic", period=2.0), graph=small_graph(6))
    assert len(set(ends[0])) == 6
    settled = ends[3:]
    assert np.array_equal(settled, np.tile(ends[0].max() + 2.0 * np.arange(3, 20)[:, None], (1, 6)))


@BOTH
@pytest.mark.parametrize("agents", [2, 7])
def test_poisson_clocks_on_a_complete_graph_give_rounds_of_a_harmonic_mean(engine, agents):
    """Everybody begins a round at once, so it lasts the largest of n exponential intervals: 1 + 1/2 + ... + 1/n.

    Seed 51, 600 rounds; a z test of the mean with variance 1 + 1/4 + ... + 1/n^2, and a KS test of the law of
    lengths, false-alarm probability 1e-4 each.
    """
    ends = ends_of_rounds(engine, 600, graph=complete(agents), agents=agents, seed=51)
    lengths = np.diff(ends.max(axis=1), prepend=0.0)
    ranks = 1.0 / np.arange(1, agents + 1)
    z = (lengths.mean() - ranks.sum()) / np.sqrt((ranks**2).sum() / len(lengths))
    assert abs(z) < stats.norm.isf(5e-5)
    assert stats.kstest(lengths, lambda time: (-np.expm1(-time)) ** agents).pvalue > 1e-4


@BOTH
def test_stragglers_on_a_complete_graph_slow_rounds_down_to_the_mean_of_the_slowest(engine):
    """Seed 52, 600 rounds; a z test of the mean, with the sample's deviation, false-alarm probability 1e-4.

    The asynchronous run of the same clocks is not slowed down: its other agents wake once a time unit.
    """
    rates = [1.0, 0.05, 1.0, 0.2, 1.0]
    clock = Poisson(kind="poisson", rate=rates)
    ends = ends_of_rounds(engine, 600, graph=complete(5), agents=5, clock=clock, seed=52)
    lengths = np.diff(ends.max(axis=1), prepend=0.0)
    z = (lengths.mean() - mean_of_slowest(rates)) / (lengths.std() / np.sqrt(len(lengths)))
    assert abs(z) < stats.norm.isf(5e-5)
    asynchronous = ends_of_rounds(engine, 40, schedule="async", graph=complete(5), agents=5, clock=clock, seed=52)
    assert asynchronous[-1, 0] < 2 * 40 < 0.2 * ends[39].max()
