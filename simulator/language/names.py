"""Texts that a scenario may name things with, each checked by a pattern and explained in words; counts and seeds."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from ...agents.durations import DURATION, SECONDS, seconds_in
from ...agents.parameters import Count

__all__ = ["EACH_ONCE", "MAX_SEEDS", "Count", "Duration", "Key", "Memory", "Name", "Seed"]


def _matching(pattern: str, what: str) -> AfterValidator:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"must {what}")
        return value

    return AfterValidator(check)


def _some(duration: str) -> str:
    if not seconds_in(duration):
        raise ValueError("must be longer than 0")
    return duration


def _for_editors(pattern: str) -> Any:
    return Field(json_schema_extra={"pattern": f"^(?:{pattern})$"})


EACH_ONCE: Any = {"uniqueItems": True}
"""What the schema says of a list that names nothing twice."""

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_KEY = r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}"
_MEMORY = r"\d{1,6}(\.\d{1,6})? ?[MGT]i?B"
Name = Annotated[
    str,
    _matching(_NAME, "begin with a letter or digit and have only letters, digits and . _ -, 100 at most"),
    _for_editors(_NAME),
]
Key = Annotated[
    str,
    _matching(_KEY, "begin with a letter or digit and have only letters, digits and _ -, 100 at most"),
    _for_editors(_KEY),
]
Duration = Annotated[
    str,
    _matching(DURATION, f"be a number with a unit of {', '.join(SECONDS)}, such as 30 s"),
    AfterValidator(_some),
    _for_editors(DURATION),
]
Memory = Annotated[
    str,
    _matching(_MEMORY, "be a number with a unit of MB, MiB, GB, GiB, TB, TiB, such as 2 GiB"),
    _for_editors(_MEMORY),
]
Seed = Annotated[int, Field(ge=0, lt=2**64)]
MAX_SEEDS = 100_000
"""Seeds that one experiment, or one trial, may have."""
