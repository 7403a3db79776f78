"""What rounds are on every engine beside their rules (`hushnet.simulator.rules.rounds`): tables, and Python steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..agents.agent import Agent
from ..agents.errors import InputError
from ..agents.graph import Graph
from ..agents.inbox import Message
from ..protocols.base import Out, Sent
from ..protocols.schedule import RoundsSchedule
from .mail import extended
from .post import Post
from .randomness import QUANTUM, lasting
from .rules.forms import Plain
from .rules.round_messages import holds
from .tables import rounds as columns
from .tables.effects import EFFECT_COLUMNS
from .tables.rounds import RoundTables

if TYPE_CHECKING:
    from .world import World

EMPTY = "empty round"
"""Kind of the message without numbers that ends a round for a neighbour to whom the step said nothing."""


class RoundState:
    """The tables of rounds in one run, and what a step in Python reads from them and writes to them.

    Parameters
    ----------
    world : World
    post : Post
    parameters : RoundsSchedule

    Attributes
    ----------
    tables : RoundTables
        Replaced when there is need for more room.
    room : int
        Most records, copies and notes that one event brings about.

    Raises
    ------
    InputError
        If the clock is recorded, or agents join or leave.
    """

    def __init__(self, world: World, post: Post, parameters: RoundsSchedule) -> None:
        check_setting(world)
        graph, kinds = world.setting.graph, world.layout.messages
        self.world, self.post = world, post
        self.kinds = list(kinds)
        self.room = int(graph.degrees.max(initial=0)) * (len(kinds) + 1) + 2
        agents, edges, records = len(world.agents), len(graph.heads), len(graph.heads) + self.room

        def whole(*shape: int) -> NDArray[np.int64]:
            return np.zeros(shape, dtype=np.int64)

        self.tables = RoundTables(
            now=np.zeros(1),
            counts=whole(columns.COUNTS),
            constants=np.array([*durations(world, post, parameters), world.network.size(0)]),
            vectors=np.array([kind.vectors for kind in kinds.values()], dtype=np.int64),
            agents=whole(agents, columns.AGENT_COLUMNS),
            links=whole(edges, columns.LINK_COLUMNS),
            records=whole(records, columns.RECORD_COLUMNS),
            free_records=np.arange(records),
            copies=whole(records, columns.COPY_COLUMNS),
            free_copies=np.arange(records),
            shown=whole(self.room, 2),
            queue=whole(agents + records),
            due=np.zeros(agents + records + self.room),
            effects=whole(agents + records + self.room, EFFECT_COLUMNS),
        )
        self.tables.agents[:, columns.QUEUE_FIRST] = -1
        self.tables.links[:, [columns.LAST, columns.FIRST_HELD, columns.SAYING]] = -1
        self.tables.counts[[columns.FREE_RECORDS, columns.FREE_COPIES]] = records

    @property
    def resend_after(self) -> float | None:
        """Time until a message is repeated that is not acknowledged; None if it never is."""
        return self._duration(columns.RESEND_AFTER)

    @property
    def patience(self) -> float | None:
        """Time until an agent loses patience; None if it never does."""
        return self._duration(columns.LONGEST_WAIT)

    def _duration(self, place: int) -> float | None:
        duration = float(self.tables.constants[place])
        return duration if duration < math.inf else None

    @property
    def counted(self) -> dict[str, int]:
        """What became of rounds, for a run's totals."""
        counts = self.tables.counts
        return {
            "rounds_begun_without_all": int(counts[columns.BEGUN_WITHOUT]),
            "messages_repeated": int(counts[columns.REPEATED]),
        }

    def make_room(self) -> None:
        """See to it that whatever the next event brings about fits in."""
        self.post.make_room(2, 0)
        made, counts = self.tables, self.tables.counts
        if min(counts[columns.FREE_RECORDS], counts[columns.FREE_COPIES]) >= self.room:
            return
        old = len(made.records)
        more = old + self.room
        names = ("records", "free_records", "copies", "free_copies", "queue", "due", "effects")
        made = made._replace(**{name: extended(getattr(made, name), more) for name in names})
        for free, count in ((made.free_records, columns.FREE_RECORDS), (made.free_copies, columns.FREE_COPIES)):
            free[counts[count] : counts[count] + more] = np.arange(old, old + more)
            counts[count] += more
        self.tables = made

    def prepare(self, agent: Agent) -> None:
        """Let an agent's view show the round that ends with the step that it is about to make."""
        self.world.views[agent.index].round = agent.tick + 1
        if self.world.traits.inbox == "every":
            self.world.inbox.pending[agent.index] += self._shown(agent)

    def _shown(self, agent: Agent) -> list[Message]:
        """The messages that an agent's inbox shows for the first time, by neighbour and order of sending."""
        world, inbox = self.world, self.world.inbox
        heads, messages = world.setting.graph.heads, []
        for place, order in self.tables.shown[: self.tables.counts[columns.SHOWN_MESSAGES]].tolist():
            rank, slot = divmod(place, len(heads))
            kind = self.kinds[rank]
            vector = inbox.values[kind][slot].copy()
            vector.flags.writeable = False
            sent_at, tick = float(inbox.sent_at[kind][slot]), int(inbox.tick[kind][slot])
            size = world.network.size(len(vector))
            messages.append(Message(int(heads[slot]), agent.index, kind, vector, sent_at, order, tick, slot, size))
        return messages

    def charge(self, agent: Agent, out: Out) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Charge and keep what a step gave out.

        Returns
        -------
        said : (k, 4) int64
            Kind, version, and first and last place among the edges, of each message that somebody can hear.
        edges : (m,) int64

        Raises
        ------
        ValueError
            If a step sends two messages of one kind to one neighbour.
        """
        per_edge = addressed(self.world.setting.graph, agent.index, out.sent)
        said: list[tuple[int, int, int, int]] = []
        edges: list[int] = []
        for sent in out.sent:
            over = [edge for edge, sents in per_edge.items() if any(one is sent for one in sents)]
            if over:
                self.post.remember(agent, sent, agent.tick)
                row = self.post.keep(sent, agent.tick)
                said.append((self.kinds.index(sent.kind), row, len(edges), len(edges) + len(over)))
                edges += over
        return np.array(said, dtype=np.int64).reshape(-1, 4), np.array(edges, dtype=np.int64)

    @property
    def nothing(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What `charge` gives where a step said nothing."""
        return np.empty((0, 4), dtype=np.int64), np.empty(0, dtype=np.int64)

    def complaint(self) -> str:
        """Who waits for whom, in the earliest round that cannot begin: all others follow from it."""
        mail, made, world = self.post.mail, self.tables, self.world
        waiting = np.flatnonzero(made.agents[:, columns.WAITS])
        agent = int(waiting[np.argmin(mail.ticks[waiting])])
        number, is_here = int(mail.ticks[agent]) + 1, Plain()(holds)
        slots = range(int(mail.offsets[agent]), int(mail.offsets[agent + 1]))
        slot = next(slot for slot in slots if not is_here(made, slot, number))
        ids, neighbour = world.setting.task.ids, int(mail.heads[slot])
        if mail.ticks[neighbour] + 1 >= number:
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
