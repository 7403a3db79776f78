"""Floors make the protocols' own updates: where messages take no time and none is lost, the models are the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.simulator.network.clocks import Periodic
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world
from .floors import FLOORS, Plan, floor_of
from .matrix.cases import ENTRIES, Row, rows_of

ROUNDS = 8
BY_WAKE_UPS = {"push_sum_dual_averaging", "stale_feature_sharing"}
"""Made for agents' own clocks: their floor in rounds makes the same updates, each on what is there at the moment."""
PLAIN = [
    row
    for entry in ENTRIES
    for row in rows_of(entry, (4,), toy=True)
    if row.noise == (row.noise_of_its_own or "plain") and (row.way != "rounds" or entry.kind not in BY_WAKE_UPS)
]


class Order:
    """Notes who steps, or calls whom, and when."""

    def __init__(self, row: Row) -> None:
        self.pairwise = row.way == "exchange"
        self.agents, self.times, self.edges = [], [], []

    def woke(self, world, agent):
        if not self.pairwise:
            self.agents.append(agent.index)
            self.times.append(world.now)

    def sent(self, world, message, delay, lost):
        if self.pairwise and message.kind == "request":
            slot = world.setting.graph.reverse[message.edge]
            self.agents.append(message.sender)
            self.times.append(world.now)
            self.edges.append(int(slot))

    def arrived(self, world, message, up, newest):
        return


def fields_of(row):
    """A row whose draws fit into the rows that a toy world's agents have."""
    fields = dict(row.entry.fields)
    if "batch" in fields:
        fields["batch"] = 2
    return replace(row, entry=replace(row.entry, fields=fields))


def draws(row):
    """Whether a row's protocol draws rows or noise in a step."""
    parameters = row.parameters()
    return getattr(parameters, "sampling", "full") != "full" or row.noise_of_its_own is not None


def drawn(world, agents):
    """The rows that agents draw in steps one after the other."""
    batch = getattr(world.protocol.parameters, "batch", 0)
    if getattr(world.protocol.parameters, "sampling", "full") == "full":
        return np.empty((len(agents), 0), dtype=np.int64)
    ticks, rows = np.zeros(len(world.agents), dtype=int), []
    for agent in agents:
        stream = world.setting.draws.generator("sampling", ticks[agent] + 1, int(world.numbers[agent]), 0)
        rows.append(stream.choice(world.setting.task.train.counts[agent], batch, replace=False))
        ticks[agent] += 1
    return np.array(rows)


def noise_of(world, agents, scales):
    """The noise that agents draw in steps one after the other, by NumPy's generator."""
    ticks, p = np.zeros(len(world.agents), dtype=int), world.setting.task.dimension
    noise = np.empty((len(agents), p if len(scales) else 0))
    if len(scales) == 0:
        return noise
    for step, agent in enumerate(agents):
        stream = world.setting.draws.generator("noise", ticks[agent] + 1, int(world.numbers[agent]), 0)
        towards = stream.normal(size=p)
        noise[step] = towards * stream.gamma(p, scales[agent]) / np.linalg.norm(towards)
        ticks[agent] += 1
    return noise


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "itself"),
    [(row, False) for row in PLAIN] + [(row, True) for row in PLAIN if draws(row)],
    ids=lambda value: f"{value.entry.name}-{value.way}" if isinstance(value, Row) else ("itself" if value else "given"),
)
def test_a_floor_makes_the_updates_of_the_protocol(row, itself):
    row = fields_of(row)
    stop = Stop(updates=ROUNDS) if row.way == "rounds" else Stop(time=float(ROUNDS))
    setting = replace(row.setting("lossless", stop), network=NetworkParameters.model_validate({"latency": 0.0}))
    if row.way == "rounds":  # clocks of one pace, for nobody is to be ahead when everybody is done
        setting = replace(setting, clock=Periodic(kind="periodic"))
    order = Order(row)
    world = fast_world(setting, row.entry.protocol, row.parameters(), observer=order)
    drive(world)
    agents = np.array(order.agents)
    if row.way == "rounds":
        agents = np.arange(ROUNDS * len(world.agents)) % len(world.agents)
    floor = floor_of(World(setting, row.entry.protocol, row.parameters()))
    start = floor.models().copy()
    rows, noise = drawn(world, agents), noise_of(world, agents, floor.scales)
    assert draws(row) == (rows.shape[1] + noise.shape[1] > 0)
    if itself:  # of what is given, it may take the number
        rows, noise = np.zeros_like(rows), np.zeros_like(noise)
    floor.run(Plan(agents, np.array(order.edges, dtype=np.int64), np.array(order.times), rows, noise, itself))
    models = world.protocol.models(world.state)
    assert np.abs(models - start).max() > 1e-4
    np.testing.assert_allclose(floor.models(), models, rtol=1e-7, atol=1e-8)


def test_every_protocol_that_learns_by_exchanging_has_a_floor_in_the_matrix():
    assert {entry.kind for entry in ENTRIES} == set(FLOORS)
