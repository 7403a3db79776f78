"""The rules of rounds: when a round may begin and has to end, what it reads, and what is acknowledged and repeated."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hushnet.protocols.schedule import RoundsSchedule, expanded

from .world_history import Arrival, Departure, History, Step, Woke
from .world_rules import Replay
from .world_sessions import gone_at
from .world_timeline import QUANTUM, rounded

EMPTY, ANSWER = "empty round", "acknowledgement of "


@dataclass
class Round:
    """One agent's round for one neighbour: when it was sent, of what, if it was the last, and what of it is here."""

    sent_at: float
    kinds: tuple[str, ...]
    last: bool
    here: dict[str, bytes] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether all of it is here."""
        return len(self.here) == len(self.kinds)


@dataclass
class Line:
    """What an agent has of a neighbour."""

    rounds: dict[int, Round] = field(default_factory=dict)
    shown: int = 0
    last: int | None = None

    def holds(self, number: int) -> bool:
        """Whether this round, or the last one before it, is here or was read."""
        whole = number in self.rounds and self.rounds[number].whole
        return number <= self.shown or whole or (self.last is not None and self.last < number)

    @property
    def newest(self) -> int:
        """The newest whole round."""
        return max((number for number, one in self.rounds.items() if one.whole), default=0)


class Rounds(Replay):
    """Agents that wait for each other."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        schedule = expanded(history.case.parameters.schedule)
        asked = schedule if isinstance(schedule, RoundsSchedule) else RoundsSchedule()
        self.keeps = False
        self.patience = None if asked.patience is None else max(QUANTUM, rounded(asked.patience))
        self.lines = {(agent, other): Line() for agent in self.agents for other in self.neighbours[agent]}
        self.resend_after = self._resend_after(asked)
        self.tick = [-1] * len(self.agents)
        self.since = [0.0] * len(self.agents)
        self.ready: list[float | None] = [None] * len(self.agents)
        self.gone = [gone_at(self.presence, agent) for agent in self.agents]
        self.unanswered: dict[tuple[int, int, int, str], float] = {}
        self._begun = False

    def _resend_after(self, asked: RoundsSchedule) -> float | None:
        network = self.setting.network
        loss = network.loss
        lossy = loss.probability > 0 if loss.kind == "bernoulli" else loss.loss_good + loss.loss_bad > 0
        if asked.patience is not None or asked.resend_after == "never":
            return None
        if asked.resend_after is not None:
            return max(QUANTUM, rounded(asked.resend_after))
        if not lossy and self.setting.availability.kind == "always":
            return None
        widths = [int(np.max(spec.width)) for spec in self.layout.messages.values()] if self.lines else []
        return max(QUANTUM, rounded(1 + 2 * self.messages.delays_and_losses.mean_delay(max(widths, default=0))))

    def due(self, agent: int) -> float:
        """When an agent has to step next; infinite while it waits."""
        if self.silent[agent]:
            return math.inf
        ready, since = self.ready[agent], self.since[agent]
        begin = math.inf if ready is None else ready
        if self.patience is not None:
            begin = min(begin, since + self.patience)
        if math.isinf(begin) or begin >= self.gone[agent]:
            return math.inf
        end = self.clock.next_time(agent, self.tick[agent] + 1, begin)
        up = self.presence.next_up(agent, end)
        return up if end < self.gone[agent] else math.inf

    def before(self, event: Any) -> None:
        """See `Replay.before`."""
        super().before(event)
        if not self._begun and not (isinstance(event, Step) and event.phase == "start"):
            self._begun = True
            for agent in self.agents:
                for other in self.neighbours[agent]:
                    if self.silent[other]:
                        self.lines[agent, other].last = 0
            self._open(self.agents, 0.0)
        rank = event.agent if isinstance(event, Woke) else math.inf if self.comes_last(event) else -1
        self.late((event.now, rank))

    def late(self, until: tuple[float, float]) -> None:
        """Steps that had to be made before an instant."""
        for agent in self.agents:
            due = self.due(agent)
            if (due, agent) < until:
                self.findings.add("rounds", f"agent {agent} has everything and does not step at {due}")
                self.silent[agent] = True

    def _open(self, agents: Any, now: float) -> None:
        """Note who may begin its next round."""
        for agent in agents:
            if self.ready[agent] is None and self._whole(agent):
                self.ready[agent] = now

    def _whole(self, agent: int) -> bool:
        return all(self.lines[agent, other].holds(self.tick[agent] + 1) for other in self.neighbours[agent])

    def woke(self, event: Woke) -> None:
        """See `Replay.woke`: its round has begun and lasted, and it reads what it waited for."""
        super().woke(event)
        agent, due = event.agent, self.due(event.agent)
        where = f"round {event.tick + 1} of agent {agent} ends at {event.now}"
        self.findings.expect(
            event.now == due and event.tick == self.tick[agent] + 1, "rounds", f"{where}, not at {due}"
        )
        ready = self.ready[agent]
        in_time = self.patience is None or (ready is not None and ready <= self.since[agent] + self.patience)
        self.tick[agent] += 1
        self.since[agent], self.ready[agent] = event.now, None
        for other in self.neighbours[agent]:
            line = self.lines[agent, other]
            number = self.tick[agent] if in_time else max(line.newest, line.shown)
            number = number if line.last is None else min(number, line.last)
            one = line.rounds.get(number)
            if number > line.shown and one is not None and one.whole:
                line.shown = number
                for kind, vector in one.here.items():
                    if kind != EMPTY:
                        self.messages.heard[agent, kind, other] = (math.inf, one.sent_at, vector)

    def stepped(self, event: Step) -> None:
        """See `Replay.stepped`: its round is made of everything that it says to a neighbour."""
        if event.phase != "step":
            return
        agent, number = event.agent, event.tick + 1
        for other in self.neighbours[agent]:
            kinds = tuple(one.kind for one in event.sent if one.to is None or other in one.to) or (EMPTY,)
            if kinds == (EMPTY,):
                self.messages.expected[agent, other, EMPTY, event.tick, b""] += 1
            self.lines[other, agent].rounds[number] = Round(event.now, kinds, event.silent)
            if self.resend_after is not None:
                self.unanswered |= {(agent, other, event.tick, kind): event.now for kind in kinds}
        self._open([agent], event.now)

    def arrived(self, event: Arrival) -> None:
        """See `Replay.arrived`: whether it is of use, and whom it lets go on."""
        news = event.up and (self._answered(event) if event.kind.startswith(ANSWER) else self._take(event))
        self.findings.expect(news == event.newest, "rounds", f"{event} is of use: {news}")
        if event.up and not event.kind.startswith(ANSWER):
            if self.resend_after is not None:
                self.messages.expected[event.receiver, event.sender, ANSWER + event.kind, event.tick, b""] += 1
            self._open([event.receiver], event.now)

    def _take(self, event: Arrival) -> bool:
        line, number = self.lines[event.receiver, event.sender], event.tick + 1
        one = line.rounds[number]
        if number <= line.shown or event.kind in one.here:
            return False
        one.here[event.kind] = event.vector
        if one.whole and one.last:
            line.last = number
        return True

    def _answered(self, event: Arrival) -> bool:
        key = (event.receiver, event.sender, event.tick, event.kind.removeprefix(ANSWER))
        left = self.unanswered.pop(key, None)
        if left is not None:
            self._forgotten(key, left, event.now)
        return left is not None

    def _forgotten(self, key: tuple[int, int, int, str], left: float, until: float) -> None:
        """A repeat that was due before an instant."""
        assert self.resend_after is not None
        due = self.presence.next_up(key[0], left + self.resend_after)
        if due < until and due < min(self.gone[key[0]], self.gone[key[1]]):
            self.findings.add("rounds", f"{key} was not repeated at {due}")

    def departed(self, event: Departure) -> bool:
        """See `Replay.departed`; a message without words may be repeated, too."""
        first = super().departed(event)
        if event.kind == EMPTY and not first:
            self.repeated(event)
        return first

    def repeated(self, event: Departure) -> None:
        """See `Replay.repeated`: because it was not acknowledged in time."""
        key = (event.sender, event.receiver, event.tick, event.kind)
        left = self.unanswered.get(key)
        if left is None or self.resend_after is None:
            self.findings.add("rounds", f"{event} was not to be repeated")
            return
        due = self.presence.next_up(event.sender, left + self.resend_after)
        self.findings.expect(event.now == due, "rounds", f"{event} was to be repeated at {due}")
        self.unanswered[key] = event.now

    def over(self) -> None:
        """See `Replay.over`: nobody could have gone on, if nobody did."""
        end = self.history.now
        stalled = self.history.error.startswith("Stall")
        self.late((end, math.inf if self.in_time else -1))
        for key, left in self.unanswered.items():
            self._forgotten(key, left, math.inf if stalled else end)
        if stalled:
            for agent in self.agents:
                due = self.due(agent)
                self.findings.expect(math.isinf(due), "rounds", f"stalled, and agent {agent} could step at {due}")
            self.findings.expect(
                not self.messages.under_way, "rounds", f"stalled, and {self.messages.under_way} is under way"
            )
