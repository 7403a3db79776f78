"""Making the steps of a plan in batches."""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.authors import place_of
from ....agents.blocks import real, rounded
from ....agents.errors import INTERRUPTED, HushnetError, Objection, Undeclared
from ....protocols.steps.batch_record import Batch
from ....protocols.steps.record import Record, segments
from ....protocols.steps.single_steps import UNSENT, contradiction, failure_of, is_batched
from ....protocols.steps.step_charges import NotPlanned
from ....protocols.steps.step_names import MESSAGE
from ...tables.session_table import COMPLETING, REQUESTING
from ...world.agent_records import finite
from ...world.world import World
from .planned_steps import SENT, Array, PlannedSteps, Ranks, StepMaker, StepsInTurn
from .step_plan import find_levels

NUMBERS = 2**23
"""Numbers that a batch has at most in each array that it computes, beyond those of one agent."""
TOGETHER = (
    "it was made for {} agents at once, and passes for each alone: vectors of agents are rows here, and their numbers "
    "columns (np.where or me.where in place of if, axis=1, per_edge)"
)


class _Wrong(Exception):
    """Steps have not sent what they have to, or done something else than their protocol declares.

    It has what they do, the kind of the message that is declared otherwise, and whether it is against what is declared.
    """

    def __init__(self, what: str, kind: str = "", *, declared: bool = True) -> None:
        super().__init__(what)
        self.what, self.kind, self.declared = what, kind, declared


class _Failed(Exception):
    """A step of a batch has failed, or diverged (without an error)."""

    def __init__(self, place: int, error: HushnetError | None) -> None:
        super().__init__(place)
        self.place, self.error = place, error


class BatchMaker(StepMaker):
    """Makes planned steps in batches of agents whose steps do not depend on each other.

    The ``widest`` batch has so many agents; by default as many as have `NUMBERS` in one block. In one that is
    ``turned`` agents are in the opposite order.
    """

    widest: int | None = None
    turned = False

    @override
    def _make(self, total: int, plain: NDArray[np.bool_]) -> None:
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

        The steps of a batch are of one level, one function, and agents whose blocks have the same widths; all of them
        send a message of a kind, or none does.
        """
        keys, steps = self._levels(total), self.plan.steps[:total]
        if self.pairs:
            keys = (COMPLETING + 1) * keys + steps["phase"]
        for port in () if self.pairs else np.flatnonzero(~np.array(self._always)).tolist():
            keys = 2 * keys + self._is_due(port, steps["agent"], steps["updates"])
        if self._groups is not None:
            keys = (self._groups.max() + 1) * keys + self._groups[steps["agent"]]
        if self.turned:
            order = total - 1 - np.argsort(keys[::-1], kind="stable")
        else:
            order = np.argsort(keys, kind="stable")
        cuts = [0, *(np.flatnonzero(np.diff(keys[order])) + 1).tolist(), total]
        widest = self.widest or max(1, NUMBERS // self.pool.shape[1])
        return order, [k for begin, stop in pairwise(cuts) for k in range(begin, stop, widest)] + [total]

    def _levels(self, total: int) -> Ranks:
        """(total,) levels of steps: one more than the highest of those that a step depends on."""
        levels = np.empty(total, dtype=np.int64)
        marks = np.zeros(len(self.degrees), dtype=np.int64), np.zeros(len(self.pool), dtype=np.int64)
        find_levels(self.plan, self.degrees, self.kinds, marks, levels)
        return levels

    @abstractmethod
    def _name_failure(self, places: Any, error: BaseException) -> None:
        """Raise `_Failed` with the first of some steps that fails by itself, if one does."""

    def _make_batch(self, places: Any) -> None:
        """Make some steps at once, and write what they say; raises `_Failed` with the first of them that fails."""
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
            kind, edges = batch.messages_[MESSAGE], self.source.steps["edge"]
            batch.said_[MESSAGE] = self._leaving(batch, kind, batch.said_[MESSAGE], edges)
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
            self._check_declared(places, batch, self.functions[0](batch))
        elif phase == REQUESTING:
            self.functions[0](batch)
        else:
            pool, width = source.pool, self._heard_width(phase)
            heard = real(pool.take(self._heard[places], 0))
            self.functions[phase - 1](batch, heard if heard.shape[1] == width else heard[:, :width].copy())
        if phase and phase != COMPLETING and MESSAGE not in batch.said_:
            raise _Wrong(UNSENT, declared=False)
        return batch

    def _sends(self, port: int, places: Any) -> bool:
        """True if the steps of a batch send a kind, as all of them do or none."""
        due = self._due[port]
        return due is None or bool(due[places][0])

    def _check_declared(self, places: Any, batch: Batch, over: Any) -> None:
        """Refuse steps that send otherwise than declared, or are their agents' last."""
        heard = (batch.degrees_ > 0).any()
        for port, (name, kind) in enumerate(self.names.messages.items() if heard else ()):
            sends = self._sends(port, places)
            if sends != (name in batch.said_):
                raise _Wrong(f"{'does not send' if sends else 'sends'} {name}", kind)
        if over is not None and np.any(over):
            raise _Wrong("falls silent")

    def _say_all(self, places: Any, batch: Batch) -> None:
        """Put what some steps say where their plan has it."""
        for port, (name, kind) in enumerate(self.names.messages.items()):
            if name in batch.said_ and self._sends(port, places):
                where = self._places[port][places]
                if self._apart_ports[port]:
                    where = self.plan.reads[segments(where, batch.degrees_)]
                self._put(where, self._leaving(batch, kind, batch.said_[name]))

    def _put(self, rows: Ranks, message: Array) -> None:
        """Write (k, width) vectors into the first columns of so many rows of the pool."""
        pool = self.source.pool
        if message.shape[1] == pool.shape[1]:
            pool[rows] = message
        else:
            pool[rows, : message.shape[1]] = message

    def _unbounded(self, batch: Batch) -> NDArray[np.bool_] | None:
        """(B,) whose step has written a number that is not finite; in a private run, has sent one. None if none has."""
        state, names, said = self.tables.state, batch.messages_, batch.said_
        if self.private:
            written = [(one, not self.pairs and names[name] in self.tables.addressed) for name, one in said.items()]
        else:
            here = batch.__dict__.get("here")
            written = [(values, name in state.edge) for name, values in batch.blocks_.items()]
            written += [] if here is None else [(values, False) for values in here.blocks_.values()]
        bad = None
        if not self.tables.exact:
            written = [(rounded(values, state.precision), of_edges) for values, of_edges in written]
        for values, of_edges in written:
            if not finite(values):
                bad = np.zeros(len(batch.agents_), dtype=bool) if bad is None else bad
                rows = np.flatnonzero(~np.isfinite(values).all(axis=1))
                bad[np.repeat(np.arange(len(bad)), batch.degrees_)[rows] if of_edges else rows] = True
        return bad


@final
class StepsInBatches(BatchMaker, PlannedSteps):
    """Planned steps of one run that are made in batches."""

    @override
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
        if isinstance(error, _Wrong) and error.declared:
            return contradiction(self.protocol, self.functions[0], *who, error.what, error.kind)
        what = error.what if isinstance(error, _Wrong) else error
        return failure_of(self.protocol, *who, self._name(int(step["phase"])), what, also)

    @override
    def _diverged(self, place: int) -> Record:
        batch = self._computed(np.flatnonzero(self._made == place))
        batch.write_back_()
        return batch

    @override
    def _contradicted(self, what: str) -> NoReturn:
        name = type(self.protocol).__name__
        raise Undeclared(f"{place_of(self.functions[0])}: {what}, against what {name} declares; set decides")


def planned_steps(world: World) -> PlannedSteps:
    """Return the maker of a world's planned steps; raises `NotPlanned` if its steps have to be made one by one."""
    protocol, kind = world.protocol, type(world.protocol)
    if world.watch is not None:
        raise NotPlanned("every step is watched")
    if world.one_by_one:
        raise NotPlanned(world.one_by_one)
    if world.sessions is None and world.in_rounds is None and world.traits.trigger == "message":
        raise NotPlanned(f"{kind.__name__} reacts to single messages that it is sent")
    if world.sessions is None and world.in_rounds is None and world.traits.inbox != "latest":
        raise NotPlanned(f"{kind.__name__} reads every message that it is sent")
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
    return StepsInBatches(world) if forms == {True} else StepsInTurn(world)
