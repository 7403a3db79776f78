"""Protocols at one epsilon: the fields of each that make its noise follow from a total, whatever else is tuned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...agents.errors import InputError
from ...protocols.base import ProtocolParameters
from ...protocols.privacy.budget import PrintedNoise, Privacy, RuleError, Total

PLACES = ("privacy", "noise")
"""Fields of a protocol that may say what noise it makes."""

FIELD = ("tune", "budget")


def scaled_fields(
    protocols: Mapping[str, ProtocolParameters], tuned: Iterable[str], total: Total | None
) -> dict[str, dict[str, Any]]:
    """Values by field, by protocol, that set tuned protocols' noise to a total epsilon; none without a total.

    Raises `InputError` if the noise of one cannot follow from a total.
    """
    return {} if total is None else {key: _of_one(key, protocols[key], total) for key in dict.fromkeys(tuned)}


def check_budget(protocols: Mapping[str, ProtocolParameters], over: Iterable[str], total: Total | None) -> None:
    """Raise an `InputError` if a tuned protocol has no noise that follows from the total, or tunes what follows."""
    over = list(over)
    scaled = scaled_fields(protocols, (path.partition(".")[0] for path in over), total)
    for path in over:
        key, _, rest = path.partition(".")
        for field in scaled.get(key, ()):
            if f"{rest}.".startswith(f"{field}.") or field.startswith(f"{rest}."):
                raise InputError("follows from tune.budget; leave one of them out", field=("tune", "over", path))


def _of_one(key: str, parameters: ProtocolParameters, total: Total) -> dict[str, Any]:
    for place in PLACES:
        terms = getattr(parameters, place, None)
        if isinstance(terms, Privacy | PrintedNoise):
            try:
                return {f"{place}.{field}": value for field, value in terms.scaled_to(total).items()}
            except RuleError as error:
                where = f"protocols.{key}.{place}: " if not error.field else ""
                raise InputError(f"{where}{error}", field=(*FIELD, *error.field)) from error
    raise InputError(f"protocols.{key} has no noise that could follow from it; give it privacy", field=FIELD)
