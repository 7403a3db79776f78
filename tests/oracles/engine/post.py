"""The post of one run: charges what is sent, hands it to the network, counts it, and delivers it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import final

import numpy as np
import simpy
from numpy.typing import NDArray

from .agent import ARRIVAL, Agent, At
from .graph import Graph
from .inbox import Inbox, Message
from .ledger import Ledger
from .network import KINDS, Network
from .traffic import Traffic
from .view import Layout, Out, Sent

NOTHING = np.empty(0)
NOTHING.flags.writeable = False


class Post(ABC):
    """Everything between ``out.send`` and an inbox.

    Parameters
    ----------
    graph : Graph
    layout : Layout
    network : Network
    ledger : Ledger
    agents : sequence of Agent
    inbox : Inbox

    Attributes
    ----------
    traffic : Traffic
    """

    def __init__(
        self,
        graph: Graph,
        layout: Layout,
        network: Network,
        ledger: Ledger,
        agents: Sequence[Agent],
        inbox: Inbox,
    ) -> None:
        if len(layout.messages) >= KINDS:
            raise ValueError(f"a protocol has fewer than {KINDS} kinds of messages, got {len(layout.messages)}")
        self.graph, self.layout, self.network, self.ledger = graph, layout, network, ledger
        self.agents, self.inbox = agents, inbox
        self.traffic = Traffic()
        self._ranks = {kind: rank for rank, kind in enumerate(layout.messages)}
        self._last_sent: list[dict[tuple[str, tuple[int, ...] | None], tuple[Sent, float, int]]] = [
            {} for _ in range(graph.agents)
        ]

    @property
    @abstractmethod
    def now(self) -> float:
        """Time of the step that is being made."""

    @abstractmethod
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
        """Send one copy over each of some directed edges; when they arrive, infinite where they are lost."""

    @abstractmethod
    def _tell(self, sender: int, receiver: int, slot: int) -> None:
        """Tell a receiver, reliably and at once, what a sender has sent last."""

    @abstractmethod
    def exchange_start(self, agent: Agent, *, joining: bool) -> None:
        """Tell present neighbours an agent's start, and a joining agent what they sent last, reliably."""

    def send(self, agent: Agent, out: Out) -> None:
        """Charge and send everything that a step gave out; what nobody can hear is not sent."""
        slots = self.graph.edges_of(agent.index)
        for sent in out.sent:
            edges = np.arange(slots.start, slots.stop)
            if sent.to is not None:
                edges = edges[np.isin(self.graph.heads[slots], sent.to)]
            if len(edges):
                self.ledger.commit(sent.release, sent.vector)
                self.remember(agent, sent, agent.tick)
                self._copy_to_links(agent, sent, edges)

    def remember(self, agent: Agent, sent: Sent, tick: int) -> None:
        """Keep the last message of each kind and address, the newest at the end, for neighbours that join."""
        last = self._last_sent[agent.index]
        last.pop((sent.kind, sent.to), None)
        last[sent.kind, sent.to] = (sent, self.now, tick)

    def _exchange_each(self, agent: Agent, *, joining: bool) -> None:
        """`exchange_start`, neighbour by neighbour."""
        if not joining and not self._last_sent[agent.index]:
            return
        slots = self.graph.edges_of(agent.index)
        for slot, neighbour in zip(range(slots.start, slots.stop), self.graph.heads[slots].tolist(), strict=True):
            if self.agents[neighbour].present:
                self._tell(agent.index, neighbour, int(self.graph.reverse[slot]))
                if joining:
                    self._tell(neighbour, agent.index, slot)

    def _meant(self, sender: int, receiver: int) -> dict[str, tuple[Sent, float, int]]:
        """By kind, the last that a sender has sent to a receiver or to all, with the time and tick of sending."""
        return {kind: last for (kind, to), last in self._last_sent[sender].items() if to is None or receiver in to}

    def transmit(self, agent: Agent, edge: int, sent: Sent, *, tick: int, attempt: int) -> float:
        """Send one copy over one directed edge with its own place in the random draws: requests, replies, repeats.

        Parameters
        ----------
        agent : Agent
            The tail of the edge.
        edge : int
        sent : Sent
            Its release is charged once, however often it is transmitted.
        tick : int
            Tick (or round) that the copy belongs to.
        attempt : int
            0 for the first transmission of this kind on this edge within the tick, then 1, 2, ...

        Returns
        -------
        float
            When it arrives; infinite if it is lost.
        """
        self.ledger.commit(sent.release, sent.vector)
        vectors, rank = self.layout.messages[sent.kind].vectors, self._ranks[sent.kind]
        return self._copies(agent, sent.kind, sent.vector, np.array([edge]), vectors, tick, attempt * KINDS + rank)[0]

    def signal(self, agent: Agent, edge: int, kind: str, *, tick: int, attempt: int) -> None:
        """Send a message without numbers over one directed edge, such as an acknowledgement: 0 vectors, a header."""
        self._copies(agent, kind, NOTHING, np.array([edge]), 0, tick, attempt * KINDS + KINDS - 1)

    def _copy_to_links(self, agent: Agent, sent: Sent, edges: NDArray[np.int64]) -> None:
        rank = self._ranks[sent.kind]
        attempts = self.network.attempts(agent.index, self.graph.heads[edges], agent.tick, rank)
        vectors = self.layout.messages[sent.kind].vectors
        for attempt in dict.fromkeys(attempts):
            part = edges[[a == attempt for a in attempts]]
            self._copies(agent, sent.kind, sent.vector, part, vectors, agent.tick, attempt * KINDS + rank)


@final
class EventPost(Post):
    """The post with a SimPy event for every copy under way.

    Parameters
    ----------
    env : simpy.Environment
    graph, layout, network, ledger, agents
        As of `Post`.
    deliver : callable
        ``deliver(message)`` takes in an arrival whose receiver is up, and says whether it was the newest.
    on_sent : callable
        ``on_sent(message, delay, lost)`` for every copy on a link.
    on_arrived : callable
        ``on_arrived(message, up, newest)`` for every arrival, after it was delivered and counted.
    """

    def __init__(
        self,
        env: simpy.Environment,
        graph: Graph,
        layout: Layout,
        network: Network,
        ledger: Ledger,
        agents: Sequence[Agent],
        *,
        deliver: Callable[[Message], bool],
        on_sent: Callable[[Message, float, bool], None],
        on_arrived: Callable[[Message, bool, bool], None],
    ) -> None:
        inbox = Inbox(graph, {kind: spec.width for kind, spec in layout.messages.items()})
        super().__init__(graph, layout, network, ledger, agents, inbox)
        self.env, self.deliver, self.on_sent, self.on_arrived = env, deliver, on_sent, on_arrived
        self._order = 0

    @property
    def now(self) -> float:
        """See `Post.now`."""
        return self.env.now

    def exchange_start(self, agent: Agent, *, joining: bool) -> None:
        """See `Post.exchange_start`."""
        self._exchange_each(agent, joining=joining)

    def _tell(self, sender: int, receiver: int, slot: int) -> None:
        for kind, (sent, sent_at, tick) in self._meant(sender, receiver).items():
            self.ledger.commit(sent.release, sent.vector)
            size = self.network.size(len(sent.vector))
            self.inbox.put(Message(sender, receiver, kind, sent.vector, sent_at, self._next_order(), tick, slot, size))
            self.traffic.start_vectors += self.layout.messages[kind].vectors

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
        receivers, now = self.graph.heads[edges], self.now
        size = self.network.size(len(vector))
        self.traffic.send(len(edges), vectors, size)
        delays, lost = self.network.fates(agent.index, receivers, tick, leg, now, size)
        order = self._next_order()
        links = zip(edges.tolist(), receivers.tolist(), delays.tolist(), lost.tolist(), strict=True)
        for edge, receiver, delay, gone in links:
            slot = int(self.graph.reverse[edge])
            message = Message(agent.index, receiver, kind, vector, now, order, tick, slot, size)
            self.on_sent(message, delay, gone)
            if gone:
                self.traffic.lose(size)
                continue
            self.traffic.depart(size)
            arrival = At(self.env, now + delay, ARRIVAL)
            arrival.callbacks.append(lambda _, message=message: self._arrive(message))  # type: ignore[union-attr]
        return np.where(lost, np.inf, now + delays).tolist()

    def _arrive(self, message: Message) -> None:
        agent = self.agents[message.receiver]
        up = agent.present and agent.up
        newest = up and self.deliver(message)
        self.traffic.arrive(message.size, up=up, newest=newest)
        self.on_arrived(message, up, newest)

    def _next_order(self) -> int:
        self._order += 1
        return self._order
