"""Runs side by side: the steps that several runs have planned, made in the same batches.

NumPy's price of a batch is the same for five agents and for fifty, and small or dense worlds have narrow batches. Each
run keeps a world, a plan and an event loop of its own; only the arithmetic is done together, so each has the bits that
it would have alone. Before every record of theirs, all of them come to the same time, and their steps are made.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.blocks import State
from ....agents.errors import HushnetError
from ....agents.graph import Graph
from ....agents.loss_codes import UNKNOWN
from ....agents.optimisation.compiled_sums import read_only
from ....agents.tables import Shard
from ....protocols.steps.record import loaders_of
from ....protocols.steps.step_charges import NoiseColumns
from ....protocols.steps.step_names import Names
from ....protocols.steps.step_tables import StepTables
from ...network.randomness import quantise
from ...world.step_form import Rewind
from ..driver import Driver
from .batched_driver import BatchedDriver
from .plan_source import PlanSource
from .planned_batches import BatchMaker, StepsInBatches
from .step_plan import READS, STEPS, StepPlan


@final
class StepsSideBySide(BatchMaker):
    """Makes the planned steps of several runs of one protocol, whose agents follow each other.

    The parts are of runs that have not begun; raises `Apart` if they cannot be made together.
    """

    def __init__(self, parts: Sequence[StepsInBatches]) -> None:
        first = parts[0]
        self._parts = parts
        self.protocol, self.functions, self.pairs = first.protocol, first.functions, first.pairs
        self.private, self.limited, self.kinds, self.ports = first.private, first.limited, first.kinds, first.ports
        for part in parts:
            _check_alike(part, first)
        self.tables = JoinedTables([part.tables for part in parts])
        self.noise = NoiseColumns.joined([part.charges for part in parts])
        seeds, numbers = (np.concatenate([getattr(p.source, name) for p in parts]) for name in ("seeds", "numbers"))
        self.source = PlanSource(self.tables, self.noise, seeds, numbers)
        self._agents = np.cumsum([0, *(part.tables.graph.agents for part in parts)])[:-1]
        self._edges = np.cumsum([0, *(len(part.tables.graph.heads) for part in parts)])[:-1]
        self.plan, self.degrees = self._declared(), self.tables.graph.degrees
        self._pool = np.empty((0, 0))
        self._look_at_ports()

    @property
    @override
    def versions(self) -> Any:
        return _Versions(self._parts)

    @property
    @override
    def pool(self) -> NDArray[np.floating]:
        return self._pool

    @property
    def full_after(self) -> float:
        """Time in which agents make about half of the steps that a plan has room for, if their clocks have rate 1."""
        first = self._parts[0]
        return len(first.plan.steps) / (2 * len(self.functions) * first.tables.graph.agents)

    def make(self) -> None:
        """Make all steps that the runs have planned.

        Raises `Apart` if one of them fails, diverges or does something else than is declared.
        """
        totals = [int(part.plan.counts[STEPS]) for part in self._parts]
        if not sum(totals):
            return
        self._share_pool()
        self._join_plans(totals)
        plain = np.zeros(sum(totals), dtype=np.bool_)
        self._parts[0].world.watchdog.interrupter.step(self._make, len(plain), plain)
        for part, own in zip(self._parts, np.split(plain, np.cumsum(totals)[:-1]), strict=True):
            part.charge(own)
            part.plan_anew()

    def _declared(self) -> StepPlan:
        """A plan without steps, of what all agents declare."""
        plans = [part.plan for part in self._parts]
        period, phase = ([getattr(plan, name) for plan in plans] for name in ("period", "phase"))
        period, phase = np.concatenate(period, axis=1), np.concatenate(phase, axis=1)
        return plans[0]._replace(counts=plans[0].counts.copy(), period=period, phase=phase)

    def _share_pool(self) -> None:
        """Let the versions of all runs be parts of one pool, where some have grown since the last time."""
        pools = [part.pool for part in self._parts]
        self._rows = np.cumsum([0, *map(len, pools)])
        if len(self._pool) and all(pool.base is self._pool for pool in pools):
            return
        self._pool = np.concatenate(pools)
        for part, (begin, end) in zip(self._parts, pairwise(self._rows.tolist()), strict=True):
            part.world.transport.inbox.pool = self._pool[begin:end]

    def _join_plans(self, totals: Sequence[int]) -> None:
        """Put the runs' steps and what they read one after the other, with the places of agents and rows here."""
        plans = [part.plan for part in self._parts]
        steps: Any = np.empty(sum(totals), dtype=plans[0].steps.dtype)
        for plan, total, end in zip(plans, totals, np.cumsum(totals), strict=True):
            steps[end - total : end] = plan.steps[:total]
        ends = [int(plan.counts[READS]) for plan in plans]
        reads, news = (
            [getattr(plan, name)[:end] for plan, end in zip(plans, ends, strict=True)] for name in ("reads", "news")
        )
        firsts = np.cumsum([0, *map(len, reads)])[:-1]
        shifts = {"agent": self._agents, "first": firsts, "edge": self._edges}
        for name, shift in {**shifts, "heard": self._rows[:-1], "wrote": self._rows[:-1]}.items():
            column = steps[name]
            column += np.where(column >= 0, np.repeat(shift, totals), 0)
        shifted = [np.where(own >= 0, own + row, -1) for own, row in zip(reads, self._rows.tolist(), strict=False)]
        self.plan = self.plan._replace(steps=steps, reads=np.concatenate(shifted), news=np.concatenate(news))
        self.plan.counts[[STEPS, READS]] = sum(totals), sum(ends)

    @override
    def _name_failure(self, places: Any, error: BaseException) -> NoReturn:
        raise Apart("a step of one of them failed") from error

    @override
    def _end(self, place: int, failure: HushnetError | None) -> NoReturn:
        raise Apart("one of them diverges")

    @override
    def _contradicted(self, what: str) -> NoReturn:
        raise Apart(what)


class _Versions:
    """Versions of all runs, one run's after the other's, by the name of their field."""

    def __init__(self, parts: Sequence[StepsInBatches]) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> NDArray[Any]:
        return np.concatenate([part.versions[name] for part in self._parts])


def _check_alike(part: StepsInBatches, first: StepsInBatches) -> None:
    """Refuse a run whose steps are not of the same kind as the first one's; raises `Apart`."""
    if part.functions != first.functions or part.plan.period.shape[0] != first.plan.period.shape[0]:
        raise Apart("their steps are bound to their own runs")
    if part.tables.attackers is not None:
        raise Apart("some of their agents are byzantine")
    if (part.private, part.limited, part.pairs) != (first.private, first.limited, first.pairs):
        raise Apart("some of them are private")
    one, other = part.pool, first.pool
    if (one.shape[1], one.dtype) != (other.shape[1], other.dtype) or not np.array_equal(part.ports, first.ports):
        raise Apart("their messages differ in width")
    one, other = part.charges, first.charges
    same = (one.noisy, one.mechanism, one.growth is None) == (other.noisy, other.mechanism, other.growth is None)
    if not same or one.scales.shape[1] != other.scales.shape[1]:
        raise Apart("their noise differs")


def run_side_by_side(drivers: Sequence[Driver]) -> None:
    """Run worlds that have not begun to their ends, which are all at one time.

    Raises `Apart` if they have to be run one by one; so have they where any run ends before its time, with an error.
    """
    steps = StepsSideBySide([_planned(driver) for driver in drivers])
    try:
        watchdogs = [driver.world.watchdog for driver in drivers]
        with drivers[0].running():
            for watchdog in watchdogs:
                watchdog.runs, watchdog.interrupter = len(drivers), watchdogs[0].interrupter
                watchdog.begin()
            for driver in drivers:
                driver.begin_run()
            for now in _instants(drivers[0], steps.full_after):
                for driver in drivers:
                    driver.advance(now)
                steps.make()
            for driver in drivers:
                driver.finish_run()
    except Rewind as rewind:
        raise Apart("a step ends it") from rewind
    except HushnetError as error:
        raise Apart(str(error)) from error


def _planned(driver: Driver) -> StepsInBatches:
    """Return the maker of steps of a run that ends at a time and is read at times; raises `Apart` otherwise."""
    planned = driver.planned if isinstance(driver, BatchedDriver) else None
    if not isinstance(planned, StepsInBatches):
        raise Apart("their steps are not made in batches")
    world = driver.world
    if world.setting.stop.time is None or world.record_activations or world.observer is not None:
        raise Apart("they are looked at, or end, by what happens in them")
    return planned


def _instants(driver: Driver, most: float) -> Iterable[float]:
    """Times at which all steps are made: when states are read, and at most so much apart."""
    world = driver.world
    assert world.setting.stop.time is not None
    every = world.record_time if world.recorder and world.record_time else math.inf
    reads, now, end = 1, 0.0, quantise(world.setting.stop.time)
    while now < end:
        due = quantise(reads * every) if every < math.inf else math.inf
        now = min(quantise(now + most), due, end)
        reads += now == due
        yield now


class Apart(Exception):
    """Raised if runs cannot be made side by side; the message is the reason."""


@dataclass(frozen=True)
class JoinedTask:
    """Parts of the tasks of several runs that steps in batches read.

    The regularisation is (n,) float64; ``columns`` and ``model`` are None: features are not split, and models are
    linear.
    """

    loss: Any
    dimension: int
    regularisation: NDArray[np.float64]
    columns: None = None
    model: None = None


class JoinedTables(StepTables):
    """The tables of several runs of one protocol, whose agents follow each other.

    The blocks of the parts are views of one block from then on. Raises `Apart` if a step of theirs might read something
    that differs from run to run.
    """

    def __init__(self, parts: Sequence[StepTables]) -> None:
        self._parts = parts
        self._firsts = np.cumsum([0, *(part.graph.agents for part in parts)])
        _check_equal(parts)
        joined = Graph.joined([part.graph for part in parts])
        regularisation = np.concatenate([np.asarray(part.task.regularisation) for part in parts])
        task = JoinedTask(parts[0].loss, parts[0].dimension, regularisation)
        names, state = _joined_names([part.names for part in parts]), State.joined([part.state for part in parts])
        super().__init__(names, state, task, joined, unheard_is_own=parts[0].unheard_is_own)
        for part in parts:
            part.own.clear()  # of the blocks that it had
        offsets = [part.rows[2] for part in parts]
        ends = np.cumsum([0, *(own[-1] for own in offsets)])
        begins = [own[:-1] + begin for own, begin in zip(offsets, ends[:-1], strict=True)]
        self.counts = np.concatenate([part.counts for part in parts])
        self.rows = (
            read_only(np.concatenate([part.rows[0] for part in parts])),
            read_only(np.concatenate([part.rows[1] for part in parts])),
            read_only(np.concatenate([*begins, ends[-1:]])),
        )
        self.loaders = loaders_of(self)

    @override
    def shard(self, agent: int) -> Shard:
        part, own = self._part_of(agent)
        return part.shard(own)

    @override
    def open_at(self, agent: int, tick: int, now: float) -> NDArray[np.bool_]:
        part, own = self._part_of(agent)
        return part.open_at(own, tick, now)

    def _part_of(self, agent: int) -> tuple[StepTables, int]:
        """The run of an agent, and which it is there."""
        rank = int(np.searchsorted(self._firsts, agent, side="right")) - 1
        return self._parts[rank], agent - int(self._firsts[rank])


def _joined_names(parts: Sequence[Names]) -> Names:
    """The names of several runs; what belongs to an agent or an edge, one run after the other."""
    names = copy.copy(parts[0])

    def joined(what: str) -> dict[str, Any]:
        return {name: np.concatenate([getattr(part, what)[name] for part in parts]) for name in getattr(parts[0], what)}

    names.per_agent, names.per_edge = joined("per_agent"), joined("per_edge")
    names.sent_widths, names.heard_widths = joined("sent_widths"), joined("heard_widths")
    names.roles = np.concatenate([part.roles for part in parts])
    return names


def _check_equal(parts: Sequence[StepTables]) -> None:
    """Raise `Apart` for runs of which a step may read what is the same for all agents of a run, and differs."""
    first = parts[0]
    for part in parts:
        table: list[Any] = [part.rows[0], first.rows[0]]
        if part.code == UNKNOWN or not isinstance(table[0], np.ndarray):
            raise Apart("their rows are read agent by agent")
        if part.shared_noise is not None:
            raise Apart("their agents share noise")
        for what in ("code", "clip", "clip_mean", "dimension", "unheard_is_own", "mirrors"):
            if getattr(part, what) != getattr(first, what):
                raise Apart(f"they differ in {what}")
        one, other = part.names, first.names
        same = one.parameters == other.parameters and one.run.keys() == other.run.keys()
        if not same or any(one.run[name].tobytes() != other.run[name].tobytes() for name in one.run):
            raise Apart("their parameters or constants differ")
        own, others = (str((rows.dtype, rows.shape[1:])) for rows in table)
        if own != others:
            raise Apart("their rows differ in width")
        widths = [
            {name: block.width if block.uniform else None for name, block in of.items()}
            for of in (part.state.agent, part.state.edge, first.state.agent, first.state.edge)
        ]
        if widths[:2] != widths[2:] or None in {*widths[0].values(), *widths[1].values()}:
            raise Apart("their blocks differ in width")
