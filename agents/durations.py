"""Durations with a unit, such as 80 ms, in the time units of a scenario."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
"""Seconds of each unit, by its name."""
DURATION = rf"\d{{1,15}}(\.\d{{1,15}})? ?({'|'.join(SECONDS)})"
"""Pattern of a number with a unit."""
AS_TEXT: dict[str, Any] = {"type": "string", "pattern": f"^{DURATION}$"}
"""JSON schema of the same."""


def seconds_in(text: Any) -> Fraction | None:
    """Return the seconds of a text such as ``80 ms``, exactly; None if it is no text of that kind."""
    if not isinstance(text, str) or not re.fullmatch(DURATION, text):
        return None
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz").rstrip()
    return Fraction(number) * SECONDS[text.removeprefix(number).lstrip()]


def time_units(text: Any, time_unit: str | None) -> float | None:
    """Return the time units of a text such as ``80 ms``; None if it is no such text, or no time unit is known."""
    length, one = seconds_in(text), seconds_in(time_unit)
    return float(length / one) if length is not None and one else None


def alike(value: Any, given: str, time_unit: str | None) -> bool:
    """Say if a value is the one that somebody has typed, perhaps as a duration with a unit."""
    try:
        typed = time_units(given, time_unit)
        return float(value) == (float(given) if typed is None else typed)
    except (TypeError, ValueError):
        return str(value).replace(" ", "") == given.replace(" ", "")  # [10, 20], as YAML reads it


class Timed:
    """Marks a number of time units, for which a duration such as 80 ms may stand where the scenario has a time unit.

    What the scenario's ``time_unit`` is comes as the context of the validation, ``{"time_unit": "1 s"}``. A duration
    without a time unit is refused here, or else stays the text that it is; with ``units``, the name of a unit stands
    for one of it, as ``ms`` for ``1 ms``.
    """

    def __init__(self, *, always: bool = True, units: bool = False) -> None:
        self.always, self.units = always, units

    def _counted(self, value: Any, info: ValidationInfo) -> Any:
        length = seconds_in(value)
        if length is None and self.units and isinstance(value, str):
            length = SECONDS.get(value)
        if length is None:
            return value
        said = (info.context or {}).get("time_unit")
        if said is not None:
            return float(length / (seconds_in(said) or 1))  # what is no time unit is refused where it stands
        if self.always:
            raise ValueError("needs the scenario's time_unit, which says what one time unit is, such as time_unit: 1 s")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_before_validator_function(self._counted, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        number, names = handler(core), [{"enum": [*SECONDS]}] if self.units else []
        return {"anyOf": [number, AS_TEXT, *names]} if number else number
