"""Random small worlds, in which a protocol comes to the same on both engines, whether its steps are planned or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hushnet.agents.availability import Always, OnOff, Window
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES
from hushnet.agents.tables import Table
from hushnet.agents.tasks.task import Task
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.network.clocks import Periodic, Poisson
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world, prepared

LATE = {"latency": {"kind": "exponential", "mean": 0.4}}
AWAY = OnOff(kind="on_off", online=0.8, mean_down=2.0)


def random_task(
    rng: np.random.Generator, *, loss: str, dimension: int | None = None, single: bool = False, agents: int = 0
) -> Task:
    """A task of so many agents, by default 4 to 8, with 0 to 9 rows, whose rows are in the unit ball."""
    agents, p = agents or int(rng.integers(4, 9)), dimension or int(rng.integers(1, 6))
    counts = rng.integers(0, 10, agents)
    counts[1] = 7
    owners = np.repeat(np.arange(agents), counts)
    rows = rng.normal(size=(len(owners), p))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
    labels = rng.normal(size=len(owners)) if loss == "squared" else rng.choice([-1.0, 1.0], len(owners))
    train = Table.from_owners(rows, labels, owners, agents)
    if single:
        train = replace(train, features=train.features.astype(np.float32))
    return Task(
        name="random",
        ids=list(range(agents)),
        train=train,
        test=train,
        loss=LOSSES[loss],
        regularisation=1.0 / np.maximum(counts, 1),
        metric="error" if loss == "squared" else "accuracy",
        bounds={"l2": 1.0, "l1": float(np.sqrt(p))},
    )


def random_graph(rng: np.random.Generator, agents: int, *, alone: bool) -> Graph:
    """A random graph with unequal weights, in which the last agent has no neighbours if ``alone`` says so."""
    matrix = np.triu(rng.uniform(0.2, 2.0, (agents, agents)) * (rng.random((agents, agents)) < 0.6), 1)
    matrix[0, 1] = 1.0
    if alone:
        matrix[:, -1] = 0.0
    return Graph.from_matrix(matrix + matrix.T)


def random_setting(seed: int, *, loss: str, easy: bool = False, **fields: Any) -> Callable[[], Setting]:
    """Makes the same setting again and again: with loss, delays and absences, unless it is to be ``easy``."""
    rng = np.random.default_rng(seed)
    task = random_task(rng, loss=loss, **fields)
    graph = random_graph(rng, task.agents, alone=bool(rng.random() < 0.5))
    network: dict[str, Any] = {"start": str(rng.choice(["known", "own", "zero"]))}
    if rng.random() < 0.7:
        network |= LATE
    lost, away = not easy and rng.random() < 0.5, not easy and rng.random() < 0.4
    if lost:
        network["loss"] = 0.15
    clock = Periodic(kind="periodic") if rng.random() < 0.3 else Poisson(kind="poisson")
    return lambda: Setting(
        task=task,
        graph=graph,
        clock=clock,
        network=NetworkParameters.model_validate(network),
        availability=AWAY if away else Always(kind="always"),
        stop=Stop(time=25.0),
        draws=Draws(seed),
    )


def joining(make: Callable[[], Setting]) -> Callable[[], Setting]:
    """The same settings, in which half of the agents join later."""
    joins = Window(share=0.5, between=[2.0, 9.0])
    return lambda: replace(make(), availability=Always(kind="always", joins=joins))


def check_engines_agree(
    make: Callable[[], Setting], protocol: Any, parameters: Any, *, engine: str = "batched (steps in batches)"
) -> World:
    """Run a protocol on the event engine and on the batched one; the world of the latter.

    Raises
    ------
    AssertionError
        If any bit of blocks differs, any number of updates or messages, or any charge; or if the steps were not
        made as ``engine`` says (a beginning of `World.engine`).
    """
    event = drive(prepared(World(make(), protocol, parameters), EventEngine()))
    planned = drive(fast_world(make(), protocol, parameters))
    assert planned.engine.startswith(engine), planned.engine
    assert_same(planned, event)
    return planned


def assert_same(world: World, event: World) -> None:
    """Compare a run with that of the event engine, bit by bit."""
    assert world.activations == event.activations
    assert world.updates.tolist() == event.updates.tolist()
    assert world.traffic == event.traffic
    everybody = range(event.ledger.agents)
    for agent in everybody:
        assert world.ledger.histogram(agent) == event.ledger.histogram(agent), agent
    assert world.ledger.unverified(everybody) == event.ledger.unverified(everybody)
    for kind in ("agent", "edge"):
        blocks = getattr(world.state, kind)
        for name, block in getattr(event.state, kind).items():
            np.testing.assert_array_equal(blocks[name].values, block.values, err_msg=name)
