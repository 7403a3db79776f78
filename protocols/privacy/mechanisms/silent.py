"""Messages without noise: of nothing private, and of private data as they are."""

from __future__ import annotations

from typing import final

from .mechanism import Mechanism
from .mechanism_registry import ship


@final
class Public(Mechanism):
    """No private content: costs nothing."""

    name = "public"
    free = True


@final
class Plain(Mechanism):
    """Private content without noise: no epsilon bounds what it reveals."""

    name = "none"


PUBLIC, PLAIN = ship(Public()), ship(Plain())
