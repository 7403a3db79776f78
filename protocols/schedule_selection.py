"""Selection of a protocol's schedule: its traits give the default, and the scenario may ask for another one."""

from __future__ import annotations

from ..agents.errors import InputError
from .base import ProtocolParameters, Traits
from .schedule import ExchangeSchedule, RoundsSchedule, expanded


def exchange_of(traits: Traits, parameters: ProtocolParameters) -> ExchangeSchedule | None:
    """Return the schedule of a protocol's exchanges in pairs, if it does not run in rounds; None without exchanges.

    Raises `InputError` if the scenario asks a protocol to exchange in pairs that does not.
    """
    asked = expanded(parameters.schedule)
    if traits.exchange == "pairwise":
        return asked if isinstance(asked, ExchangeSchedule) else ExchangeSchedule()
    if isinstance(asked, ExchangeSchedule):
        raise InputError(
            f"the protocol {parameters.kind!r} does not exchange in pairs; use schedule: async, or leave it out",
            field=("schedule",),
        )
    return None


def rounds_of(traits: Traits, parameters: ProtocolParameters) -> RoundsSchedule | None:
    """Return the schedule of a protocol's rounds; None if it does not run in rounds.

    Raises `InputError` if the schedule that the scenario asks for does not fit the protocol.
    """
    asked = expanded(parameters.schedule)
    if traits.trigger == "round":
        if asked is not None and not isinstance(asked, RoundsSchedule):
            raise InputError(
                f"the protocol {parameters.kind!r} is made of rounds; use schedule: rounds, or leave it out",
                field=("schedule",),
            )
        return _patient_enough(traits, parameters.kind, asked or RoundsSchedule())
    if not isinstance(asked, RoundsSchedule):
        return None
    if traits.exchange == "pairwise" or traits.trigger == "message":
        what = "exchanges in pairs" if traits.exchange == "pairwise" else "reacts to single messages"
        raise InputError(
            f"the protocol {parameters.kind!r} {what}, which has no rounds; use schedule: async, or leave it out",
            field=("schedule",),
        )
    return _patient_enough(traits, parameters.kind, asked)


def check_schedule(traits: Traits, parameters: ProtocolParameters) -> None:
    """Raise an `InputError` if a protocol cannot run as the scenario asks, whatever the rest of the scenario is."""
    if rounds_of(traits, parameters) is None:
        exchange_of(traits, parameters)


def _patient_enough(traits: Traits, kind: str, rounds: RoundsSchedule) -> RoundsSchedule:
    """Rounds as asked for, unless ``patience`` would make agents agree on something wrong."""
    if rounds.patience is not None and traits.needs_both_ends:
        other = "" if traits.instead is None else f", or the protocol {traits.instead}, which needs no rounds"
        raise InputError(
            f"the protocol {kind!r} needs values of the same round at both ends of an edge, and with patience its "
            f"agents would settle on a wrong model; use resend_after{other}",
            field=("schedule", "patience"),
        )
    return rounds
