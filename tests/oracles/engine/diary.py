"""Everything that happens in a run, as rows of plain numbers and words: observer, recorder and steps in one.

========  =============================================================================================================
row       fields
========  =============================================================================================================
step      time, agent, phase, tick, updates, round, versions read by kind, messages kept, what the phase is given
woke      time, agent, tick, ticks read by kind
sent      time, sender, receiver, kind, tick, delay, lost, bytes, digest of the vector
arrived   time, receiver, sender, kind, tick, sent at, up, newest
record    time, final, activations, tally, updates of each agent, digest of all states, quiet edges
end       time, why
tally     messages, vectors, overtaken, start vectors, links and bytes by fate
charges   agent, mechanism, multiplier, epsilon, count; sorted
final     agent, updates, digest of its blocks
========  =============================================================================================================

A version is (time of sending, digest of the numbers). An agent's rows are those that it is the third word of.
"""

from __future__ import annotations

from hashlib import blake2s
from typing import Any

import numpy as np

Row = tuple[Any, ...]


def digest(vector: Any) -> str:
    """A short name of some numbers' very bits."""
    return blake2s(np.ascontiguousarray(vector, dtype=np.float64).tobytes(), digest_size=4).hexdigest()


def agent_of(row: Row) -> int | None:
    """Whose row it is; None for the run's own."""
    if row[0] in ("step", "woke", "sent", "arrived"):
        return row[2]
    return row[1] if row[0] in ("charges", "final") else None


def digests(rows: list[Row]) -> tuple[str, dict[int | None, str]]:
    """One digest of all rows in their order, and one of each agent's (None: of the run's own)."""
    every, own = blake2s(digest_size=8), {}
    for row in rows:
        text = repr(row).encode()
        every.update(text)
        own.setdefault(agent_of(row), blake2s(digest_size=8)).update(text)
    return every.hexdigest(), {agent: hashed.hexdigest() for agent, hashed in own.items()}


class Diary:
    """What is written down in a run.

    Attributes
    ----------
    rows : list of Row
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def step(self, phase: str, view: Any, given: Row = ()) -> None:
        """A protocol is about to make a step; ``view`` has the names of `View`."""
        versions = tuple(
            (kind, *zip(_floats(view.sent_at(kind)), [digest(vector) for vector in view.received(kind)], strict=True))
            for kind in view.kinds
        )
        kept = tuple((m.sender, m.kind, int(m.tick), float(m.sent_at), digest(m.vector)) for m in view.messages)
        where = float(view.now), int(view.agent), phase, int(view.tick), int(view.updates), int(view.round)
        self.rows.append(("step", *where, versions, kept, given))

    def woke(self, world: Any, agent: Any) -> None:
        """See `World`."""
        slots = world.setting.graph.edges_of(agent.index)
        ticks = tuple((kind, *ticks[slots].tolist()) for kind, ticks in world.inbox.tick.items())
        self.rows.append(("woke", float(world.now), int(agent.index), int(agent.tick), ticks))

    def sent(self, world: Any, message: Any, delay: float, lost: bool) -> None:
        """See `World`."""
        who = int(message.sender), int(message.receiver), message.kind, int(message.tick)
        numbers = int(message.size), digest(message.vector)
        self.rows.append(("sent", float(world.now), *who, float(delay), bool(lost), *numbers))

    def arrived(self, world: Any, message: Any, up: bool, newest: bool) -> None:
        """See `World`."""
        who = int(message.receiver), int(message.sender), message.kind, int(message.tick)
        self.rows.append(("arrived", float(world.now), *who, float(message.sent_at), bool(up), bool(newest)))

    def sample(self, world: Any, *, final: bool) -> None:
        """See `World`."""
        blocks = [*world.state.agent.values(), *world.state.edge.values()]
        states = digest(np.concatenate([block.values for block in blocks]))
        what = tally(world.traffic), tuple(int(u) for u in world.updates), states
        quiet = tuple(np.flatnonzero(world.schedule.quiet_edges).tolist())
        self.rows.append(("record", float(world.now), bool(final), int(world.activations), *what, quiet))

    def close(self, world: Any, why: str, charges: list[list[tuple[Any, ...]]]) -> None:
        """Write down how a run has ended; ``charges`` has (mechanism, multiplier, epsilon, count) by agent."""
        graph = world.setting.graph
        self.rows.append(("end", float(world.now), why))
        self.rows.append(("tally", *tally(world.traffic)))
        for agent, own in enumerate(charges):
            self.rows.extend(("charges", agent, *charge) for charge in sorted(own))
        for agent, updates in enumerate(world.updates):
            slots = graph.edges_of(agent)
            mine = [block[agent] for block in world.state.agent.values()]
            mine += [block[edge] for block in world.state.edge.values() for edge in range(slots.start, slots.stop)]
            self.rows.append(("final", agent, int(updates), digest(np.concatenate(mine))))


def tally(traffic: Any) -> tuple[int, ...]:
    """Messages, vectors, overtaken, start vectors, then links and bytes: sent, delivered, lost, dropped, in flight."""
    units = [(u.sent, u.delivered, u.lost, u.dropped, u.in_flight) for u in (traffic.links, traffic.bytes)]
    return tuple(int(c) for c in (traffic.messages, traffic.vectors, traffic.overtaken, traffic.start_vectors, *units[0], *units[1]))


def _floats(array: Any) -> list[float]:
    return [float(number) for number in array]
