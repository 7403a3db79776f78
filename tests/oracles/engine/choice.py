"""Which schedule drives a run: the protocol's traits say what it is made for, the description may ask for another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .contract import ExchangeSchedule, Protocol, RoundsSchedule
from .errors import InputError
from .rounds import Rounds
from .schedules import Asynchronous, Schedule
from .sessions import Sessions

if TYPE_CHECKING:
    from .world import World


def choose(world: World) -> Schedule:
    """The schedule of a run."""
    rounds = rounds_of(world.protocol)
    if rounds is not None:
        return Rounds(world, rounds)
    exchange = exchange_of(world.protocol)
    return Asynchronous(world) if exchange is None else Sessions(world, exchange)


def exchange_of(protocol: Protocol) -> ExchangeSchedule | None:
    """How a protocol that does not run in rounds exchanges in pairs; None if it does not."""
    asked = protocol.schedule
    if protocol.traits.exchange == "pairwise":
        return asked if isinstance(asked, ExchangeSchedule) else ExchangeSchedule()
    if isinstance(asked, ExchangeSchedule):
        raise InputError("the protocol does not exchange in pairs", field=("schedule",))
    return None


def rounds_of(protocol: Protocol) -> RoundsSchedule | None:
    """How a protocol runs in rounds; None if it does not."""
    traits, asked = protocol.traits, protocol.schedule
    if traits.trigger == "round":
        if asked is not None and not isinstance(asked, RoundsSchedule):
            raise InputError("the protocol is made of rounds", field=("schedule",))
        return asked or RoundsSchedule()
    if not isinstance(asked, RoundsSchedule):
        return None
    if traits.exchange == "pairwise" or traits.trigger == "message":
        raise InputError("the protocol has no rounds", field=("schedule",))
    return asked
