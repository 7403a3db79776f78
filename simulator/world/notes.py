"""Telling observers what rules have noted: the one reader of notes, for all engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ...agents.agent import Agent
from ...agents.inbox import Message
from ..rules import delivery
from ..tables import effects as columns
from ..tables import tallies
from ..tables.effects import ARRIVED, DEPARTED, KEPT, NOTE_COLUMNS, TOLD, WOKE
from ..tables.run import FIRST_NOTED, LAST_NOTED_AT, RunTables
from .watchers import World

ACKNOWLEDGEMENT = "acknowledgement of "
"""What the kind of an acknowledgement begins with, before the kind that it answers."""
NOTHING = np.empty(0)
NOTHING.flags.writeable = False
CAPACITY = 4096
"""Notes that a buffer has room for at the beginning."""


class Notebook(ABC):
    """An observer that keeps notes as they are, in place of being told of messages one by one.

    It may ask for those of some agents and of some time. What it does not ask for is not written, and windows of
    planned steps are as long as without it.

    Attributes
    ----------
    between : (float, float)
        First and last time of steps, and of copies under way.
    watched : (n,) bool
        Agents whose steps, and the copies between them, are noted.
    """

    between: tuple[float, float]
    watched: NDArray[np.bool_]

    @abstractmethod
    def woke(self, world: World, agent: Agent) -> None:
        """Tell observers that an agent steps in Python, of which the tables have no note."""

    @abstractmethod
    def keep(self, times: NDArray[np.float64], notes: NDArray[np.int64], kind_of: Callable[[int], str]) -> None:
        """Keep what was noted.

        Parameters
        ----------
        times : (k, 2) float64
            When, and the delay of a copy that is sent.
        notes : (k, NOTE_COLUMNS) int64
            See `hushnet.simulator.tables.effects`; in no particular order. Both arrays are overwritten later.
        kind_of : callable
            Kind of a message by its rank.
        """


@final
class Notes:
    """The notes of one run, and who is told of them.

    Parameters
    ----------
    transport : Transport

    Attributes
    ----------
    telling : float or None
        Time of the event that the observer is just being told of.
    """

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.telling: float | None = None
        self._world: World | None = None
        self._book: Notebook | None = None
        self._under_way: dict[tuple[int, int], Message] = {}
        self._kinds, self._empty, self._late = list(transport.layout.messages), "", False

    @property
    def told(self) -> bool:
        """True if an observer is notified of every single event, in order."""
        return self._world is not None and self._book is None

    def begin(self, world: World, *, empty: str = "", late: bool = False) -> None:
        """Have notes written if anybody observes a run that is about to begin.

        Parameters
        ----------
        world : World
        empty : str
            Kind of copies without numbers that are no acknowledgements.
        late : bool
            Whether arrivals are noted when they are taken in, and not when they come.
        """
        if world.observer is None:
            return
        self._world, self._empty, self._late = world, empty, late
        self._book = book = world.observer if isinstance(world.observer, Notebook) else None
        run = self.transport.tables
        run.counts[tallies.OBSERVED] = TOLD if book is None else KEPT
        run.constants[[FIRST_NOTED, LAST_NOTED_AT]] = (-np.inf, np.inf) if book is None else book.between
        run.agents.watched[:] = True if book is None else book.watched
        self._extend(CAPACITY)

    def grow(self, notes: int) -> None:
        """See to it that so many notes fit in, beside those of all arrivals that are waiting to be taken in."""
        if self._world is None:
            return
        run = self.transport.tables
        needed = notes + len(run.nodes) - int(run.counts[tallies.FREE_NODES])
        if len(run.notes) - run.counts[tallies.NOTES] < needed:
            self.keep()
            missing = needed - len(run.notes) + int(run.counts[tallies.NOTES])
            if missing > 0:
                self._extend(missing + needed)

    def _extend(self, more: int) -> None:
        run = self.transport.tables
        times = np.concatenate([run.note_times, np.zeros((more, 2))])
        notes = np.concatenate([run.notes, np.zeros((more, NOTE_COLUMNS), dtype=np.int64)])
        self.transport.tables = run._replace(note_times=times, notes=notes)

    def keep(self) -> None:
        """Hand what was noted to a notebook, if it is one that observes."""
        if self._book is not None:
            times, notes = self._taken()
            self._book.keep(times, notes, self.kind_of)

    def tell(self) -> None:
        """Tell an observer, unless it is a notebook, of all that was noted; there is at most one step among it.

        Late arrivals come in their own order of time and sending, and before the step at their instant.
        """
        if not self.told or self.transport.tables.counts[tallies.NOTES] == 0:
            return
        times, notes = (part.copy() for part in self._taken())
        if self._late:
            arrived = notes[:, columns.NOTE] == ARRIVED
            edges = np.zeros(len(notes), dtype=np.int64)
            edges[arrived] = self.transport.tables.reverse[notes[arrived, columns.PLACE]]
            order = np.lexsort((edges, notes[:, columns.RANK] * arrived, ~arrived, times[:, 0]))
            times, notes = times[order], notes[order]
        for (now, delay), note in zip(times.tolist(), notes.tolist(), strict=True):
            self.telling = now
            self._tell(now, delay, note)
        self.telling = None

    def _taken(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the notes in the buffer, which is empty then."""
        run = self.transport.tables
        count = int(run.counts[tallies.NOTES])
        run.counts[tallies.NOTES] = 0
        return run.note_times[:count], run.notes[:count]

    def _tell(self, now: float, delay: float, note: list[int]) -> None:
        world = self._world
        assert world is not None
        assert world.observer is not None
        what, place, taken = note[columns.NOTE], note[columns.PLACE], bool(note[columns.TAKEN])
        key = note[columns.RANK], place
        if what == WOKE:
            agent = world.agents[place]
            if agent.tick != note[columns.TICK]:
                agent.tick, agent.reactions = note[columns.TICK], 0
            world.observer.woke(world, agent)
        elif what == DEPARTED:
            message = self._message(now, note)
            if taken:
                self._under_way[key] = message
            world.observer.sent(world, message, delay, not taken)
        else:
            world.observer.arrived(world, self._under_way.pop(key), taken, bool(note[columns.NEWEST]))

    def kind_of(self, rank: int) -> str:
        """The kind of a copy by its rank, see `hushnet.simulator.tables.effects`."""
        if rank < 0:
            return ACKNOWLEDGEMENT + self.kind_of(-1 - rank)
        return self._kinds[rank] if rank < len(self._kinds) else self._empty

    def _message(self, now: float, note: list[int]) -> Message:
        run: RunTables = self.transport.tables
        place, row, size, vector = note[columns.PLACE], note[columns.ROW], note[columns.SIZE], NOTHING
        people = int(run.heads[place]), int(run.heads[run.reverse[place]])
        kind = self.kind_of(note[columns.KIND])
        if row >= 0:
            vector = self.transport.vector_of(row, kind, people[0])
            delivery.release_version(run, row)
        return Message(*people, kind, vector, now, note[columns.RANK], note[columns.TICK], place, size)
