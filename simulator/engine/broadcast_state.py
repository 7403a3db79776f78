"""What eventful broadcasts are on every engine beside their rules (`hushnet.simulator.rules.broadcasts`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...agents.inbox import Message
from ..rules.broadcasts import done_with
from ..tables import broadcasts as columns
from ..tables.broadcasts import BroadcastTables
from ..tables.effects import EFFECT_COLUMNS
from ..tables.room import extended
from ..world.world import World


class BroadcastState:
    """The tables of eventful broadcasts in one run, and what a step in Python reads from them.

    Parameters
    ----------
    world : World

    Attributes
    ----------
    tables : BroadcastTables
        Replaced when there is need for more room.
    room : int
        Most copies that one message brings about.
    """

    def __init__(self, world: World) -> None:
        self.world, self.transport = world, world.transport
        self.kinds: list[str] = list(world.layout.messages)
        self.room = int(world.setting.graph.degrees.max(initial=0)) + 1
        self._done_with = done_with
        agents, copies = len(world.agents), len(world.setting.graph.heads) + self.room

        def whole(*shape: int) -> NDArray[np.int64]:
            return np.zeros(shape, dtype=np.int64)

        self.tables = BroadcastTables(
            now=np.full(columns.TIMES, -1.0),
            counts=whole(columns.COUNTS),
            copies=whole(copies, columns.COPY_COLUMNS),
            free_copies=np.arange(copies),
            agents=whole(agents, columns.AGENT_COLUMNS),
            due=np.zeros(self.room),
            effects=whole(self.room, EFFECT_COLUMNS),
        )
        self.tables.agents[:, columns.FIRST_KEPT] = -1
        self.tables.counts[columns.FREE_COPIES] = copies
        self.tables.counts[columns.KEEPS] = world.traits.inbox == "every"
        self.tables.counts[columns.REACTS] = world.traits.trigger == "message"

    def make_room(self) -> None:
        """See to it that whatever the next message or arrival brings about fits in."""
        self.transport.make_room(1, 0)
        self.transport.notes.make_room(self.room)
        made = self.tables
        free, old = int(made.counts[columns.FREE_COPIES]), len(made.copies)
        if free < self.room:
            more = old + self.room
            made = made._replace(**{name: extended(getattr(made, name), more) for name in ("copies", "free_copies")})
            made.free_copies[free : free + more] = np.arange(old, old + more)
            made.counts[columns.FREE_COPIES] += more
            self.tables = made

    def arrived(self, place: int) -> Message:
        """The message of a copy that its receiver looks at, once."""
        run, network = self.transport.tables, self.world.network
        row, slot = self.tables.copies[place, [columns.VERSION, columns.TO_SLOT]].tolist()
        rank, edge = divmod(slot, len(run.heads))
        size = int(run.versions.bytes[row])
        vector = run.pool[row, : (size - network.size(0)) // 8].copy()
        vector.flags.writeable = False
        people = int(run.heads[edge]), int(run.heads[run.reverse[edge]])
        sending = float(run.versions.sent_at[row]), int(run.versions.order[row]), int(run.versions.tick[row])
        self._done_with(run, self.tables, place)
        return Message(*people, self.kinds[int(rank)], vector, *sending, edge, size)

    def hand_over(self, agent: int) -> None:
        """Put what an agent has kept into its inbox, in the order of arrival."""
        keeper = self.tables.agents[agent]
        place = int(keeper[columns.FIRST_KEPT])
        keeper[columns.FIRST_KEPT] = -1
        while place >= 0:
            following = int(self.tables.copies[place, columns.NEXT])
            self.world.inbox.pending[agent].append(self.arrived(place))
            place = following

    def hand_over_all(self) -> None:
        """`hand_over` for everybody, at the end of a run."""
        for agent in range(len(self.tables.agents)):
            self.hand_over(agent)
