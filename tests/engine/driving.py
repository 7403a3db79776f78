"""Worlds together with what will run them, for tests; a world that nobody has prepared runs on the event engine."""

from __future__ import annotations

from typing import Any

from hushnet.protocols.base import Protocol, ProtocolParameters
from hushnet.simulator.engine.driver import Driver
from hushnet.simulator.engine.selection import BatchedEngine, Engine, EventEngine, Name, engine_for
from hushnet.simulator.network.setting import Setting
from hushnet.simulator.world.rewind import Rewind
from hushnet.simulator.world.rounds import durations
from hushnet.simulator.world.sessions import OpenSession, open_sessions
from hushnet.simulator.world.world import World


def prepared(world: World, engine: Engine) -> World:
    """A world that an engine is to run."""
    vars(world)["driver"] = engine.prepare(world)
    return world


def driver_of(world: World) -> Driver:
    """What runs a world, or has run it."""
    if "driver" not in vars(world):
        prepared(world, EventEngine())
    return vars(world)["driver"]


def drive(world: World) -> World:
    """Run a world to its end; one whose plan has gone beyond the step that ends it stands for the one made again."""
    while True:
        try:
            driver_of(world).run()
            return world
        except Rewind as rewind:
            make, engine = vars(world)["made"]
            again = Rewind(rewind.number, rewind.why or world.one_by_one)
            vars(world).update(vars(prepared(make(again), engine)), made=(make, engine))


def fast_world(
    setting: Setting,
    protocol: type[Protocol],
    parameters: ProtocolParameters,
    *,
    plans: bool = True,
    **options: Any,
) -> World:
    """A world for the batched engine."""
    engine = BatchedEngine(plans=plans)
    make = lambda again: World(setting, protocol, parameters, again=again, **options)  # noqa: E731
    world = prepared(make(None), engine)
    vars(world)["made"] = make, engine
    return world


def build_world(
    name: Name, setting: Setting, protocol: type[Protocol], parameters: ProtocolParameters, **options: Any
) -> World:
    """A world for the engine that a scenario asks for."""
    world = World(setting, protocol, parameters, **options)
    return prepared(world, engine_for(name, world))


def waits(world: World) -> tuple[float, float]:
    """Time until a message of a round is repeated, and until an agent loses patience; infinite if never."""
    assert world.in_rounds is not None
    return durations(world.setting, world.layout, world.network, world.in_rounds)


def sessions_of(world: World) -> dict[int, OpenSession]:
    """Open sessions of a world by their callers' directed edges."""
    assert world.sessions is not None
    return open_sessions(world.sessions, world.setting.graph)
