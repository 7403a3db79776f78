"""Telling observers what rules have noted: the one reader of notes, for all engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import SimpleNamespace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ...agents.agent import Agent
from ...agents.inbox import Message
from ..rules import delivery
from ..tables import tallies
from ..tables.allocation import extended, zeros
from ..tables.effects import ARRIVED, DEPARTED, FATE_DELIVERED, FATE_DROPPED, FATE_LOST, KEPT, TOLD, WOKE
from ..tables.run import DOWNLINK, FIRST_NOTED, LAST_NOTED_AT, NOTE, NOTED
from .watchers import World

ACKNOWLEDGEMENT = "acknowledgement of "
"""What the kind of an acknowledgement begins with, before the kind that it answers."""
NOTHING = np.empty(0)
NOTHING.flags.writeable = False
CAPACITY = 2**18
"""Notes that a buffer has room for at the beginning; room that nobody has written to takes no memory."""


class Notebook(ABC):
    """An observer that reads notes as they are (`Notes.kept`), in place of being told of messages one by one.

    It may ask for those of some agents and of some time: of (n,) agents that are ``watched``, and of copies between
    them, ``between`` a first and a last time of steps, and of copies under way. What it does not ask for is not
    written, and windows of planned steps are as long as without it.
    """

    between: tuple[float, float]
    watched: NDArray[np.bool_]

    @abstractmethod
    def check_length(self, notes: int) -> None:
        """Refuse to keep so many notes if these are too many."""


@final
class Notes:
    """The notes of one run, and who is told of them; `telling` is the time of the event that is being told."""

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

        Copies of kind `empty` have no numbers and are no acknowledgements; arrivals are noted when they come, or, if
        `late`, when they are taken in.
        """
        if world.observer is None:
            return
        self._world, self._empty, self._late = world, empty, late
        self._book = book = world.observer if isinstance(world.observer, Notebook) else None
        run = self.transport.tables
        run.counts[tallies.OBSERVED] = TOLD if book is None else KEPT
        run.constants[[FIRST_NOTED, LAST_NOTED_AT]] = (-np.inf, np.inf) if book is None else book.between
        if run.constants[DOWNLINK] < np.inf:  # what reaches it before the window begins may have its turn in it
            run.constants[FIRST_NOTED] = -np.inf
        run.agents.watched[:] = True if book is None else book.watched
        if book is not None:
            self.transport.tables = run._replace(noted=zeros(len(run.heads), NOTED))
            self.transport.tables.noted[:] = -1
        self._extend(CAPACITY)

    def grow(self, notes: int) -> None:
        """See to it that so many notes fit in, beside those of all arrivals that are waiting to be taken in."""
        if self._world is None:
            return
        run = self.transport.tables
        needed = notes + len(run.nodes) - int(run.counts[tallies.FREE_NODES])
        if len(run.notes) - run.counts[tallies.NOTES] < needed:
            self._extend(needed + len(self.kept()))

    def _extend(self, more: int) -> None:
        run = self.transport.tables
        self.transport.tables = run._replace(notes=extended(run.notes, more))

    def kept(self) -> Any:
        """Return what was noted so far, in order of noting, as records that may still change."""
        run = self.transport.tables
        count = int(run.counts[tallies.NOTES])
        if self._book is not None:
            self._book.check_length(count)
        return run.notes[:count]

    def woke(self, agent: Agent) -> None:
        """Note a step in Python, of which the rules have no note, or tell of it."""
        world = self._world
        if world is None or world.observer is None:
            return
        if self._book is None:
            world.observer.woke(world, agent)
        else:
            self.grow(1)
            delivery.note_step(self.transport.plain, agent.index, world.now, agent.tick)

    def tell(self) -> None:
        """Tell an observer, unless it is a notebook, of all that was noted; there is at most one step among it.

        Late arrivals come in their own order of time and sending, and before the step at their instant.
        """
        if not self.told or self.transport.tables.counts[tallies.NOTES] == 0:
            return
        notes = self.kept().copy()
        self.transport.tables.counts[tallies.NOTES] = 0
        if self._late:
            arrived = notes.what == ARRIVED
            edges = np.zeros(len(notes), dtype=np.int64)
            edges[arrived] = self.transport.tables.reverse[notes.place[arrived]]
            notes = notes[np.lexsort((edges, notes.order * arrived, ~arrived, notes.time))]
        for note in notes.tolist():
            self._tell(SimpleNamespace(**dict(zip(NOTE.names or (), note, strict=True))))
        self.telling = None

    def _tell(self, note: Any) -> None:
        world, key = self._world, (note.order, note.place)
        assert world is not None
        assert world.observer is not None
        self.telling = note.time
        if note.what == WOKE:
            agent = world.agents[note.place]
            if agent.tick != note.tick:
                agent.tick, agent.reactions = note.tick, 0
            world.observer.woke(world, agent)
        elif note.what == DEPARTED:
            message, lost = self._message(note), note.fate == FATE_LOST
            if not lost:
                self._under_way[key] = message
            world.observer.sent(world, message, note.delay, lost)
        else:
            up, newest = note.fate != FATE_DROPPED, note.fate == FATE_DELIVERED
            world.observer.arrived(world, self._under_way.pop(key), up, newest)

    def kind_of(self, rank: int) -> str:
        """The kind of a copy by its rank, see `hushnet.simulator.tables.effects`."""
        if rank < 0:
            return ACKNOWLEDGEMENT + self.kind_of(-1 - rank)
        return self._kinds[rank] if rank < len(self._kinds) else self._empty

    def _message(self, note: Any) -> Message:
        run, kind, vector = self.transport.tables, self.kind_of(note.kind), NOTHING
        people = int(run.heads[note.place]), int(run.heads[run.reverse[note.place]])
        if note.row >= 0:
            vector = self.transport.vector_of(note.row, kind, people[0])
            delivery.release_version(run, note.row)
        return Message(*people, kind, vector, note.time, note.order, note.tick, note.place, note.bytes)
