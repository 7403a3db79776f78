"""Making the steps of a plan: in batches of agents whose steps do not depend on each other, or one after the other.

A step depends on the agent's own step before, and on those whose versions it has heard. Batches follow from that alone
(`hushnet.simulator.engine.batched.plan.order_by_level`), so in whatever order they are made, every step reads what it
would have read at its time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from ....agents.authors import place_of
from ....agents.errors import INTERRUPTED, HushnetError, Objection
from ....protocols.steps.charges import NotPlanned, StepCharges
from ....protocols.steps.names import MESSAGE
from ....protocols.steps.record import Batch, One, Record, segments
from ....protocols.steps.single_steps import PHASES, UNSENT, contradiction, failure_of, is_batched
from ....protocols.steps.surroundings import StepSurroundings
from ...tables.sessions import COMPLETING, REQUESTING, RESPONDING
from ...world.rewind import Rewind
from ...world.world import World
from .plan import (
    ADDRESSED,
    READS,
    STEPS,
    charge_plain,
    empty_plan,
    order_by_level,
    put_rows,
    take_rows_back,
)
from .step_ports import declare, finite, groups_of, ports_of

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
        raise NotPlanned(f"{kind.__name__} makes no steps")
    if protocol.picks_partners and "request" in protocol.step_functions:
        raise NotPlanned(f"{kind.__name__} picks partners by a method of its own")
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
    plan : StepPlan
    charges : StepCharges
    ports : (k, PORT_COLUMNS) int64
        What a step sends.
    widest : int or None
        Agents in a batch at most.
    turned : bool
        Whether the agents of a batch are in the opposite order.
    """

    widest: int | None = None
    turned = False

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
            peer=world.peers.__getitem__,
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
        self.degrees, self.kinds = graph.degrees, len(self.names.heard_kinds)
        self.ports = ports_of(self.tables, world, around, pairs=self.pairs)
        self._records: dict[int, One] = {}
        agents, widest = graph.agents, int(self.degrees.max(initial=0))
        steps = max(64, min(2 * agents, MOST))
        apart = self.ports[:, ADDRESSED] != 0
        per_edge, each = self.kinds + int(apart.sum()), len(self.ports)
        mean = float(self.degrees.mean()) if agents else 0.0
        reads = int(steps * (1.25 * per_edge * mean + each)) + 4 * (widest * per_edge + each) + 64
        slots = len(graph.heads) * self.kinds if protocol.asks_what_is_new else 0
        self.plan = empty_plan(agents, each, steps, reads, slots)
        if not self.pairs:
            declare(self.plan, protocol, self.names)
            self.charges.affordable = self.plan.affordable
        self.rows = np.zeros(int(np.where(apart, widest, 1).sum()), dtype=np.int64)
        self._apart_ports, self._always = apart.tolist(), (self.plan.period == 1).all(axis=1).tolist()
        self._groups = groups_of(self.tables)

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
            make = self._make_batches if self.batched else self._make_each
            self.world.effort.interrupter.step(make, total, plain)
        finally:  # also of the steps before one that fails, which ends the run
            charge_plain(self.world.transport.tables, self.plan, self.ports, self.kinds, plain)
            self.plan.counts[[STEPS, READS]] = 0
        take_rows_back(self.world.transport.tables)

    # One after the other.

    def _make_each(self, total: int, plain: NDArray[np.bool_]) -> None:
        plan, source, world = self.plan, self.source, self.world
        steps, private, noisy = plan.steps[:total], world.private, self.charges.noisy
        source.begin(plan, world.transport.tables, steps["agent"], steps)
        firsts = np.ascontiguousarray(steps["first"])
        columns = [steps[name].tolist() for name in ("agent", "phase", "updates", "tick", "now")]
        plain[:] = self.charges.plain(steps["agent"], None)
        for w, (agent, phase, updates, tick, now) in enumerate(zip(*columns, strict=True)):
            me = self._records.get(agent)
            if me is None:
                me = self._records[agent] = One(self.tables, source, agent)
            source.begin_one(me.agents_, me.degrees_, steps[w : w + 1], firsts[w : w + 1])
            me.begin_(self._messages(phase), updates, tick, now)
            try:
                over = self.functions[max(int(phase) - 1, 0)](me, *self._given(w, agent, phase))
            except (HushnetError, Objection, *INTERRUPTED):
                plain[w:] = False
                raise
            except BaseException as error:  # a class of an author's own may derive from it
                plain[w:] = False
                self._end(w, failure_of(self.protocol, agent, now, updates, self._name(phase), error))
            if over and not phase:
                self._contradicted(f"it ended an agent's steps at its step {updates + 1}")
            self._say(w, int(firsts[w]), me, phase)
            if noisy:
                self._count_drawn(me.agents_)
                plain[w] = self.charges.plain(me.agents_, source.drawn)[0]
            if source.follows is not None:
                plain[w] = False
            for vector in me.said_.values() if private else me.vectors_:
                if not finite(vector):
                    plain[w:] = False
                    self._end(w, None, me)

    def _given(self, w: int, agent: int, phase: int) -> tuple[Any, ...]:
        """What half of an exchange is called with: the neighbour's rank, and what it has said."""
        if not phase:
            return ()
        partner = int(self.plan.steps[w]["edge"]) - int(self.tables.graph.offsets[agent])
        return (partner,) if phase == REQUESTING else (partner, self._heard(w))

    def _count_drawn(self, agents: Ranks) -> None:
        """Charge the noise that steps have drawn."""
        drawn = self.source.drawn
        if drawn is not None and self.world.ledger.limited and (drawn > 1).any():
            self._contradicted("it draws noise more than once in a step, and its budget counts draws")
        self.charges.count(agents, self.source.updates, drawn)

    def _messages(self, phase: int) -> Mapping[str, str]:
        """What a step may send, by name and kind."""
        return SENT[phase] if phase else self.names.messages

    @staticmethod
    def _name(phase: int) -> str:
        return PHASES[phase - 1] if phase else "step"

    def _heard(self, w: int) -> Array:
        """What half of an exchange has heard, read-only."""
        step = self.plan.steps[w]
        kind = "request" if step["phase"] == RESPONDING else "reply"
        width = int(self.names.sent_widths[kind][self.tables.graph.heads[int(step["edge"])]])
        heard = self.world.transport.tables.pool[step["heard"], :width].view()
        heard.flags.writeable = False
        return heard

    def _say(self, w: int, first: int, me: One, phase: int) -> None:
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
        degree = me.degree
        place, updates = first + self.kinds * degree, me.updates
        for port, name in enumerate(self.names.messages):
            rows, due, message = degree if self._apart_ports[port] else 1, self._always[port], me.said_.get(name)
            if not due:
                period = int(plan.period[port, agent])
                due = period > 0 and updates % period == plan.phase[port, agent]
            if due != (message is not None) and degree:
                self._contradicted(f"it {'did not send' if due else 'sent'} {name} at an agent's step {updates + 1}")
            if message is not None and due:
                if self._apart_ports[port]:
                    pool[plan.reads[place : place + rows], : message.shape[-1]] = message
                else:
                    pool[plan.reads[place], : len(message)] = message
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
            for places in self._cut(order[bounds[level - 1] : bounds[level]]):
                if end < total:
                    places = places[places < end]
                while len(places):
                    try:
                        plain[places] = self._make_batch(places)
                        break
                    except _Failed as found:
                        end, failed = found.place, found.error
                        places = places[places < end]  # which nothing of has been written yet
        if end < total:
            self._end(end, failed)

    def _cut(self, places: Ranks) -> list[Ranks]:
        """The batches of one level."""
        batches = self._apart(places[::-1] if self.turned else places)
        if self.widest is None:
            return batches
        return [batch[k : k + self.widest] for batch in batches for k in range(0, len(batch), self.widest)]

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
            batch = self._computed(places)
        except (HushnetError, Objection, *INTERRUPTED):
            raise
        except BaseException as error:
            self._name_failure(places, error)
            raise
        bad = self._unbounded(batch)
        if bad.any():
            raise _Failed(int(places[bad].min()), None)
        return self._written(places, batch)

    def _computed(self, places: Ranks) -> Batch:
        """The record of some steps that have been computed, of which nothing is written yet."""
        steps = self.plan.steps[places]
        phase, agents = int(steps["phase"][0]), np.ascontiguousarray(steps["agent"])
        self.source.begin(self.plan, self.world.transport.tables, agents, steps)
        batch = Batch(self.tables, self.source, agents, self._messages(phase), steps)
        if not phase:
            if np.any(self.functions[0](batch)):
                self._contradicted("it ended an agent's steps")
        elif phase == REQUESTING:
            self.functions[0](batch)
        else:
            self.functions[phase - 1](batch, self._all_heard(steps, phase))
        if phase and phase != COMPLETING and MESSAGE not in batch.said_:
            raise _Unsent
        return batch

    def _all_heard(self, steps: Any, phase: int) -> Array:
        """(B, width) what halves of exchanges have heard."""
        kind = "request" if phase == RESPONDING else "reply"
        width = int(self.names.sent_widths[kind][self.tables.graph.heads[int(steps["edge"][0])]])
        heard = self.world.transport.tables.pool[steps["heard"]]
        return heard if heard.shape[1] == width else np.ascontiguousarray(heard[:, :width])

    def _written(self, places: Ranks, batch: Batch) -> NDArray[np.bool_]:
        """Write what some steps have computed; whether what each says reveals data without noise."""
        agents, source, steps = batch.agents_, self.source, self.source.steps
        batch.write_back_()
        if self.pairs:
            message = batch.said_.get(MESSAGE)
            if message is not None:
                put_rows(self.world.transport.tables.pool, steps["wrote"], message)
        else:
            self._say_all(batch)
        if self.charges.noisy:
            self._count_drawn(agents)
        plain = self.charges.plain(agents, source.drawn)
        return plain if source.follows is None else plain & ~source.follows

    def _say_all(self, batch: Batch) -> None:
        """Put what some steps say where their plan has it."""
        source, plan, agents = self.source, self.plan, batch.agents_
        pool, degrees = self.world.transport.tables.pool, source.degrees
        place = source.steps["first"] + self.kinds * degrees
        for port, name in enumerate(self.names.messages):
            message, apart = batch.said_.get(name), self._apart_ports[port]
            if message is None:
                if (self._due(port, agents) & (degrees > 0)).any():
                    self._contradicted(f"it did not send {name}")
            elif apart:
                where = plan.reads[segments(place, degrees)]
                if not self._always[port]:
                    said = np.repeat(self._due(port, agents), degrees)
                    where, message = where[said], message[said]
                put_rows(pool, where, message)
            elif self._always[port]:
                put_rows(pool, plan.reads[place], message)
            else:
                due = self._due(port, agents)
                put_rows(pool, plan.reads[place[due]], message[due])
            place = place + (degrees if apart else 1)

    def _due(self, port: int, agents: Ranks) -> NDArray[np.bool_]:
        """(B,) whether agents send through a port at the steps that are being made."""
        period = self.plan.period[port, agents]
        return (period > 0) & (self.source.updates % np.maximum(period, 1) == self.plan.phase[port, agents])

    def _unbounded(self, batch: Batch) -> NDArray[np.bool_]:
        """(B,) whose step has written a number that is not finite; in a private run, has sent one."""
        bad, state = np.zeros(len(batch.agents_), dtype=bool), self.world.state
        if self.world.private:
            written = [(values, not self.pairs and self.names.is_apart(name)) for name, values in batch.said_.items()]
        else:
            here = batch.__dict__.get("here")
            written = [(values, name in state.edge) for name, values in batch.blocks_.items()]
            written += [] if here is None else [(values, False) for values in here.blocks_.values()]
        for values, of_edges in written:
            if not finite(values):
                rows = np.flatnonzero(~np.isfinite(values).all(axis=1))
                bad[np.repeat(np.arange(len(bad)), batch.degrees_)[rows] if of_edges else rows] = True
        return bad

    # What ends a plan.

    def _name_failure(self, places: Ranks, error: BaseException) -> None:
        """Find which of some steps fails by itself; the first of them in their order."""
        for place in np.sort(places).tolist():
            try:
                self._computed(np.array([place]))
            except (HushnetError, Objection, *INTERRUPTED):
                raise
            except BaseException as own:
                raise _Failed(place, self._failure(place, own)) from own
        raise self._failure(int(places[0]), error, TOGETHER.format(len(places))) from error

    def _failure(self, place: int, error: BaseException, also: str = "") -> HushnetError:
        step = self.plan.steps[place]
        who = int(step["agent"]), float(step["now"]), int(step["updates"])
        what = UNSENT if isinstance(error, _Unsent) else error
        return failure_of(self.protocol, *who, self._name(int(step["phase"])), what, also)

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
        said = ((kinds[name], rows) for name, rows in record.said_.items() if not finite(rows))
        kind, rows = next(said, ("", np.zeros((1, 1))))
        rows = rows.reshape(-1, rows.shape[-1])
        agent = world.agents[int(step["agent"])]
        agent.updates, world.ahead = int(step["updates"]), max(world.ahead, float(step["now"]))
        bad = rows[~np.isfinite(rows).all(axis=1)]
        world.check_finite(agent, told=[(kind, bad[0])] if len(bad) else ())
        raise RuntimeError("a step diverged, and what it has written is finite")

    def _contradicted(self, what: str) -> NoReturn:
        """End a plan whose step has done something else than its protocol declares."""
        if self.batched:
            raise contradiction(self.protocol, self.functions[0], what)
        where, name = place_of(self.functions[0]), type(self.protocol).__name__
        raise Rewind(0, f"{what}, against what {name} declares ({where})")


class _Unsent(Exception):
    """Half of an exchange has not said what it has to send."""


class _Failed(Exception):
    """A step of a batch has failed, or diverged (without an error)."""

    def __init__(self, place: int, error: HushnetError | None) -> None:
        super().__init__(place)
        self.place, self.error = place, error
