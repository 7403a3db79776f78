"""Making the steps of a plan: in batches of agents whose steps do not depend on each other, or one after the other.

A step depends on the agent's own step before, and on those whose versions it has heard. Batches follow from that alone
(`hushnet.simulator.engine.batched.plan.order_by_level`), so in whatever order they are made, every step reads what it
would have read at its time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from ....agents.errors import HushnetError, Objection, StepFailure
from ....protocols.steps.authors import place_of
from ....protocols.steps.charges import NotPlanned, StepCharges
from ....protocols.steps.names import MESSAGE
from ....protocols.steps.record import Batch, One, Record
from ....protocols.steps.surroundings import StepSurroundings
from ....protocols.steps.tables import StepTables
from ....protocols.steps.view_steps import PHASES, UNSENT, failure_of, is_batched
from ...tables.sessions import COMPLETING, REQUESTING, RESPONDING
from ...world.rewind import Rewind
from ...world.world import World
from .plan import (
    ADDRESSED,
    KIND,
    PORT_COLUMNS,
    READS,
    SIZE,
    STEPS,
    VECTORS,
    WIDTH,
    Plan,
    charge_plain,
    empty_plan,
    order_by_level,
    take_rows_back,
)

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
SENT = {REQUESTING: {MESSAGE: "request"}, RESPONDING: {MESSAGE: "reply"}, COMPLETING: {}}
"""What each half of an exchange may send, by name and kind."""
MOST = 2**17
"""Steps of a plan at most: batches are wide enough then, and what they read stays near."""
TOGETHER = (
    "it was made for {} agents at once, and passes for each alone: vectors of agents are rows here, and their numbers "
    "columns (np.where or me.where in place of if, axis=1, per_edge)"
)


def planned_steps(world: World) -> PlannedSteps:
    """What makes a world's planned steps.

    Raises
    ------
    NotPlanned
        If its steps have to be made one by one.
    """
    protocol, kind = world.protocol, type(world.protocol)
    if world.watch is not None:
        raise NotPlanned("every step is watched")
    if world.one_by_one:
        raise NotPlanned(world.one_by_one)
    if not protocol.step_functions:
        raise NotPlanned(f"{kind.__name__} makes its steps by methods")
    if protocol.methods_beside_steps:
        raise NotPlanned(f"{kind.__name__} has a method {protocol.methods_beside_steps[0]} beside its steps")
    if protocol.decides:
        raise NotPlanned(f"{kind.__name__} decides by numbers what a step sends")
    if protocol.asks_for_budget and world.ledger.limited:
        raise NotPlanned(f"{kind.__name__} asks for its budget by numbers")
    if not world.layout.messages:
        raise NotPlanned(f"{kind.__name__} sends nothing")
    forms = {is_batched(function) for function in protocol.step_functions.values()}
    if len(forms) > 1:
        raise NotPlanned(f"{kind.__name__} has halves of exchanges in batches and others of single agents")
    return PlannedSteps(world)


@final
class PlannedSteps:
    """The steps of one run that are planned.

    Parameters
    ----------
    world : World

    Attributes
    ----------
    plan : Plan
    charges : StepCharges
    ports : (k, PORT_COLUMNS) int64
        What a step sends.
    """

    def __init__(self, world: World) -> None:
        from .plan_source import PlanSource

        protocol = world.protocol
        self.world, self.protocol, self.tables = world, protocol, world.step_tables
        self.names, graph = self.tables.names, world.setting.graph
        around = StepSurroundings(
            state=world.state,
            unheard_is_own=self.tables.unheard_is_own,
            numbers=world.numbers,
            seed=world.setting.draws.seed,
            view=world.views.__getitem__,
            ledger=world.ledger,
            some_join=bool(world.setting.availability.joins),
        )
        self.charges = StepCharges(protocol, around)
        self.source = PlanSource(self.tables, self.charges, world.setting.draws.seed, world.numbers)
        self.pairs = "step" not in protocol.step_functions
        if self.pairs and self.charges.noisy and world.ledger.limited:
            raise NotPlanned("its halves of exchanges draw noise, and its budget counts draws")
        functions = protocol.step_functions
        self.functions: list[Callable[..., Any]] = (
            [functions[name] for name in PHASES] if self.pairs else [functions["step"]]
        )
        self.batched = is_batched(self.functions[0])
        self.degrees, self.kinds = graph.degrees, len(self.names.kinds)
        self.ports = _ports(self.tables, world, around, pairs=self.pairs)
        if self.pairs:  # what sessions carry is handed over, and not read from what is known
            self.kinds = min(self.names.kinds.index(kind) for kind in ("request", "reply"))
        self._records: dict[int, One] = {}
        agents, widest = graph.agents, int(self.degrees.max(initial=0))
        steps = max(64, min(2 * agents, MOST))
        apart = self.ports[:, ADDRESSED] != 0
        per_edge, each = self.kinds + int(apart.sum()), len(self.ports)
        mean = float(self.degrees.mean()) if agents else 0.0
        reads = int(steps * (1.25 * per_edge * mean + each)) + 4 * (widest * per_edge + each) + 64
        self.plan = empty_plan(agents, each, steps, reads)
        if not self.pairs:
            _declare(self.plan, protocol, self.names)
            self.charges.affordable = self.plan.affordable
        self.rows = np.zeros(int(np.where(apart, widest, 1).sum()), dtype=np.int64)
        self._groups = _groups(self.tables)

    @property
    def waiting(self) -> bool:
        """Whether any planned step is still to be made."""
        return bool(self.plan.counts[STEPS])

    def make(self) -> None:
        """Make all planned steps, and plan anew.

        Raises
        ------
        HushnetError
            If a step fails or diverges that is the last one of the plan.
        Rewind
            If another one does, or a step contradicts what its protocol declares.
        """
        total = int(self.plan.counts[STEPS])
        if not total:
            return
        plain = np.zeros(total, dtype=bool)
        try:
            if self.batched:
                self._make_batches(total, plain)
            else:
                self._make_each(total, plain)
        finally:  # also of the steps before one that fails, which ends the run
            charge_plain(self.world.transport.tables, self.plan, self.ports, self.kinds, plain)
            self.plan.counts[[STEPS, READS]] = 0
        take_rows_back(self.world.transport.tables)

    # One after the other.

    def _make_each(self, total: int, plain: NDArray[np.bool_]) -> None:
        plan, source, charges, world = self.plan, self.source, self.charges, self.world
        pool, interrupted = world.transport.tables.pool, world.effort.interrupter.step
        fields = ("agent", "phase", "updates", "tick", "now", "edge", "heard")
        columns = [plan.steps[name][:total].tolist() for name in fields]
        first = self.tables.graph.offsets
        for w, (agent, phase, updates, tick, now, edge, heard) in enumerate(zip(*columns, strict=True)):
            me = self._records.get(agent)
            if me is None:
                me = self._records[agent] = One(self.tables, source, agent)
            source.begin(plan, pool, me.agents_, plan.steps[w : w + 1])
            me.begin_(self._messages(phase), updates, tick, now)
            given: tuple[Any, ...] = ()
            if phase:
                partner = edge - int(first[agent])
                given = (partner,) if phase == REQUESTING else (partner, self._heard(w, heard))
            try:
                over = interrupted(self.functions[max(int(phase) - 1, 0)], me, *given)
            except (HushnetError, Objection):
                raise
            except Exception as error:
                self._end(w, failure_of(self.protocol, agent, now, updates, self._name(phase), error))
            if over and not phase:
                self._contradicted(f"it ended an agent's steps at its step {updates + 1}")
            self._say(w, me, phase)
            if charges.noisy:
                if source.drawn[0] > 1 and world.ledger.limited:
                    self._contradicted("it draws noise more than once in a step, and its budget counts draws")
                charges.count(me.agents_, source.updates, source.drawn)
            plain[w] = charges.plain(me.agents_, source.drawn)[0] and not source.follows[0]
            vectors = me.said_.values() if world.private else me.blocks_.values()
            if not all(_finite(vector) for vector in vectors):
                plain[w] = False
                self._end(w, None, me)

    def _messages(self, phase: int) -> Mapping[str, str]:
        """What a step may send, by name and kind."""
        return SENT[phase] if phase else self.names.messages

    @staticmethod
    def _name(phase: int) -> str:
        return PHASES[phase - 1] if phase else "step"

    def _heard(self, w: int, row: int) -> Array:
        """What half of an exchange has heard, read-only."""
        edge = int(self.plan.steps[w]["edge"])
        kind = "request" if self.plan.steps[w]["phase"] == RESPONDING else "reply"
        width = int(self.names.sent_widths[kind][self.tables.graph.heads[edge]])
        heard = self.world.transport.tables.pool[row, :width].view()
        heard.flags.writeable = False
        return heard

    def _say(self, w: int, me: One, phase: int) -> None:
        """Put what a step says where its plan has it."""
        plan, agent, pool = self.plan, int(me.agents_[0]), self.world.transport.tables.pool
        if phase:
            if phase != COMPLETING:
                message = me.said_.get(MESSAGE)
                if message is None:
                    who = agent, me.now, me.updates
                    self._end(w, failure_of(self.protocol, *who, self._name(phase), UNSENT))
                pool[plan.steps[w]["wrote"], : len(message)] = message
            return
        degree = int(self.degrees[agent])
        place, updates = int(plan.steps[w]["first"]) + self.kinds * degree, me.updates
        for port, name in enumerate(self.names.messages):
            rows = degree if self.ports[port, ADDRESSED] else 1
            period = plan.period[port, agent]
            due = period > 0 and updates % period == plan.phase[port, agent]
            message = me.said_.get(name)
            if due != (message is not None) and degree:
                self._contradicted(f"it {'did not send' if due else 'sent'} {name} at an agent's step {updates + 1}")
            if message is not None and due:
                pool[plan.reads[place : place + rows], : message.shape[-1]] = message
            place += rows

    # In batches.

    def _make_batches(self, total: int, plain: NDArray[np.bool_]) -> None:
        plan, run = self.plan, self.world.transport.tables
        order, bounds = np.empty(total, dtype=np.int64), np.zeros(total + 2, dtype=np.int64)
        marks = (
            np.zeros(len(self.degrees), dtype=np.int64),
            np.zeros(len(run.pool), dtype=np.int64),
            np.empty(total, dtype=np.int64),
        )
        top = order_by_level(plan, self.degrees, self.kinds, marks, order, bounds)
        end, failed = total, None
        for level in range(1, top + 1):
            for places in self._apart(order[bounds[level - 1] : bounds[level]]):
                if end < total:
                    places = places[places < end]
                if not len(places):
                    continue
                try:
                    plain[places] = self._make_batch(places)
                except _Failed as found:
                    end, failed = found.place, found.error
        if end < total:
            self._end(end, failed)

    def _apart(self, places: Ranks) -> list[Ranks]:
        """Steps of one level by their functions, and by the widths of their agents' blocks."""
        if not self.pairs and self._groups is None:
            return [places]
        steps = self.plan.steps[places]
        of = steps["phase"] if self._groups is None else 4 * self._groups[steps["agent"]] + steps["phase"]
        return [places[of == one] for one in np.unique(of)]

    def _make_batch(self, places: Ranks) -> NDArray[np.bool_]:
        """Make some steps at once; whether what each says reveals data without noise.

        Raises
        ------
        _Failed
            With the first of them that fails.
        """
        try:
            batch = self.world.effort.interrupter.step(self._computed, places)
        except (HushnetError, Objection):
            raise
        except Exception as error:
            self._name_failure(places, error)
            raise
        bad = self._unbounded(batch)
        if bad.any():
            raise _Failed(int(places[bad].min()), None)
        return self._written(places, batch)

    def _computed(self, places: Ranks) -> Batch:
        """The record of some steps that have been computed, of which nothing is written yet."""
        steps = self.plan.steps[places]
        phase, pool, graph = int(steps["phase"][0]), self.world.transport.tables.pool, self.tables.graph
        agents = np.ascontiguousarray(steps["agent"])
        self.source.begin(self.plan, pool, agents, steps)
        updates = steps["updates"][:, None]
        passing = {
            "updates": updates,
            "tick": steps["tick"][:, None],
            "round": updates + 1,
            "now": steps["now"][:, None],
        }
        batch = Batch(self.tables, self.source, agents, self._messages(phase), passing)
        if not phase:
            if np.any(self.functions[0](batch)):
                self._contradicted("it ended an agent's steps")
            return batch
        batch.meet_(steps["edge"])
        given: tuple[Any, ...] = ()
        if phase != REQUESTING:
            kind = "request" if phase == RESPONDING else "reply"
            width = int(self.names.sent_widths[kind][graph.heads[steps["edge"][0]]])
            given = (pool[steps["heard"], :width],)
        self.functions[phase - 1](batch, batch.partner_, *given)
        if phase != COMPLETING and MESSAGE not in batch.said_:
            raise ValueError(UNSENT)
        return batch

    def _written(self, places: Ranks, batch: Batch) -> NDArray[np.bool_]:
        """Write what some steps have computed; whether what each says reveals data without noise."""
        agents, source, steps = batch.agents_, self.source, self.source.steps
        batch.write_back_()
        if self.pairs:
            message = batch.said_.get(MESSAGE)
            if message is not None:
                self.world.transport.tables.pool[steps["wrote"], : message.shape[1]] = message
        else:
            self._say_all(batch)
        if self.charges.noisy:
            if self.world.ledger.limited and (source.drawn > 1).any():
                self._contradicted("it draws noise more than once in a step, and its budget counts draws")
            self.charges.count(agents, source.updates, source.drawn)
        return self.charges.plain(agents, source.drawn) & ~source.follows

    def _say_all(self, batch: Batch) -> None:
        """Put what some steps say where their plan has it."""
        source, plan, agents = self.source, self.plan, batch.agents_
        pool, degrees, updates = self.world.transport.tables.pool, self.degrees[batch.agents_], source.updates
        place: Ranks = source.steps["first"] + self.kinds * degrees
        for port, name in enumerate(self.names.messages):
            message, apart = batch.said_.get(name), self.ports[port, ADDRESSED] != 0
            period = plan.period[port, agents]
            due = (period > 0) & (updates % np.maximum(period, 1) == plan.phase[port, agents])
            if message is None:
                if (due & (degrees > 0)).any():
                    self._contradicted(f"it did not send {name}")
            elif not apart:
                spoken = slice(None) if due.all() else due
                pool[plan.reads[place[spoken]], : message.shape[1]] = message[spoken]
            else:
                starts = source.starts
                where, said = np.repeat(place - starts[:-1], degrees) + np.arange(starts[-1]), np.repeat(due, degrees)
                pool[plan.reads[where[said]], : message.shape[1]] = message[said]
            place = place + (degrees if apart else 1)

    def _unbounded(self, batch: Batch) -> NDArray[np.bool_]:
        """(B,) whose step has written a number that is not finite; in a private run, has sent one."""
        state, bad = self.world.state, np.zeros(len(batch.agents_), dtype=bool)
        if self.world.private:
            values = batch.said_
            of_edges = {name for name in values if self.names.is_apart(name)}
        else:
            values = batch.gathered_
            of_edges = values.keys() & state.edge.keys()
        for name, array in values.items():
            if _finite(array):
                continue
            rows = ~np.isfinite(array).all(axis=1)
            if name in of_edges:
                bad[np.repeat(np.arange(len(bad)), batch.degrees_)[rows]] = True
            else:
                bad |= rows
        return bad

    # What ends a plan.

    def _name_failure(self, places: Ranks, error: Exception) -> None:
        """Find which of some steps fails by itself; the first of them in their order."""
        for place in np.sort(places).tolist():
            try:
                self._computed(np.array([place]))
            except (HushnetError, Objection):
                raise
            except Exception as own:
                raise _Failed(place, self._failure(place, own)) from own
        raise self._failure(int(places[0]), error, TOGETHER.format(len(places))) from error

    def _failure(self, place: int, error: Exception, also: str = "") -> HushnetError:
        step = self.plan.steps[place]
        who = int(step["agent"]), float(step["now"]), int(step["updates"])
        return failure_of(self.protocol, *who, self._name(int(step["phase"])), error, also)

    def _end(self, place: int, failure: HushnetError | None, me: One | None = None) -> NoReturn:
        """End the run at a step that has failed, or diverged without an error.

        Raises
        ------
        Rewind
            If the plan has gone beyond it.
        """
        step, world = self.plan.steps[place], self.world
        if int(step["number"]) != world.exact_end:
            raise Rewind(int(step["number"]))
        if failure is not None:
            raise failure
        record: Record | None = me
        if record is None:
            record = batch = self._computed(np.array([place]))
            batch.write_back_()
        kinds = self._messages(int(step["phase"]))
        said = ((kinds[name], rows) for name, rows in record.said_.items() if not _finite(rows))
        kind, rows = next(said, ("", np.zeros((1, 1))))
        rows = rows.reshape(-1, rows.shape[-1])
        agent = world.agents[int(step["agent"])]
        agent.updates, world.ahead = int(step["updates"]), max(world.ahead, float(step["now"]))
        bad = rows[~np.isfinite(rows).all(axis=1)]
        world.check_finite(agent, told=(kind, bad[0]) if len(bad) else None)
        raise RuntimeError("a step diverged, and what it has written is finite")

    def _contradicted(self, what: str) -> NoReturn:
        """End a plan whose step has done something else than its protocol declares."""
        where, name = place_of(self.functions[0]), type(self.protocol).__name__
        if self.batched:
            raise StepFailure(
                f"{where}: {what}, against what {name} declares by sends and most_steps; declare it, or set decides"
            )
        raise Rewind(0, f"{what}, against what {name} declares ({where})")


class _Failed(Exception):
    """A step of a batch has failed, or diverged (without an error)."""

    def __init__(self, place: int, error: HushnetError | None) -> None:
        super().__init__(place)
        self.place, self.error = place, error


def _finite(values: Array) -> bool:
    """Whether all numbers are; the sum of squares is, then, unless it overflows."""
    return math.isfinite(np.vdot(values, values)) or bool(np.isfinite(values).all())


def _ports(tables: StepTables, world: World, around: StepSurroundings, *, pairs: bool) -> Ranks:
    """What a step sends through: a port for each kind.

    Raises
    ------
    NotPlanned
        For layouts that plans do not know.
    """
    names = tables.names
    kinds = ("request", "reply") if pairs else tuple(names.messages.values())
    ports = np.zeros((len(kinds), PORT_COLUMNS), dtype=np.int64)
    for port, kind in zip(ports, kinds, strict=True):
        what, widths = names.layout.messages[kind], names.sent_widths[kind]
        if len(set(widths[widths > 0].tolist())) > 1:
            raise NotPlanned("its messages have different widths")
        if around.some_join and what.addressed and not pairs:
            raise NotPlanned(
                "it sends every neighbour something else, and who joins late is told what it was sent last"
            )
        width = int(widths.max(initial=0))
        port[KIND], port[ADDRESSED], port[VECTORS], port[WIDTH] = (
            names.kinds.index(kind),
            what.addressed,
            what.vectors,
            width,
        )
        port[SIZE] = world.network.size(width)
    return ports


def _declare(plan: Plan, protocol: Any, names: Any) -> None:
    """Fill in what a protocol declares of its steps."""
    most = protocol.most_steps()
    if most is not None:
        plan.most[:] = np.minimum(np.broadcast_to(most, plan.most.shape), np.iinfo(np.int64).max / 2).astype(np.int64)
    declared: Mapping[str, Any] = protocol.sends()
    for port, kind in enumerate(names.messages.values()):
        if kind in declared:
            plan.period[port], plan.phase[port] = declared[kind].period, declared[kind].phase
        plan.period[port, names.sent_widths[kind] == 0] = 0


def _groups(tables: StepTables) -> Ranks | None:
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
