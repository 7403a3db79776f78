"""How agents' steps are started: by their own clocks (asynchronous), or as traits and scenario ask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import simpy

from ..agents.agent import Agent
from ..agents.inbox import Message
from ..protocols.base import Out

if TYPE_CHECKING:
    from .world import World


class Schedule(ABC):
    """What an agent's SimPy process does, and what becomes of its arrivals.

    Parameters
    ----------
    world : World
        Built, but not yet running.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    @abstractmethod
    def run(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        """The SimPy process of an agent; it ends when the agent can never step again."""

    @abstractmethod
    def deliver(self, message: Message) -> bool:
        """Take in an arrival whose receiver is up, before it is counted; whether it was the newest of its kind."""

    @abstractmethod
    def react(self, message: Message) -> None:
        """Act on an arrival that was delivered and counted."""

    def miss(self, message: Message) -> None:
        """Act on an arrival that found its receiver down; by default nothing."""
        return

    def turn(self, agent: Agent) -> None:
        """Act on an agent that came up, went down or went for good; by default nothing."""
        return

    def send(self, agent: Agent, out: Out) -> None:
        """Send what a step gave out."""
        self.world.post.send(agent, out)


class Asynchronous(Schedule):
    """Every agent steps when its own clock wakes it, with the newest of what it has heard."""

    def run(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        """See `Schedule.run`."""
        return agent.run(self.world.env)

    def deliver(self, message: Message) -> bool:
        """See `Schedule.deliver`."""
        return self.world.inbox.put(message)

    def react(self, message: Message) -> None:
        """See `Schedule.react`: keep every message, or let the protocol react, where its traits ask for it."""
        world, agent = self.world, self.world.agents[message.receiver]
        if world.traits.inbox == "every":
            world.inbox.pending[message.receiver].append(message)
        if world.traits.trigger == "message" and not agent.silent:
            world.receive(agent, message)
