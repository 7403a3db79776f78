"""The event engine: a SimPy process for every agent, and an event for whatever a rule asks for; all in plain Python.

The rules (`hushnet.simulator.rules`) are those that the batched engine runs compiled. This is the engine to read, to
trace and to teach with.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import repeat
from typing import Any, final

import numpy as np
import simpy
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.agent import Agent
from ....agents.availability import Timeline
from ....agents.inbox import Message
from ....protocols.base import Sent
from ...network.network import KINDS
from ...rules.clock_rules import count_step
from ...rules.compute_rules import begin_computing
from ...rules.delivery import count_message, deliver, depart, end_of_way, release_version, take_turn
from ...rules.forms import PlainRules
from ...tables.effects import ARRIVAL, ARRIVE, AVAILABILITY, REACH, RECORD, TIMER, WAKE
from ...tables.run import DOWNLINK, LOST_DELAY, UPLINK, PlainTables
from ...tables.tallies import ACTIVATIONS
from ...world.step_form import StepForm
from ...world.world import World
from ..driver import At, Driver

RESERVED = 64
"""Events whose notes fit in before it is looked again whether there is room."""


class RuleEvent(At):
    """An event that a rule has asked for.

    Parameters
    ----------
    env, time, priority
        See `At`.
    happen : list of callable
        What is called with the event; one list serves all events of a driver.
    what, subject, serial : int
        What happens, to whom, and the how-manieth of its kind; see `hushnet.simulator.tables.effects`.
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
        self.observed = world.observer is not None
        self.plain = PlainRules(fate=self.fate, copy_out=_copy_out, schedule=self.schedule, **functions)
        self.views = PlainTables()
        self._count_step = self.plain(count_step)
        self._begin, self._take_turn = self.plain(begin_computing), self.plain(take_turn)
        self._happen = [self.happen]
        self._computing: dict[int, simpy.Process] = {}
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
        time = self._begin(self.transport.plain, agent.index, self.env.now)
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
            with heard():
                self.wake(agent)
            agent.reactions = reactions

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
        return agent.up and not agent.silent and bool(self.world.agents.present[agent.index])

    def wake(self, agent: Agent) -> None:
        """Act on a tick that finds its agent awake: it takes a step."""
        self.step(agent)

    def step(self, agent: Agent) -> None:
        """Let an awake agent take a step, send what it gives out, and count it if it said anything or goes on.

        A step that neither sends nor changes anything counts as an activation and as no update, where agents wake by
        their clocks and decide what to do.
        """
        before = self._blocks_of(agent) if self._may_be_idle else None
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
        one = self.world.agents[agent]
        return one.up and bool(self.world.agents.present[agent])

    def fate(self, run: Any, sender: int, edge: int, tick: int, transmission: int, size: int, now: float) -> float:
        """Draw a copy's delay, or its loss, by the network's distributions, which may have no compiled form."""
        drawn = self._drawn.pop((edge, tick, transmission), None)
        if drawn is None:
            drawn = self.world.network.delay_and_loss(sender, run.heads[edge], tick, transmission, now, size)
        delay, lost = drawn
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

    @override
    def settle(self, *, final: bool) -> None:
        super().settle(final=final)
        if final:
            self.transport.notes.keep()


def _copy_out(run: Any, slot: int) -> None:
    """`hushnet.simulator.rules.delivery.copy_out`, all numbers at once."""
    begin, end, row = run.places[slot], run.places[slot + 1], run.pool[run.slots.known[slot]]
    run.values[begin:end] = row if len(row) == end - begin else row[: end - begin]


@final
class EventBroadcasts(EventDriver):
    """Every agent steps when its own clock wakes it, and may react to whatever arrives.

    Parameters
    ----------
    world : World
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        rules = count_message, deliver, depart, end_of_way, release_version
        self._count, self._deliver, self._depart, self._end_of_way, self._release = map(self.plain, rules)
        self._kinds = list(world.layout.messages)
        self._shares = [world.layout.shares_of(kind) for kind in self._kinds]
        self._keeps, self._reacts = world.traits.inbox == "every", world.traits.trigger == "message"
        self._most, self._reserved = int(world.setting.graph.degrees.max(initial=0)) + 1, 0
        self._unread = defaultdict[int, list[Message]](list)

    @override
    def ready(self, agent: Agent) -> None:
        """Let starts that an agent has told, and that it was told as it joined, arrive where messages are read.

        Who reacts to them and is down reacts when it comes up.
        """
        if not (self._keeps or self._reacts):
            return
        graph, run = self.world.setting.graph, self.transport.tables
        own = graph.edges_of(agent.index)
        slots = graph.reverse[own].tolist() + (list(range(own.start, own.stop)) if self.env.now > 0.0 else [])
        for rank, kind in enumerate(self._kinds):
            for slot in (rank * len(run.heads) + edge for edge in slots if self.world.inbox.tick[kind][edge] == -1):
                message = self._message(slot, int(run.slots.known[slot]), int(run.slots.heard_order[slot]))
                arrival = At(self.env, self.env.now, ARRIVAL)
                arrival.callbacks.append(lambda _, message=message: self._take_start(message))  # type: ignore[union-attr]

    def _take_start(self, message: Message) -> None:
        if self._keeps:
            self.world.inbox.pending[message.receiver].append(message)
        if self._reacts:
            self._unread[message.receiver].append(message)
            self._react_to_starts(self.world.agents[message.receiver])

    def _react_to_starts(self, agent: Agent) -> None:
        while self._unread[agent.index] and self.is_awake(agent):
            self._react(agent, self._unread[agent.index].pop(0))

    @override
    def turn(self, agent: Agent) -> None:
        super().turn(agent)
        if agent.index in self._unread:
            self._react_to_starts(agent)

    @override
    def send(self, agent: Agent, messages: Sequence[Sent]) -> None:
        """Charge and send everything that a step gave out; what nobody can hear is not sent."""
        graph, transport = self.world.setting.graph, self.transport
        offsets: list[int] = transport.plain.offsets[agent.index : agent.index + 2].tolist()
        opened = np.arange(*offsets)[self.opened(agent)] if messages else np.arange(0)
        for sent in messages:
            edges = opened
            if sent.to is not None:
                edges = edges[np.isin(graph.heads[edges], sent.to)]
            if len(edges):
                transport.ledger.commit(sent.release, sent.vector)
                transport.remember(agent, sent, agent.tick)
                self._send_copies(agent, sent, edges)
            else:
                transport.withhold(agent, sent)

    def _send_copies(self, agent: Agent, sent: Sent, edges: NDArray[np.int64]) -> None:
        """Send a copy over each of some edges; with draws of its own where one was sent at the same tick."""
        network, rank, now = self.world.network, self._kinds.index(sent.kind), self.env.now
        attempts = network.attempts(agent.index, self.world.setting.graph.heads[edges], agent.tick, rank)
        size, vectors = self.transport.size(sent.kind, len(sent.vector)), self._shares[rank]
        for attempt in dict.fromkeys(attempts):
            part, transmission = edges[np.equal(attempts, attempt)], attempt * KINDS + rank
            row = self.transport.new_version(sent, now, agent.tick)
            self.draw_together(agent, part, transmission, size)
            self._begin_notes()
            run = self.transport.plain
            run.versions.order[row] = self._count(run, vectors * len(part))
            for edge in part.tolist():
                delay = self._depart(run, agent.index, edge, agent.tick, transmission, rank, row, size, now)
                if delay < math.inf:
                    run.versions.references[row] += 1
                    slot = rank * len(run.heads) + run.reverse[edge]
                    self.schedule(None, now + delay, ARRIVAL, self._end_of_way(run), slot, row)
            self._release(run, row)
            self._end_notes()

    @override
    def heard(self, agent: Agent) -> Callable[[], AbstractContextManager[None]]:
        """Keep a copy of the agent's inbox; what arrives later is heard by its next step."""
        inbox, graph, index = self.world.inbox, self.world.setting.graph, agent.index
        first, last, edges = int(graph.offsets[index]), int(graph.offsets[index + 1]), len(graph.heads)
        ranges = [slice(rank * edges + first, rank * edges + last) for rank in range(len(self._kinds))]
        vectors = [slice(int(inbox.places[one.start]), int(inbox.places[one.stop])) for one in ranges]
        slots, values = [inbox.slots[one].copy() for one in ranges], [inbox.flat_values[one].copy() for one in vectors]
        messages = inbox.pending.pop(index, [])

        def exchange() -> None:
            nonlocal messages
            for kept, array, places in ((slots, inbox.slots, ranges), (values, inbox.flat_values, vectors)):
                for rank, place in enumerate(places):
                    kept[rank], array[place] = array[place].copy(), kept[rank]
            messages, later = inbox.pending.pop(index, []), messages
            inbox.pending[index] = later

        @contextmanager
        def shown() -> Generator[None]:
            exchange()
            try:
                yield
            finally:
                exchange()

        return shown

    @override
    def happen(self, asked: RuleEvent) -> None:
        """A copy arrives, or reaches a shared downlink: a version, at a slot of its receiver."""
        slot, row, world = asked.subject, asked.serial, self.world
        agent = world.agents[int(world.setting.graph.tails[slot % len(world.setting.graph.heads)])]
        run = self.transport.plain
        if asked.what == REACH:
            now = self.env.now
            turn = run.constants[DOWNLINK], run.agents.downlink_free, agent.index, run.versions.bytes[row], now
            self.schedule(None, self._take_turn(*turn), ARRIVAL, ARRIVE, slot, row)
            return
        up = self.is_up(None, agent.index, self.env.now, True)
        reacts = up and self._reacts and not agent.silent
        order = int(run.versions.order[row])
        message = self._message(slot, row, order) if reacts or (up and self._keeps) else None
        self._begin_notes()
        run = self.transport.plain
        self._deliver(run, slot, row, order, self.env.now, up, message is not None)
        self._end_notes()
        if message is not None and self._keeps:
            world.inbox.pending[agent.index].append(message)
        if message is not None and reacts:
            self._react(agent, message)

    def _message(self, slot: int, row: int, order: int) -> Message:
        """Return a version as the message that the receiver of a channel (directed edge and kind) gets."""
        run = self.transport.tables
        rank, edge = divmod(slot, len(run.heads))
        people = int(run.heads[edge]), int(run.heads[run.reverse[edge]])
        sending = float(run.versions.sent_at[row]), order, int(run.versions.tick[row])
        vector, size = self.transport.vector_of(row, self._kinds[rank], people[0]), int(run.versions.bytes[row])
        return Message(*people, self._kinds[rank], vector, *sending, edge, size)

    def _react(self, agent: Agent, message: Message) -> None:
        """Let an agent react to an arrival, and send what it gives out."""
        world = self.world
        world.watchdog.check(world.now)
        sent = world.act("react", agent, message).sent_
        self.send(agent, sent)
        if sent:
            world.reactions.count(agent.index, (one.kind for one in sent), world.now)
        self.check_vectors()

    def _begin_notes(self) -> None:
        if self.observed and not self._reserved:
            self.transport.notes.grow(RESERVED * self._most)
            self._reserved = RESERVED
        self._reserved -= self.observed

    def _end_notes(self) -> None:
        if self.observed and self.transport.notes.told:
            self.transport.notes.tell()
