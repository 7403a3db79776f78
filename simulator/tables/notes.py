"""Buffer of notes that rules write for observers, in `hushnet.simulator.tables.run.RunTables`, emptied when read."""

from __future__ import annotations

NOBODY, KEPT, TOLD = range(3)
"""What becomes of notes, in ``counts[OBSERVED]``: none are written; they are kept as they are; observers are told of
them, messages with their vectors."""

WOKE, SENT, ARRIVED = range(3)
"""What is noted: a planned step begins, a copy is sent, a copy arrives."""

NOTE, PLACE, ORDER, TICK, KIND, ROW, SIZE, TAKEN, NEWEST, NOTE_COLUMNS = range(10)
"""Columns of ``notes``; ``note_times`` has the time, and for a copy that is sent its delay. Place is the receiver's
directed edge to the sender, or who wakes; kind is a rank, beyond all kinds of the protocol for a copy without numbers,
and -1 - rank for an acknowledgement of that kind; row is -1 where there are no numbers; taken says that a copy is not
lost, or finds its receiver up. An arrival has no tick, kind, row and size: its order and place are those that the copy
was sent with. The order of a step is that of the last message that was sent before it."""
