"""Making the steps of a plan.

A step depends on the agent's own step before, and on those whose versions it has heard. Batches follow from that alone
(`hushnet.simulator.engine.batched.step_plan.find_levels`), so in whatever order they are made, every step reads what it
would have read at its time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.authors import place_of
from ....agents.blocks import real
from ....agents.errors import INTERRUPTED, HushnetError, Objection
from ....protocols.steps.kernels import all_finite
from ....protocols.steps.record import One, Record, segments
from ....protocols.steps.single_steps import PHASES, UNSENT, contradiction, failure_of
from ....protocols.steps.step_charges import NoiseColumns, NotPlanned, StepCharges
from ....protocols.steps.step_names import MESSAGE, Names
from ....protocols.steps.step_tables import StepTables
from ...tables.session_table import COMPLETING, REQUESTING, RESPONDING
from ...tables.tallies import FREE_ROWS
from ...world.agent_records import finite
from ...world.step_form import Rewind
from ...world.world import World
from .plan_source import PlanSource
from .step_plan import (
    ADDRESSED,
    KIND,
    PORT_COLUMNS,
    READS,
    SIZE,
    STEPS,
    VECTORS,
    WIDTH,
    StepPlan,
    charge_plain,
    empty_plan,
    take_rows_back,
)

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
SENT = {REQUESTING: {MESSAGE: "request"}, RESPONDING: {MESSAGE: "reply"}, COMPLETING: {}}
"""What each half of an exchange may send, by name and kind."""
LEAST, MOST, NEAR = 2**11, 2**17, 2**21
"""Steps of a plan: two wake-ups an agent, or as many as write so many bytes, where so few agents make at least and at
most so many steps. Longer plans have wider batches, but what these read no longer stays near."""


class StepMaker(ABC):
    """Maker of the steps of a plan, which may be of one run or of several side by side.

    Attributes
    ----------
    protocol : Protocol
    tables : StepTables
    source : PlanSource
    plan : StepPlan
    degrees : (n,) int64
        Neighbours of agents.
    ports : (k, PORT_COLUMNS) int64
        Ports through which a step sends, one for each kind of message.
    pairs : bool
        Whether steps are halves of exchanges.
    functions : list of callable
        The step, or the halves of an exchange.
    kinds : int
        Number of kinds of messages that steps read.
    private : bool
        Whether noise protects data, so that nothing ends a run but what is sent.
    limited : bool
        Whether what agents release has a budget.
    noise : NoiseColumns
        Noise that steps draw, and the privacy cost of what they release.
    """

    protocol: Any
    tables: StepTables
    source: PlanSource
    plan: StepPlan
    degrees: Ranks
    ports: Ranks
    pairs: bool
    functions: list[Callable[..., Any]]
    kinds: int
    private: bool
    limited: bool
    noise: NoiseColumns

    @property
    def names(self) -> Names:
        """Names of all that a step's record holds: blocks, constants and messages."""
        return self.tables.names

    @property
    @abstractmethod
    def versions(self) -> Any:
        """Versions of the run, or of the runs, by the name of their field."""

    @property
    @abstractmethod
    def pool(self) -> NDArray[np.floating]:
        """(R, width) their vectors."""

    @abstractmethod
    def _make(self, total: int, plain: NDArray[np.bool_]) -> None:
        """Make so many steps, and set for each whether it is charged for what it says without noise."""

    @abstractmethod
    def _contradicted(self, what: str) -> NoReturn:
        """End a plan whose step has done something else than its protocol declares."""
        raise NotImplementedError

    @abstractmethod
    def _end(self, place: int, failure: HushnetError | None) -> NoReturn:
        """End the run at a step that has failed, or diverged without an error."""
        raise NotImplementedError

    def _look_at_ports(self) -> None:
        """Keep what is asked of ports at every batch."""
        self._apart_ports = (self.ports[:, ADDRESSED] != 0).tolist()
        self._always = (self.plan.period == 1).all(axis=1).tolist()
        self._groups = groups_of(self.tables)

    def _open(self, steps: Any, order: Ranks) -> None:
        """Take up steps in the order in which they are made: which of the plan they are, and where what they say is."""
        source, plan = self.source, self.plan
        source.open(plan, self.versions, self.pool, steps.view(np.ndarray))
        self._made, agents = order, source.all_agents
        self._plain = self.noise.plain(agents, None)
        if self.pairs:
            self._heard, self._wrote = (np.ascontiguousarray(source.window[name]) for name in ("heard", "wrote"))
            return
        place, updates = source.window["first"] + self.kinds * source.all_degrees, source.window["updates"]
        self._places, self._due = list[Ranks](), list[NDArray[np.bool_] | None]()
        for port, apart in enumerate(self._apart_ports):
            self._due.append(None if self._always[port] else self._is_due(port, agents, updates))
            self._places.append(place if apart else plan.reads[place])
            place = place + (source.all_degrees if apart else 1)

    def _is_due(self, port: int, agents: Ranks, updates: Ranks) -> NDArray[np.bool_]:
        """Return whether agents send a kind at their steps after so many others."""
        period, phase = self.plan.period[port, agents], self.plan.phase[port, agents]
        return (period > 0) & (updates % np.maximum(period, 1) == phase)

    def _heard_width(self, phase: int) -> int:
        """Numbers of what a half of an exchange has heard."""
        return int(self.ports[phase - RESPONDING, WIDTH])

    def _leaving(self, me: Record, kind: str, messages: Array, edges: Ranks | None = None) -> Array:
        """Return messages of some agents, with those of byzantine ones replaced.

        There are (k, width) messages, one of each agent; of a kind that is addressed, one for each of its edges. Those
        of an exchange go over (B,) edges.
        """
        attackers, heads, owners = self.tables.attackers, self.tables.graph.heads, None
        if attackers is None:
            return messages
        if edges is None and self.names.layout.messages[kind].addressed:
            owners = np.repeat(np.arange(len(me.agents_)), me.degrees_)
            edges = segments(self.tables.graph.offsets[me.agents_], me.degrees_)
        return attackers.replaced(me, kind, messages, owners=owners, to=None if edges is None else heads[edges])

    def _charge(self, places: Any) -> None:
        """Charge the noise that some steps have drawn, and note whether what they say reveals data without any."""
        source, charges = self.source, self.noise
        drawn, follows = source.noted.get("drawn"), source.noted.get("follows")
        if charges.noisy:
            if drawn is not None and self.limited and (drawn > 1).any():
                self._contradicted("it draws noise more than once in a step, and its budget counts draws")
            charges.count(source.agents, source.steps["updates"], drawn)
            self._plain[places] = charges.plain(source.agents, drawn)
        if follows is not None:
            self._plain[places] &= follows == 0

    @staticmethod
    def _name(phase: int) -> str:
        return PHASES[phase - 1] if phase else "step"


class PlannedSteps(StepMaker):
    """The steps of one run that are planned."""

    def __init__(self, world: World) -> None:
        protocol, graph = world.protocol, world.setting.graph
        self.world, self.protocol, self.tables = world, protocol, world.step_tables
        self.private, self.limited = world.private, world.ledger.limited
        self.charges = self.noise = StepCharges(protocol, world.peers.__getitem__, world.ledger)
        seeds = np.full(graph.agents, world.setting.draws.seed, dtype=np.uint64)
        self.source = PlanSource(self.tables, self.charges, seeds, world.numbers)
        self.pairs = "step" not in protocol.step_functions
        if self.pairs and self.charges.noisy and world.ledger.limited:
            raise NotPlanned("its halves of exchanges draw noise, and its budget counts draws")
        functions = protocol.step_functions
        self.functions: list[Callable[..., Any]] = (
            [functions[name] for name in PHASES] if self.pairs else [functions["step"]]
        )
        self.degrees, self.kinds = graph.degrees, len(self.names.heard_kinds)
        self.ports = ports_of(self.tables, world, pairs=self.pairs)
        agents, widest = graph.agents, int(self.degrees.max(initial=0))
        near = NEAR // (8 * self.pool.shape[1])
        steps = min(max(2 * len(self.functions) * agents, min(LEAST, near), 64), MOST)
        apart = self.ports[:, ADDRESSED] != 0
        per_edge, each = self.kinds + int(apart.sum()), len(self.ports)
        mean = float(self.degrees.mean()) if agents else 0.0
        self.most_reads = widest * per_edge + each
        reads = int(steps * (1.25 * per_edge * mean + each)) + 4 * self.most_reads + 64
        slots = len(graph.heads) * self.kinds if protocol.asks_what_is_new else 0
        closes = bool(len(world.transport.tables.opened))
        self.plan = empty_plan(agents, each, steps, reads, slots, closes=closes)
        self._writes = self._room = int(steps * np.where(apart, mean, 1.0).sum())
        if not self.pairs:
            declare(self.plan, protocol, self.names)
            self.charges.affordable = self.plan.affordable
        self.rows = np.zeros(int(np.where(apart, widest, 1).sum()), dtype=np.int64)
        self._look_at_ports()

    @property
    @override
    def versions(self) -> Any:
        return self.world.transport.tables.versions

    @property
    @override
    def pool(self) -> NDArray[np.floating]:
        return self.world.transport.inbox.pool

    @property
    def waiting(self) -> bool:
        """True if planned steps are still to be made."""
        return bool(self.plan.counts[STEPS])

    @property
    def is_full(self) -> bool:
        """True if the next step might not fit into the plan, or its versions into the tables."""
        plan, free = self.plan, self.world.transport.tables.counts[FREE_ROWS]
        steps, reads = len(plan.steps) - plan.counts[STEPS], len(plan.reads) - plan.counts[READS]
        return bool(steps == 0 or reads < self.most_reads or free <= len(self.rows))

    def make(self) -> None:
        """Make all planned steps, and plan anew: with room for as many versions as the next ones write.

        Raises `HushnetError` if a step fails or diverges that is the last one of the plan, and `Rewind` if another one
        does, or a step contradicts what its protocol declares.
        """
        total = int(self.plan.counts[STEPS])
        if not total:
            return
        plain = np.zeros(total, dtype=bool)
        try:
            self.world.watchdog.interrupter.step(self._make, total, plain)
        finally:  # also of the steps before one that fails, which ends the run
            self.charge(plain)
        self.plan_anew()

    def charge(self, plain: NDArray[np.bool_]) -> None:
        """Charge the steps that were made for what they have said without noise; there is no plan then."""
        charge_plain(self.world.transport.tables, self.pool, self.plan, self.ports, self.kinds, plain)
        self.plan.counts[[STEPS, READS]] = 0

    def plan_anew(self) -> None:
        """Make room for as many versions as the next steps write; where half of it is left, for as many as before."""
        transport = self.world.transport
        if 2 * transport.tables.counts[FREE_ROWS] > self._room:
            return
        take_rows_back(transport.tables)
        held = len(transport.tables.versions) - int(transport.tables.counts[FREE_ROWS])
        self._room = min(self._writes, max(held, LEAST))
        transport.grow(self._room, 0)

    @abstractmethod
    def _diverged(self, place: int) -> Record:
        """The record of a step that has diverged, whose blocks are written."""

    @override
    def _end(self, place: int, failure: HushnetError | None) -> NoReturn:
        """End the run at a step that has failed or diverged; raises `Rewind` if the plan has gone beyond it."""
        step, world = self.plan.steps[place], self.world
        if int(step["number"]) != world.exact_end:
            raise Rewind(int(step["number"]))
        if failure is not None:
            raise failure
        record = self._diverged(place)
        kinds = SENT[int(step["phase"])] if step["phase"] else self.names.messages
        said = ((kinds[name], rows) for name, rows in record.said_.items() if not finite(rows))
        kind, rows = next(said, ("", np.zeros((1, 1))))
        rows = rows.reshape(-1, rows.shape[-1])
        agent = world.agents[int(step["agent"])]
        agent.updates, world.ahead = int(step["updates"]), max(world.ahead, float(step["now"]))
        bad = rows[~np.isfinite(rows).all(axis=1)]
        world.check_finite(agent, told=[(kind, bad[0])] if len(bad) else ())
        raise RuntimeError("a step diverged, and what it has written is finite")


@final
class StepsInTurn(PlannedSteps):
    """Planned steps that are made one after the other, of one agent each."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._one = self.tables.records[One](self.tables, self.source)

    @override
    def _make(self, total: int, plain: NDArray[np.bool_]) -> None:
        source, private, functions = self.source, self.world.private, cast(Any, self.functions)
        of_agents = not private and not self.tables.state.edge
        self._open(self.plan.steps[:total], np.arange(total))
        columns = [source.window[name].tolist() for name in ("agent", "phase", "updates", "tick", "now")]
        me, messages, noisy, exact, w = self._one, self.names.messages, self.charges.noisy, self.tables.exact, 0
        if self.pairs:
            edges, graph = source.window["edge"], self.tables.graph
            partners = edges - graph.offsets[source.all_agents]
            self._halves = list(zip(partners.tolist(), self._heard.tolist(), strict=True))
            places, due = [self._wrote.tolist()] * 2, [None] * 2
        else:
            places, due = [one.tolist() for one in self._places], self._due
        rows = [source.pool[:, :width] for width in self.ports[:, WIDTH]]
        ports = list(zip([MESSAGE] * 2 if self.pairs else messages, rows, due, places, self._apart_ports, strict=True))
        self._sent = {0: ports, REQUESTING: ports[:1], RESPONDING: ports[1:], COMPLETING: []}
        try:
            for w, (agent, phase, updates, tick, now) in enumerate(zip(*columns, strict=True)):
                source.begin(slice(w, w + 1))
                me.begin_(agent, SENT[phase] if phase else messages, updates, tick, now)
                try:
                    over: Any = functions[phase - 1](me, *self._given(w, phase)) if phase else functions[0](me)
                except (HushnetError, Objection, *INTERRUPTED):
                    raise
                except BaseException as error:  # a class of an author's own may derive from it
                    self._end(w, failure_of(self.protocol, agent, now, updates, self._name(phase), error))
                if not exact:
                    me.close_()
                if over and not phase:
                    self._contradicted(f"it ended an agent's steps at its step {updates + 1}")
                self._say(w, me, phase)
                if noisy or source.noted:
                    self._charge(slice(w, w + 1))
                written = me.said_ if private else me.blocks_
                if not all(map(source.forms[all_finite] if of_agents else finite, written.values())):
                    self._end(w, None)
            w = total
        finally:
            plain[:w] = self._plain[:w]

    def _given(self, w: int, phase: int) -> tuple[Any, ...]:
        """Arguments of half of an exchange: the neighbour's rank and, after a request, the vector received from it."""
        partner, row = self._halves[w]
        if phase == REQUESTING:
            return (partner,)
        heard = real(self.source.pool[row, : self._heard_width(phase)])
        heard.flags.writeable = False  # of a view, or a copy
        return partner, heard

    def _say(self, w: int, me: One, phase: int) -> None:
        """Put what a step says where its plan has it."""
        for name, rows, due, places, apart in self._sent[phase]:
            message: Any = me.said_.get(name)
            if (message is None) is (due is None or bool(due[w])):
                if me.degree:
                    self._end_undeclared(w, me, phase, name)
            elif message is not None:
                if self.tables.attackers is not None:
                    edges = self.source.window["edge"][w : w + 1] if phase else None
                    left = self._leaving(me, me.messages_[name], np.atleast_2d(message), edges)
                    message = left.reshape(message.shape)
                place = places[w]
                rows[self.plan.reads[place : place + me.degree] if apart else place] = message

    def _end_undeclared(self, w: int, me: One, phase: int, name: str) -> NoReturn:
        """End the run at a step that has sent a message or none, against what its protocol declares."""
        who, kind = (me.agent, me.now, me.updates), me.messages_[name]
        if phase:
            self._end(w, failure_of(self.protocol, *who, self._name(phase), UNSENT))
        if name not in me.said_:
            self._contradicted(f"it did not send {name} at an agent's step {me.updates + 1}")
        self._end(w, contradiction(self.protocol, self.functions[0], *who, f"sends {name}", kind))

    @override
    def _diverged(self, place: int) -> Record:
        return self._one

    @override
    def _contradicted(self, what: str) -> NoReturn:
        where, name = place_of(self.functions[0]), type(self.protocol).__name__
        raise Rewind(0, f"{what}, against what {name} declares ({where})")


def ports_of(tables: StepTables, world: World, *, pairs: bool) -> Ranks:
    """Return the ports through which a step sends, one for each kind of message.

    Raises `NotPlanned` if the messages have a layout that plans do not support.
    """
    names = tables.names
    kinds = ("request", "reply") if pairs else tuple(names.messages.values())
    ports = np.zeros((len(kinds), PORT_COLUMNS), dtype=np.int64)
    for port, kind in zip(ports, kinds, strict=True):
        what, widths = names.layout.messages[kind], names.sent_widths[kind]
        if len(set(widths[widths > 0].tolist())) > 1:
            raise NotPlanned("its messages have different widths")
        if world.setting.availability.joins and what.addressed and not pairs:
            raise NotPlanned(
                "it sends every neighbour something else, and who joins late is told what it was sent last"
            )
        width = int(widths.max(initial=0))
        port[KIND], port[ADDRESSED], port[VECTORS], port[WIDTH] = (
            names.kinds.index(kind),
            what.addressed,
            names.layout.shares_of(kind),
            width,
        )
        port[SIZE] = world.transport.size(kind, width)
    return ports


def declare(plan: StepPlan, protocol: Any, names: Any) -> None:
    """Fill in what a protocol declares of its steps."""
    most = protocol.most_steps()
    if most is not None:
        plan.most[:] = np.minimum(np.broadcast_to(most, plan.most.shape), np.iinfo(np.int64).max / 2).astype(np.int64)
    declared: Mapping[str, Any] = protocol.sends()
    for port, kind in enumerate(names.messages.values()):
        if kind in declared:
            plan.period[port], plan.phase[port] = declared[kind].period, declared[kind].phase
        plan.period[port, names.sent_widths[kind] == 0] = 0


def groups_of(tables: StepTables) -> Ranks | None:
    """(n,) a number for agents whose blocks and messages have the same widths; None where all have."""
    state, names = tables.state, tables.names
    uneven = [block.offsets for block in state.agent.values() if not block.uniform]
    widths = [np.diff(offsets) for offsets in uneven]
    widths += [one for one in (*names.sent_widths.values(), *names.heard_widths.values()) if len(set(one.tolist())) > 1]
    for block in state.edge.values():
        if not block.uniform:
            own = np.zeros(tables.graph.agents, dtype=np.int64)
            own[tables.graph.tails] = np.diff(block.offsets)
            widths.append(own)
    if not widths:
        return None
    return np.unique(np.stack(widths), axis=1, return_inverse=True)[1].reshape(-1)
