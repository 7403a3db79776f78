"""The batched engine for lossless rounds: no event for any message or barrier, and compiled windows of ends of rounds.

Where nothing is lost and nobody is ever absent, when a round begins follows from when the others ended
(`hushnet.simulator.engine.batched.round_windows`); nothing has to be acknowledged, repeated or given up. The run is
that of `hushnet.simulator.world.rounds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.agent import Agent
from ....agents.inbox import Message
from ....protocols.base import Sent
from ...world.rounds import EMPTY, addressed
from ...world.world import World
from . import round_windows, windows
from .lossless_rounds import (
    LosslessRounds,
    count_arrivals,
    first_rounds,
    note_heard,
    send_vector,
    with_late_room,
)
from .wake_windows import WakeWindows


@final
class LazyRounds(WakeWindows):
    """Every agent steps once it has heard a whole round from its neighbours, of which nothing is ever lost.

    Parameters
    ----------
    world : World
    plans : bool
        Whether to plan steps, where their protocol admits it.

    Attributes
    ----------
    rounds : LosslessRounds or None
        What agents wait for, and what is under way between them; None until the run begins.
    """

    def __init__(self, world: World, *, plans: bool = True) -> None:
        super().__init__(world, plans=plans)
        self.rounds: LosslessRounds | None = None
        self.header = world.network.size(0)
        self.transport.carry = self._carry

    @override
    def init_clocks(self) -> Sequence[int]:
        """Round 1 begins at once, and nobody waits for who is silent from the start."""
        run = self.transport.tables
        ended = windows.init_clocks(run)
        self.rounds = first_rounds(self.world.setting.graph, run.agents.silent, len(self.world.layout.messages))
        return ended

    @override
    def run_compiled(self, limit: float, forced: bool) -> tuple[int, int, float]:
        return round_windows.run_rounds(self.transport.tables, self.rounds, limit, forced, self.header, *self._call)

    @override
    def make_room(self) -> None:
        """Make room, also for what is sent to silent agents."""
        super().make_room()
        most = int(self.world.setting.graph.degrees.max(initial=0))
        self._make_late_room(most * max(1, len(self.ports)))

    def _make_late_room(self, copies: int) -> None:
        """Make room for so many more copies to silent agents."""
        assert self.rounds is not None
        self.rounds = with_late_room(self.rounds, float(self.transport.tables.wakes.time[0]), copies)

    @override
    def take_step(self, agent: Agent) -> None:
        """Take a step, which ends the agent's round."""
        world = self.world
        if world.traits.inbox == "every" and agent.tick > 0:
            world.inbox.pending[agent.index] += self._shown(agent)
        updates = agent.updates
        self.step(agent)
        if agent.updates == updates:
            # It fell silent without a word, which its neighbours are told all the same.
            self._say_nothing(agent, addressed(world.setting.graph, agent.index, []))

    def _shown(self, agent: Agent) -> list[Message]:
        """The messages that an agent's inbox shows for the first time, by neighbour and order of sending."""
        world, messages = self.world, list[Message]()
        graph, inbox = world.setting.graph, world.inbox
        slots = graph.edges_of(agent.index)
        for slot, sender in zip(range(slots.start, slots.stop), graph.heads[slots].tolist(), strict=True):
            fresh = [kind for kind in inbox.values if inbox.tick[kind][slot] == agent.tick - 1]
            for kind in sorted(fresh, key=lambda kind: inbox.order[kind][slot]):
                vector = inbox.values[kind][slot].copy()
                vector.flags.writeable = False
                sent_at, order = float(inbox.sent_at[kind][slot]), int(inbox.order[kind][slot])
                size = world.network.size(len(vector))
                tick = agent.tick - 1
                messages.append(Message(sender, agent.index, kind, vector, sent_at, order, tick, slot, size))
        return messages

    @override
    def send(self, agent: Agent, messages: Sequence[Sent]) -> None:
        """Send what a step says, to every neighbour.

        Raises
        ------
        ValueError
            If a step sends two messages of one kind to one neighbour.
        """
        per_edge = addressed(self.world.setting.graph, agent.index, messages)
        self.transport.send(agent, messages)
        self._say_nothing(agent, per_edge)

    def _say_nothing(self, agent: Agent, per_edge: Mapping[int, Sequence[Sent]]) -> None:
        """End a round for the neighbours to whom its step said nothing."""
        for edge, sents in per_edge.items():
            if not sents:
                self.transport.signal(agent, edge, EMPTY, attempt=0)

    def _carry(
        self,
        agent: Agent,
        edges: NDArray[np.int64],
        rank: int,
        vector: NDArray[np.float64],
        transmission: int,
        vectors: int,
    ) -> None:
        """Send a message of a round."""
        assert self.rounds is not None
        self.transport.make_room(1, 0)
        self._make_late_room(len(edges))
        size = self.world.network.size(len(vector))
        send_vector(
            self.transport.tables,
            self.rounds,
            agent.index,
            edges,
            rank,
            vector,
            transmission,
            self.world.now,
            vectors,
            size,
        )

    @override
    def deliver_pending(self, now: float, barrier: int) -> None:
        if self.rounds is not None:
            count_arrivals(self.transport.tables, self.rounds, now, barrier, self.header)
            note_heard(self.transport.tables)
