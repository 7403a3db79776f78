"""The rules of the world that hold in every schedule, checked on what a run showed: messages, clocks, counts.

A `Replay` goes through a history event by event. It knows what must come next from the events before, the timeline and
the fates of `world_timeline`, and writes down in a sentence whatever else it finds.
"""

from __future__ import annotations

import math
from typing import Any

from hushnet.simulator.network.randomness import stable_ids

from .world_history import Arrival, Departure, History, Sample, Step, Woke
from .world_messages import Findings, MessageChecks
from .world_timeline import AvailabilityArrays


class Replay:
    """A history, gone through event by event.

    Parameters
    ----------
    history : History
        With all events: an observer and a watch looked on.
    """

    reads_starts = False
    """Whether starts are among the messages that are kept."""

    def __init__(self, history: History) -> None:
        self.history, self.setting = history, history.setting
        self.findings = Findings()
        self.presence = AvailabilityArrays(self.setting)
        self.layout, graph = history.layout, self.setting.graph
        self.neighbours = [graph.heads[graph.edges_of(agent)].tolist() for agent in range(graph.agents)]
        self.agents = range(graph.agents)
        self.ends = list(zip(graph.tails.tolist(), graph.heads.tolist(), strict=True))
        self.silent = [False] * graph.agents
        self.updates = [0] * graph.agents
        numbers = stable_ids(self.setting.task.ids)
        self.clock = self.setting.clock.build(self.setting.task.ids, numbers, self.setting.draws, self.setting.base)
        traits = history.case.protocol.traits_for(history.case.parameters)
        self.keeps, self.reacts, self.idle = traits.inbox == "every", traits.trigger == "message", 0
        self.messages = MessageChecks(self)
        self.now, self.reached = 0.0, math.inf

    def run(self) -> list[str]:
        """Go through all events; what is wrong."""
        for event in self.history.events:
            self.findings.expect(event.now >= self.now, "order", f"time goes back to {event.now} in {event}")
            self.now = max(self.now, event.now)
            self.before(event)
            if isinstance(event, Woke):
                self.woke(event)
            elif isinstance(event, Step):
                self._step(event)
            elif isinstance(event, Departure):
                self.departed(event)
            elif isinstance(event, Arrival):
                self.messages.check_arrival(event)
                self.arrived(event)
            else:
                self.sampled(event)
            self._check_end(event)
        if not self.history.error:
            self.messages.settle(None)
        self.messages.over()
        self.over()
        return self.findings.sentences

    def _check_end(self, event: Any) -> None:
        """Nothing happens any more once the run has come as far as it was to."""
        stop, reached = self.setting.stop, self.reached
        over = event.now > min(reached, math.inf if stop.time is None else stop.time)
        self.findings.expect(not over, "stop", f"{event} comes after the end at {min(reached, stop.time or reached)}")
        limits = ((stop.activations, sum(self.updates) + self.idle), (stop.vectors, self.vectors))
        limits += ((stop.updates, min(self.updates)),)
        if any(limit is not None and made >= limit for limit, made in limits):
            self.reached = min(reached, event.now)

    @property
    def vectors(self) -> int:
        """Vectors sent when they were last compared with the limit of a run."""
        return self.messages.vectors

    def before(self, event: Any) -> None:
        """Act on what must have happened before an event."""
        if not isinstance(event, Departure):
            self.messages.settle(event)

    def woke(self, event: Woke) -> None:
        """An agent is about to step."""
        up = self.presence.after(event.agent, event.now)
        self.findings.expect(up, "absence", f"agent {event.agent} wakes at {event.now} while it is away")
        self.findings.expect(not self.silent[event.agent], "silence", f"agent {event.agent} wakes at {event.now}")

    def _step(self, event: Step) -> None:
        agent, present = event.agent, self.presence
        if event.phase == "start":
            when = present.joins[agent]
            self.findings.expect(event.now == when, "absence", f"agent {agent} starts at {event.now}, not at {when}")
        else:
            up = present.after(agent, event.now) or present.before(agent, event.now)
            self.findings.expect(up, "absence", f"agent {agent} makes {event.phase} at {event.now} while it is away")
        self.messages.check_reading(event)
        self.stepped(event)
        if self.counts(event):
            self.updates[agent] += not event.idle
            self.idle += event.idle
        self.silent[agent] = event.silent or (self.silent[agent] and event.phase in ("respond", "complete", "start"))
        self.messages.expect_sends(event)

    def counts(self, event: Step) -> bool:
        """Whether a step is counted as one of its agent."""
        return event.phase == "step" and bool(event.sent or not event.silent)

    def stepped(self, event: Step) -> None:
        """An agent has made a step; nothing of it has left yet."""

    def departed(self, event: Departure) -> bool:
        """A copy goes out; whether a step gave it out just now."""
        return self.messages.check_departure(event)

    def repeated(self, event: Departure) -> None:
        """Something goes out again; by default that is wrong."""
        self.findings.add("sends", f"{event} repeats what was sent")

    def tick_of(self, step: Step, caller: int) -> int:
        """The tick that what a step gives out belongs to; that of its caller in a session."""
        return step.tick

    def arrived(self, event: Arrival) -> None:
        """A copy has arrived, on time."""
        newest = event.up and self.messages.put(event)
        used = newest or (event.up and (self.keeps or (self.reacts and not self.silent[event.receiver])))
        self.findings.expect(used == event.newest, "inbox", f"{event} is of use: {used}")

    def sampled(self, event: Sample) -> None:
        """The world is looked at."""
        self.messages.check_tallies(event)
        expected = (sum(self.updates) + self.idle, tuple(self.updates))
        found = (event.activations, event.updates)
        self.findings.expect(found == expected, "counts", f"steps at {event.now} are {found}, not {expected}")
        started = tuple(self.messages.begun[agent] for agent in self.agents)
        self.findings.expect(event.started == started, "counts", f"started at {event.now}: {event.started}")

    def over(self) -> None:
        """The run is over."""

    def comes_last(self, event: Any) -> bool:
        """Whether it is a sample that is taken after everything else of its instant."""
        return isinstance(event, Sample) and (self.in_time if event.final else self.history.by_time)

    @property
    def in_time(self) -> bool:
        """Whether the run ended because its time was up, so that everything of its last instant happened."""
        return not self.history.error and self.history.now == self.setting.stop.time


class Awake(Replay):
    """Agents whose clocks make them step: at every tick at which they are there."""

    reads_starts = True

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self.next = [self._tick_after(agent, -1, 0.0) for agent in self.agents]

    def _tick_after(self, agent: int, tick: int, now: float) -> tuple[float, int]:
        """The next tick at which an agent is there."""
        while True:
            now, tick = self.clock.next_time(agent, tick + 1, now), tick + 1
            if math.isinf(now) or now > self.presence.horizon or self.presence.after(agent, now):
                return now, tick

    def before(self, event: Any) -> None:
        """Whoever should have woken before an event has woken."""
        super().before(event)
        rank = event.agent if isinstance(event, Woke) else math.inf if self.comes_last(event) else -1
        self.slept((event.now, rank))

    def slept(self, until: tuple[float, float]) -> None:
        """Ticks before an instant at which nobody woke."""
        while True:
            waking = [(self.next[agent][0], agent) for agent in self.agents if not self.silent[agent]]
            if not waking or min(waking) >= until:
                return
            now, agent = min(waking)
            self.missed(agent, now)
            self.next[agent] = self._tick_after(agent, self.next[agent][1], now)

    def missed(self, agent: int, now: float) -> None:
        """Nobody woke at a tick."""
        self.findings.add("clock", f"agent {agent} is up at {now} and does not wake")

    def woke(self, event: Woke) -> None:
        """See `Replay.woke`: it is a tick of its clock."""
        super().woke(event)
        expected = self.next[event.agent]
        found = (event.now, event.tick)
        self.findings.expect(found == expected, "clock", f"agent {event.agent} wakes at {found}, not at {expected}")
        self.next[event.agent] = self._tick_after(event.agent, event.tick, event.now)

    def over(self) -> None:
        """See `Replay.over`."""
        self.slept((self.history.now, math.inf if self.in_time else -1))
