"""Which engine runs a world: the batched one where protocol and scenario allow it, the event engine elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from ..agents.errors import InputError
from ..protocols.base import Protocol, ProtocolParameters
from .choice import exchange_of, rounds_of
from .laws import forms_of
from .randomness import stable_ids
from .rounds import repeats
from .schedules import Schedule
from .setting import Setting
from .world import World

Engine = Literal["auto", "event", "batched"]


def declined(setting: Setting) -> str | None:
    """Why the batched engine cannot run a setting; None if it can, whatever the protocol."""
    task = setting.task
    clock = setting.clock.build(task.ids, stable_ids(task.ids), setting.draws, setting.base)
    try:
        forms_of(setting.network, clock)
    except InputError as error:
        return str(error)
    return None


def refusal(parameters: ProtocolParameters, why: str) -> InputError:
    """What is said where the batched engine is asked for and cannot run a protocol."""
    return InputError(
        f"{parameters.kind!r} cannot run on the batched engine: {why}; use engine: auto", field=("engine",)
    )


def build_world(
    engine: Engine, setting: Setting, protocol_class: type[Protocol], parameters: ProtocolParameters, **kwargs: Any
) -> World:
    """The world of a run on the engine asked for; ``World.engine`` says which one it is and why.

    Parameters
    ----------
    engine : {"auto", "event", "batched"}
    setting, protocol_class, parameters
        As of `World`.
    **kwargs
        Further arguments of `World`.

    Raises
    ------
    InputError
        If the batched engine is asked for and cannot run this.
    """
    why = declined(setting)
    if engine == "batched" and why is not None:
        raise refusal(parameters, why)
    if engine == "event" or why is not None:
        world = World(setting, protocol_class, parameters, **kwargs)
        world.engine = "event, as asked" if engine == "event" else f"event, because {why}"
        return world
    return fast_world(setting, protocol_class, parameters, **kwargs)


def fast_world(
    setting: Setting,
    protocol_class: type[Protocol],
    parameters: ProtocolParameters,
    *,
    compiled: bool = True,
    **kwargs: Any,
) -> World:
    """A world on the batched engine, which must be able to run it (see `declined`).

    Parameters
    ----------
    setting, protocol_class, parameters
        As of `World`.
    compiled : bool
        Whether to use the protocol's compiled step, if it has one.
    **kwargs
        Further arguments of `World`.
    """
    from .fast.broadcasts import Broadcasts
    from .fast.eventful_broadcasts import EventfulBroadcasts
    from .fast.eventful_rounds import EventfulRounds
    from .fast.exchanges import Exchanges
    from .fast.lazy_rounds import LazyRounds

    traits = protocol_class.traits_for(parameters)
    drive: Callable[[World], Schedule] = partial(Broadcasts, compiled=compiled)
    if (rounds := rounds_of(traits, parameters)) is not None:
        calm = setting.network.lossless and setting.always_up
        unobserved = kwargs.get("observer") is None
        if calm and unobserved and rounds.patience is None and not repeats(rounds, unfailing=True):
            drive = partial(LazyRounds, compiled=compiled)
        else:
            drive = partial(EventfulRounds, parameters=rounds, compiled=compiled)
    elif (exchange := exchange_of(traits, parameters)) is not None:
        drive = partial(Exchanges, parameters=exchange, compiled=compiled)
    elif traits.trigger == "message" or traits.inbox != "latest":
        drive = EventfulBroadcasts
    return World(setting, protocol_class, parameters, drive=drive, **kwargs)
