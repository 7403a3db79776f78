"""Neighbour-barrier rounds: a synchronous protocol on an asynchronous network.

Agent i's k-th round (k = 1, 2, ...) begins when it holds the message of round k - 1 of every neighbour, and lasts the
k-th interval of its clock, the same draw as under the asynchronous schedule. At its end the agent steps, with exactly
the values of round k - 1 in its inbox, and sends its message of round k. What is there already of later rounds waits
in a buffer. Without loss and absences the models are, bit for bit, those of the synchronous loop; the network only
decides when.

A message belongs to the tick of the step that sent it: round k has tick k - 1, and meets the same delay and loss as
the asynchronous message of that tick. The message of a round is everything that the step addressed to a neighbour, at
most one vector of each kind; where that is nothing, a message without numbers takes its place. Messages of round 0 are
what ``start`` sends, known beforehand or never (``network.start``), so round 1 begins at once.

=================  ====================================================================================================
what may happen    what an agent does
=================  ====================================================================================================
down at the end    steps and sends as soon as it is up again
falls silent       its last message says so and stands for all later rounds; silent from the start, it is not waited for
lost, dropped      ``resend_after``: every copy is acknowledged (no numbers, header bytes, itself late or lost), and
                   what was not acknowledged in time is repeated, by a sender that is up; the same bytes, so free of
                   charge; nothing is repeated to agents that never come back
waits too long     ``patience``: goes on with the newest round that it knows of each neighbour, never with an older one
                   than before; the next round waits again for its own messages; refused to protocols that need
                   values of the same round at both ends of an edge (`Traits.needs_both_ends`)
waits for ever     once nobody can go on any more, the run ends with a `Stall`
=================  ====================================================================================================
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
import simpy

from ..agents.agent import TIMER, WAKE, Agent, At
from ..agents.errors import InputError, Stall
from ..agents.graph import Graph
from ..agents.inbox import Message
from ..protocols.base import Out, Sent
from ..protocols.schedule import RoundsSchedule
from .parcels import Line, Parcel
from .post import Post
from .randomness import QUANTUM, lasting
from .schedules import EventDriven

if TYPE_CHECKING:
    from .world import World

EMPTY = "empty round"
"""Kind of the message without numbers that ends a round for a neighbour to whom the step said nothing."""
ACKNOWLEDGEMENT = "acknowledgement of "
"""What the kind of an acknowledgement begins with, before the kind that it answers."""


@final
class Rounds(EventDriven):
    """Every agent steps once it has heard a whole round from its neighbours.

    Parameters
    ----------
    world : World
    parameters : RoundsSchedule

    Raises
    ------
    InputError
        If the clock is recorded, or agents join or leave.
    """

    def __init__(self, world: World, parameters: RoundsSchedule) -> None:
        super().__init__(world)
        resend_after, patience = durations(world, self.post, parameters)
        self.patience = patience if patience < math.inf else None
        self.resend_after = resend_after if resend_after < math.inf else None
        self.lines = [Line() for _ in world.setting.graph.heads]
        self.waiting: dict[int, simpy.Event] = {}
        self.ended: set[int] = set()
        self._down: dict[int, simpy.Event] = {}
        self._unacknowledged: set[tuple[int, int, str]] = set()
        self._acknowledgements: Counter[tuple[int, int]] = Counter()
        check_setting(world)

    def run(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        """See `Schedule.run`: barrier, interval, step."""
        if agent.silent and not agent.gone:
            self._be_last(agent)
        while not agent.silent:
            in_time = yield from self._barrier(agent)
            if agent.gone:
                break
            end = agent.next_time(agent.index, agent.tick + 1, self.world.now)
            yield At(self.world.env, end, WAKE + agent.index)
            yield from self._until_up(agent)
            if agent.gone:
                break
            agent.wake(agent)
            agent.tick += 1
            agent.reactions = 0
            self._show(agent, in_time)
            updates = agent.updates
            agent.step(agent)
            if agent.updates == updates:
                self._take_leave(agent)
        self.ended.add(agent.index)
        self._check_stall()

    def _barrier(self, agent: Agent) -> Generator[simpy.Event, Any, bool]:
        """Wait for every neighbour's round; False if patience ran out."""
        if not self._missing(agent):
            return True
        opened = self.waiting[agent.index] = self.world.env.event()
        self._check_stall()
        if self.patience is None:
            yield opened
            return True
        yield opened | At(self.world.env, self.world.now + self.patience, TIMER)
        in_time = self.waiting.pop(agent.index, None) is None
        if not in_time:
            self.world.effort.count(self.world.now)
        return in_time

    def _missing(self, agent: Agent) -> list[int]:
        """Edges to the neighbours whose round keeps an agent from beginning its next one."""
        slots, number = self.world.setting.graph.edges_of(agent.index), agent.tick + 1
        return [slot for slot in range(slots.start, slots.stop) if not self.lines[slot].holds(number)]

    def _until_up(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        while not (agent.up or agent.gone):
            yield self._down.setdefault(agent.index, self.world.env.event())
            yield At(self.world.env, self.world.now, WAKE + agent.index)

    def _show(self, agent: Agent, in_time: bool) -> None:
        """Fill an agent's inbox for the step that ends its round."""
        world, slots = self.world, self.world.setting.graph.edges_of(agent.index)
        world.views[agent.index].round = agent.tick + 1
        for slot in range(slots.start, slots.stop):
            line = self.lines[slot]
            number = agent.tick if in_time else line.newest
            for message in line.show(number if line.last is None else min(number, line.last)):
                if message.kind == EMPTY:
                    continue
                # A repeat may have left after a message of the next round: here the round decides what is newer.
                order = max(message.order, int(world.inbox.order[message.kind][slot]) + 1)
                world.inbox.put(replace(message, order=order))
                if world.traits.inbox == "every":
                    world.inbox.pending[agent.index].append(message)

    def send(self, agent: Agent, out: Out) -> None:
        """See `Schedule.send`.

        Raises
        ------
        ValueError
            If a step sends two messages of one kind to one neighbour.
        """
        per_edge = addressed(self.world.setting.graph, agent.index, out.sent)
        self.world.post.send(agent, out)
        for edge, sents in per_edge.items():
            self._post(agent, edge, sents)

    def _post(self, agent: Agent, edge: int, sents: list[Sent]) -> None:
        """Make a round of what has just been sent over an edge, and see that it gets there."""
        line = self.lines[int(self.world.setting.graph.reverse[edge])]
        kinds = tuple(sent.kind for sent in sents) or (EMPTY,)
        line.posted[agent.tick + 1] = Parcel(kinds, agent.silent, self.world.now)
        if not sents:
            self.world.post.signal(agent, edge, EMPTY, tick=agent.tick, attempt=0)
        if self.resend_after is not None:
            for kind, sent in zip(kinds, sents or [None], strict=True):
                self.world.env.process(self._repeat(agent, edge, kind, sent, agent.tick))

    def _take_leave(self, agent: Agent) -> None:
        """Say, without numbers, that an agent has fallen silent where its step said nothing."""
        for edge in addressed(self.world.setting.graph, agent.index, []):
            self._post(agent, edge, [])

    def _be_last(self, agent: Agent) -> None:
        """Nobody waits for an agent that is silent from the start."""
        slots = self.world.setting.graph.edges_of(agent.index)
        for edge in range(slots.start, slots.stop):
            self.lines[int(self.world.setting.graph.reverse[edge])].last = 0

    def _repeat(
        self, agent: Agent, edge: int, kind: str, sent: Sent | None, tick: int
    ) -> Generator[simpy.Event, Any, None]:
        """Repeat a message over an edge until it is acknowledged."""
        world, key, attempt = self.world, (edge, tick, kind), 0
        receiver = world.agents[int(world.setting.graph.heads[edge])]
        self._unacknowledged.add(key)
        assert self.resend_after is not None
        while True:
            yield At(world.env, world.now + self.resend_after, TIMER)
            yield from self._until_up(agent)
            if key not in self._unacknowledged or agent.gone or receiver.gone:
                return
            world.effort.count(world.now)
            attempt += 1
            if sent is None:
                world.post.signal(agent, edge, kind, tick=tick, attempt=2 * attempt)
            else:
                world.post.transmit(agent, edge, sent, tick=tick, attempt=attempt)
                world.check_vectors()

    def deliver(self, message: Message) -> bool:
        """See `EventDriven.deliver`; an acknowledgement or a copy that repeats what is known is not the newest."""
        if not message.kind.startswith(ACKNOWLEDGEMENT):
            return self.lines[message.edge].take(message)
        key = message.edge, message.tick, message.kind.removeprefix(ACKNOWLEDGEMENT)
        news = key in self._unacknowledged
        self._unacknowledged.discard(key)
        return news

    def react(self, message: Message) -> None:
        """See `EventDriven.react`: acknowledge, and open the barrier if this was what it waited for."""
        agent = self.world.agents[message.receiver]
        if not message.kind.startswith(ACKNOWLEDGEMENT):
            if self.resend_after is not None:
                self._acknowledge(agent, message)
            if agent.index in self.waiting and not self._missing(agent):
                self.waiting.pop(agent.index).succeed()
        self._check_stall()

    def _acknowledge(self, agent: Agent, message: Message) -> None:
        """Each acknowledgement of a tick has odd luck of its own; signals that stand for an empty round have even."""
        key = message.edge, message.tick
        attempt = 2 * self._acknowledgements[key] + 1
        self._acknowledgements[key] += 1
        self.world.post.signal(agent, message.edge, ACKNOWLEDGEMENT + message.kind, tick=message.tick, attempt=attempt)

    def miss(self, message: Message) -> None:
        """See `EventDriven.miss`: it may have been the last hope."""
        self._check_stall()

    def turn(self, agent: Agent) -> None:
        """See `Schedule.turn`: go on with what had to wait."""
        if (agent.up or agent.gone) and agent.index in self._down:
            self._down.pop(agent.index).succeed()
        if agent.gone:
            self.ended.add(agent.index)
            if agent.index in self.waiting:
                self.waiting.pop(agent.index).succeed()
            self._check_stall()

    def _check_stall(self) -> None:
        """End the run if agents wait and nothing that could end their waiting is under way or will ever be.

        That is: nobody is in a round, no copy is in flight, and no repeat is due between agents that will be up.
        """
        world = self.world
        if self.patience is not None or not self.waiting or world.traffic.links.in_flight:
            return
        if len(self.waiting) + len(self.ended) < len(world.agents):
            return
        graph, agents = world.setting.graph, world.agents
        for edge, _, _ in self._unacknowledged:
            if not (agents[int(graph.tails[edge])].gone or agents[int(graph.heads[edge])].gone):
                return
        raise Stall(self._complaint())

    def _complaint(self) -> str:
        """Who waits for whom, in the earliest round that cannot begin: all others follow from it."""
        agent = min((self.world.agents[index] for index in self.waiting), key=lambda agent: (agent.tick, agent.index))
        slot, number = self._missing(agent)[0], agent.tick + 1
        return complaint(self.world, agent.index, slot, number, posted=number in self.lines[slot].posted)


def complaint(world: World, agent: int, slot: int, number: int, *, posted: bool) -> str:
    """Why an agent can never begin its next round.

    Parameters
    ----------
    world : World
    agent, slot : int
        Who waits, and its directed edge to the neighbour that it waits for.
    number : int
        The neighbour's round.
    posted : bool
        Whether its message was sent.
    """
    ids, neighbour = world.setting.task.ids, int(world.setting.graph.heads[slot])
    if posted:
        why = f"the message of round {number} from agent {ids[neighbour]!r} did not arrive and is not repeated"
    else:
        why = f"agent {ids[neighbour]!r} went for good before it had sent its message of round {number}"
    other = "patience (to go on with what is known)"
    if world.traits.needs_both_ends:
        other = f"use {world.traits.instead}" if world.traits.instead else "use a protocol that needs no rounds"
    return (
        f"agent {ids[agent]!r} at time {world.now:.6g}: round {number + 1} can never begin, because {why}; "
        f"set resend_after in the protocol's schedule (for agents that come back), or {other}"
    )


def durations(world: World, post: Post, parameters: RoundsSchedule) -> tuple[float, float]:
    """Time until a message is repeated, and until an agent loses patience; infinite if never."""
    patience = math.inf if parameters.patience is None else _duration(parameters.patience)
    setting = world.setting
    if not repeats(parameters, unfailing=setting.network.lossless and setting.always_up):
        return math.inf, patience
    if isinstance(parameters.resend_after, float | int):
        return _duration(parameters.resend_after), patience
    widths = (np.diff(block.offsets).max(initial=0) for block in post.inbox.values.values())
    size = world.network.size(int(max(widths, default=0)))
    return _duration(1 + 2 * world.network.mean_delay(size)), patience


def check_setting(world: World) -> None:
    """Raise an `InputError` if rounds cannot be run in a scenario: its clock is recorded, or agents join or leave."""
    clock, availability = world.setting.clock, world.setting.availability
    if clock.kind == "recorded":
        raise InputError(
            "a recorded order of agents leaves no intervals for rounds to last; use poisson or periodic clocks",
            field=("clock", "kind"),
        )
    for window in ("joins", "leaves"):
        if getattr(availability, window) is not None:
            raise InputError(
                f"agents of the protocol {world.protocol.parameters.kind!r} wait for each other in rounds, "
                "so none may join or leave; use on_off, diurnal or trace for absences",
                field=("availability", window),
            )


def repeats(parameters: RoundsSchedule, *, unfailing: bool) -> bool:
    """Whether messages are acknowledged, and repeated until they are; unfailing if none is lost and nobody is down."""
    if parameters.resend_after == "never" or parameters.patience is not None:
        return False
    return parameters.resend_after is not None or not unfailing


def addressed(graph: Graph, agent: int, sents: Sequence[Sent]) -> dict[int, list[Sent]]:
    """What of a step's messages goes to each neighbour, by edge.

    Raises
    ------
    ValueError
        If a neighbour gets two messages of one kind.
    """
    slots, per_edge = graph.edges_of(agent), {}
    for edge, receiver in zip(range(slots.start, slots.stop), graph.heads[slots].tolist(), strict=True):
        per_edge[edge] = [sent for sent in sents if sent.to is None or receiver in sent.to]
        kinds = [sent.kind for sent in per_edge[edge]]
        if len(set(kinds)) < len(kinds):
            raise ValueError(f"agent {agent} sent agent {receiver} two messages of one kind in a round")
    return per_edge


def _duration(value: float) -> float:
    return max(QUANTUM, lasting(value))
