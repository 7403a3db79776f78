"""One run: builds agents, protocol, ledger, network and post, and drives them with SimPy.

How steps are started and messages delivered is up to the world's schedule: with a SimPy event for every wake-up and
message (`EventDriven`). Equal
times are ordered: arrivals, availability, wake-ups by agent, recorder.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from ..laws import Purpose, clock_of, quantise, stable_ids
from .agent import AVAILABILITY, LAST, RECORD, Agent, At
from .availability import attendance
from .blocks import State
from .choice import choose
from .contract import Protocol
from .errors import Divergence, OracleError
from .finish import TIME_UP, Finish, Reactions
from .inbox import Message
from .ledger import Ledger
from .network import Network
from .schedules import Schedule
from .setting import Setting
from .view import Out, View


class World:
    """One run of one protocol.

    Parameters
    ----------
    setting : Setting
    protocol : Protocol
    every, activations : float or int, optional
        Record instants: every so much time, or every so many activations.
    recorder : object, optional
        ``sample(world, final=...)`` is called at record instants.
    observer : object, optional
        ``woke(world, agent)``, ``sent(world, message, delay, lost)``, ``arrived(world, message, up, newest)``.
    """

    def __init__(
        self,
        setting: Setting,
        protocol: Protocol,
        *,
        every: float | None = None,
        activations: int | None = None,
        recorder: Any = None,
        observer: Any = None,
    ) -> None:
        self.setting, self.protocol, self.recorder, self.observer = setting, protocol, recorder, observer
        self.record_time, self.record_activations = every, activations
        self.env = simpy.Environment()
        graph = setting.graph
        self.numbers = stable_ids(setting.ids)
        self.clock = clock_of(setting.clock, setting.ids, self.numbers, setting.draws)
        self.network = Network(setting.network, setting.ids, self.numbers, setting.draws)
        self.traits = protocol.traits
        self.layout = self.protocol.layout()
        self.state = State(graph.agents, len(graph.heads), self.layout.agent, self.layout.edge)
        privacy = self.protocol.privacy
        self.ledger = Ledger(
            graph.agents,
            epsilon=privacy.epsilon if privacy else None,
            updates=privacy.updates if privacy else None,
        )
        self.started = np.zeros(graph.agents, dtype=bool)
        self.activations = 0
        self.finish = Finish(self.env, setting.stop, graph.agents)
        self.reactions = Reactions(setting.limits, setting.ids)
        self.agents = [Agent(i, next_time=self.clock.next_time, step=self.step) for i in range(graph.agents)]
        self.schedule: Schedule = choose(self)
        self.post = self.schedule.post
        self.inbox, self.traffic = self.post.inbox, self.post.traffic
        self.views = [self._view(i) for i in range(graph.agents)]

    @property
    def now(self) -> float:
        """Time in expected wake-ups of a rate-1 agent."""
        return self.schedule.now

    @property
    def updates(self) -> NDArray[np.int64]:
        """(n,) completed steps of every agent, at a record instant or after the run."""
        return self.schedule.updates

    @property
    def ended(self) -> str:
        """Why the run is over; empty until then."""
        return self.finish.why

    @property
    def private(self) -> bool:
        """Whether noise protects data, so that nothing ends the run but what is sent."""
        return self.protocol.privacy is not None

    def run(self) -> None:
        """Run to the end; the last record is taken there."""
        joins, leaves, timelines = attendance(
            self.setting.availability, self.setting.ids, self.numbers.tolist(), self.setting.draws
        )
        with np.errstate(over="ignore", invalid="ignore"):
            for agent, join, leave in zip(self.agents, joins, leaves, strict=True):
                agent.present = join == 0 < leave
            for agent in self.agents:
                if agent.present:
                    self._start(agent)
            for agent in self.agents:
                if agent.present:
                    self._exchange_start(agent, joining=False)
            self.schedule.begin(joins, leaves, timelines)
            self.env.process(self._record())
            if self.setting.stop.time is not None:
                end = At(self.env, quantise(self.setting.stop.time), LAST)
                end.callbacks.append(lambda _: self.finish.end(TIME_UP))  # type: ignore[union-attr]
            self.finish.check()
            try:
                self.env.run(until=self.finish.stopped)
                self._sample(final=True)
            except OracleError as error:
                # SimPy re-raises a copy that has lost its fields; the original is its cause.
                raise error.__cause__ if isinstance(error.__cause__, OracleError) else error from None
            finally:
                self.schedule.settle(final=True)

    def _sample(self, *, final: bool) -> None:
        if self.recorder:
            self.schedule.settle(final=final)
            self.recorder.sample(self, final=final)

    def _view(self, index: int) -> View:
        return View(
            index,
            self.setting.graph,
            self.layout,
            self.state,
            self.inbox,
            stream=self._stream,
            partner_luck=self._partner_luck,
            unheard="zero" if self.setting.network["start"] == "zero" else "own",
        )

    def _stream(self, purpose: str, agent: int, tick: int) -> np.random.Generator:
        reactions, number = self.agents[agent].reactions, int(self.numbers[agent])
        return self.setting.draws.generator(purpose, tick + 1, number, reactions)

    def _partner_luck(self, agent: int, tick: int) -> float:
        return self.setting.draws.uniform(Purpose.PARTNER, int(self.numbers[agent]), 0, tick)

    def life(self, agent: Agent, join: float, leave: float) -> Generator[simpy.Event, Any, None]:
        """The process of an agent's presence: its clock ticks from time 0, whether or not the agent has joined."""
        clock = self.env.process(self.schedule.run(agent))
        if join > 0:
            yield At(self.env, join, AVAILABILITY)
            if leave > join:
                agent.present = True
                self._start(agent)
                self._exchange_start(agent, joining=True)
        if leave < math.inf:
            gone = At(self.env, max(leave, self.env.now), AVAILABILITY)
            gone.callbacks.append(lambda _: self._leave(agent))  # type: ignore[union-attr]
            yield clock | gone
        else:
            yield clock
        self.finish.retire(agent.updates)

    def _leave(self, agent: Agent) -> None:
        agent.present = False
        agent.gone = agent.silent = True
        self.schedule.turn(agent)

    def _start(self, agent: Agent) -> None:
        self.started[agent.index] = True
        view, out = self.open(agent)
        self.protocol.start(view, out)
        agent.silent = agent.silent or out.silent
        self.check_finite(agent, out)
        for sent in out.sent:
            self.post.remember(agent, sent, -1)
        self.schedule.started(agent)

    def _exchange_start(self, agent: Agent, *, joining: bool) -> None:
        if self.setting.network["start"] == "known":
            self.post.exchange_start(agent, joining=joining)

    def open(self, agent: Agent) -> tuple[View, Out]:
        """An agent's view of this instant, and its way out."""
        view = self.views[agent.index]
        view.begin(self.now, agent.tick, agent.updates)
        return view, Out(view, self.layout, self.ledger.reserve, self.ledger.commit)

    def step(self, agent: Agent) -> None:
        """Take one step of an awake agent, and send what it gives out."""
        if self.observer:
            self.observer.woke(self, agent)
        view, out = self.open(agent)
        if self.traits.inbox == "every":
            view.messages, self.inbox.pending[agent.index] = self.inbox.pending[agent.index], []
        self.protocol.wake(view, out)
        agent.silent = out.silent
        self.check_finite(agent, out)
        if out.silent and not out.sent:
            return
        self.schedule.send(agent, out)
        self.count(agent)

    def receive(self, agent: Agent, message: Message) -> None:
        """Let an agent react to an arrival, and send what it gives out."""
        agent.reactions += 1
        view, out = self.open(agent)
        self.protocol.receive(view, message, out)
        agent.silent = out.silent
        self.check_finite(agent, out)
        self.post.send(agent, out)
        if out.sent:
            self.reactions.count(agent.index, (sent.kind for sent in out.sent), self.now)
        self.check_vectors()

    def check_finite(self, agent: Agent, out: Out | None = None) -> None:
        """Raise a `Divergence` if a block that an agent owns is not finite; in a private run, if what it sends is not.

        That a run ends tells that something was not finite. A block may depend on an agent's data in other ways than
        through its releases, so a private run goes on whatever becomes of it.

        Parameters
        ----------
        agent : Agent
        out : Out, optional
            What the agent sends in this step; without it, the blocks are looked at, which a compiled step has found to
            be what it sends.
        """
        for name, vector in self._owned(agent) if out is None or not self.private else _sent(out):
            if not np.isfinite(vector).all():
                raise Divergence(
                    f"agent {self.setting.ids[agent.index]!r} at time {self.now:.6g}: "
                    f"{name} became {_first_bad(vector)} after {agent.updates} updates; "
                    "check the data for extreme values or take smaller steps"
                )

    def _owned(self, agent: Agent) -> Iterator[tuple[str, NDArray[np.float64]]]:
        """The blocks of an agent and of its outgoing edges, by name."""
        slots = self.setting.graph.edges_of(agent.index)
        for name, block in self.state.agent.items():
            yield name, block[agent.index]
        for name, block in self.state.edge.items():
            vectors = block.of(slots)
            for vector in vectors if isinstance(vectors, list) else [vectors]:
                yield name, vector

    def count(self, agent: Agent) -> None:
        """Count a completed step of an agent; record, and end the run, where that number asks for it."""
        agent.updates += 1
        self.activations += 1
        self.check_limits(agent)

    def check_limits(self, agent: Agent) -> None:
        """Record, and end the run, where the steps made so far ask for it."""
        if self.record_activations and self.activations % self.record_activations == 0:
            self._sample(final=False)
        self.finish.check_activations(self.activations)
        self.check_vectors()
        self.finish.check_updates(agent.updates)

    def check_vectors(self) -> None:
        """End once the vectors asked for were sent."""
        self.finish.check_vectors(self.traffic.vectors)

    def _record(self) -> Generator[simpy.Event, None, None]:
        if self.recorder is None:
            return
        self._sample(final=False)
        if self.record_time is None:
            return
        count = 1
        while True:
            yield At(self.env, quantise(count * self.record_time), RECORD)
            self._sample(final=False)
            count += 1


def _sent(out: Out) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The vectors that leave with a step, by what they are called."""
    return ((f"the {sent.kind} that it sends", sent.vector) for sent in out.sent)


def _first_bad(vector: NDArray[np.float64]) -> str:
    bad = float(vector[~np.isfinite(vector)][0])
    return "not a number" if math.isnan(bad) else "infinite"
