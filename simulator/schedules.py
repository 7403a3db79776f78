"""How steps are started and messages delivered: the part of a world that differs between engines and schedules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy
from numpy.typing import NDArray

from ..agents.agent import AVAILABILITY, Agent, At
from ..agents.availability import Timeline
from ..protocols.base import Out
from .post import Post

if TYPE_CHECKING:
    from .world import World


class Schedule(ABC):
    """What makes agents step, with the post that carries what they send.

    Parameters
    ----------
    world : World
        Complete but for its schedule, post and views.

    Attributes
    ----------
    engine : str
        What kind of engine this is.
    remarks : tuple of str
        What the run's summary should say of it.
    post : Post
    """

    engine: str
    remarks: tuple[str, ...] = ()
    post: Post

    def __init__(self, world: World) -> None:
        self.world = world

    @property
    @abstractmethod
    def now(self) -> float:
        """Time in expected wake-ups of a rate-1 agent."""

    @abstractmethod
    def begin(self, joins: Sequence[float], leaves: Sequence[float], timelines: Sequence[Timeline]) -> None:
        """Start the SimPy processes of a run, at its time 0.

        Parameters
        ----------
        joins, leaves : (n,) float
            When each agent joins and leaves, infinite if never.
        timelines : (n,) Timeline
            When each agent comes up and goes down; the first entry is its state at time 0.
        """

    @abstractmethod
    def run(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        """The SimPy process of an agent; it ends when the agent can never step again."""

    def starting(self, agent: Agent) -> None:
        """Let an agent that is about to make its start know of its clock's ticks so far; by default it does."""
        return

    def started(self, agent: Agent) -> None:
        """Act on an agent that has made its start; by default nothing."""
        return

    def turn(self, agent: Agent) -> None:
        """Act on an agent that came up, went down or went for good; by default nothing."""
        return

    def send(self, agent: Agent, out: Out) -> None:
        """Send what a step gave out."""
        self.post.send(agent, out)

    def settle(self, *, final: bool) -> None:
        """Bring everything up to date that a recorder, or after a run anybody, may look at; by default nothing."""
        return

    @property
    def quiet_edges(self) -> NDArray[np.bool_]:
        """(E,) whether no session is open over a directed edge, in either direction; always so without sessions."""
        return np.ones(len(self.world.setting.graph.heads), dtype=bool)

    @property
    def updates(self) -> NDArray[np.int64]:
        """(n,) completed steps of every agent, at a record instant or after the run."""
        return np.array([agent.updates for agent in self.world.agents], dtype=np.int64)

    @property
    def events(self) -> int:
        """Wake-ups, copies of messages and timers so far; see `hushnet.simulator.effort`."""
        return self.world.effort.wakes + self.post.traffic.links.sent

    @property
    def counted(self) -> dict[str, int]:
        """What else the run's totals say: what became of sessions or rounds; by default nothing."""
        return {}

    @property
    def noted(self) -> NDArray[np.float64] | None:
        """(n,) losses that compiled steps note where they are asked to (`Compiled.noted`); None if they do not."""
        return None


class Eventful(Schedule):
    """A SimPy event for whatever happens, in plain Python, for reading and tracing."""

    engine = "event"

    @property
    def now(self) -> float:
        """See `Schedule.now`."""
        return self.world.env.now

    def begin(self, joins: Sequence[float], leaves: Sequence[float], timelines: Sequence[Timeline]) -> None:
        """See `Schedule.begin`: two processes for every agent, of its absences and of its life."""
        env = self.world.env
        for agent, join, leave, timeline in zip(self.world.agents, joins, leaves, timelines, strict=True):
            agent.up = next(timeline)[1]
            env.process(self.presence(agent, timeline))
            env.process(self.world.life(agent, join, leave))

    def presence(self, agent: Agent, timeline: Timeline) -> Generator[simpy.Event, None, None]:
        """The process of an agent that comes up and goes down, at last perhaps for good."""
        for time, up in timeline:
            yield At(self.world.env, time, AVAILABILITY)
            self.world.effort.look(self.now)
            agent.up = up
            self.turn(agent)
        if not agent.up:
            agent.gone = agent.silent = True
            self.turn(agent)
