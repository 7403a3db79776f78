"""Who may look at a run without changing it: recorders at their instants, observers at every single event."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Protocol as Structural

from ..agents.agent import Agent
from ..agents.inbox import Message

if TYPE_CHECKING:
    from .world import World


class Recorder(Structural):
    """What the world calls at record instants; it must not change anything."""

    def sample(self, world: World, *, final: bool) -> None:
        """Measure the world as it is now."""


class Observer(Structural):
    """What the world tells about every single event; for tests and debugging."""

    def woke(self, world: World, agent: Agent) -> None:
        """An agent is about to step."""

    def sent(self, world: World, message: Message, delay: float, lost: bool) -> None:
        """A message went out on one link."""

    def arrived(self, world: World, message: Message, up: bool, newest: bool) -> None:
        """A message reached its receiver."""
