"""Pairwise exchange: an agent calls one neighbour, which answers, and both update their ends of the edge.

A session is opened by the caller's clock (`Protocol.offer` makes the request), changes the callee when the request
arrives (`Protocol.accept` makes the reply) and the caller when the reply arrives (`Protocol.finish`). Both messages
travel under the tick of the caller's clock that opened it. Without delay and loss all of this happens at one instant,
before the next wake-up: the atomic exchange of gossip papers.

An edge has one open session. Its caller knows of it from the offer, its callee from accepting it, and both until it is
closed; that the callee learns of the close at once stands for an acknowledgement that takes no time. An agent whose
clock picks a busy edge does nothing. As a callee does not know of a request that has not arrived, two requests can
cross: the session of the lower agent wins. The higher one's is void as soon as the winning request arrives, and the
winner ignores the request of the other. A void session has changed nothing but what `Protocol.offer` changed, and
whatever still arrives of it changes nothing.

What a caller does about a session that stays unanswered is a trait of the protocol (`Traits.unanswered`):

``repeat``
    It repeats the same request (same numbers, same release, so free of charge) every ``resend_after`` while it is up.
    The callee answers a repeat with its stored reply. Every accepted session is applied once at each end, however
    late. Once either end has left for good, a session that was not accepted is void. One that was accepted stays open
    for ever unless a reply is still on its way: its ends never agree, and the edge is never quiet again.
``give_up``
    It closes the session after ``timeout``; a request or reply that comes later changes nothing. A callee whose reply
    was lost or late has made its half of the exchange, and the protocol must tolerate that.

A callee that cannot afford an answer (`Out.fall_silent` in ``accept``, and nothing sent) refuses: an answer without
numbers closes the session as void. A session that was finished counts as one step of its caller.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import simpy
from numpy.typing import NDArray

from .agent import TIMER, Agent, At
from .inbox import Message
from .contract import ExchangeSchedule
from .halves import (
    REFUSAL,
    REPLY,
    REQUEST,
    callers_repeat,
    check_exchange,
    make_reply,
    make_request,
    patience,
    take_reply,
)
from .schedules import EventDriven
from .view import Sent

if TYPE_CHECKING:
    from .world import World


@dataclass(eq=False)
class Session:
    """One exchange between two neighbours.

    Parameters
    ----------
    caller, callee : Agent
    edge : int
        The caller's directed edge to the callee.
    back : int
        The callee's directed edge to the caller.
    tick : int
        Tick of the caller's clock that opened it.
    request : Sent
    closed : simpy.Event
        Happens when it is finished, void or given up.

    Attributes
    ----------
    requests, answers : int
        How often the request and its answer were transmitted.
    reply : Sent or None
        The callee's answer, once it has accepted.
    refused : bool
        Whether the callee could not afford an answer.
    reply_due : float
        When the last reply that was not lost arrives.
    watch : simpy.Process
        Repeats the request, or gives up.
    """

    caller: Agent
    callee: Agent
    edge: int
    back: int
    tick: int
    request: Sent
    closed: simpy.Event
    requests: int = 0
    answers: int = 0
    reply: Sent | None = None
    refused: bool = False
    reply_due: float = -math.inf
    watch: simpy.Process | None = None


@final
class Sessions(EventDriven):
    """Every agent calls a neighbour when its own clock wakes it.

    Parameters
    ----------
    world : World
    parameters : ExchangeSchedule

    Attributes
    ----------
    open : dict of int to Session
        Open sessions by their callers' directed edges.

    Raises
    ------
    ValueError
        If the protocol's traits or message kinds do not fit an exchange.
    """

    def __init__(self, world: World, parameters: ExchangeSchedule) -> None:
        super().__init__(world)
        check_exchange(world)
        self.repeats, self.patience = callers_repeat(world), patience(world, parameters)
        self.graph = world.setting.graph
        self.open: dict[int, Session] = {}
        for agent in world.agents:
            agent.step = self.call

    @property
    def quiet(self) -> bool:
        """Whether no session is open."""
        return not self.open

    @property
    def quiet_edges(self) -> NDArray[np.bool_]:
        """See `Schedule.quiet_edges`."""
        called = np.zeros(len(self.graph.heads), dtype=bool)
        called[list(self.open)] = True
        return ~(called | called[self.graph.reverse])

    def busy(self, edge: int) -> bool:
        """Whether the tail of a directed edge knows of an open session there: one that it opened, or accepted."""
        other = self.open.get(int(self.graph.reverse[edge]))
        return edge in self.open or (other is not None and other.reply is not None)

    def run(self, agent: Agent) -> Generator[simpy.Event, Any, None]:
        """See `Schedule.run`: an agent whose clock has ended still completes what it has opened."""
        yield from agent.run(self.world.env)
        yield self.world.env.all_of([s.watch for s in self.open.values() if s.caller is agent and s.watch])

    def call(self, agent: Agent) -> None:
        """Open a session with the partner that the protocol picks, if their edge is free.

        An agent all of whose neighbours have left for good, or that never had any, falls silent.
        """
        world, slots = self.world, self.graph.edges_of(agent.index)
        if all(world.agents[neighbour].gone for neighbour in self.graph.heads[slots].tolist()):
            agent.silent = True
            return
        if all(self.busy(edge) for edge in range(slots.start, slots.stop)):
            return
        made = make_request(world, agent, self.busy)
        if made is not None:
            edge, request = made
            callee, back = world.agents[int(self.graph.heads[edge])], int(self.graph.reverse[edge])
            self._open(Session(agent, callee, edge, back, agent.tick, request, self._event()))

    def deliver(self, message: Message) -> bool:
        """See `EventDriven.deliver`: only a request to accept and a reply that finishes a session reach the inbox."""
        session = self._session(message)
        if session is None or message.kind == REFUSAL:
            return session is not None
        if message.kind == REQUEST and (session.reply or session.refused or self._outranked(session)):
            return False
        return self.world.inbox.put(message)

    def react(self, message: Message) -> None:
        """See `EventDriven.react`: accept, answer again, finish, or ignore what comes too late."""
        session = self._session(message)
        if session is None:
            return
        if message.kind == REFUSAL:
            self._close(session)
        elif message.kind == REPLY:
            self._finish(session, message)
        elif session.reply or session.refused:
            self._answer(session)
        elif not self._outranked(session):
            self._accept(session, message)

    def _event(self) -> simpy.Event:
        return self.world.env.event()

    def _session(self, message: Message) -> Session | None:
        """The open session that a message belongs to; None if it comes too late."""
        edge = message.edge if message.kind != REQUEST else int(self.graph.reverse[message.edge])
        session = self.open.get(edge)
        return session if session is not None and session.tick == message.tick else None

    def _outranked(self, session: Session) -> bool:
        """Whether the callee has a session of its own open on the edge that wins against this one."""
        return session.back in self.open and session.callee.index < session.caller.index

    def _open(self, session: Session) -> None:
        self.open[session.edge] = session
        session.watch = self.world.env.process(self._watch(session))
        self._request(session)

    def _close(self, session: Session) -> None:
        del self.open[session.edge]
        session.closed.succeed()
        self.world.check_vectors()

    def _request(self, session: Session) -> None:
        attempt, session.requests = session.requests, session.requests + 1
        self.world.post.transmit(session.caller, session.edge, session.request, tick=session.tick, attempt=attempt)

    def _answer(self, session: Session) -> None:
        """Transmit the callee's reply or refusal, the first time or again."""
        attempt, session.answers = session.answers, session.answers + 1
        post, callee = self.world.post, session.callee
        if session.reply is None:
            post.signal(callee, session.back, REFUSAL, tick=session.tick, attempt=attempt)
            return
        arrival = post.transmit(callee, session.back, session.reply, tick=session.tick, attempt=attempt)
        if arrival < math.inf:
            session.reply_due = max(session.reply_due, arrival)

    def _accept(self, session: Session, message: Message) -> None:
        """Let the callee update and answer; a session of its own that this one wins against is void before that."""
        if session.back in self.open:
            self._close(self.open[session.back])
        session.reply = make_reply(self.world, session.callee, session.back, message.vector)
        session.refused = session.reply is None
        self._answer(session)

    def _finish(self, session: Session, message: Message) -> None:
        self._close(session)
        take_reply(self.world, session.caller, session.edge, message.vector)

    def _watch(self, session: Session) -> Generator[simpy.Event, Any, None]:
        """Repeat the request until it is answered, or give up."""
        env = self.world.env
        while True:
            yield session.closed | At(env, env.now + self.patience, TIMER)
            if session.closed.triggered:
                return
            if not self.repeats or self._hopeless(session):
                if not self.repeats or session.reply is None:
                    self._close(session)
                return
            if session.caller.present and session.caller.up and not session.callee.gone:
                self._request(session)
                self.world.check_vectors()

    def _hopeless(self, session: Session) -> bool:
        """Whether no answer can come any more, because either end has left for good."""
        if session.caller.gone:
            return True
        return session.callee.gone and session.reply_due <= self.world.now
