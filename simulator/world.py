"""One run: builds agents, protocol, ledger, network and post, and drives them with SimPy.

How steps are started and messages delivered is up to the world's schedule: with a SimPy event for every wake-up and
message (`hushnet.simulator.schedules.Eventful`), or without (`hushnet.simulator.fast.windowed.Windowed`). Equal
times are ordered: arrivals, availability, wake-ups by agent, recorder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from ..agents.agent import AVAILABILITY, LAST, RECORD, Agent, At
from ..agents.blocks import State
from ..agents.errors import Divergence, HushnetError
from ..agents.inbox import Message
from ..protocols.base import Out, Problem, Protocol, ProtocolParameters, View
from ..protocols.privacy.ledger import Ledger
from .attendance import attendance
from .choice import choose, rounds_of
from .clocks import wake_up_ranks
from .effort import Effort
from .finish import TIME_UP, Finish, Reactions
from .network import Network
from .randomness import Purpose, quantise, stable_ids
from .schedules import Schedule
from .setting import Setting
from .watchers import Observer, Phase, Recorder, Watch


class World:
    """One run of one protocol.

    Parameters
    ----------
    setting : Setting
    protocol_class : type of Protocol
    parameters : ProtocolParameters
    every, activations : float or int, optional
        Record instants: every so much time, or every so many activations.
    recorder : Recorder, optional
    observer : Observer, optional
    watch : Watch, optional
        Sees every step before anything of it leaves; compiled steps are then not used.
    unproved : str
        Why no epsilon of the protocol is verified, see `Ledger`.
    drive : callable
        Makes the schedule of the world, and with it its post; an event for everything by default.

    Attributes
    ----------
    schedule : Schedule
    engine : str
        Which engine runs, and why.
    started : (n,) bool
        Which agents have ever joined.
    activations : int
        Steps of all agents so far.
    finish : Finish
    reactions : Reactions
    effort : Effort
    """

    def __init__(
        self,
        setting: Setting,
        protocol_class: type[Protocol],
        parameters: ProtocolParameters,
        *,
        every: float | None = None,
        activations: int | None = None,
        recorder: Recorder | None = None,
        observer: Observer | None = None,
        watch: Watch | None = None,
        unproved: str = "",
        drive: Callable[[World], Schedule] = choose,
    ) -> None:
        self.setting, self.recorder, self.observer, self.watch = setting, recorder, observer, watch
        self.record_time, self.record_activations = every, activations
        self.env = simpy.Environment()
        task, graph = setting.task, setting.graph
        self.numbers = stable_ids(task.ids)
        self.clock = setting.clock.build(task.ids, self.numbers, setting.draws, setting.base)
        self.network = Network(setting.network, task.ids, self.numbers, setting.draws, setting.base)
        self.network.check_links(graph.tails, graph.heads)
        self.traits = protocol_class.traits_for(parameters)
        in_rounds = rounds_of(self.traits, parameters) is not None
        problem = Problem(task, graph, self._oracle(in_rounds=in_rounds), self._stream_before)
        if watch is not None:
            problem = replace(problem, assumed=watch.assumed)
        self.protocol = protocol_class(parameters, problem)
        self.layout = self.protocol.layout()
        self.state = State(graph.agents, len(graph.heads), self.layout.agent, self.layout.edge)
        privacy = self.protocol.privacy
        self.ledger = Ledger(
            graph.agents,
            budget=privacy.budget if privacy else None,
            updates=privacy.updates if privacy else None,
            claimed_by=privacy.claimed_by if privacy else "kairouz",
            assumed_public=self.assumed_public,
            strict=bool(privacy and privacy.strict),
            unproved=unproved,
        )
        self.started = np.zeros(graph.agents, dtype=bool)
        self.activations = 0
        self.finish = Finish(self.env, setting.stop, graph.agents)
        self.reactions = Reactions(setting.limits, task.ids)
        self.effort = Effort(setting.limits, task.ids, lambda: self.schedule.events)
        on: dict[str, Any] = {"next_time": self.clock.next_time, "wake": self._wake, "step": self.step}
        self.agents = [Agent(index, **on) for index in range(graph.agents)]
        self.schedule = drive(self)
        self.engine = self.schedule.engine
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
    def noted(self) -> NDArray[np.float64] | None:
        """(n,) losses that compiled steps note where they are asked to; see `hushnet.protocols.kernel.Compiled`."""
        return self.schedule.noted

    @property
    def ended(self) -> str:
        """Why the run is over; empty until then."""
        return self.finish.why

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """Inputs computed from private data that this run treats as public."""
        every = (*self.setting.task.assumed_public, *self.setting.assumed_public, *self.protocol.assumed_public)
        return tuple(dict.fromkeys(every))

    @property
    def private(self) -> bool:
        """Whether noise protects data, so that nothing ends the run but what is sent."""
        privacy = self.protocol.privacy
        return privacy is not None and not privacy.noiseless

    @property
    def protected(self) -> NDArray[np.bool_]:
        """(n,) whose data the protocol's noise is there to protect: all agents, or those of one role."""
        if self.protocol.protects is None or self.layout.roles is None:
            return np.ones(len(self.agents), dtype=bool)
        return np.array(self.layout.roles) == self.protocol.protects

    def run(self) -> None:
        """Run to the end; the last record is taken there.

        Raises
        ------
        Divergence
            When a state becomes non-finite, or in a private run what an agent sends; what was recorded until then is
            kept.
        Stall
            When agents in rounds wait for messages that can never come; likewise.
        StepFailure
            When a compiled step raises an error; likewise.
        LimitReached
            When the run goes beyond one of the setting's limits; likewise.
        """
        self.effort.begin()
        joins, leaves, timelines = attendance(self.setting, self.numbers.tolist())
        with np.errstate(over="ignore", invalid="ignore"):
            for agent, join, leave in zip(self.agents, joins, leaves, strict=True):
                agent.present = join == 0 < leave
            for agent in self.agents:
                if agent.present:
                    self._start(agent)
                    self.effort.look(self.now)
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
            except HushnetError as error:
                raise _original(error) from None
            finally:
                self.schedule.settle(final=True)

    def _sample(self, *, final: bool) -> None:
        if self.recorder:
            self.schedule.settle(final=final)
            self.recorder.sample(self, final=final)
        if not final:
            self.effort.look(self.now)

    def _wake(self, agent: Agent) -> None:
        self.effort.wake(agent.index, self.now)

    def _view(self, index: int) -> View:
        unheard = "zero" if self.setting.network.start == "zero" else "own"
        return View(
            index,
            Problem(self.setting.task, self.setting.graph),
            self.layout,
            self.state,
            self.inbox,
            data=self.protocol.local_data(index, self.setting.task.shard(index)),
            stream=self._stream,
            partner_luck=self._partner_luck,
            unheard=unheard,
        )

    def _stream(self, purpose: str, agent: int, tick: int) -> np.random.Generator:
        reactions, number = self.agents[agent].reactions, int(self.numbers[agent])
        return self._watched(self.setting.draws.generator(purpose, tick + 1, number, reactions), purpose, agent)

    def _stream_before(self, purpose: str, agent: int) -> np.random.Generator:
        before = f"{purpose} before time 0"
        return self._watched(self.setting.draws.generator(before, int(self.numbers[agent])), before, agent)

    def _watched(self, stream: np.random.Generator, purpose: str, agent: int) -> np.random.Generator:
        return stream if self.watch is None else self.watch.stream(stream, purpose, agent)

    def _partner_luck(self, agent: int, tick: int) -> float:
        return self.setting.draws.uniform(Purpose.PARTNER, int(self.numbers[agent]), 0, tick)

    def _oracle(self, *, in_rounds: bool) -> Callable[[int], NDArray[np.int64]] | None:
        """Global indices of everybody's first wake-ups; only known in advance while nobody is ever absent or waits."""
        availability = self.setting.availability
        if in_rounds or not self.setting.always_up or availability.joins or availability.leaves:
            return None
        return lambda updates: wake_up_ranks(self.clock, self.setting.task.agents, updates)

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
        self.schedule.starting(agent)
        view, out = self.open(agent)
        self.protocol.start(view, out)
        self.stepped("start", view, out)
        agent.silent = agent.silent or out.silent
        self.check_finite(agent, out)
        for sent in out.sent:
            self.post.remember(agent, sent, -1)
        self.schedule.started(agent)

    def _exchange_start(self, agent: Agent, *, joining: bool) -> None:
        if self.setting.network.start == "known":
            self.post.exchange_start(agent, joining=joining)

    def open(self, agent: Agent) -> tuple[View, Out]:
        """An agent's view of this instant, and its way out."""
        view = self.views[agent.index]
        view.begin(self.now, agent.tick, agent.updates)
        return view, Out(view, self.layout, self.ledger.reserve, self.ledger.commit, self.ledger.releases)

    def stepped(self, phase: Phase, view: View, out: Out) -> None:
        """Show a step that was just made to whoever watches, before anything of it leaves."""
        if self.watch is not None:
            self.watch.stepped(phase, view, out)

    def step(self, agent: Agent) -> None:
        """Take one step of an awake agent, and send what it gives out."""
        if self.observer:
            self.observer.woke(self, agent)
        view, out = self.open(agent)
        if self.traits.inbox == "every":
            view.messages, self.inbox.pending[agent.index] = self.inbox.pending[agent.index], []
        self.protocol.wake(view, out)
        self.stepped("wake", view, out)
        agent.silent = out.silent
        self.check_finite(agent, out)
        if out.silent and not out.sent:
            return
        self.schedule.send(agent, out)
        self.count(agent)

    def receive(self, agent: Agent, message: Message) -> None:
        """Let an agent react to an arrival, and send what it gives out."""
        self.effort.check(self.now)
        agent.reactions += 1
        view, out = self.open(agent)
        self.protocol.receive(view, message, out)
        self.stepped("receive", view, out)
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
                    f"agent {self.setting.task.ids[agent.index]!r} at time {self.now:.6g}: "
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


def _original(error: HushnetError) -> HushnetError:
    """What was raised first: SimPy re-raises, from process to process, copies that have lost their fields."""
    while isinstance(error.__cause__, type(error)):
        error = error.__cause__
    return error


def _sent(out: Out) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The vectors that leave with a step, by what they are called."""
    return ((f"the {sent.kind} that it sends", sent.vector) for sent in out.sent)


def _first_bad(vector: NDArray[np.float64]) -> str:
    bad = float(vector[~np.isfinite(vector)][0])
    return "not a number" if math.isnan(bad) else "infinite"
