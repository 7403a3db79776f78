"""Drivers: what makes the agents of one world step, from its start to its end.

An engine (`hushnet.simulator.engine.selection`) has one driver for each way in which agents step: by their clocks, in
rounds, in pairwise exchanges. Equal times are ordered: arrivals, availability, timers, wake-ups by agent, recorder.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from ...agents.agent import Agent
from ...agents.availability import Timeline
from ...agents.compilation import ASIDE
from ...agents.errors import HushnetError, Stall
from ..network.churn import churn
from ..network.randomness import quantise
from ..rules.round_messages import holds
from ..tables import round_table as columns
from ..tables.effects import AVAILABILITY, LAST, RECORD
from ..world.step_form import StepForm
from ..world.stop_condition import TIME_UP
from ..world.watchdog import Overdue
from ..world.world import World


class Driver(ABC):
    """Driver of a world not run yet, which makes its agents step; it says on which engine, and in which form."""

    engine: str
    form: StepForm

    def __init__(self, world: World) -> None:
        self.world, self.transport = world, world.transport

    # A run.

    def run(self) -> None:
        """Run the world to its end; the last record is taken there.

        What was recorded is kept where it raises `Divergence`, when a state becomes non-finite, or in a private run
        what an agent sends; `Stall`, when agents in rounds wait for messages that can never come; `StepFailure`, when a
        step raises an error; or `LimitReached`, when the run goes beyond one of the setting's limits.
        """
        with self.running():
            self.begin_run()
            self.finish_run()

    @contextmanager
    def running(self) -> Generator[None, None, None]:
        """Count what the run takes, and keep its limits."""
        watchdog = self.world.watchdog
        watchdog.begin()
        compiling = ASIDE.set(watchdog.aside)
        try:
            with watchdog.interrupter, np.errstate(all="ignore"):
                yield
        except Overdue:
            raise watchdog.too_long(self.world.now) from None
        finally:
            ASIDE.reset(compiling)

    def begin_run(self) -> None:
        """Let agents start, and everything else that happens before the first event."""
        world, env = self.world, self.world.env
        joins, leaves, timelines = churn(world.setting, world.numbers.tolist())
        world.agents.present[:] = (np.array(joins) == 0.0) & (np.array(leaves) > 0.0)
        self.start_present(np.flatnonzero(world.agents.present))
        self.begin(joins, leaves, timelines)
        env.process(self._record())
        if world.setting.stop.time is not None:
            end = At(env, quantise(world.setting.stop.time), LAST)
            end.callbacks.append(lambda _: world.stop_condition.end(TIME_UP))  # type: ignore[union-attr]
        world.stop_condition.check()

    def advance(self, until: float) -> None:
        """Let everything happen that does before a time, unless the run is over before."""
        world, env = self.world, self.world.env
        At(env, until, LAST)  # windows of events do not go beyond it
        while env.peek() < until and not world.stop_condition.stopped.triggered:
            env.step()

    def finish_run(self) -> None:
        """Let everything happen up to the end, and record that."""
        try:
            self.world.env.run(until=self.world.stop_condition.stopped)
            self._sample(final=True)
        except HushnetError as error:
            raise _original(error) from None
        finally:
            self.settle(final=True)

    @abstractmethod
    def begin(self, joins: Sequence[float], leaves: Sequence[float], timelines: Sequence[Timeline]) -> None:
        """Start the SimPy processes of a run, at its time 0.

        Agents join and leave at (n,) times, infinite if never; the first entry of a timeline is its state at time 0.
        """

    @abstractmethod
    def steps(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        """The SimPy process of an agent's steps; it ends when the agent can never step again."""

    def settle(self, *, final: bool) -> None:
        """Bring everything up to date that a recorder, or after a run anybody, may look at; by default it is."""
        return

    def _record(self) -> Generator[simpy.Event, None, None]:
        """The SimPy process of the recorder."""
        world = self.world
        if world.recorder is None:
            return
        self._sample(final=False)
        if world.record_time is None:
            return
        count = 1
        while True:
            yield At(world.env, quantise(count * world.record_time), RECORD)
            self._sample(final=False)
            count += 1

    def _sample(self, *, final: bool) -> None:
        world = self.world
        if world.recorder:
            self.settle(final=final)
            world.recorder.sample(world, final=final)
        if not final:
            world.watchdog.poll(world.now)

    # Agents that come and go.

    def life(self, agent: Agent, join: float, leave: float) -> Generator[simpy.Event, Any, None]:
        """The process of an agent's presence: its clock ticks from time 0, whether or not the agent has joined."""
        env = self.world.env
        steps = env.process(self.steps(agent))
        if join > 0:
            yield At(env, join, AVAILABILITY)
            if leave > join:
                self.world.agents.present[agent.index] = True
                self._start(agent)
                self.world.tell_start(agent, joining=True)
                self.ready(agent)
        if leave < math.inf:
            gone = At(env, max(leave, env.now), AVAILABILITY)
            gone.callbacks.append(lambda _: self._leave(agent))  # type: ignore[union-attr]
            yield steps | gone
        else:
            yield steps
        self.world.stop_condition.retire(agent.updates)

    def start_present(self, agents: NDArray[np.int64]) -> None:
        """Let the agents that are there from the beginning start, and tell one another their starts."""
        world = self.world
        indices: list[int] = agents.tolist()
        present = [world.agents[index] for index in indices]
        for agent in present:
            self._start(agent)
            world.watchdog.poll(world.now)
        for agent in present:
            world.tell_start(agent, joining=False)
        for agent in present:
            self.ready(agent)

    def _start(self, agent: Agent) -> None:
        self.starting(agent)
        self.world.start(agent)
        self.started(agent)

    def _leave(self, agent: Agent) -> None:
        self.world.agents.present[agent.index] = False
        agent.gone = agent.silent = True
        self.turn(agent)

    def starting(self, agent: Agent) -> None:
        """Let an agent that is about to make its start know of its clock's ticks so far; by default it does."""
        return

    def started(self, agent: Agent) -> None:
        """Act on an agent that has made its start; by default nothing."""
        return

    def ready(self, agent: Agent) -> None:
        """Act on an agent whose start, told or not, is behind it; by default nothing."""
        return

    def turn(self, agent: Agent) -> None:
        """Act on an agent that came up, went down or went for good; by default nothing."""
        return

    # Limits.

    def check_limits(self, agent: Agent) -> None:
        """Record, and end the run, where the steps made so far ask for it."""
        self.check_activations()
        self.check_vectors()
        self.world.stop_condition.check_updates(agent.updates)

    def check_activations(self) -> None:
        """Record, and end the run, where the number of all agents' steps asks for it."""
        world = self.world
        if world.record_activations and world.activations % world.record_activations == 0:
            self._sample(final=False)
        world.stop_condition.check_activations(world.activations)

    def check_vectors(self) -> None:
        """End once the vectors asked for were sent."""
        self.world.stop_condition.check_vectors(self.transport.vectors)


def _original(error: HushnetError) -> HushnetError:
    """Return the error that was raised first: SimPy re-raises, from process to process, copies without its fields."""
    while isinstance(error.__cause__, type(error)):
        error = error.__cause__
    return error


class At(simpy.Event):
    """An event at an absolute time, ordered among equal times by its priority (`hushnet.simulator.tables.effects`).

    The time is not before ``env.now``; both are multiples of 2^-30, so the difference is exact.
    """

    def __init__(self, env: simpy.Environment, time: float, priority: float) -> None:
        # As `simpy.Timeout` does, without a call of the parent's constructor: most events of a run are made here.
        self.env, self.callbacks, self._ok, self._value = env, [], True, None
        env.schedule(self, priority, time - env.now)  # type: ignore[arg-type]  # any number orders the heap


def stall(world: World) -> Stall:
    """Error that names who waits for whom in the earliest round that cannot begin: all others follow from it."""
    run, made = world.transport.tables, world.rounds
    assert made is not None
    waiting = np.flatnonzero(made.agents[:, columns.WAITS])
    agent = int(waiting[np.argmin(run.agents.ticks[waiting])])
    number = int(run.agents.ticks[agent]) + 1
    slots = range(int(run.offsets[agent]), int(run.offsets[agent + 1]))
    slot = next(slot for slot in slots if not holds(made, slot, number))
    ids, neighbour = world.setting.task.ids, int(run.heads[slot])
    if run.agents.ticks[neighbour] + 1 >= number:
        why = f"the message of round {number} from agent {ids[neighbour]!r} did not arrive and is not repeated"
    else:
        why = f"agent {ids[neighbour]!r} went for good before it had sent its message of round {number}"
    other = "patience (to go on with what is known)"
    if world.traits.needs_both_ends:
        other = f"use {world.traits.instead}" if world.traits.instead else "use a protocol that needs no rounds"
    return Stall(
        f"agent {ids[agent]!r} at time {world.now:.6g}: round {number + 1} can never begin, because {why}; "
        f"set resend_after in the protocol's schedule (for agents that come back), or {other}"
    )
