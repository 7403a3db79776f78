"""The post of the batched engine: the same charges, counts and inboxes, without an event for any message."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ..agents.agent import Agent
from ..agents.graph import Graph
from ..protocols.base import Layout, Sent
from ..protocols.privacy.ledger import Ledger
from .clocks import RECORDED
from .laws import Forms
from .network import Network
from .notes import Notes
from .post import Post
from .rules import delivery, lazy
from .tables import tallies
from .tables.inbox import TableInbox
from .tables.mail import (
    BANDWIDTH,
    CLOCK_CONSTANTS,
    CONSTANTS,
    COPIES_OUT,
    DELAY_CODE,
    DELAY_FIRST,
    DELAY_SECOND,
    ENDS_BY_TIME,
    LOSS_BAD,
    LOSS_CHANCE,
    LOSS_GOOD,
    MEAN_BAD,
    MEAN_GOOD,
    MOST_ACTIVATIONS,
    MOST_UPDATES,
    MOST_VECTORS,
    RECORD_EVERY,
    Mail,
)
from .tables.notes import NOTE_COLUMNS, NOTING

if TYPE_CHECKING:
    from .world import World

Carry = Callable[[Agent, NDArray[np.int64], int, NDArray[np.float64], int, int], None]
MIRRORED = {
    "sent": (tallies.SENT, tallies.SENT_BYTES),
    "delivered": (tallies.DELIVERED, tallies.DELIVERED_BYTES),
    "lost": (tallies.LOST, tallies.LOST_BYTES),
    "dropped": (tallies.DROPPED, tallies.DROPPED_BYTES),
    "in_flight": (tallies.IN_FLIGHT, tallies.IN_FLIGHT_BYTES),
}


@final
class TablePost(Post):
    """Everything between ``out.send`` and an inbox, delivered when the receiver looks.

    Parameters
    ----------
    graph, layout, network, ledger, agents
        As of `Post`.
    forms : Forms or None
        Of the network and the clocks; none where rules run as plain Python, which asks both for every single draw.
    now : callable
        The time of the wake-up that is being run; ``env.now`` lags behind within a window.

    Attributes
    ----------
    mail : Mail
        All arrays; replaced when there is need for more room.
    notes : Notes
        Who is told of single events.
    carry : callable
        ``carry(agent, edges, rank, vector, leg, vectors)`` sends a message of a kind of this rank, which counts as so
        many vectors on each link, over some of an agent's edges; by default for receivers that look when they wake.
    sessions : bool
        Whether steps send within sessions: a neighbour that joins is then told starts only.
    """

    inbox: TableInbox
    sessions = False

    def __init__(
        self,
        graph: Graph,
        layout: Layout,
        network: Network,
        ledger: Ledger,
        agents: Sequence[Agent],
        *,
        forms: Forms | None,
        now: Callable[[], float],
    ) -> None:
        super().__init__(graph, layout, network, ledger, agents, TableInbox(graph, layout))
        self._current, self._forms = now, forms
        self._told: dict[tuple[int, int], tuple[Sent, int]] = {}
        self._telling: list[tuple[int, int, int]] = []
        self.carry: Carry = self._carry_lazily
        self.mail = self._make_mail()
        self.notes = Notes(self)

    @property
    def now(self) -> float:
        """The time of the wake-up that is being run."""
        return self._current()

    def _make_mail(self) -> Mail:
        graph, inbox, network = self.graph, self.inbox, self.network
        agents, edges, slots = graph.agents, len(graph.heads), len(self.inbox.flat_order)
        widths = [int(np.max(spec.width, initial=1)) for spec in self.layout.messages.values()]
        rows, nodes = 4 * agents + 64, edges + 64
        bandwidth = network.parameters.bandwidth
        constants = np.zeros(CONSTANTS)
        constants[BANDWIDTH] = bandwidth or math.inf
        if self._forms is not None:
            constants[[DELAY_CODE, DELAY_FIRST, DELAY_SECOND]] = self._forms.law
            constants[[MEAN_GOOD, MEAN_BAD, LOSS_GOOD, LOSS_BAD]] = self._forms.bursts
            constants[LOSS_CHANCE] = self._forms.chance
        constants[COPIES_OUT], constants[MOST_UPDATES] = 1.0, -1.0
        constants[[MOST_ACTIVATIONS, MOST_VECTORS]] = math.inf
        fixed = network.link_delays(graph.tails, graph.heads)
        whole: dict[str, Any] = {
            name: np.full(size, fill, dtype=np.int64)
            for name, size, fill in (
                ("order", rows, 0),
                ("tick", rows, 0),
                ("size", rows, 0),
                ("references", rows, 0),
                ("version", nodes, 0),
                ("following", nodes, 0),
                ("first_node", slots, -1),
                ("known", slots, -1),
                ("ticks", agents, -1),
                ("updates", agents, 0),
                ("charged", agents, 0),
                ("latest", agents, -1),
                ("heap_agent", agents, 0),
                ("recorded_offsets", 0, 0),
                ("counts", tallies.COUNTERS, 0),
            )
        }
        mail = Mail(
            **whole,
            constants=constants,
            bursts=np.zeros((edges if constants[MEAN_BAD] > 0 else 0, 2), dtype=np.int64),
            burst_until=np.zeros(edges if constants[MEAN_BAD] > 0 else 0),
            key=np.array(network.draws.key, dtype=np.uint64),
            offsets=graph.offsets,
            heads=graph.heads,
            reverse=graph.reverse,
            numbers=network.numbers,
            link_delays=np.empty(0) if fixed is None else fixed,
            pool=np.zeros((rows, max(widths, default=1))),
            sent_at=np.zeros(rows),
            free_rows=np.arange(rows),
            arrival=np.zeros(nodes),
            free_nodes=np.arange(nodes),
            heard_sent_at=inbox.flat_sent_at,
            heard_order=inbox.flat_order,
            heard_tick=inbox.flat_tick,
            values=inbox.flat_values,
            places=inbox.places,
            joins=np.zeros(agents),
            leaves=np.full(agents, math.inf),
            gone_from=np.full(agents, math.inf),
            was_up=np.ones(agents, dtype=bool),
            changes=np.empty((agents, 0)),
            heap_time=np.zeros(agents),
            clock=np.zeros(CLOCK_CONSTANTS),
            means=np.ones(agents),
            recorded=np.empty(0),
            silent=np.zeros(agents, dtype=bool),
            alone=np.zeros(agents, dtype=bool),
            noting=np.zeros(NOTING),
            watched=np.zeros(0, dtype=bool),
            note_times=np.zeros((0, 2)),
            notes=np.zeros((0, NOTE_COLUMNS), dtype=np.int64),
        )
        mail.counts[tallies.FREE_ROWS], mail.counts[tallies.FREE_NODES] = rows, nodes
        return mail

    def set_limits(self, world: World, *, compiled: bool) -> None:
        """Let compiled windows know the clocks of a run, its limits and record instants."""
        mail, stop = self.mail, world.setting.stop
        mail.constants[COPIES_OUT] = float(not compiled)
        mail.constants[MOST_ACTIVATIONS] = math.inf if stop.activations is None else stop.activations
        mail.constants[MOST_VECTORS] = math.inf if stop.vectors is None else stop.vectors
        mail.constants[MOST_UPDATES] = -1.0 if stop.updates is None else stop.updates
        record = world.record_activations if world.recorder and world.record_activations else 0
        mail.clock[RECORD_EVERY] = record
        mail.clock[ENDS_BY_TIME] = float(stop.time is not None)
        if self._forms is None:
            return
        clock = self._forms.clock
        mail.clock[:3] = clock.code, clock.jitter, clock.random_phase
        mail.means[:] = clock.means
        if clock.code == RECORDED:
            times = [np.array(own, dtype=np.float64) for own in clock.times]
            offsets = np.cumsum([0, *(len(own) for own in times)])
            self.mail = mail._replace(recorded=np.concatenate(times), recorded_offsets=offsets.astype(np.int64))

    def make_room(self, rows: int, nodes: int) -> None:
        """See to it that so many versions and copies under way fit in."""
        mail, counts = self.mail, self.mail.counts
        if counts[tallies.FREE_ROWS] < rows:
            old = len(mail.pool)
            more = max(rows, old // 2)
            names = ("pool", "sent_at", "order", "tick", "size", "references", "free_rows")
            mail = mail._replace(**{name: extended(getattr(mail, name), more) for name in names})
            mail.free_rows[counts[tallies.FREE_ROWS] : counts[tallies.FREE_ROWS] + more] = np.arange(old, old + more)
            counts[tallies.FREE_ROWS] += more
        if counts[tallies.FREE_NODES] < nodes:
            old = len(mail.arrival)
            more = max(nodes, old)
            names = ("arrival", "version", "following", "free_nodes")
            mail = mail._replace(**{name: extended(getattr(mail, name), more) for name in names})
            mail.free_nodes[counts[tallies.FREE_NODES] : counts[tallies.FREE_NODES] + more] = np.arange(old, old + more)
            counts[tallies.FREE_NODES] += more
        self.mail = mail

    def count(self) -> None:
        """Bring the traffic up to date with the compiled counts."""
        counts, traffic = self.mail.counts.tolist(), self.traffic
        traffic.messages, traffic.vectors = counts[tallies.MESSAGES], counts[tallies.VECTORS]
        traffic.overtaken = counts[tallies.OVERTAKEN]
        for fate, (links, size) in MIRRORED.items():
            setattr(traffic.links, fate, counts[links])
            setattr(traffic.bytes, fate, counts[size])

    def _copies(
        self,
        agent: Agent,
        kind: str,
        vector: NDArray[np.float64],
        edges: NDArray[np.int64],
        vectors: int,
        tick: int,
        leg: int,
    ) -> list[float]:
        # Signals have the rank after all kinds of the protocol.
        self.carry(agent, edges, self._ranks.get(kind, len(self._ranks)), vector, leg, vectors)
        self.traffic.vectors = int(self.mail.counts[tallies.VECTORS])
        return []

    def _carry_lazily(
        self,
        agent: Agent,
        edges: NDArray[np.int64],
        rank: int,
        vector: NDArray[np.float64],
        leg: int,
        vectors: int,
    ) -> None:
        """Send a message that is delivered when its receivers look."""
        self.make_room(1, len(edges))
        self.notes.make_room(len(edges))
        size = self.network.size(len(vector))
        lazy.send_version(self.mail, agent.index, edges, rank, vector, leg, self.now, vectors, size)

    def told(self, kind: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """See `Post.told`; what compiled steps send, which is of the first kind, is only in the mail."""
        if self.mail.constants[COPIES_OUT] != 0.0 or self._ranks[kind] > 0 or self.sessions:
            return super().told(kind)
        rows = self.mail.latest
        vectors = self.mail.pool[np.maximum(rows, 0), : int(np.max(self.layout.messages[kind].width))]
        return vectors, (rows >= 0) | self._fill_in(vectors, kind, np.flatnonzero(rows < 0).tolist())

    def keep(self, sent: Sent, tick: int = 0) -> int:
        """Charge a message of a session or round; the version that holds its vector, with one reference."""
        self.ledger.commit(sent.release, sent.vector)
        self.make_room(1, 0)
        return int(lazy.new_row(self.mail, sent.vector, self.now, tick, self.network.size(len(sent.vector))))

    def exchange_start(self, agent: Agent, *, joining: bool) -> None:
        """See `Post.exchange_start`; one broadcast before anything else was sent is told to all neighbours at once."""
        last = self._last_sent[agent.index]
        if joining or [to for _, to in last] != [None]:
            self._exchange_each(agent, joining=joining)
            self.notes.make_room(0)
            lazy.tell_each(self.mail, np.array(self._telling, dtype=np.int64).reshape(-1, 3), self.now)
            self._telling.clear()
            return
        ((kind, _), (sent, sent_at, tick)) = next(iter(last.items()))
        slots = self.graph.edges_of(agent.index)
        neighbours = self.graph.heads[slots].tolist()
        there = np.array([self.agents[neighbour].present for neighbour in neighbours], dtype=bool)
        places = self._ranks[kind] * len(self.graph.heads) + self.graph.reverse[slots][there]
        if len(places):
            row = self._row_of(agent.index, sent, sent_at, tick)
            lazy.tell_many(self.mail, places, row, int(self.mail.counts[tallies.ORDER]) + 1)
            self.mail.counts[tallies.ORDER] += len(places)
            self.traffic.start_vectors += len(places) * self.layout.messages[kind].vectors

    def _tell(self, sender: int, receiver: int, slot: int) -> None:
        for kind, (sent, sent_at, tick) in self._meant(sender, receiver).items():
            row = int(self.mail.latest[sender])
            if row < 0 or self.sessions:
                row = self._row_of(sender, sent, sent_at, tick)
            # All in one call, for each costs as much as the work of all; until then the version is held.
            self.mail.references[row] += 1
            self._telling.append((self._ranks[kind] * len(self.graph.heads) + slot, receiver, row))
            self.traffic.start_vectors += self.layout.messages[kind].vectors

    def _row_of(self, sender: int, sent: Sent, sent_at: float, tick: int) -> int:
        """The version that holds what was sent last, charged now at the latest and shared by all whom it is told."""
        key = sender, self._ranks[sent.kind]
        before = self._told.get(key)
        if before is not None and before[0] is sent:
            return before[1]
        if before is not None:
            delivery.let_go(self.mail, before[1])
        self._charge(sender, sent)
        self.make_room(1, 0)
        row = int(lazy.new_row(self.mail, sent.vector, sent_at, tick, self.network.size(len(sent.vector))))
        self._told[key] = sent, row
        if self.mail.constants[COPIES_OUT] == 0.0 and not sent.release.free:
            # A compiled step compares what it sends with what was charged last.
            if self.mail.latest[sender] >= 0:
                delivery.let_go(self.mail, self.mail.latest[sender])
            self.mail.references[row] += 1
            self.mail.latest[sender] = row
        return row

    def _charge(self, sender: int, sent: Sent) -> None:
        """Charge what was sent last, unless a compiled step was charged for the same bytes before."""
        mail, vector, latest = self.mail, sent.vector, int(self.mail.latest[sender])
        if latest < 0:
            self.ledger.commit(sent.release, vector)
        elif (
            mail.size[latest] != self.network.size(len(vector))
            or mail.pool[latest, : len(vector)].tobytes() != vector.tobytes()
        ):
            self.ledger.commit(sent.release)


def extended(array: NDArray[Any], more: int) -> NDArray[Any]:
    """An array with room for so many more entries."""
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), dtype=array.dtype)])
