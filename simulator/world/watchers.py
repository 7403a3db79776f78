"""Interfaces to look at a run: recorders at their instants, observers at every single event, a watch at every step.

Recorders and observers change nothing. A `Watch` may put other values in the place of noisy ones and of what is sent:
that is how one run is forced along the transcript of another (`hushnet.simulator.contract.transcript`).
"""

from __future__ import annotations

from typing import Any, Literal
from typing import Protocol as Structural

import numpy as np

from ...agents.agent import Agent
from ...agents.inbox import Message
from ...protocols.base import Peer
from ...protocols.privacy.mechanisms import Watcher

World = Any
"""A `hushnet.simulator.world.world.World`, which imports this module."""

Phase = Literal["start", "step", "react", "request", "respond", "complete"]
"""Which function of a protocol a step has run."""


class Sampler(Structural):
    """Sampler of a world, called at record instants; it must not change anything."""

    def sample(self, world: World, *, final: bool) -> None:
        """Measure the world as it is now."""


class Observer(Structural):
    """Observer of every single event, in order of time and on every engine; for tests and debugging.

    `World.now` is the time of the event. The rest of the world is as it was then only when an agent steps, and what a
    planned step owns has changed already; the batched engine reports messages at the end of a window, which lasts
    until the next step. `hushnet.simulator.world.notes.Notebook` is for observers that want no single messages.
    """

    def woke(self, world: World, agent: Agent) -> None:
        """An agent is about to step, or has just made a planned step; it reads what its inbox has."""

    def sent(self, world: World, message: Message, delay: float, lost: bool) -> None:
        """A message went out on one link; its delay is the one that was drawn for it, even if it is lost."""

    def arrived(self, world: World, message: Message, up: bool, newest: bool) -> None:
        """A message reached its receiver, which was up or not, and whether it was of any use.

        It is if it is the newest of its kind by order of sending, or is read or reacted to in any case.
        """


class Watch(Watcher, Structural):
    """Monitor of every random stream, every draw of noise, and every step before anything of it leaves.

    Steps are then made one by one.

    Delays, losses and absences are draws that no step changes, so two runs whose steps look the same here are the same
    to everybody on the wire.
    """

    def assumed(self, name: str, value: Any) -> Any:
        """A constant from agents' records that the protocol, which is preparing, treats as public; what it is given."""
        ...

    def stream(self, stream: np.random.Generator, purpose: str, agent: int) -> np.random.Generator:
        """The stream that an agent is given in place of its own; it has to draw the same numbers."""
        ...

    def stepped(self, phase: Phase, me: Peer) -> None:
        """An agent has made a step: everything that leaves it is in ``me.sent_`` and ``me.silent_``."""
