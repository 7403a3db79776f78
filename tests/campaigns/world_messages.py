"""What is sent, on its way and heard: every copy has the one fate that the draws say, and the newest is read."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from .world_history import Arrival, Departure, Sample, Step
from .world_timeline import Fates

if TYPE_CHECKING:
    from .world_rules import Replay

MOST = 3
"""Sentences about one rule in one run."""


class Findings:
    """What is wrong with a run: sentences that begin with the rule's name."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self._count: Counter[str] = Counter()

    def add(self, rule: str, what: str) -> None:
        """Note what breaks a rule."""
        self._count[rule] += 1
        if self._count[rule] <= MOST:
            self.sentences.append(f"{rule}: {what}")

    def expect(self, holds: bool, rule: str, what: str) -> None:
        """Note it unless it holds."""
        if not holds:
            self.add(rule, what)


class MessageChecks:
    """What is sent, on its way, and heard."""

    def __init__(self, replay: Replay) -> None:
        self.replay, self.findings, self.presence = replay, replay.findings, replay.presence
        self.kinds = dict(replay.layout.messages)
        self.delays_and_losses = Fates(replay.setting, {kind: rank for rank, kind in enumerate(self.kinds)})
        self.header = replay.setting.network.header_bytes
        self.under_way: dict[tuple[int, int, int], Departure] = {}
        self.expected: Counter[tuple[int, int, str, int, bytes]] = Counter()
        self.known: set[tuple[int, int, str, int, bytes]] = set()
        self.attempts: Counter[tuple[int, int, int, str]] = Counter()
        self.heard: dict[tuple[int, str, int], tuple[float, float, bytes]] = {}
        self.kept: dict[int, list[tuple[int, str, int, float, bytes]]] = defaultdict(list)
        self.counts: dict[str, Counter[tuple[int, str]]] = defaultdict(Counter)
        self.bytes: Counter[str] = Counter()
        self.overtaken = self.vectors = self.start_vectors = 0
        self.orders: set[int] = set()
        self.begun = [False] * len(replay.agents)
        self.last: list[dict[tuple[str, Any], tuple[bytes, float, Any, int]]] = [{} for _ in replay.agents]
        self.charged: list[tuple[Any, int, bytes]] = []
        self._introduced = False
        self._order = 0.0

    def expect_sends(self, step: Step) -> None:
        """A step's vectors go to those that they are addressed to; a start is told, not sent."""
        if step.phase == "start":
            self.begun[step.agent] = True
        around = self.replay.neighbours[step.agent]
        for one in step.sent:
            to = [neighbour for neighbour in around if one.to is None or neighbour in one.to]
            if step.phase in ("start", "step", "react") and (to or step.phase == "start"):
                self.last[step.agent].pop((one.kind, one.to), None)
                self.last[step.agent][one.kind, one.to] = (one.vector, step.now, one, step.tick)
            if step.phase != "start":
                # A session's messages belong to the tick of its caller.
                tick = self.replay.tick_of(step, to[0]) if step.phase == "respond" else step.tick
                self.expected.update((step.agent, other, one.kind, tick, one.vector) for other in to)
                if to:
                    self.charged.append((one.release, one.draws, one.vector))
        self.charged += [(release, draws, b"") for release, draws in step.disclosed]
        if step.phase == "start" and self.presence.joins[step.agent] > 0:
            self.introduce(step.agent)

    def settle(self, event: Any) -> None:
        """Everything that a step gave out has left; the starts of time 0 were told before anything else."""
        for entry in self.expected:
            self.findings.add(
                "sends", f"a {entry[2]!r} of agent {entry[0]} to {entry[1]} at tick {entry[3]} never left"
            )
        self.expected.clear()
        if not self._introduced and not (isinstance(event, Step) and event.phase == "start" and event.now == 0):
            self._introduced = True
            for agent in self.replay.agents:
                if self.begun[agent] and self.presence.joins[agent] == 0:
                    self.introduce(agent)

    def introduce(self, agent: int) -> None:
        """What neighbours who are there know of each other from the start, where it is known."""
        if self.replay.setting.network.start != "known":
            return
        now = self.replay.now if self.presence.joins[agent] > 0 else 0.0
        for other in self.replay.neighbours[agent]:
            if self.begun[other] and (self.presence.leaves[other], other) > (now, agent if now else -1):
                self.tell(agent, other)
                if now > 0:
                    self.tell(other, agent)

    def tell(self, sender: int, receiver: int) -> None:
        """The last of each kind that was meant for the receiver."""
        meant = {kind: last for (kind, to), last in self.last[sender].items() if to is None or receiver in to}
        for kind, (vector, sent_at, one, tick) in meant.items():
            if self.replay.reads_starts and tick == -1:
                self.kept[receiver].append((sender, kind, tick, sent_at, vector))
            self._order += 2**-12
            self.heard[receiver, kind, sender] = (self._order, sent_at, vector)
            self.start_vectors += self.kinds[kind].vectors
            self.charged.append((one.release, one.draws, vector))

    def check_departure(self, event: Departure) -> bool:
        """It was given out by a step, or repeats what was; its fate is what the draws say. Whether it is no repeat."""
        key = (event.sender, event.receiver, event.kind, event.tick, event.vector)
        first = self.expected[key] > 0
        if first:
            self.expected[key] -= 1
            self.expected += Counter()
        elif event.kind in self.kinds:
            self.findings.expect(key in self.known, "sends", f"nobody gave out {event}")
            self.replay.repeated(event)
        else:
            self.findings.expect(event.kind == "empty round", "sends", f"{event} answers nothing")
        self.known.add(key)
        up = self.presence.after(event.sender, event.now) or self.presence.before(event.sender, event.now)
        self.findings.expect(
            up, "absence", f"agent {event.sender} sends {event.kind!r} at {event.now} while it is away"
        )
        bits = self.kinds[event.kind].bits if event.kind in self.kinds else None
        content = len(event.vector) if bits is None else math.ceil(bits / 8)
        self.findings.expect(event.size == content + self.header, "bytes", f"{event}")
        fate = self.delays_and_losses.of(
            event.sender, event.receiver, event.tick, self._leg(event), event.now, event.size
        )
        self.findings.expect((event.delay, event.lost) == fate, "fate", f"{event} has the fate {fate}")
        self._order = max(self._order, float(event.order))
        who = (event.sender, event.kind)
        self.orders.add(event.order)
        self.counts["sent"][who] += 1
        self.bytes["sent"] += event.size
        self.vectors += self.kinds[event.kind].vectors if event.kind in self.kinds else 0
        if event.lost:
            self.counts["lost"][who] += 1
            self.bytes["lost"] += event.size
        else:
            self.under_way[event.order, event.sender, event.receiver] = event
        return first

    def _leg(self, event: Departure) -> int:
        """Which draw of its tick it has; acknowledgements have odd attempts, rounds without words even ones."""
        answers = event.kind.startswith("acknowledgement of ")
        place = (event.sender, event.receiver, event.tick, "acknowledgement" if answers else event.kind)
        attempt = self.attempts[place]
        self.attempts[place] += 1
        if answers or event.kind == "empty round":
            attempt = 2 * attempt + answers
        return self.delays_and_losses.transmission(event.kind, attempt)

    def check_arrival(self, event: Arrival) -> None:
        """It was sent and not lost, has taken its time, and finds its receiver as the timeline says."""
        sent = self.under_way.pop((event.order, event.sender, event.receiver), None)
        if sent is None:
            self.findings.add("causality", f"{event} was not under way")
            return
        due = sent.now + sent.delay
        self.findings.expect(event.now == due, "causality", f"{event} was due at {due}")
        same = (sent.kind, sent.tick, sent.vector, sent.now) == (event.kind, event.tick, event.vector, event.sent_at)
        self.findings.expect(same, "causality", f"{event} left as {sent}")
        up = {self.presence.before(event.receiver, event.now)}
        if sent.delay == 0:
            up.add(self.presence.after(event.receiver, event.now))
        self.findings.expect(event.up in up, "absence", f"{event}: the receiver is up: {up}")
        fate = "delivered" if event.up else "dropped"
        self.counts[fate][event.sender, event.kind] += 1
        self.bytes[fate] += sent.size
        self.overtaken += event.up and not event.newest

    def put(self, event: Arrival) -> bool:
        """Keep an arrival where it is the newest; whether it is."""
        self.kept[event.receiver].append((event.sender, event.kind, event.tick, event.sent_at, event.vector))
        place = (event.receiver, event.kind, event.sender)
        newest = event.order > self.heard.get(place, (-1.0,))[0]
        if newest:
            self.heard[place] = (float(event.order), event.sent_at, event.vector)
        return newest

    def check_reading(self, step: Step) -> None:
        """A step reads the newest that had arrived, and nothing else."""
        known = []
        for kind in self.kinds:
            for other in self.replay.neighbours[step.agent]:
                if (step.agent, kind, other) in self.heard:
                    known.append((kind, other, *self.heard[step.agent, kind, other][1:]))
        if tuple(sorted(known)) != step.read:
            mine, theirs = ([entry[:3] for entry in reading] for reading in (sorted(known), step.read))
            where = f"agent {step.agent} at {step.now} ({step.phase})"
            self.findings.add("reading", f"{where} reads {theirs}, and had heard {mine}")
        if step.phase == "step" and self.replay.keeps:
            kept = tuple(self.kept.pop(step.agent, ()))
            self.findings.expect(step.kept == kept, "reading", f"agent {step.agent} at {step.now} kept otherwise")

    def check_tallies(self, event: Sample) -> None:
        """Sent = delivered + lost + dropped + in flight, of every agent and kind and together; bytes likewise."""
        for sent in self.under_way.values():
            self.counts["in_flight"][sent.sender, sent.kind] += 1
            self.bytes["in_flight"] += sent.size
            due = sent.now + sent.delay
            self.findings.expect(due >= event.now, "conservation", f"{sent} is still under way at {event.now}")
        names = ("delivered", "lost", "dropped", "in_flight")
        for who, count in self.counts["sent"].items():
            delays_and_losses = {name: self.counts[name][who] for name in names}
            self.findings.expect(
                count == sum(delays_and_losses.values()), "conservation", f"{who}: {count} sent, {delays_and_losses}"
            )
        mine = {
            "messages": len(self.orders),
            "vectors": self.vectors,
            "overtaken": self.overtaken,
            "start_vectors": self.start_vectors,
            "links": {name: sum(self.counts[name].values()) for name in ("sent", *names)},
            "bytes": {name: self.bytes[name] for name in ("sent", *names)},
        }
        for name, value in mine.items():
            found = event.tallies[name]
            self.findings.expect(found == value, "conservation", f"{name} at {event.now}: {found}, not {value}")
        del self.counts["in_flight"], self.bytes["in_flight"]

    def over(self) -> None:
        """What was due has arrived."""
        end = self.replay.history.now
        for sent in self.under_way.values():
            due = sent.now + sent.delay
            late = due > end or (due == end and (not self.replay.in_time or sent.now == end))
            self.findings.expect(late, "causality", f"{sent} was due at {due} and never arrived")
