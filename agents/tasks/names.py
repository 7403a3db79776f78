"""What tasks are called where they are no data that anybody has published."""

from __future__ import annotations

STAND_IN = "synthetic stand-in for"
"""How the name of every task begins that takes the place of a published data set."""


def is_stand_in(name: str) -> bool:
    """Whether a task of this name takes the place of a published data set."""
    return name.startswith(STAND_IN)
