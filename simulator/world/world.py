"""One run as a record: protocol, state, inboxes, links, ledger, traffic, random draws; who drives it is not known here.

A `hushnet.simulator.engine.selection.Engine` runs a world. What a step of a protocol sees and may do is here, for it is
the same whoever makes agents step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import simpy
from numpy.typing import NDArray

from ...agents.agent import Agent, Agents
from ...agents.errors import Divergence
from ...protocols.base import Peer, Problem, Protocol, ProtocolParameters, PublicStart, Sent
from ...protocols.layout import laid_out
from ...protocols.privacy.ledger import Ledger
from ...protocols.privacy.mechanisms import AgentStream
from ...protocols.schedule_selection import exchange_of, rounds_of
from ...protocols.steps.attackers import Attackers
from ...protocols.steps.peer import PeerSource
from ..network.churn import check_rounds
from ..network.clocks import clock_of, wake_up_ranks
from ..network.directed import check_directed, opening_of
from ..network.distributions import forms_or_none
from ..network.network import Network
from ..network.randomness import QUANTUM, Purpose, stable_ids
from ..network.setting import Setting
from ..tables import round_table as rounds
from ..tables import session_table as sessions
from ..tables import tallies
from ..tables.round_table import RoundTables
from ..tables.session_table import SessionTables
from .agent_records import Peers, finite, first_bad
from .computing import Computing
from .notes import Notebook
from .step_form import Rewind, StepForm
from .stop_condition import Reactions, StopCondition
from .transport import Traffic, Transport
from .watchdog import Watchdog
from .watchers import Observer, Phase, Sampler, Watch

Told = Sequence[tuple[str, NDArray[np.float64]]]


class World:
    """One run of one protocol.

    Parameters
    ----------
    every, activations : float or int, optional
        Record instants: every so much time, or every so many activations.
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
    warnings : tuple of str
        What the run's summary should say of that.
    step_tables : StepTables
        What steps read beside the record of an agent.
    peers : Peers
        The records of agents at steps that are made one by one.
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
    rounds, sessions : RoundTables, SessionTables, optional
        The state of rounds and of pairwise exchanges, where there are some; replaced when there is need for more room.
    private : bool
        Whether noise protects data, so that nothing ends the run but what is sent.
    started : (n,) bool
        Which agents have ever joined.
    honest : (n,) bool
        Which agents send what their protocol has them send.
    attackers : Attackers, optional
        The others, if there are any.
    learned : callable, optional
        ``learned(world, delta)`` gives what observers can have learned by now; ``started`` notes an agent's start.
    computing, stop_condition, reactions, watchdog : Computing, StopCondition, Reactions, Watchdog
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
        self.env, task, graph = simpy.Environment(), setting.task, setting.graph
        self.numbers = stable_ids(task.ids)
        self.clock = clock_of(setting.clock, task.ids, self.numbers, setting.draws, setting.base)
        self.network = Network(setting.network, task.ids, self.numbers, setting.draws, setting.base, task.precision)
        self.network.check_links(graph.tails, graph.heads)
        self.computing = Computing(setting, self.numbers)
        self.traits = protocol_class.traits_for(parameters)
        self.in_rounds = rounds_of(self.traits, parameters)
        graph_of_run = {"directed": graph.directed, "changing": setting.changing, "unfailing": setting.unfailing}
        check_directed(self.traits, parameters.kind, self.in_rounds, **graph_of_run)
        exchange = None if self.in_rounds else exchange_of(self.traits, parameters)
        adversaries = setting.adversaries
        learned = task if adversaries is None else adversaries.learned_from(task)
        problem = Problem(learned, graph, self._oracle(), self._stream_before)
        if watch is not None:
            problem = replace(problem, assumed=watch.assumed)
        self.protocol = protocol_class(parameters, problem)
        self.setting = setting = replace(setting, stop=setting.stop.counted(self.protocol.epoch))
        self.layout, self.state = laid_out(self.protocol.layout, graph, task.precision)
        block = self.state.agent.get("model")
        if task.first is not None and block is not None and block.uniform and block.width == len(task.first):
            block.rows[:] = task.first
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
        if self.protocol.decides_by_draws:
            self.ledger.journal = []
        self.private = privacy is not None and not privacy.noiseless
        self.started = np.zeros(graph.agents, dtype=bool)
        self.honest, self.attackers = np.ones(graph.agents, dtype=bool), None
        if adversaries is not None:
            self.honest = ~adversaries.byzantine
            if self.layout.roles is None:
                self.step_tables.names.roles = np.where(self.honest, "honest", "byzantine")
            self.attackers = Attackers(adversaries.attack, adversaries.byzantine, self._attack_stream)
        self.step_tables.attackers = self.attackers
        self.reactions = Reactions(setting.limits, task.ids)
        self.watchdog = Watchdog(setting.limits, task.ids, lambda: self.events)
        self.agents = Agents(graph.agents, self._come)
        parts = graph, self.layout, self.network, self.ledger, self.agents
        forms, changing = forms_or_none(setting.network, self.clock), setting.changing
        self.transport = Transport(*parts, forms=forms, now=lambda: self.now, changing=changing)
        self.inbox = self.transport.inbox
        self.stop_condition = StopCondition(self.env, setting.stop, self.transport.tables.counts, graph.agents)
        self.step_tables.opening = opening_of(setting, self.numbers)
        self.transport.tables = self.computing.kept_in(self.transport.tables, holds=not (self.in_rounds or exchange))
        self.rounds: RoundTables | None = None
        self.sessions: SessionTables | None = None
        if self.in_rounds:
            check_rounds(setting.availability, intervals=self.clock.has_intervals, kind=parameters.kind)
        elif exchange is not None:
            sessions.check_exchange(type(self.protocol), self.traits, self.layout)
            self.transport.sessions = True
            repeat = sessions.callers_repeat(self.traits, self.layout)
            self.sessions = sessions.session_tables(graph, self.layout, self.network, exchange, repeat=repeat)
        self.learned: Any = None
        self.ahead, self.engine = 0.0, ""
        self.form: StepForm | None = None
        self.warnings: tuple[str, ...] = ()
        self.peers = Peers(graph.agents, self._peer)

    @property
    def now(self) -> float:
        """Time in expected wake-ups of a rate-1 agent; while observers are told of something, when that was."""
        telling, now = self.transport.notes.telling, self.env.now
        if telling is not None:
            return telling
        return now if now > self.ahead else self.ahead

    @property
    def traffic(self) -> Traffic:
        """Counts of what was sent so far: delivered, lost, dropped or in flight."""
        return self.transport.traffic

    @property
    def activations(self) -> int:
        """Steps of all agents so far."""
        return int(self.transport.tables.counts[tallies.ACTIVATIONS])

    @property
    def updates(self) -> NDArray[np.int64]:
        """(n,) completed steps of every agent, at a record instant or after the run."""
        return self.transport.tables.agents.updates.copy()

    @property
    def events(self) -> int:
        """Wake-ups, copies of messages and timers so far; see `hushnet.simulator.world.watchdog`."""
        counts = self.transport.tables.counts
        return self.watchdog.wakes + int(counts[tallies.WAKES] + counts[tallies.SENT])

    @property
    def counted(self) -> dict[str, int]:
        """Counts of sessions or rounds by their outcome, for a run's totals."""
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
        called = self.sessions.sessions[:, sessions.TICK] >= 0
        return ~(called | called[graph.reverse])

    @property
    def recorded_steps(self) -> int:
        """Activations between two records; 0 if they do not count."""
        return self.record_activations or 0 if self.recorder else 0

    @property
    def ended(self) -> str:
        """Reason why the run is over; empty until then."""
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
        """(n,) whose data the protocol's noise is there to protect: all honest agents, or those of one role."""
        if self.protocol.protects is None or self.layout.roles is None:
            return self.honest
        return self.honest & (np.array(self.layout.roles) == self.protocol.protects)

    def _come(self, agent: int) -> tuple[int, int]:
        """Progress of an agent that steps without Python: its clock's last tick, and its number of steps."""
        tables = self.transport.tables
        return int(tables.agents.ticks[agent]), int(tables.agents.updates[agent])

    def _peer(self, index: int) -> Peer:
        shard = self.protocol.local_data(index, self.protocol.problem.task.shard(index))
        tables = self.step_tables
        source = PeerSource(tables, index, self.inbox, self.ledger, shard=shard, stream=self._stream)
        peer = tables.records[Peer](source)
        agent = self.agents[index]
        peer.open_({}, agent.updates, agent.tick, self.now)
        return peer

    def _stream(self, purpose: str, agent: int, tick: int) -> np.random.Generator:
        reactions, number = self.agents[agent].reactions, int(self.numbers[agent])
        return self._watched(self.setting.draws.generator(purpose, tick + 1, number, reactions), purpose, agent)

    def _attack_stream(self, agent: int, now: float, channel: int) -> np.random.Generator:
        return self.setting.draws.generator("attack", int(self.numbers[agent]), int(now / QUANTUM), channel)

    def _stream_before(self, purpose: str, agent: int) -> np.random.Generator:
        before = f"{purpose} before time 0"
        return self._watched(self.setting.draws.generator(before, int(self.numbers[agent])), before, agent)

    def _watched(self, stream: np.random.Generator, purpose: str, agent: int) -> np.random.Generator:
        return AgentStream(stream) if self.watch is None else self.watch.stream(stream, purpose, agent)

    def _oracle(self) -> Callable[[int], NDArray[np.int64]] | None:
        """Global indices of everybody's first wake-ups; only known in advance while nobody is ever absent or waits."""
        if self.in_rounds or not self.setting.availability.nobody_absent:
            return None
        return lambda updates: wake_up_ranks(self.clock, self.setting.task.agents, updates)

    def act(self, phase: Phase, agent: Agent, *given: Any) -> Peer:
        """Let an agent make a step; its record, with all that it gives out, which is still to be sent.

        Parameters are as of `hushnet.protocols.steps.single_steps.SingleSteps.make`.
        """
        agent.reactions += phase in ("react", "respond", "complete")
        return self._made(phase, agent, self._begin(phase, agent), *given)

    def _begin(self, phase: Phase, agent: Agent) -> Peer:
        me = self.peers[agent.index]
        self.protocol.steps.begin(phase, me, agent.updates, agent.tick, self.now)
        return me

    def _made(self, phase: Phase, agent: Agent, me: Peer, *given: Any) -> Peer:
        self.watchdog.interrupter.step(self.protocol.steps.make, phase, me, *given)
        known = phase == "start" and self.protocol.starts_at_once is not None  # to all, so nobody can lie about it
        if self.attackers is not None and not self.honest[agent.index] and not known:
            me.give_out_([self._attacked(self.attackers, me, sent) for sent in me.sent_], silent=me.silent_)
        if self.watch is not None:  # before anything of it leaves
            self.watch.stepped(phase, me)
        agent.silent = agent.silent or me.silent_
        self.check_finite(agent, me)
        return me

    def _attacked(self, attackers: Attackers, me: Peer, sent: Sent) -> Sent:
        to = None if sent.to is None else np.array(sent.to[:1])
        vector = attackers.replaced(me, sent.kind, sent.vector[None], to=to)[0]
        vector.flags.writeable = False
        return replace(sent, vector=vector)

    def step(self, agent: Agent) -> Peer:
        """Let an awake agent take a step; what it gives out is still to be sent."""
        if self.observer is not None:
            self.transport.notes.woke(agent)
        if self.traits.inbox == "every":
            self.peers[agent.index].take_in_(self.inbox.pending.pop(agent.index, []))
        return self.act("step", agent)

    def call(self, agent: Agent, busy: Callable[[int], bool]) -> tuple[int, Sent] | None:
        """Let an awake agent pick a neighbour and call it: the directed edge to it and the request.

        None if that edge is busy, or if the agent fell silent instead.
        """
        slots, number = self.setting.graph.edges_of(agent.index), int(self.numbers[agent.index])
        degree = slots.stop - slots.start
        me = self._begin("request", agent)
        uniform = self.setting.draws.uniform(Purpose.PARTNER, number, 0, agent.tick)
        partner = self.watchdog.interrupter.step(self.protocol.partner, me, uniform)
        if not 0 <= partner < degree:
            raise ValueError(
                f"partner of agent {agent.index} must be the rank of one of its {degree} neighbours, got {partner}"
            )
        edge = slots.start + partner
        if busy(edge):
            return None
        self.transport.notes.woke(agent)
        sent = self._made("request", agent, me, partner).sent_
        return (edge, sent[0]) if sent else None

    def meet(self, phase: Literal["respond", "complete"], agent: Agent, edge: int, heard: NDArray[np.float64]) -> Any:
        """Let an agent make its half of an exchange over one of its edges: its reply, None if there is none."""
        sent = self.act(phase, agent, edge - self.setting.graph.edges_of(agent.index).start, heard).sent_
        return sent[0] if sent else None

    def start(self, agent: Agent) -> None:
        """Let an agent begin with its start, which its neighbours may be told."""
        self.started[agent.index] = True
        me = self.act("start", agent)
        self.transport.remember_start(agent, me.sent_)
        if self.learned is not None:
            self.learned.started(me)

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
        self.watchdog.poll(self.now)
        for block in start.sent.values():
            self.transport.remember_starts(agents, self.state.agent[block].rows)
            if self.setting.network.start == "known":
                self.transport.exchange_starts(agents)
            self.watchdog.poll(self.now)

    def starts_together(self, start: PublicStart) -> bool:
        """True if a start sends one vector of the same width from every agent, which the tables keep."""
        told = [(self.layout.messages[kind].width, self.state.agent[block]) for kind, block in start.sent.items()]
        fits = all(block.uniform and np.ndim(width) == 0 and width == block.width for width, block in told)
        return start.finite and fits and all(map(self.transport.keeps_starts, start.sent))

    def check_finite(self, agent: Agent, me: Peer | None = None, told: Told = ()) -> None:
        """Raise a `Divergence` if a block that an agent owns is not finite; in a private run, if what it sends is not.

        That a run ends tells that something was not finite. A block may depend on an agent's data in other ways than
        through its releases, so a private run goes on whatever becomes of it. The record is of a step that was made
        when it was due; what is told are kinds and vectors of the messages that a planned step sends.
        """
        if self.private:
            sent = told if me is None else [(one.kind, one.vector) for one in me.sent_]
            vectors = [(f"the {kind} that it sends", vector) for kind, vector in sent]
        else:
            peer = self.peers[agent.index]
            vectors = () if all(map(finite, peer.blocks_.values())) else peer.named_vectors_()
        for name, vector in vectors:
            if not finite(vector):
                raise Divergence(
                    f"{self.setting.task.called(agent.index)} at time {self.now:.6g}: "
                    f"{name} became {first_bad(vector)} after {agent.updates} updates; "
                    "check the data for extreme values or take smaller steps"
                )
