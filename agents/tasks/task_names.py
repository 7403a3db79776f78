"""Names of tasks that stand in for published data sets."""

from __future__ import annotations

STAND_IN = "synthetic stand-in for"
"""How the name of every task begins that takes the place of a published data set."""


def is_stand_in(name: str) -> bool:
    """True if a task of this name stands in for a published data set."""
    return name.startswith(STAND_IN)
