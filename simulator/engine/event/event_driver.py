"""The event engine: a SimPy process for every agent, and an event for whatever a rule asks for; all in plain Python.

The rules (`hushnet.simulator.rules`) are those that the batched engine runs compiled. This is the engine to read, to
trace and to teach with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import repeat
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.agent import Agent
from ....agents.availability import Timeline
from ....protocols.base import Sent
from ...rules.clock_rules import count_step
from ...rules.compute_rules import begin_computing
from ...rules.delivery import take_turn
from ...rules.forms import PlainRules
from ...tables.effects import AVAILABILITY, RECORD, TIMER, WAKE
from ...tables.run import LOST_DELAY, UPLINK, PlainTables
from ...tables.tallies import ACTIVATIONS
from ...world.step_form import StepForm
from ...world.world import World
from ..driver import At, Driver


class RuleEvent(At):
    """An event that a rule has asked for.

    It says what happens, to whom, and the how-manieth of its kind it is; see `hushnet.simulator.tables.effects`. What
    it calls is one list for all events of a driver.
    """

    def __init__(
        self,
        env: simpy.Environment,
        time: float,
        priority: int,
        happen: list[Callable[[RuleEvent], None]],
        what: int,
        subject: int,
        serial: int,
    ) -> None:
        # Most events of a run are made here: no call of a parent's constructor, and nothing made beside the event.
        self.env, self.callbacks, self._ok, self._value = env, happen, True, None
        self.what, self.subject, self.serial = what, subject, serial
        env.schedule(self, priority, time - env.now)  # type: ignore[arg-type]  # any integer orders the heap


class EventDriver(Driver):
    """A SimPy event for whatever happens.

    Parameters
    ----------
    world : World
    **functions : callable
        What stands in the place of rules of these names, see `PlainRules`. Every delay and loss is asked of the
        network.

    Attributes
    ----------
    env : simpy.Environment
        The world's.
    plain : PlainRules
        Rules by their compiled forms.
    views : PlainTables
        Of the tables of rounds, sessions or broadcasts that these rules take.
    observed : bool
        Whether anybody is told what rules note.
    empty : str
        Kind of copies without numbers that are no acknowledgements.
    """

    engine = "event"
    form = StepForm("one by one", "the event engine makes each when it is due")
    empty = ""

    def __init__(self, world: World, **functions: Callable[..., Any]) -> None:
        super().__init__(world)
        self.env = world.env
        self._drawn: dict[tuple[int, int, int], tuple[float, bool]] = {}
        self._made, self._present = world.agents.made, world.agents.present.data
        self._queues = world.setting.network.uplink is not None
        self.observed = world.observer is not None
        self.plain = PlainRules(fate=self.fate, schedule=self.schedule, **functions)
        self.views = PlainTables()
        self._count_step = self.plain(count_step)
        self._begin, self._take_turn = self.plain(begin_computing), self.plain(take_turn)
        self._takes_time = len(self.transport.tables.computing) > 0
        self._happen = [self.happen]
        self._computing: dict[int, simpy.Process] = {}
        self._heard: dict[int, Callable[[], AbstractContextManager[None]]] = {}
        self._turns: dict[int, simpy.Event] = {}
        self._may_be_idle = world.protocol.decides and not world.in_rounds
        self.transport.set_limits(world.setting.stop, record=world.recorded_steps, compiled=False)

    @override
    def begin(self, joins: Sequence[float], leaves: Sequence[float], timelines: Sequence[Timeline]) -> None:
        """Begin two processes for every agent, of its absences and of its life."""
        env = self.world.env
        self.transport.notes.begin(self.world, empty=self.empty)
        for agent, join, leave, timeline in zip(self.world.agents, joins, leaves, timelines, strict=True):
            agent.up = next(timeline)[1]
            env.process(self.presence(agent, timeline))
            env.process(self.life(agent, join, leave))

    def presence(self, agent: Agent, timeline: Timeline) -> Generator[simpy.Event, None, None]:
        """The process of an agent that comes up and goes down, at last perhaps for good."""
        for time, up in timeline:
            yield At(self.env, time, AVAILABILITY)
            self.world.watchdog.poll(self.world.now)
            agent.up = up
            self.turn(agent)
        if not agent.up:
            agent.gone = agent.silent = True
            self.turn(agent)

    @override
    def steps(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        """An agent steps by its own clock, until that has no further tick or the agent has fallen silent.

        A tick that finds the agent down or computing is counted and does nothing else.
        """
        world, env = self.world, self.world.env
        tick = agent.tick
        while not agent.silent:
            time = world.clock.next_time(agent.index, tick + 1, env.now)
            if math.isinf(time):
                break
            yield At(env, time, WAKE + agent.index)
            if not agent.silent:
                world.watchdog.wake(agent.index, env.now)
            tick += 1
            if agent.index in self._computing:
                continue
            agent.tick = tick
            agent.reactions = 0
            if self.is_awake(agent):
                self._begin_step(agent)
        if agent.index in self._computing:
            yield self._computing[agent.index]

    def _begin_step(self, agent: Agent) -> None:
        """Let an awake agent step at once, or begin a step that takes time."""
        time = self._begin(self.transport.plain, agent.index, self.env.now) if self._takes_time else 0.0
        if time:
            heard = self.heard(agent)
            self._computing[agent.index] = self.env.process(self._compute(agent, time, heard))
        else:
            self.wake(agent)

    def _compute(
        self, agent: Agent, time: float, heard: Callable[[], AbstractContextManager[None]]
    ) -> Generator[simpy.Event, Any, None]:
        """The process of a step that takes time, which is made at its end with what was heard at its begin."""
        yield At(self.env, self.env.now + time, TIMER)
        while not (agent.up or agent.gone):
            turned = self._turns[agent.index] = self.env.event()
            yield turned
            yield At(self.env, self.env.now, TIMER + (agent.index + 1) / RECORD)  # after other timers, by agent
        del self._computing[agent.index]
        if self.is_awake(agent):
            reactions, agent.reactions = agent.reactions, 0  # its random streams are those of its begin
            self._heard[agent.index] = heard
            self.wake(agent)
            agent.reactions = reactions
        else:
            with heard():  # which lets go of it
                pass

    @override
    def turn(self, agent: Agent) -> None:
        turned = self._turns.pop(agent.index, None)
        if turned is not None:
            turned.succeed()

    def heard(self, agent: Agent) -> Callable[[], AbstractContextManager[None]]:
        """Keep what an agent has heard until now; return what shows it that. By default it hears what is there then."""
        return nullcontext

    def is_awake(self, agent: Agent) -> bool:
        """True if an agent steps at its ticks now: it is present and up, and has not fallen silent."""
        return agent.up and not agent.silent and bool(self._present[agent.index])

    def wake(self, agent: Agent) -> None:
        """Act on a tick that finds its agent awake: it takes a step."""
        self.step(agent)

    def step(self, agent: Agent) -> None:
        """Let an awake agent take a step, send what it gives out, and count it if it said anything or goes on.

        A step that neither sends nor changes anything counts as an activation and as no update, where agents wake by
        their clocks and decide what to do.
        """
        before = self._blocks_of(agent) if self._may_be_idle else None
        with self._heard.pop(agent.index, nullcontext)():  # no longer: the recorder sees what has arrived since
            me = self.world.step(agent)
        if me.silent_ and not me.sent_:
            return
        self.send(agent, me.sent_)
        if before is None or me.sent_ or me.disclosed_ or before != self._blocks_of(agent):
            self.count(agent)
            return
        self.transport.tables.counts[ACTIVATIONS] += 1
        self.check_activations()

    def _blocks_of(self, agent: Agent) -> list[bytes]:
        """Everything that an agent has in its blocks and in those of its edges."""
        return [vector.tobytes() for _, vector in self.world.peers[agent.index].named_vectors_()]

    def send(self, agent: Agent, messages: Sequence[Sent]) -> None:
        """Send what a step gave out; of sessions, nothing: they send their halves themselves."""
        return

    def count(self, agent: Agent) -> None:
        """Count a completed step of an agent; record, and end the run, where that number asks for it."""
        agent.updates += 1
        if self._count_step(self.transport.plain, agent.index):
            self.check_limits(agent)

    def opened(self, agent: Agent) -> NDArray[np.bool_]:
        """(degree,) over which of its edges an agent sends now."""
        return self.world.step_tables.open_at(agent.index, agent.tick, self.env.now)

    def is_up(self, _run: Any, agent: int, _time: float, _after: bool) -> bool:
        """True if an agent is present and up at this instant, in place of `hushnet.simulator.rules.lazy.is_up`."""
        return self._made[agent].up and bool(self._present[agent])

    def fate(self, run: Any, sender: int, edge: int, tick: int, transmission: int, size: int, now: float) -> float:
        """Draw a copy's delay, or its loss, by the network's distributions, which may have no compiled form."""
        drawn = self._drawn.pop((edge, tick, transmission), None)
        if drawn is None:
            drawn = self.world.network.delay_and_loss(sender, run.heads[edge], tick, transmission, now, size)
        delay, lost = drawn
        if self._queues:
            delay += self._take_turn(run.constants[UPLINK], run.agents.uplink_free, sender, size, now) - now
        if lost:
            run.constants[LOST_DELAY] = delay
            return math.inf
        return delay

    def draw_together(self, agent: Agent, edges: NDArray[np.int64], transmission: int, size: int) -> None:
        """Draw the fates of copies that an agent is about to send, in one call."""
        world = self.world
        copies = world.setting.graph.heads[edges], agent.tick, transmission, world.env.now, size
        delays, losses = world.network.delays_and_losses(agent.index, *copies)
        drawn = zip(edges.tolist(), repeat(agent.tick), repeat(transmission))
        self._drawn.update(zip(drawn, zip(delays.tolist(), losses.tolist(), strict=True), strict=False))

    def schedule(self, _: Any, time: float, priority: int, what: int, subject: int, serial: int) -> None:
        """Schedule what a rule asks for as an event of SimPy, at its time and priority."""
        RuleEvent(self.env, time, priority, self._happen, what, subject, serial)

    def happen(self, asked: RuleEvent) -> None:
        """Let happen what a rule has asked for, at that time; by default nothing."""
        return
