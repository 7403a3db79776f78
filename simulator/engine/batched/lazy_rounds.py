"""The batched engine for lossless rounds: no event for any message or barrier, and compiled windows of ends of rounds.

Where nothing is lost and nobody is ever absent, when a round begins follows from when the others ended
(`hushnet.simulator.engine.batched.round_windows`); nothing has to be acknowledged, repeated or given up. The run is
that of `hushnet.simulator.world.rounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from typing_extensions import override

from ...world.world import World
from . import round_windows, windows
from .lossless_rounds import (
    LosslessRounds,
    count_arrivals,
    first_rounds,
    note_heard,
    with_late_room,
)
from .wake_windows import WakeWindows


@final
class LazyRounds(WakeWindows):
    """Every agent steps once it has heard a whole round from its neighbours, of which nothing is ever lost.

    Parameters
    ----------
    world : World

    Attributes
    ----------
    rounds : LosslessRounds or None
        What agents wait for, and what is under way between them; None until the run begins.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.rounds: LosslessRounds | None = None
        self.header = world.network.size(0)

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
        assert self.rounds is not None
        copies = int(self.world.setting.graph.degrees.max(initial=0)) * max(1, len(self.ports))
        self.rounds = with_late_room(self.rounds, float(self.transport.tables.wakes.time[0]), copies)

    @override
    def deliver_pending(self, now: float, barrier: int) -> None:
        if self.rounds is not None:
            count_arrivals(self.transport.tables, self.rounds, now, barrier, self.header)
            note_heard(self.transport.tables)
