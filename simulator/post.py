"""The post of one run: charges what is sent, hands it to the network, counts it, and delivers it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..agents.agent import Agent
from ..agents.graph import Graph
from ..agents.inbox import Inbox
from ..protocols.base import Layout, Out, Sent
from ..protocols.privacy.ledger import Ledger
from .network import KINDS, Network
from .traffic import Traffic

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

    def told(self, kind: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The last vector of a kind that each agent has told all its neighbours, whoever has heard it.

        Parameters
        ----------
        kind : str
            A kind whose messages all have one width.

        Returns
        -------
        vectors : (n, width) float64
        known : (n,) bool
            Whether there is such a vector.
        """
        agents = range(self.graph.agents)
        vectors = np.zeros((len(agents), int(np.max(self.layout.messages[kind].width))))
        return vectors, self._fill_in(vectors, kind, agents)

    def _fill_in(self, vectors: NDArray[np.float64], kind: str, agents: Iterable[int]) -> NDArray[np.bool_]:
        """Put the last message to everybody of some agents into their rows; (n,) whose rows were set."""
        known = np.zeros(len(vectors), dtype=bool)
        for agent in agents:
            entry = self._last_sent[agent].get((kind, None))
            if entry is not None:
                vectors[agent], known[agent] = entry[0].vector, True
        return known

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
