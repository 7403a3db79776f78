"""The transport of one run: charges what is sent, hands it to the network, counts it, and delivers it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from ...agents.agent import Agent, Agents
from ...agents.graph import Graph
from ...protocols.base import Layout, Sent
from ...protocols.privacy.ledger import Ledger
from ..network.distributions import CompiledDistributions
from ..network.network import KINDS, Network
from ..network.setting import Stop
from ..rules import delivery, lazy
from ..tables import tallies
from ..tables.allocation import make_inbox, make_run_tables, with_capacity, with_limits
from ..tables.run import PLANNED, PlainTables, RunTables
from .notes import Notes

LastSent = dict[tuple[str, tuple[int, ...] | None], tuple[Sent, float, int]]
"""An agent's last message of each kind and address, the newest at the end, with time and tick of sending."""


@final
class Transport:
    """Everything between a step that sends and an inbox.

    Parameters
    ----------
    forms : CompiledDistributions or None
        Of the network and the clocks; none where rules run as plain Python, which asks both for every single draw.
    now : callable
        The time of the wake-up that is being run; ``env.now`` lags behind within a window.
    changing : bool
        Whether the graph changes.

    Attributes
    ----------
    inbox : Inbox
    run : RunTables
        All arrays; replaced when there is need for more room.
    notes : Notes
        Who is told of single events.
    sessions : bool
        Whether steps send within sessions: a neighbour that joins is then told starts only.
    start_kinds : set of str
        Kinds of messages that starts so far have sent.
    """

    sessions = False

    def __init__(
        self,
        graph: Graph,
        layout: Layout,
        network: Network,
        ledger: Ledger,
        agents: Agents,
        *,
        forms: CompiledDistributions | None,
        now: Callable[[], float],
        changing: bool = False,
    ) -> None:
        if len(layout.messages) >= KINDS:
            raise ValueError(f"a protocol has fewer than {KINDS} kinds of messages, got {len(layout.messages)}")
        self.graph, self.layout, self.network, self.ledger = graph, layout, network, ledger
        self.agents, self.inbox = agents, make_inbox(graph, layout, network.precision)
        self._start_vectors: float = 0
        self._ranks = {kind: rank for rank, kind in enumerate(layout.messages)}
        self._widths = {kind: int(np.max(message.width, initial=0)) for kind, message in layout.messages.items()}
        sizes = {
            kind: [message.size(n, network.precision.itemsize) for n in (0, 1)]
            for kind, message in layout.messages.items()
        }
        self._sizes = {kind: (network.size(0) + none, one - none) for kind, (none, one) in sizes.items()}
        self._last_sent: dict[int, LastSent] = {}
        self._current, self._forms, self._shares = now, forms, layout.shares
        self._plain = PlainTables()
        self.start_kinds: set[str] = set()
        self._told: dict[tuple[int, int], tuple[Sent, int]] = {}
        self._telling: list[tuple[int, int]] = []
        self.tables = make_run_tables(graph, layout, self.inbox, network, forms, changing)
        self._withheld = dict(zip(self._ranks, self.tables.withheld.reshape(-1, graph.agents), strict=True))
        self.notes = Notes(self)

    @property
    def plain(self) -> RunTables:
        """The tables, for rules in plain Python."""
        return self._plain(self.tables)

    @property
    def now(self) -> float:
        """The time of the wake-up that is being run."""
        return self._current()

    def set_limits(self, stop: Stop, *, record: int, compiled: bool) -> None:
        """Set the limits at which compiled windows end."""
        if stop.vectors is not None:
            stop = replace(stop, vectors=stop.vectors * self.layout.shares)
        self.tables = with_limits(self.tables, stop, self._forms, record=record, compiled=compiled)

    def grow(self, rows: int, nodes: int) -> None:
        """Make room for so many versions and copies."""
        counts = self.tables.counts
        if counts[tallies.FREE_ROWS] < rows or counts[tallies.FREE_NODES] < nodes:
            self.tables = with_capacity(self.tables, self.inbox, rows, nodes)

    @property
    def vectors(self) -> float:
        """Model-sized vectors sent so far; a whole number where no message counts as a share of one."""
        sent = int(self.tables.counts[tallies.VECTORS])
        return sent if self._shares == 1 else sent / self._shares

    @property
    def traffic(self) -> Traffic:
        """Counts of messages and bytes so far, as the tables have them: sent, delivered, lost, dropped, in flight."""
        counts = self.tables.counts.tolist()
        links = Tally(*counts[tallies.SENT : tallies.IN_FLIGHT + 1])
        size = Tally(*counts[tallies.SENT_BYTES : tallies.IN_FLIGHT_BYTES + 1])
        messages, overtaken = counts[tallies.MESSAGES], counts[tallies.OVERTAKEN]
        return Traffic(messages, self.vectors, overtaken, self._start_vectors, links, size)

    def remember(self, agent: Agent, sent: Sent, tick: int) -> None:
        """Keep the last message of each kind and address, the newest at the end, for neighbours that join."""
        last = self._last_sent.setdefault(agent.index, {})
        last.pop((sent.kind, sent.to), None)
        self._withheld[sent.kind][agent.index] = False
        last[sent.kind, sent.to] = (sent, self.now, tick)

    def withhold(self, agent: Agent, sent: Sent) -> None:
        """Note that an agent's message was sent to nobody, because all edges were closed.

        Its noise is charged: what it has hidden may go on in later messages.
        """
        if sent.release.noisy and self.graph.degrees[agent.index] > 0:
            self.ledger.commit(sent.release, sent.vector)
        self._withheld[sent.kind][agent.index] = True

    def remember_start(self, agent: Agent, messages: Sequence[Sent]) -> None:
        """Keep what an agent has said at its start, as `remember` does.

        Where planned steps keep in the tables what they have said last to all, a start that costs nothing is kept
        there, too, and nowhere else.
        """
        self.start_kinds.update(sent.kind for sent in messages)
        if len(messages) == 1 and self._goes_into_mail(messages[0]):
            row = self.new_version(messages[0], self.now, -1)
            self.tables.latest[agent.index] = row  # which holds its one reference
            return
        for sent in messages:
            self.remember(agent, sent, -1)

    def _goes_into_mail(self, start: Sent) -> bool:
        """True if the only message of a start is kept in the tables; it is one of the first kind then."""
        return self.keeps_starts(start.kind) and start.to is None and start.release.free

    def keeps_starts(self, kind: str) -> bool:
        """True if a start that sends all neighbours a message of this kind is kept in the tables, if it is free."""
        in_mail = self.tables.constants[PLANNED] != 0.0 and not self.sessions
        return in_mail and self._ranks[kind] == 0 and not self.layout.messages[kind].addressed

    def remember_starts(self, agents: NDArray[np.int64], vectors: NDArray[np.float64]) -> None:
        """`remember_start` of agents that tell each its row of (n, width) vectors, of the kind that `keeps_starts`."""
        self.grow(len(agents), 0)
        kind = next(iter(self._ranks))
        self.start_kinds.add(kind)
        size = self.size(kind, vectors.shape[1])
        lazy.keep_starts(self.tables, agents, self.now, size)
        self.inbox.pool[self.tables.latest[agents], : vectors.shape[1]] = vectors[agents]

    def exchange_starts(self, agents: NDArray[np.int64]) -> None:
        """`exchange_start` of agents that are there from the beginning, whose starts `remember_starts` has kept."""
        kind = next(iter(self.layout.messages.values()))
        told = int(lazy.tell_starts(self.tables, agents, self.agents.present))
        self._start_vectors += told * kind.vectors

    def told(self, kind: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The last (n, width) vectors of a kind that agents have told all their neighbours, whoever has heard them.

        All messages of the kind have one width. Beside them is whether there is such a vector, and it is the agent's
        last.
        """
        width, agents = self._widths[kind], self.graph.agents
        if self.tables.constants[PLANNED] == 0.0 or self.sessions or self.layout.messages[kind].addressed:
            vectors = np.zeros((agents, width), self.network.precision)
            return vectors, self._fill_in(vectors, kind, range(agents))
        # What planned steps say to all neighbours is only in the tables.
        own = slice(self._ranks[kind] * agents, (self._ranks[kind] + 1) * agents)
        rows, withheld = self.tables.latest[own], self._withheld[kind]
        vectors, known = self.inbox.pool.take(rows, axis=0, mode="clip")[:, :width], rows >= 0
        if known.all():
            return vectors, ~withheld
        return vectors, (known & ~withheld) | self._fill_in(vectors, kind, np.flatnonzero(~known).tolist())

    def _fill_in(self, vectors: NDArray[np.float64], kind: str, agents: Iterable[int]) -> NDArray[np.bool_]:
        """Put the last message to everybody of some agents into their rows; (n,) whose rows were set."""
        known, withheld = np.zeros(len(vectors), dtype=bool), self._withheld[kind]
        for agent in agents:
            entry = self._last_sent.get(agent, {}).get((kind, None))
            if entry is not None and not withheld[agent]:
                vectors[agent], known[agent] = entry[0].vector, True
        return known

    def keep(self, sent: Sent, tick: int = 0) -> int:
        """Charge a message of a session or round; the version that holds its vector, with one reference."""
        self.ledger.commit(sent.release, sent.vector)
        return self.new_version(sent, self.now, tick)

    def new_version(self, sent: Sent, sent_at: float, tick: int) -> int:
        """A version that holds a message's vector, with one reference, which was not sent yet."""
        self.grow(1, 0)
        vector = sent.vector
        row = delivery.take_row(self.plain, sent_at, 0, tick, self.size(sent.kind, len(vector)))
        self.inbox.pool[row, : len(vector)], self.inbox.pool[row, len(vector) :] = vector, 0.0
        return row

    def size(self, kind: str, numbers: int) -> int:
        """Bytes of a message of a kind that carries this many numbers, with its header."""
        fixed, each = self._sizes[kind]
        return fixed + each * numbers

    def vector_of(self, row: int, kind: str, sender: int) -> NDArray[np.float64]:
        """A copy of the vector that a version holds, a message of a kind from a sender, which nobody can write."""
        vector = np.array(self.inbox.pool[row, : self.layout.messages[kind].width_of(sender)], dtype=np.float64)
        vector.flags.writeable = False
        return vector

    def exchange_start(self, agent: Agent, *, joining: bool) -> None:
        """Tell present neighbours an agent's start, and a joining agent what they sent last, reliably.

        One broadcast before anything else was sent is told to all neighbours at once.
        """
        last, row = self._last_sent.get(agent.index, {}), int(self.tables.latest[agent.index])
        if joining or (row < 0 and [to for _, to in last] != [None]):
            self._exchange_each(agent, joining=joining)
            self.notes.grow(0)
            lazy.tell_each(self.tables, np.array(self._telling, dtype=np.int64).reshape(-1, 2))
            self._telling.clear()
            return
        kind = next(iter(last))[0] if row < 0 else next(iter(self._ranks))
        slots = self.graph.edges_of(agent.index)
        there = self.agents.present[self.graph.heads[slots]] & self.graph.opened[slots]
        places = self._ranks[kind] * len(self.graph.heads) + self.graph.reverse[slots][there]
        if len(places):
            if row < 0:
                row = self._row_of(agent.index, *last[kind, None])
            lazy.tell_many(self.tables, places, row, int(self.tables.counts[tallies.ORDER]) + 1)
            self.tables.counts[tallies.ORDER] += len(places)
            self._start_vectors += len(places) * self.layout.messages[kind].vectors

    def _tell(self, sender: int, receiver: int, slot: int) -> None:
        """Tell a receiver, reliably and at once, what a sender has sent last, if messages go this way."""
        if not self.graph.opened[self.graph.reverse[slot]]:
            return
        meant, messages = self._meant(sender, receiver), self.layout.messages
        # What planned steps say is only in the tables, even where nothing was said at the start.
        for kind in [*meant, *(kind for kind in messages if kind not in meant)]:
            row = int(self.tables.latest[self._ranks[kind] * self.graph.agents + sender])
            if row < 0 or self.sessions or messages[kind].addressed:
                if kind not in meant:
                    continue
                row = self._row_of(sender, *meant[kind])
            # All in one call, for each costs as much as the work of all; until then the version is held.
            self.tables.versions.references[row] += 1
            self._telling.append((self._ranks[kind] * len(self.graph.heads) + slot, row))
            self._start_vectors += self.layout.messages[kind].vectors

    def _row_of(self, sender: int, sent: Sent, sent_at: float, tick: int) -> int:
        """The version that holds what was sent last, charged now at the latest and shared by all whom it is told."""
        key = sender, self._ranks[sent.kind]
        before = self._told.get(key)
        if before is not None and before[0] is sent:
            return before[1]
        if before is not None:
            delivery.release_version(self.tables, before[1])
        charged = self._charge(sender, sent)
        row = self.new_version(sent, sent_at, tick)
        self._told[key] = sent, row
        if charged and self.tables.constants[PLANNED] != 0.0 and not sent.release.noisy:
            # A planned step compares what it sends with what was charged last.
            delivery.hold_version(self.tables, self.tables.agents.paid, sender, row)
        return row

    def _charge(self, sender: int, sent: Sent) -> bool:
        """Charge what was sent last, unless a planned step was charged for the same bytes before; whether it was."""
        run, vector = self.tables, sent.vector
        paid = int(run.agents.paid[sender])
        if paid < 0:
            return self.ledger.commit(sent.release, vector)
        same = run.versions.bytes[paid] == self.size(sent.kind, len(vector))
        if same and self.inbox.pool[paid, : len(vector)].tobytes() == vector.tobytes():
            return False
        return self.ledger.commit(sent.release)

    def _exchange_each(self, agent: Agent, *, joining: bool) -> None:
        """`exchange_start`, neighbour by neighbour."""
        if not joining and agent.index not in self._last_sent:
            return
        slots = self.graph.edges_of(agent.index)
        for slot, neighbour in zip(range(slots.start, slots.stop), self.graph.heads[slots].tolist(), strict=True):
            if self.agents.present[neighbour]:
                self._tell(agent.index, neighbour, int(self.graph.reverse[slot]))
                if joining:
                    self._tell(neighbour, agent.index, slot)

    def _meant(self, sender: int, receiver: int) -> dict[str, tuple[Sent, float, int]]:
        """Find by kind what a sender has sent last to a receiver or to all, with the time and tick of sending."""
        return {
            kind: last for (kind, to), last in self._last_sent.get(sender, {}).items() if to is None or receiver in to
        }


@dataclass
class Tally:
    """One unit of traffic (vectors or bytes) by fate, in the order of `hushnet.simulator.tables.tallies`.

    ``in_flight`` is counted on its own and not derived, so that conservation can be checked.
    """

    sent: int
    lost: int
    delivered: int
    dropped: int
    in_flight: int

    @property
    def conserved(self) -> bool:
        """True if everything that was sent was delivered, lost or dropped, or is in flight."""
        return self.sent == self.delivered + self.lost + self.dropped + self.in_flight


@dataclass
class Traffic:
    """Everything that one run has sent.

    A broadcast to k neighbours is one message and k vectors (times the model-sized vectors that its kind carries).
    Copies per link are what can be lost or dropped: ``links`` counts them. What is exchanged reliably before an
    agent's start is counted apart.
    """

    messages: int
    vectors: float
    overtaken: int
    start_vectors: float
    links: Tally
    bytes: Tally

    @property
    def conserved(self) -> bool:
        """True if both copies and bytes are conserved."""
        return self.links.conserved and self.bytes.conserved
