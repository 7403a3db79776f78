"""Worlds together with what will run them, for tests; a world that nobody has prepared runs on the event engine."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hushnet.protocols.base import Protocol, ProtocolParameters
from hushnet.simulator.engine.driver import Driver
from hushnet.simulator.engine.selection import BatchedEngine, Engine, EventEngine, Name, engine_for
from hushnet.simulator.network.setting import Setting
from hushnet.simulator.world.step_form import Rewind
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
        driver = driver_of(world)
        try:
            driver.run()
            return world
        except Rewind as rewind:
            make = vars(world)["make"]
            vars(driver.world).update(vars(make(Rewind(rewind.number, rewind.why or world.one_by_one))))
        finally:
            vars(world).update(vars(driver.world))


def fast_world(
    setting: Setting,
    protocol: type[Protocol],
    parameters: ProtocolParameters,
    **options: Any,
) -> World:
    """A world for the batched engine, where its steps can be planned."""
    return _world(lambda _: BatchedEngine(), (setting, protocol, parameters), options)


def build_world(
    name: Name, setting: Setting, protocol: type[Protocol], parameters: ProtocolParameters, **options: Any
) -> World:
    """A world for the engine that a scenario asks for."""
    return _world(lambda world: engine_for(name, world), (setting, protocol, parameters), options)


def _world(engine: Callable[[World], Engine], parts: tuple[Any, ...], options: dict[str, Any]) -> World:
    """A world that can be made again; whoever looks on begins anew then."""
    onlookers = {id(one): one for one in (options.get("recorder"), options.get("observer")) if one is not None}
    before = {key: deepcopy(vars(one)) for key, one in onlookers.items()}

    def make(again: Rewind | None) -> World:
        if again is not None:
            for key, one in onlookers.items():
                vars(one).clear()
                vars(one).update(deepcopy(before[key]))
        world = World(*parts, again=again, **options)
        prepared(world, engine(world))
        vars(world)["make"] = make
        return world

    return make(None)
