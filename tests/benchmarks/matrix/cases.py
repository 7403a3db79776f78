"""What the matrix measures: protocols, ways to run them, noise and networks; what cannot be, the protocols say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from hushnet.agents.availability import Always, OnOff
from hushnet.agents.errors import HushnetError
from hushnet.agents.graph import Graph
from hushnet.agents.tasks.task import Task
from hushnet.protocols.base import Protocol, ProtocolParameters
from hushnet.protocols.catalog import resolve
from hushnet.simulator.network.clocks import Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.world.world import World
from pydantic import ValidationError

from ...protocols.columns import split_task, star
from ..cases import LATENCY, LOSS, SEED, SELDOM, Case, make_task, random_regular
from ..floors import Floor, Plan

AGENTS, DEGREE, PARTIES, COLUMN_ROWS = 1_000, 10, 10, 1_000
DIMENSIONS = (20, 100)
WAYS = {"broadcast": "async", "rounds": "rounds", "exchange": "exchange"}
"""Ways to run, with the schedule that a scenario asks for."""
NOISES = ("plain", "laplace", "gaussian", "gamma")
NETWORKS = ("lossless", "loss", "absent", "patience")
PATIENCE = 2.0


@dataclass(frozen=True)
class Entry:
    """A protocol of the matrix.

    Parameters
    ----------
    kind : str
    fields : mapping
        Its parameters.
    words : str
        What else the table calls it by.
    """

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    words: str = ""

    @property
    def name(self) -> str:
        """For the table."""
        return self.kind + (f", {self.words}" if self.words else "")

    @property
    def protocol(self) -> type[Protocol]:
        """Its class."""
        return resolve(self.kind)


ENTRIES = (
    Entry("coordinate_descent", {"mu": 0.04, "smoothness": "public"}),
    Entry("model_propagation"),
    Entry("dual_averaging", {"batch": 5}, "5 rows drawn"),
    Entry("dual_averaging", {"sampling": "full"}, "all rows"),
    Entry("push_sum_dual_averaging", {"batch": 5}, "5 rows drawn"),
    Entry("consensus_admm"),
    Entry("edge_consensus_admm"),
    Entry("perturbed_admm", {"noise": {"alpha": 3.0}}),
    Entry("collaborative_admm", {"start": "zero"}),
    Entry("feature_sharing"),
    Entry("stale_feature_sharing"),
    Entry("feature_sgd", {"batch": 100}),
)


@dataclass(frozen=True)
class Row:
    """A row of the matrix: a protocol in a way, with a noise, of a size.

    Parameters
    ----------
    entry : Entry
    way, noise : str
        Of `WAYS` and `NOISES`.
    dimension : int
    toy : bool
        A handful of agents.
    """

    entry: Entry
    way: str
    noise: str
    dimension: int
    toy: bool = False

    def parameters(self, network: str = "lossless") -> ProtocolParameters:
        """What the protocol is given; raises what it refuses."""
        fields: dict[str, Any] = {"kind": self.entry.kind, **self.entry.fields, "schedule": WAYS[self.way]}
        if network == "patience":
            fields["schedule"] = {"kind": "rounds", "patience": PATIENCE}
        if self.noise != "plain" and self.noise_of_its_own is None:
            # Of a multiplier that asks for no number of updates, so that nobody falls silent.
            fields["privacy"] = {"mechanism": self.noise, "multiplier": 1.0, "sensitivity": "clip", "clip": 1.0}
        return self.entry.protocol.Parameters.model_validate(fields)

    @property
    def noise_of_its_own(self) -> str | None:
        """The mechanism of a protocol that is never without noise."""
        known = self.entry.protocol.Parameters.model_fields.get("noise")
        return known.annotation.mechanism if known is not None and known.is_required() else None  # type: ignore[union-attr]

    @property
    def data(self) -> tuple[Task, Graph]:
        """Task and graph."""
        return data_of(self.entry.protocol.learns_from, self.dimension, self.toy)

    def setting(self, network: str, stop: Stop) -> Setting:
        """The world of the row in a network."""
        task, graph = self.data
        return Setting(
            task=task,
            graph=graph,
            clock=Poisson(kind="poisson"),
            network=NetworkParameters.model_validate({"latency": LATENCY, "loss": LOSS if network == "loss" else 0.0}),
            availability=OnOff.model_validate(SELDOM) if network == "absent" else Always(kind="always"),
            stop=stop,
            draws=Draws(SEED),
        )

    def world(self, network: str, stop: Stop, **options: Any) -> World:
        """A world of the row."""
        return World(self.setting(network, stop), self.entry.protocol, self.parameters(network), **options)

    @property
    def networks(self) -> list[str]:
        """The networks that the row can run in, as its protocol says; none if it cannot be at all."""
        toy = replace(self, toy=True)
        return [network for network in NETWORKS if toy.possible(network)]

    def possible(self, network: str) -> bool:
        """Whether the protocol runs in this way, with this noise, in this network."""
        own = self.noise_of_its_own
        if (own is not None and own != self.noise) or (network == "patience" and self.way != "rounds"):
            return False
        try:
            world = self.world(network, Stop(time=1.0))
        except (HushnetError, ValidationError):
            return False
        way = "rounds" if world.in_rounds else "exchange" if world.sessions is not None else "broadcast"
        private = self.noise == "plain" or world.private
        return way == self.way and private

    def plan(self, floor: Floor, steps: int, seed: int = SEED) -> Plan:
        """Who steps when, for the floor, and with what luck: in rounds by turns, else at random."""
        agents_of_floor = len(floor.world.agents)
        task, graph = self.data
        rng = np.random.default_rng(seed)
        turns = np.arange(steps) % agents_of_floor
        agents = turns if self.way == "rounds" else rng.integers(0, agents_of_floor, steps)
        ranks = (rng.random(steps) * graph.degrees[agents]).astype(np.int64)
        batch = self.entry.fields.get("batch", 0) if "averaging" in self.entry.kind else 0
        rows = (rng.random((steps, batch)) * task.train.counts[agents][:, None]).astype(np.int64)
        noise = np.empty((steps, 0))
        if len(floor.scales) > 0:
            noise = spherical(rng, steps, task.dimension, floor.scales[agents])
        times = (1.0 + np.arange(steps)) / agents_of_floor
        return Plan(agents, graph.offsets[agents] + ranks, times, rows, noise)


def spherical(rng: np.random.Generator, count: int, dimension: int, scales: np.ndarray) -> np.ndarray:
    """(count, dimension) noise of uniform directions, whose lengths are Gamma(dimension, scale)."""
    towards = rng.normal(size=(count, dimension))
    return towards * (rng.gamma(dimension, scales) / np.linalg.norm(towards, axis=1))[:, None]


@cache
def data_of(learns_from: str, dimension: int, toy: bool) -> tuple[Task, Graph]:
    """Task and graph of agents with rows, or of parties with columns."""
    if learns_from == "columns":
        parties, rows = (2, 30) if toy else (PARTIES, COLUMN_ROWS)
        width = 2 if toy else dimension // parties
        task = split_task([width] * parties, rows)
        return task, star(task)
    case = Case("matrix", agents=AGENTS, dimension=dimension, degree=DEGREE)
    case = replace(case.toy, dimension=4) if toy else case
    rng = np.random.default_rng(SEED)
    return make_task(case, rng), random_regular(case.agents, case.degree, rng)


def rows_of(entry: Entry, dimensions: tuple[int, ...] = DIMENSIONS, *, toy: bool = False) -> Iterator[Row]:
    """All rows that a protocol can be measured in."""
    for way in WAYS:
        for noise in NOISES:
            if Row(entry, way, noise, dimensions[0]).networks:
                yield from (Row(entry, way, noise, dimension, toy) for dimension in dimensions)
