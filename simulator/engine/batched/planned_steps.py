"""Making the steps of a plan: in batches of agents whose steps do not depend on each other, or one after the other.

A step depends on the agent's own step before, and on those whose versions it has heard. Batches follow from that alone
(`hushnet.simulator.engine.batched.plan.find_levels`), so in whatever order they are made, every step reads what it
would have read at its time.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
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
from ...tables.tallies import FREE_ROWS
from ...world.rewind import Rewind
from ...world.world import World
from .plan import (
    ADDRESSED,
    READS,
    STEPS,
    charge_plain,
    empty_plan,
    find_levels,
    take_rows_back,
)
from .step_ports import declare, finite, groups_of, ports_of

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
SENT = {REQUESTING: {MESSAGE: "request"}, RESPONDING: {MESSAGE: "reply"}, COMPLETING: {}}
"""What each half of an exchange may send, by name and kind."""
LEAST, MOST, NEAR = 2**11, 2**17, 2**21
"""Steps of a plan: two wake-ups an agent, or as many as write so many bytes, where so few agents make at least and at
most so many steps. Longer plans have wider batches, but what these read no longer stays near."""
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
        self._one = One(self.tables, self.source)
        agents, widest = graph.agents, int(self.degrees.max(initial=0))
        near = NEAR // (8 * world.transport.tables.pool.shape[1])
        steps = min(max(2 * len(self.functions) * agents, min(LEAST, near), 64), MOST)
        apart = self.ports[:, ADDRESSED] != 0
        per_edge, each = self.kinds + int(apart.sum()), len(self.ports)
        mean = float(self.degrees.mean()) if agents else 0.0
        self.most_reads = widest * per_edge + each
        reads = int(steps * (1.25 * per_edge * mean + each)) + 4 * self.most_reads + 64
        slots = len(graph.heads) * self.kinds if protocol.asks_what_is_new else 0
        self.plan = empty_plan(agents, each, steps, reads, slots)
        self._writes = int(steps * np.where(apart, mean, 1.0).sum())
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

    @property
    def is_full(self) -> bool:
        """Whether the next step might not fit into the plan, or what it writes among the versions."""
        plan, free = self.plan, self.world.transport.tables.counts[FREE_ROWS]
        steps, reads = len(plan.steps) - plan.counts[STEPS], len(plan.reads) - plan.counts[READS]
        return bool(steps == 0 or reads < self.most_reads or free < len(self.rows))

    def make(self) -> None:
        """Make all planned steps, and plan anew: with room for as many versions as the next ones write.

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
        transport = self.world.transport
        take_rows_back(transport.tables)
        held = len(transport.tables.pool) - int(transport.tables.counts[FREE_ROWS])
        transport.make_room(min(self._writes, max(held, LEAST)), 0)

    # One after the other.

    def _make_each(self, total: int, plain: NDArray[np.bool_]) -> None:
        source, private = self.source, self.world.private
        functions: Any = self.functions
        self._open(self.plan.steps[:total], np.arange(total))
        columns = [source.window[name].tolist() for name in ("agent", "phase", "updates", "tick", "now")]
        me, messages, noisy, w = self._one, self.names.messages, self.charges.noisy, 0
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
                if over and not phase:
                    self._contradicted(f"it ended an agent's steps at its step {updates + 1}")
                self._say(w, me, phase)
                if noisy or source.follows is not None:
                    self._charge(slice(w, w + 1))
                for vector in me.said_.values() if private else me.blocks_.values():
                    if not finite(vector):
                        self._end(w, None, me)
            w = total
        finally:
            plain[:w] = self._plain[:w]

    def _given(self, w: int, phase: int) -> tuple[Any, ...]:
        """What half of an exchange is called with: the neighbour's rank, and what it has said."""
        step, graph = self.source.window[w], self.tables.graph
        edge = int(step["edge"])
        partner = edge - int(graph.offsets[step["agent"]])
        if phase == REQUESTING:
            return (partner,)
        heard = self.world.transport.tables.pool[step["heard"], : self._heard_width(edge, phase)].view()
        heard.flags.writeable = False
        return partner, heard

    def _heard_width(self, edge: int, phase: int) -> int:
        """Numbers of what half of an exchange has heard over an edge."""
        return int(self.names.sent_widths["request" if phase == RESPONDING else "reply"][self.tables.graph.heads[edge]])

    def _say(self, w: int, me: One, phase: int) -> None:
        """Put what a step says where its plan has it."""
        pool, said = self.world.transport.tables.pool, me.said_
        if phase:
            if phase != COMPLETING:
                message = said.get(MESSAGE)
                if message is None:
                    who = me.agent, me.now, me.updates
                    self._end(w, failure_of(self.protocol, *who, self._name(phase), UNSENT))
                pool[self._wrote[w], : len(message)] = message
            return
        for port, name in enumerate(self.names.messages):
            message, due, place = said.get(name), self._due[port], self._places[port][w]
            is_due = due is None or due[w]
            if is_due != (message is not None) and me.degree:
                what = "did not send" if is_due else "sent"
                self._contradicted(f"it {what} {name} at an agent's step {me.updates + 1}")
            if message is None or not is_due:
                continue
            if self._apart_ports[port]:
                pool[self.plan.reads[place : place + me.degree], : message.shape[-1]] = message
            else:
                pool[place, : len(message)] = message

    # In batches.

    def _make_batches(self, total: int, plain: NDArray[np.bool_]) -> None:
        order, bounds = self._order(total)
        self._open(self.plan.steps[order], order)
        done, end, failed = 0, total, None
        try:
            for begin, stop in pairwise(bounds):
                places: Any = slice(begin, stop)
                while True:
                    if end < total:  # of which nothing has been written yet
                        places = begin + np.flatnonzero(order[begin:stop] < end)
                        if not len(places):
                            break
                    try:
                        self._make_batch(places)
                        break
                    except _Failed as found:
                        end, failed = found.place, found.error
                done = stop
        finally:
            plain[order[:done]] = self._plain[:done]
            plain[end:] = False
        if end < total:
            self._end(end, failed)

    def _order(self, total: int) -> tuple[Ranks, list[int]]:
        """Steps in the order in which they are made, and where batches begin and end in it.

        The steps of a batch are of one level, one function, and agents whose blocks have the same widths.
        """
        plan, run, keys = self.plan, self.world.transport.tables, np.empty(total, dtype=np.int64)
        marks = np.zeros(len(self.degrees), dtype=np.int64), np.zeros(len(run.pool), dtype=np.int64)
        find_levels(plan, self.degrees, self.kinds, marks, keys)
        steps = plan.steps[:total]
        if self.pairs:
            keys = (COMPLETING + 1) * keys + steps["phase"]
        if self._groups is not None:
            keys = (self._groups.max() + 1) * keys + self._groups[steps["agent"]]
        if self.turned:
            order = total - 1 - np.argsort(keys[::-1], kind="stable")
        else:
            order = np.argsort(keys, kind="stable")
        cuts = [0, *(np.flatnonzero(np.diff(keys[order])) + 1).tolist(), total]
        widest = self.widest or total
        return order, [k for begin, stop in pairwise(cuts) for k in range(begin, stop, widest)] + [total]

    def _open(self, steps: Any, order: Ranks) -> None:
        """Take up steps in the order in which they are made: which of the plan they are, and where what they say is."""
        source, plan = self.source, self.plan
        source.open(plan, self.world.transport.tables, steps.view(np.ndarray))
        self._made, agents = order, source.all_agents
        self._plain = self.charges.plain(agents, None)
        if self.pairs:
            self._heard, self._wrote = (np.ascontiguousarray(source.window[name]) for name in ("heard", "wrote"))
            return
        place, updates = source.window["first"] + self.kinds * source.all_degrees, source.window["updates"]
        self._places, self._due = list[Ranks](), list[NDArray[np.bool_] | None]()
        for port, apart in enumerate(self._apart_ports):
            period, phase = plan.period[port, agents], plan.phase[port, agents]
            due = (period > 0) & (updates % np.maximum(period, 1) == phase)
            self._due.append(None if self._always[port] else due)
            self._places.append(place if apart else plan.reads[place])
            place = place + (source.all_degrees if apart else 1)

    def _make_batch(self, places: Any) -> None:
        """Make some steps at once, and write what they say.

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
        if bad is not None:
            raise _Failed(int(self._made[places][bad].min()), None)
        batch.write_back_()
        if not self.pairs:
            self._say_all(places, batch)
        elif MESSAGE in batch.said_:
            self._put(self._wrote[places], batch.said_[MESSAGE])
        self._charge(places)

    def _computed(self, places: Any) -> Batch:
        """The record of some steps that have been computed, of which nothing is written yet."""
        source = self.source
        source.begin(places)
        steps = source.steps
        phase = int(steps["phase"][0]) if self.pairs else 0
        batch = Batch(self.tables, source, source.agents, SENT[phase] if phase else self.names.messages, steps)
        if not phase:
            over = self.functions[0](batch)
            if over is not None and np.any(over):
                self._contradicted("it ended an agent's steps")
        elif phase == REQUESTING:
            self.functions[0](batch)
        else:
            pool, width = source.run.pool, self._heard_width(int(steps["edge"][0]), phase)
            heard = pool.take(self._heard[places], 0)
            self.functions[phase - 1](batch, heard if heard.shape[1] == width else heard[:, :width].copy())
        if phase and phase != COMPLETING and MESSAGE not in batch.said_:
            raise _Unsent
        return batch

    def _say_all(self, places: Any, batch: Batch) -> None:
        """Put what some steps say where their plan has it."""
        degrees = batch.degrees_
        for port, name in enumerate(self.names.messages):
            message, due, where = batch.said_.get(name), self._due[port], self._places[port][places]
            if due is not None:
                due = due[places]
            if message is None:
                if (degrees > 0 if due is None else due & (degrees > 0)).any():
                    self._contradicted(f"it did not send {name}")
                continue
            if self._apart_ports[port]:
                where = self.plan.reads[segments(where, degrees)]
                due = None if due is None else np.repeat(due, degrees)
            if due is not None:
                where, message = where[due], message[due]
            self._put(where, message)

    def _put(self, rows: Ranks, message: Array) -> None:
        """Write (k, width) vectors into the first columns of so many rows of the pool."""
        pool = self.source.run.pool
        if message.shape[1] == pool.shape[1]:
            pool[rows] = message
        else:
            pool[rows, : message.shape[1]] = message

    def _charge(self, places: Any) -> None:
        """Charge the noise that some steps have drawn, and note whether what they say reveals data without any."""
        source, charges = self.source, self.charges
        if charges.noisy:
            drawn = source.drawn
            if drawn is not None and self.world.ledger.limited and (drawn > 1).any():
                self._contradicted("it draws noise more than once in a step, and its budget counts draws")
            charges.count(source.agents, source.updates, drawn)
            self._plain[places] = charges.plain(source.agents, drawn)
        if source.follows is not None:
            self._plain[places] &= ~source.follows

    def _unbounded(self, batch: Batch) -> NDArray[np.bool_] | None:
        """(B,) whose step has written a number that is not finite; in a private run, has sent one. None if none has."""
        state = self.world.state
        if self.world.private:
            written = [(values, not self.pairs and self.names.is_apart(name)) for name, values in batch.said_.items()]
        else:
            here = batch.__dict__.get("here")
            written = [(values, name in state.edge) for name, values in batch.blocks_.items()]
            written += [] if here is None else [(values, False) for values in here.blocks_.values()]
        bad = None
        for values, of_edges in written:
            if not finite(values):
                bad = np.zeros(len(batch.agents_), dtype=bool) if bad is None else bad
                rows = np.flatnonzero(~np.isfinite(values).all(axis=1))
                bad[np.repeat(np.arange(len(bad)), batch.degrees_)[rows] if of_edges else rows] = True
        return bad

    # What ends a plan.

    def _name_failure(self, places: Any, error: BaseException) -> None:
        """Find which of some steps fails by itself; the first of them in their order."""
        ranks = np.sort(self._made[places])
        for place in ranks.tolist():
            try:
                self._computed(np.flatnonzero(self._made == place))
            except (HushnetError, Objection, *INTERRUPTED):
                raise
            except BaseException as own:
                raise _Failed(place, self._failure(place, own)) from own
        raise self._failure(int(ranks[0]), error, TOGETHER.format(len(ranks))) from error

    def _failure(self, place: int, error: BaseException, also: str = "") -> HushnetError:
        step = self.plan.steps[place]
        who = int(step["agent"]), float(step["now"]), int(step["updates"])
        what = UNSENT if isinstance(error, _Unsent) else error
        return failure_of(self.protocol, *who, self._name(int(step["phase"])), what, also)

    @staticmethod
    def _name(phase: int) -> str:
        return PHASES[phase - 1] if phase else "step"

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
            record = batch = self._computed(np.flatnonzero(self._made == place))
            batch.write_back_()
        kinds = SENT[int(step["phase"])] if step["phase"] else self.names.messages
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
