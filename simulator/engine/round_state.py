"""Reads and writes of the tables of rounds by steps in Python, on every engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...agents.agent import Agent
from ...agents.inbox import Message
from ...protocols.base import Sent
from ..rules.round_messages import holds
from ..tables import rounds as columns
from ..tables.rounds import RoundTables
from ..world.rounds import addressed, room_for, round_tables, with_room
from ..world.world import World


class RoundState:
    """The tables of rounds in one run, and what a step in Python reads from them and writes to them.

    Parameters
    ----------
    world : World

    Attributes
    ----------
    kinds : list of str
        Those of messages with numbers.
    room : int
        Most records, copies and notes that one event brings about.
    """

    def __init__(self, world: World) -> None:
        assert world.in_rounds is not None
        world.rounds = round_tables(world.setting, world.layout, world.network, world.in_rounds)
        self.world, self.transport = world, world.transport
        self.kinds: list[str] = list(world.layout.messages)
        self.room = room_for(world.setting.graph, world.layout)

    @property
    def tables(self) -> RoundTables:
        """Replaced when there is need for more room."""
        assert self.world.rounds is not None
        return self.world.rounds

    def make_room(self) -> None:
        """See to it that whatever the next event brings about fits in."""
        self.transport.make_room(2, 0)
        self.world.rounds = with_room(self.tables, self.room)

    def prepare(self, agent: Agent) -> None:
        """Let an agent's inbox show what belongs to the round that ends with the step that it is about to make."""
        if self.world.traits.inbox == "every":
            self.world.inbox.pending[agent.index] += self._shown(agent)

    def _shown(self, agent: Agent) -> list[Message]:
        """The messages that an agent's inbox shows for the first time, by neighbour and order of sending."""
        world, inbox = self.world, self.world.inbox
        heads, messages = world.setting.graph.heads, list[Message]()
        for place, order in self.tables.shown[: self.tables.counts[columns.SHOWN_MESSAGES]].tolist():
            rank, slot = divmod(place, len(heads))
            kind = self.kinds[int(rank)]
            vector = inbox.values[kind][slot].copy()
            vector.flags.writeable = False
            sent_at, tick = float(inbox.sent_at[kind][slot]), int(inbox.tick[kind][slot])
            size = world.network.size(len(vector))
            messages.append(Message(int(heads[slot]), agent.index, kind, vector, sent_at, order, tick, slot, size))
        return messages

    def charge(self, agent: Agent, messages: Sequence[Sent]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
        per_edge = addressed(self.world.setting.graph, agent.index, messages)
        said: list[tuple[int, int, int, int]] = []
        edges: list[int] = []
        for sent in messages:
            over = [edge for edge, sents in per_edge.items() if any(one is sent for one in sents)]
            if over:
                self.transport.remember(agent, sent, agent.tick)
                row = self.transport.keep(sent, agent.tick)
                said.append((self.kinds.index(sent.kind), row, len(edges), len(edges) + len(over)))
                edges += over
        return np.array(said, dtype=np.int64).reshape(-1, 4), np.array(edges, dtype=np.int64)

    @property
    def nothing(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Empty result of `charge`, for a step that sent nothing."""
        return np.empty((0, 4), dtype=np.int64), np.empty(0, dtype=np.int64)

    def complaint(self) -> str:
        """Describe which agent waits for which in the earliest round that cannot begin: all others follow from it."""
        run, made, world = self.transport.tables, self.tables, self.world
        waiting = np.flatnonzero(made.agents[:, columns.WAITS])
        agent = int(waiting[np.argmin(run.agents.ticks[waiting])])
        number, is_here = int(run.agents.ticks[agent]) + 1, holds
        slots = range(int(run.offsets[agent]), int(run.offsets[agent + 1]))
        slot = next(slot for slot in slots if not is_here(made, slot, number))
        ids, neighbour = world.setting.task.ids, int(run.heads[slot])
        if run.agents.ticks[neighbour] + 1 >= number:
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
