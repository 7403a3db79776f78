"""A bench to try protocols on: a small task and graph, and short runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...agents.availability import Always
from ...agents.errors import InputError
from ...agents.graph import Graph
from ...agents.losses import LOSSES
from ...agents.tables import Table
from ...agents.tasks.task import Task
from ...protocols.base import Problem, Protocol, ProtocolParameters
from ..engine.selection import Engine, EventEngine, run_exactly
from ..network.clocks import Poisson
from ..network.network import NetworkParameters
from ..network.randomness import Draws
from ..network.setting import Limits, Setting, Stop
from ..world.step_form import Rewind
from ..world.world import World

AGENTS, DIMENSION, SEED = 6, 3, 20
MOST_REACTIONS = 20_000
"""Reactions to messages that a short run may take: a storm of answers ends it within a second or two."""


def small_task(agents: int = AGENTS, *, seed: int = SEED, empty: bool = True) -> Task:
    """A small classification task; the first agent has no data if `empty` says so."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(2, 7, agents)
    counts[0] = 0 if empty else counts[0]
    owners = np.repeat(np.arange(agents), counts)
    features = rng.uniform(-1, 1, (len(owners), DIMENSION))
    labels = np.where(rng.random(len(owners)) < 0.5, 1.0, -1.0)
    train = Table.from_owners(features, labels, owners, agents)
    test = Table.from_owners(rng.uniform(-1, 1, (agents, DIMENSION)), np.ones(agents), np.arange(agents), agents)
    return Task(
        name="contract test",
        ids=list(range(agents)),
        train=train,
        test=test,
        loss=LOSSES["logistic"],
        regularisation=1.0 / np.maximum(counts, 1),
        metric="accuracy",
        bounds={"l1": float(DIMENSION), "l2": float(np.sqrt(DIMENSION))},
    )


def small_graph(agents: int = AGENTS) -> Graph:
    """A ring with one chord, unequal weights."""
    if agents == 1:
        return Graph.from_matrix(np.zeros((1, 1)))
    pairs = sorted({(min(i, (i + 1) % agents), max(i, (i + 1) % agents)) for i in range(agents)} | {(0, agents // 2)})
    tails, heads = np.array(pairs, dtype=np.int64).T
    return Graph.from_edges(agents, tails, heads, 0.5 + np.arange(len(tails)) / len(tails))


def small_setting(
    *,
    agents: int = AGENTS,
    empty: bool = True,
    network: NetworkParameters | None = None,
    availability: Any = None,
    time: float = 8.0,
    seed: int = SEED,
) -> Setting:
    """A short run on a small task, yet without a protocol."""
    return Setting(
        task=small_task(agents, empty=empty),
        graph=small_graph(agents),
        clock=Poisson(kind="poisson"),
        network=network or NetworkParameters(),
        availability=availability or Always(kind="always"),
        stop=Stop(time=time),
        draws=Draws(seed),
        limits=Limits(reactions=MOST_REACTIONS),
    )


def split_setting(**fields: Any) -> Setting:
    """A `small_setting` with these fields, in which two parties around a centre hold the columns of the same rows."""
    whole = small_task(empty=False)
    columns = tuple(np.array(held, dtype=np.int64) for held in ([], [0], [1, 2]))
    rows = np.array([0, len(whole.train.labels), len(whole.train.labels), len(whole.train.labels)])
    tests = np.array([0, len(whole.test.labels), len(whole.test.labels), len(whole.test.labels)])
    task = replace(
        whole,
        ids=[0, 1, 2],
        train=replace(whole.train, offsets=rows),
        test=replace(whole.test, offsets=tests),
        regularisation=np.zeros(3),
        columns=columns,
    )
    star = Graph.from_edges(3, np.array([0, 0]), np.array([1, 2]), np.ones(2))
    return replace(small_setting(**fields), task=task, graph=star)


def admitted_world(setting: Setting, protocol: type[Protocol], parameters: ProtocolParameters, **given: Any) -> World:
    """Make a world in which a protocol may run; raises `InputError` if the protocol refuses its data or graph."""
    protocol.check_problem(parameters, Problem(setting.task, setting.graph))
    return World(setting, protocol, parameters, **given)


def holds_columns(protocol: type[Protocol], parameters: ProtocolParameters) -> bool:
    """True if a protocol learns from columns only, and runs where agents hold rows are not for it.

    Raises `InputError` if it can learn from neither.
    """
    try:
        admitted_world(small_setting(empty=False), protocol, parameters)
    except InputError as refused:
        try:
            admitted_world(split_setting(), protocol, parameters)
        except InputError:
            raise refused from None
        return True
    return False


def protocol_parameters(
    protocol: type[Protocol], parameters: Mapping[str, Any] | ProtocolParameters
) -> ProtocolParameters:
    """Parameters of the protocol's own class, from a mapping that may leave out ``kind``."""
    if isinstance(parameters, ProtocolParameters):
        return parameters
    kind = protocol.Parameters.model_fields["kind"].annotation
    names = getattr(kind, "__args__", (protocol.__name__,))
    return protocol.Parameters.model_validate({"kind": names[0], **parameters})


def run_small(
    protocol: type[Protocol],
    parameters: ProtocolParameters,
    *,
    engine: Engine | None = None,
    small: Callable[..., Setting] = small_setting,
    **fields: Any,
) -> World:
    """Run a protocol in a `small_setting` (or a `split_setting`) of these fields, by default on the event engine.

    Where it refuses a world in which somebody has no data, all have some. Raises `InputError` if it refuses that world
    too.
    """

    def make(again: Rewind | None) -> World:
        try:
            return admitted_world(small(**fields), protocol, parameters, again=again)
        except InputError:
            return admitted_world(small(**{**fields, "empty": False}), protocol, parameters, again=again)

    return run_exactly(make, lambda _: engine or EventEngine())
