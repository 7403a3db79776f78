"""The rules of sessions: who may call, who wins, that both ends see the same exchange, and what becomes of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from hushnet.protocols.schedule import expanded

from .world_history import Arrival, Departure, History, Step, Woke
from .world_rules import Awake
from .world_timeline import QUANTUM, AvailabilityArrays, rounded


@dataclass(eq=False)
class Session:
    """What is known of an exchange between two neighbours."""

    caller: int
    callee: int
    tick: int
    opened: float
    due: float
    """When its caller's patience is next at its end."""
    reply: bytes | None = None
    refused: bool = False
    reply_due: float = -math.inf
    closed: bool = False


class Sessions(Awake):
    """Agents that call a neighbour when their clocks wake them."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        traits, parameters = history.case.protocol.traits_for(history.case.parameters), history.case.parameters
        self.repeats = (traits.unanswered or ("repeat" if self.layout.edge else "give_up")) == "repeat"
        asked = expanded(parameters.schedule)
        given = getattr(asked, "resend_after" if self.repeats else "timeout", None)
        widths = [int(np.max(self.layout.messages[kind].width)) for kind in ("request", "reply")]
        whole = 1 + sum(self.messages.delays_and_losses.mean_delay(width) for width in widths)
        self.patience = max(QUANTUM, rounded(given or (whole if self.repeats else 5 * whole)))
        self.open: dict[tuple[int, int], Session] = {}
        self.timed: list[Session] = []
        self.awaited: tuple[str, int, Session] | None = None
        self.gone = [gone_at(self.presence, agent) for agent in self.agents]
        self.counted = 0

    @property
    def vectors(self) -> int:
        """See `Replay.vectors`: a run goes on until a session is over, or a request is repeated."""
        return self.counted

    def tick_of(self, step: Step, caller: int) -> int:
        """See `Replay.tick_of`."""
        session = self.open.get((caller, step.agent))
        return step.tick if session is None else session.tick

    def busy(self, agent: int, other: int) -> bool:
        """Whether an agent knows of an open session with a neighbour."""
        theirs = self.open.get((other, agent))
        return (agent, other) in self.open or (theirs is not None and theirs.reply is not None)

    def before(self, event: Any) -> None:
        """See `Replay.before`: what had to follow the last event did, and patience has ended where it was due."""
        if self.awaited is not None and not (isinstance(event, Step) and event.phase == self.awaited[0]):
            self.findings.add("sessions", f"agent {self.awaited[1]} did not make {self.awaited[0]} at {self.now}")
            self.awaited = None
        super().before(event)
        calls = isinstance(event, Woke) or (isinstance(event, Step) and event.phase == "request")
        self.ring(event.now, at_once=calls or self.comes_last(event), but=event)

    def ring(self, now: float, *, at_once: bool, but: Any = None) -> None:
        """End the patience of callers up to an instant."""
        for session in list(self.timed):
            while not session.closed and session in self.timed and (session.due, 0) < (now, int(at_once)):
                repeat = isinstance(but, Departure) and self._repeats(session, but)
                if repeat and session.due == now:
                    break
                self._ring(session)
            if session.closed and session in self.timed:
                self.timed.remove(session)

    def _repeats(self, session: Session, event: Departure) -> bool:
        return (event.sender, event.receiver, event.tick) == (session.caller, session.callee, session.tick)

    def _ring(self, session: Session) -> None:
        """What a caller does at the end of its patience, if nothing is to be seen of it."""
        now, caller, callee = session.due, session.caller, session.callee
        hopeless = now >= self.gone[caller] or (now >= self.gone[callee] and session.reply_due <= now)
        if not self.repeats or hopeless:
            if not self.repeats or session.reply is None:
                self.close(session)
            self.timed.remove(session)
            return
        if self.presence.after(caller, now) and now < self.gone[callee]:
            self.findings.add("sessions", f"agent {caller} does not repeat its request to {callee} at {now}")
        session.due = now + self.patience

    def repeated(self, event: Departure) -> None:
        """See `Replay.repeated`: a request at the end of its caller's patience."""
        session = self.open.get((event.sender, event.receiver))
        if event.kind != "request" or session is None or session.tick != event.tick:
            self.findings.add("sends", f"{event} repeats what was sent")
            return
        due = session.due
        self.findings.expect(self.repeats and event.now == due, "sessions", f"{event} was due at {due}")
        session.due = event.now + self.patience

    def close(self, session: Session) -> None:
        """A session is over."""
        session.closed, self.counted = True, self.messages.vectors
        self.open.pop((session.caller, session.callee), None)

    def missed(self, agent: int, now: float) -> None:
        """See `Awake.missed`: an agent whose edge is busy does nothing; one without neighbours falls silent."""
        around = self.neighbours[agent]
        self.ring(now, at_once=True)
        if all(now >= self.gone[other] for other in around):
            self.silent[agent] = True
        elif not any(self.busy(agent, other) for other in around):
            super().missed(agent, now)

    def counts(self, event: Step) -> bool:
        """See `Replay.counts`: a session that was finished counts as one step of its caller."""
        return event.phase == "complete"

    def stepped(self, event: Step) -> None:
        """See `Replay.stepped`."""
        if event.phase == "request" and event.sent:
            [callee] = event.sent[0].to or (-1,)
            self.findings.expect(not self.busy(event.agent, callee), "sessions", f"{event.trace[:4]}: {callee} is busy")
            session = Session(event.agent, callee, event.tick, event.now, event.now + self.patience)
            self.open[event.agent, callee] = session
            self.timed.append(session)
        elif event.phase in ("respond", "complete"):
            self._half(event)

    def _half(self, event: Step) -> None:
        """An end of an edge moves: only when it was called for, and once."""
        awaited, self.awaited = self.awaited, None
        if awaited is None or awaited[:2] != (event.phase, event.agent):
            self.findings.add("sessions", f"agent {event.agent} makes {event.phase} at {event.now} and was not asked")
            return
        if event.phase == "respond":
            session = awaited[2]
            session.refused = not event.sent
            session.reply = event.sent[0].vector if event.sent else None
            if session.refused:
                self.refuse(session)

    def arrived(self, event: Arrival) -> None:
        """See `Replay.arrived`: who has to move now, and whether it is news."""
        news = False
        if event.up:
            caller, callee = event.sender, event.receiver
            if event.kind != "request":
                caller, callee = callee, caller
            session = self.open.get((caller, callee))
            if session is not None and session.tick == event.tick:
                news = self._request(session, event) if event.kind == "request" else self._answer(session, event)
        self.findings.expect(news == event.newest, "sessions", f"{event} is news: {news}")

    def _request(self, session: Session, event: Arrival) -> bool:
        mine = self.open.get((session.callee, session.caller))
        if session.reply is not None:
            self.messages.expected[session.callee, session.caller, "reply", session.tick, session.reply] += 1
            return False
        if session.refused:
            self.refuse(session)
            return False
        if mine is not None and session.callee < session.caller:
            return False
        if mine is not None:
            self.close(mine)
        self.awaited = ("respond", session.callee, session)
        return self.messages.put(event)

    def refuse(self, session: Session) -> None:
        """A callee that cannot afford an answer says so."""
        self.messages.expected[session.callee, session.caller, "refusal", session.tick, b""] += 1

    def _answer(self, session: Session, event: Arrival) -> bool:
        self.close(session)
        if event.kind == "refusal":
            return True
        same = event.vector == session.reply
        self.findings.expect(same, "symmetry", f"the ends of {session} moved by different replies")
        self.awaited = ("complete", session.caller, session)
        return self.messages.put(event)

    def departed(self, event: Departure) -> bool:
        """See `Replay.departed`."""
        first = super().departed(event)
        if not first:
            self.counted = self.messages.vectors
        session = self.open.get((event.receiver, event.sender))
        if event.kind == "reply" and session is not None and not event.lost:
            session.reply_due = max(session.reply_due, event.now + event.delay)
        return first

    def over(self) -> None:
        """See `Replay.over`."""
        super().over()
        self.ring(self.history.now, at_once=self.in_time)


def gone_at(presence: AvailabilityArrays, agent: int) -> float:
    """When an agent leaves, or goes down, for good."""
    left = presence.leaves[agent]
    left = max(left, presence.joins[agent]) if left < math.inf else left
    ups = presence.ups[agent]
    return min(left, ups[-1][1] if ups else 0.0)
