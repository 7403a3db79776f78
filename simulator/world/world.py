"""One run as a record: protocol, state, inboxes, links, ledger, traffic, random draws; who drives it is not known here.

A `hushnet.simulator.engine.selection.Engine` runs a world. What a step of a protocol sees and may do is here, for it is
the same whoever makes agents step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import simpy
from numpy.typing import NDArray

from ...agents.agent import Agent, Agents
from ...agents.blocks import State
from ...agents.errors import Divergence
from ...agents.inbox import Message
from ...protocols.base import Out, Problem, Protocol, ProtocolParameters, PublicStart, View
from ...protocols.privacy.ledger import Ledger
from ...protocols.privacy.mechanisms import AgentStream
from ...protocols.schedule_selection import exchange_of, rounds_of
from ...protocols.view import Layout
from ..network.churn import check_rounds
from ..network.clocks import wake_up_ranks
from ..network.laws import forms_or_none
from ..network.network import Network
from ..network.randomness import Purpose, stable_ids
from ..network.setting import Setting
from ..tables import tallies
from ..tables.rounds import RoundTables
from ..tables.run import RECORD_EVERY
from ..tables.sessions import SessionTables
from . import rounds, sessions
from .effort import Effort
from .notes import Notebook
from .rewind import Rewind
from .step_form import StepForm
from .stop_condition import Reactions, StopCondition
from .traffic import Traffic
from .transport import Transport
from .views import Views
from .watchers import Observer, Phase, Sampler, Watch


class World:
    """One run of one protocol.

    Parameters
    ----------
    setting : Setting
    protocol_class : type of Protocol
    parameters : ProtocolParameters
    every, activations : float or int, optional
        Record instants: every so much time, or every so many activations.
    recorder : Sampler, optional
    observer : Observer or Notebook, optional
    watch : Watch, optional
        Sees every step before anything of it leaves; steps are then made one by one.
    unproved : str
        Why no epsilon of the protocol is verified, see `Ledger`.
    unlooked : mapping of int to str
        Agents whose epsilon is not verified, and why, see `Ledger`.
    again : Rewind, optional
        Why the run is made once more.

    Attributes
    ----------
    engine : str
        Which engine runs it, and why; empty until one does.
    form : StepForm, optional
        In which form steps are made, once that is known.
    remarks : tuple of str
        What the run's summary should say of that.
    step_tables : StepTables, optional
        What step functions read beside the record of an agent, if there are any.
    one_by_one : str
        Why steps cannot be planned, found out by an earlier attempt; empty if they can.
    exact_end : int
        Which of all planned steps ends the run, from 1 on; 0 if none is known to.
    env : simpy.Environment
        The event loop.
    ahead : float
        Time that a compiled window between two of its events has come to.
    in_rounds : RoundsSchedule, optional
        How agents run in rounds, if they do.
    rounds : RoundTables, optional
        The state of rounds, where an engine keeps it; replaced when there is need for more room.
    sessions : SessionTables, optional
        The state of pairwise exchanges, if agents exchange in pairs; likewise.
    private : bool
        Whether noise protects data, so that nothing ends the run but what is sent.
    started : (n,) bool
        Which agents have ever joined.
    activations : int
        Steps of all agents so far.
    stop_condition : StopCondition
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
        recorder: Sampler | None = None,
        observer: Observer | Notebook | None = None,
        watch: Watch | None = None,
        unproved: str = "",
        unlooked: Mapping[int, str] = MappingProxyType({}),
        again: Rewind | None = None,
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
        self.in_rounds = rounds_of(self.traits, parameters)
        exchange = None if self.in_rounds else exchange_of(self.traits, parameters)
        problem = Problem(task, graph, self._oracle(), self._stream_before)
        if watch is not None:
            problem = replace(problem, assumed=watch.assumed)
        self.protocol = protocol_class(parameters, problem)
        self.setting = setting = replace(setting, stop=setting.stop.counted(self.protocol.epoch))
        self.layout: Layout = self.protocol.layout()
        self.state = State(graph.agents, len(graph.heads), self.layout.agent, self.layout.edge)
        unheard_is_own = setting.network.start != "zero"
        self.step_tables = self.protocol.bind(self.state, unheard_is_own=unheard_is_own)
        self.one_by_one, self.exact_end = (again.why, again.number) if again is not None else ("", 0)
        privacy = self.protocol.privacy
        self.ledger = Ledger(
            graph.agents,
            budget=privacy.budget if privacy else None,
            updates=privacy.updates if privacy else None,
            claimed_by=privacy.claimed_by if privacy else "advanced_composition",
            assumed_public=self.assumed_public,
            strict=bool(privacy and privacy.strict),
            unproved=unproved,
            unlooked=unlooked,
        )
        self.private = privacy is not None and not privacy.noiseless
        self.started = np.zeros(graph.agents, dtype=bool)
        self.activations = 0
        self.stop_condition = StopCondition(self.env, setting.stop, graph.agents)
        self.reactions = Reactions(setting.limits, task.ids)
        self.effort = Effort(setting.limits, task.ids, lambda: self.events)
        self.agents = Agents(graph.agents, self._come)
        self.ahead = 0.0
        parts = graph, self.layout, self.network, self.ledger, self.agents
        self.transport = Transport(*parts, forms=forms_or_none(setting.network, self.clock), now=lambda: self.now)
        self.inbox = self.transport.inbox
        self.rounds: RoundTables | None = None
        self.sessions: SessionTables | None = None
        if self.in_rounds:
            check_rounds(setting.availability, intervals=self.clock.has_intervals, kind=parameters.kind)
        elif exchange is not None:
            sessions.check_exchange(self.protocol, self.traits, self.layout)
            self.transport.sessions = True
            self.sessions = sessions.session_tables(
                graph,
                self.layout,
                self.network,
                exchange,
                repeat=sessions.callers_repeat(self.traits, self.layout),
            )
        self.engine = ""
        self.form: StepForm | None = None
        self.remarks: tuple[str, ...] = ()
        self._problem = Problem(task, graph)
        self.views = Views(graph.agents, self._view)

    @property
    def now(self) -> float:
        """Time in expected wake-ups of a rate-1 agent; while observers are told of something, when that was."""
        telling, now = self.transport.notes.telling, self.env.now
        if telling is not None:
            return telling
        return now if now > self.ahead else self.ahead

    @property
    def traffic(self) -> Traffic:
        """What was sent so far, and what became of it."""
        return self.transport.traffic

    @property
    def updates(self) -> NDArray[np.int64]:
        """(n,) completed steps of every agent, at a record instant or after the run."""
        return self.transport.tables.agents.updates.copy()

    @property
    def events(self) -> int:
        """Wake-ups, copies of messages and timers so far; see `hushnet.simulator.world.effort`."""
        counts = self.transport.tables.counts
        return self.effort.wakes + int(counts[tallies.WAKES] + counts[tallies.SENT])

    @property
    def counted(self) -> dict[str, int]:
        """What became of sessions or rounds, for a run's totals."""
        if self.in_rounds:
            planned = rounds.planned(self.setting.stop, len(self.agents))
            return rounds.counted(self.rounds, finished=self.activations, planned=planned)
        return {} if self.sessions is None else sessions.counted(self.sessions)

    @property
    def quiet_edges(self) -> NDArray[np.bool_]:
        """(E,) whether no session is open over a directed edge, in either direction; always so without sessions."""
        graph = self.setting.graph
        if self.sessions is None:
            return np.ones(len(graph.heads), dtype=bool)
        called = sessions.called_edges(self.sessions)
        return ~(called | called[graph.reverse])

    @property
    def recorded_steps(self) -> int:
        """Activations between two records; 0 if they do not count."""
        return self.record_activations or 0 if self.recorder else 0

    def record_each(self, activations: int) -> None:
        """Record whenever the activations are a multiple of this number from now on, and at no other time."""
        self.record_time, self.record_activations = None, activations
        self.transport.tables.constants[RECORD_EVERY] = activations

    @property
    def ended(self) -> str:
        """Why the run is over; empty until then."""
        return self.stop_condition.why

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """Inputs computed from private data that this run treats as public."""
        shared = (f"{part} of all records, which neighbouring data sets share" for part in self.protocol.shared_parts)
        setting = self.setting
        every = (*setting.task.assumed_public, *setting.assumed_public, *self.protocol.assumed_public, *shared)
        return tuple(dict.fromkeys(every))

    @property
    def protected(self) -> NDArray[np.bool_]:
        """(n,) whose data the protocol's noise is there to protect: all agents, or those of one role."""
        if self.protocol.protects is None or self.layout.roles is None:
            return np.ones(len(self.agents), dtype=bool)
        return np.array(self.layout.roles) == self.protocol.protects

    def _come(self, agent: int) -> tuple[int, int]:
        """How far an agent has come that steps without Python: its clock's last tick, and its steps."""
        tables = self.transport.tables
        return int(tables.agents.ticks[agent]), int(tables.agents.updates[agent])

    def _view(self, index: int) -> View:
        unheard = "zero" if self.setting.network.start == "zero" else "own"
        view = View(
            index,
            self._problem,
            self.layout,
            self.state,
            self.inbox,
            data=self.protocol.local_data(index, self.setting.task.shard(index)),
            stream=self._stream,
            partner_uniform=self._partner_uniform,
            unheard=unheard,
        )
        view.begin(self.now, self.agents[index].tick, self.agents[index].updates)
        return view

    def _stream(self, purpose: str, agent: int, tick: int) -> np.random.Generator:
        reactions, number = self.agents[agent].reactions, int(self.numbers[agent])
        return self._watched(self.setting.draws.generator(purpose, tick + 1, number, reactions), purpose, agent)

    def _stream_before(self, purpose: str, agent: int) -> np.random.Generator:
        before = f"{purpose} before time 0"
        return self._watched(self.setting.draws.generator(before, int(self.numbers[agent])), before, agent)

    def _watched(self, stream: np.random.Generator, purpose: str, agent: int) -> np.random.Generator:
        return AgentStream(stream) if self.watch is None else self.watch.stream(stream, purpose, agent)

    def _partner_uniform(self, agent: int, tick: int) -> float:
        return self.setting.draws.uniform(Purpose.PARTNER, int(self.numbers[agent]), 0, tick)

    def _oracle(self) -> Callable[[int], NDArray[np.int64]] | None:
        """Global indices of everybody's first wake-ups; only known in advance while nobody is ever absent or waits."""
        if self.in_rounds or not self.setting.availability.nobody_absent:
            return None
        return lambda updates: wake_up_ranks(self.clock, self.setting.task.agents, updates)

    def open(self, agent: Agent) -> tuple[View, Out]:
        """An agent's view of this instant, and its way out."""
        view = self.views[agent.index]
        view.begin(self.now, agent.tick, agent.updates)
        return view, Out(view, self.layout, self.ledger.reserve, self.ledger.commit, self.ledger.releases)

    def stepped(self, phase: Phase, view: View, out: Out) -> None:
        """Show a step that was just made to whoever watches, before anything of it leaves."""
        if self.watch is not None:
            self.watch.stepped(phase, view, out)

    def step(self, agent: Agent) -> Out:
        """Let an awake agent take a step; what it gives out is still to be sent."""
        if self.observer:
            self.observer.woke(self, agent)
        view, out = self.open(agent)
        if self.traits.inbox == "every":
            view.messages, self.inbox.pending[agent.index] = self.inbox.pending[agent.index], []
        self.effort.interrupter.step(self.protocol.wake, view, out)
        self._made("wake", agent, view, out)
        return out

    def receive(self, agent: Agent, message: Message) -> Out:
        """Let an agent react to an arrival; what it gives out is still to be sent."""
        agent.reactions += 1
        view, out = self.open(agent)
        self.effort.interrupter.step(self.protocol.receive, view, message, out)
        self._made("receive", agent, view, out)
        return out

    def start(self, agent: Agent) -> None:
        """Let an agent begin with its start, which its neighbours may be told."""
        self.started[agent.index] = True
        view, out = self.open(agent)
        self.effort.interrupter.step(self.protocol.start, view, out)
        before = agent.silent
        self._made("start", agent, view, out)
        agent.silent = agent.silent or before
        self.transport.remember_start(agent, out)

    def tell_start(self, agent: Agent, *, joining: bool) -> None:
        """Tell present neighbours an agent's start, and a joining agent theirs, where starts are known."""
        if self.setting.network.start == "known":
            self.transport.exchange_start(agent, joining=joining)

    def start_together(self, start: PublicStart, agents: NDArray[np.int64]) -> None:
        """`start` and `tell_start` of agents that are there from the beginning, all at once.

        Only where steps are compiled and nobody watches, and where `starts_together` holds.
        """
        self.started[agents] = True
        start.put(self.state, agents)
        self.effort.look(self.now)
        for block in start.told.values():
            self.transport.remember_starts(agents, self.state.agent[block].rows)
            if self.setting.network.start == "known":
                self.transport.exchange_starts(agents)
            self.effort.look(self.now)

    def starts_together(self, start: PublicStart) -> bool:
        """Whether what a start tells is one vector of the same width from everybody, which the tables keep."""
        told = [(self.layout.messages[kind].width, self.state.agent[block]) for kind, block in start.told.items()]
        fits = all(block.uniform and np.ndim(width) == 0 and width == block.width for width, block in told)
        return start.finite and fits and all(map(self.transport.keeps_starts, start.told))

    def _made(self, phase: Phase, agent: Agent, view: View, out: Out) -> None:
        self.stepped(phase, view, out)
        agent.silent = out.silent
        self.check_finite(agent, out)

    def check_finite(
        self, agent: Agent, out: Out | None = None, *, told: tuple[str, NDArray[np.float64]] | None = None
    ) -> None:
        """Raise a `Divergence` if a block that an agent owns is not finite; in a private run, if what it sends is not.

        That a run ends tells that something was not finite. A block may depend on an agent's data in other ways than
        through its releases, so a private run goes on whatever becomes of it.

        Parameters
        ----------
        agent : Agent
        out : Out, optional
            What the agent sends in this step.
        told : (str, (width,) float64), optional
            Kind and vector of the one message that a planned step sends.
        """
        if self.private:
            sent = [] if out is None else [(one.kind, one.vector) for one in out.sent]
            sent += [] if told is None else [told]
            vectors = [(f"the {kind} that it sends", vector) for kind, vector in sent]
        else:
            vectors = self._owned(agent)
        for name, vector in vectors:
            # The sum of squares is finite if all numbers are, unless it overflows.
            if not math.isfinite(np.vdot(vector, vector)) and not np.isfinite(vector).all():
                raise Divergence(
                    f"{self.setting.task.called(agent.index)} at time {self.now:.6g}: "
                    f"{name} became {_first_bad(vector)} after {agent.updates} updates; "
                    "check the data for extreme values or take smaller steps"
                )

    def _owned(self, agent: Agent) -> Iterator[tuple[str, NDArray[np.float64]]]:
        """The blocks of an agent and of its outgoing edges, by name."""
        view = self.views[agent.index]
        yield from view.state.items()
        for name, block in view.edge.items():
            for vector in block if isinstance(block, list) else [block]:
                yield name, vector


def _first_bad(vector: NDArray[np.float64]) -> str:
    bad = float(vector[~np.isfinite(vector)][0])
    return "not a number" if math.isnan(bad) else "infinite"
