"""Small tasks, graphs and runs in which protocols are tried, and what a protocol sends and reaches in them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...agents.agent import Agent
from ...agents.availability import Always
from ...agents.blocks import State
from ...agents.errors import INTERRUPTED, InputError, LimitReached
from ...agents.graph import Graph
from ...agents.inbox import Message
from ...agents.losses import LOSSES
from ...agents.tables import Shard, Table
from ...agents.tasks.task import Task
from ...protocols.base import Problem, Protocol, ProtocolParameters
from ..engine.selection import EventEngine
from ..network.clocks import Poisson
from ..network.latency import Constant
from ..network.network import NetworkParameters
from ..network.randomness import Draws
from ..network.setting import Limits, Setting, Stop
from ..world.watchers import Observer
from ..world.world import World

AGENTS, DIMENSION, SEED = 6, 3, 20
MOST_REACTIONS = 20_000
"""Reactions to messages that a short run may take: a storm of answers ends it within a second or two."""
REMEMBERED = 8
"""Small runs whose messages are remembered."""


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


def disturb(shard: Shard, rng: np.random.Generator) -> None:
    """Other data of the same shape, in place."""
    shard.features[...] = rng.uniform(-1, 1, shard.features.shape)
    shard.labels[...] = np.where(rng.random(shard.labels.shape) < 0.5, 1.0, -1.0)


def admitted_world(setting: Setting, protocol: type[Protocol], parameters: ProtocolParameters, **given: Any) -> World:
    """Make a world in which a protocol may run.

    Raises
    ------
    InputError
        If the protocol refuses its data or graph.
    """
    protocol.check_problem(parameters, Problem(setting.task, setting.graph))
    return World(setting, protocol, parameters, **given)


def holds_columns(protocol: type[Protocol], parameters: ProtocolParameters) -> bool:
    """True if a protocol learns from columns only; a `Bench`, where agents hold rows, cannot run it.

    Raises
    ------
    InputError
        If it can learn from neither.
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


@dataclass(frozen=True)
class Reached(Observer):
    """Observer that keeps the messages and the final state of a small run."""

    messages: dict[tuple[str, int], Message]
    """The last one of each kind on each of the receivers' directed edges."""
    state: list[State]
    """All blocks at its end."""

    def woke(self, world: World, agent: Agent) -> None:
        """Nothing to note."""

    def sent(self, world: World, message: Message, delay: float, lost: bool) -> None:
        """Keep a message of the protocol's own; those that say that a round is empty are the engine's."""
        if message.kind in world.layout.messages:
            self.messages[message.kind, message.edge] = message

    def arrived(self, world: World, message: Message, up: bool, newest: bool) -> None:
        """Nothing to note."""


_reached: OrderedDict[tuple[Any, ...], Reached] = OrderedDict()


def reached(
    protocol: type[Protocol],
    parameters: ProtocolParameters,
    tried: Callable[[], Setting],
    *,
    seed: int,
    changed: bool,
) -> Reached:
    """Run a protocol in the world that ``tried`` makes, on its data or on others; once for each.

    Raises
    ------
    InputError
        If the protocol refuses that world.
    """
    key = protocol, type(parameters), parameters.model_dump_json(), seed, changed
    if key not in _reached:
        small = tried()
        task = small.task
        if changed:
            for agent in range(AGENTS):
                disturb(task.train.shard(agent), np.random.default_rng([SEED + 1, agent]))
        found = Reached({}, [])
        for latency in (0.0, 1.0):
            network = NetworkParameters(latency=Constant(kind="constant", value=latency))
            setting = replace(small, network=network, draws=Draws(seed))
            world = admitted_world(setting, protocol, parameters, observer=found)
            try:
                EventEngine().run(world)
            except LimitReached:  # answers without end, where nothing takes time
                continue
            except INTERRUPTED:
                raise
            except BaseException:  # a step that fails here fails again in a check, which says where
                pass
            break
        found.state.append(world.state)
        _reached[key] = found
        while len(_reached) > REMEMBERED:
            _reached.popitem(last=False)
    return _reached[key]
