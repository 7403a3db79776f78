"""Inputs and random draws of planned steps: the versions that a plan names, and streams at each step's own tick."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.streams import Generator, beginnings, generator
from ....agents.tables import Shard
from ....protocols.steps.kernels import (
    FILLS,
    choose_each,
    choose_rows,
    fill_normal,
    fill_uniform,
    table_starts,
)
from ....protocols.steps.record import segments
from ....protocols.steps.step_charges import NoiseColumns
from ....protocols.steps.step_tables import OWN, SAMPLING, Nobody, StepSource, StepTables
from ...tables.run import RunTables
from .step_plan import StepPlan

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


class PlannedSource(StepSource):
    """Steps of a plan, or some of them.

    Attributes
    ----------
    agents : (B,) int64
        The agents that make the steps.
    plan : StepPlan
    run : RunTables
        Tables that hold the versions.
    tables : StepTables
    charges : NoiseColumns
    """

    agents: Ranks
    plan: StepPlan
    run: RunTables
    tables: StepTables
    charges: NoiseColumns

    @property
    @abstractmethod
    def steps(self) -> Any:
        """(B,) STEP of those that are being made."""

    @abstractmethod
    def draw(self, purpose: str, kernel: Callable[..., Any], *given: Any) -> None:
        """Let a kernel draw from the steps' streams, which go on."""

    @abstractmethod
    def drew(self, noisy: NDArray[np.bool_]) -> None:
        """Count the steps that have drawn noise."""

    @override
    def sent_at(self, kind: str) -> Array:
        rows = self.plan.reads[self._places(kind)]
        return np.where(rows >= 0, self.run.versions["sent_at"][rows], -np.inf)

    @override
    def is_new(self, kind: str) -> NDArray[np.bool_]:
        return self.plan.news[self._places(kind)]

    def _places(self, kind: str) -> Ranks:
        """(R,) where the plan has what was heard of a kind."""
        return segments(*self.heard_at(kind, 0)[2:])

    @override
    def rows(self) -> tuple[Any, Array, Ranks, Ranks]:
        return *self.tables.rows, self.agents

    @override
    def shard(self, agent: int) -> Shard:
        return self.tables.shard(agent)

    def _noise(self, width: int) -> Array:
        """(B, width) noise of the steps' releases, which is counted."""
        noisy, out = self.charges.undrawn_bits[self.agents] != 0, np.empty((len(self.agents), width))
        scales = self.charges.scales_at(self.agents, self.steps["updates"])
        self.draw("noise", FILLS[self.charges.mechanism], scales, noisy, out)
        self.drew(noisy)
        self._tell("noise", out[noisy].ravel(), table_starts(noisy * width))
        return out

    def _tell(self, what: str, numbers: NDArray[Any], starts: Ranks) -> None:
        if self.tables.tell is not None:
            self.tables.tell(what, self.agents, self.steps["tick"], self.steps["now"], numbers, starts)

    @override
    def perturb(self, values: Array) -> Array:
        if not self.charges.noisy:
            return values
        declared = self.tables.protocol.step_noise.dimension
        if declared and values.shape[1] != declared:
            raise ValueError("the vector to be perturbed has not the dimension that the release declares")
        return values + self._noise(values.shape[1])

    @override
    def perturb_objective(
        self, weights: Array, curvatures: Array, linear: Array, influences: Array, minimise: Callable[[Array], Array]
    ) -> Array:
        if not self.charges.noisy:
            return minimise(linear)
        return minimise(linear - influences[:, None] * self._noise(linear.shape[1]))

    @override
    def uniforms(self, count: int) -> Array:
        out = np.empty((len(self.agents), count))
        self.draw(OWN, fill_uniform, out)
        return out

    @override
    def normals(self, count: int) -> Array:
        out = np.empty((len(self.agents), count))
        self.draw(OWN, fill_normal, np.ones(len(out)), np.ones(len(out), dtype=bool), out)
        return out

    @override
    def choose(self, purpose: str, populations: Ranks, counts: Ranks) -> tuple[Ranks, Ranks]:
        starts = table_starts(counts)
        ranks = np.empty(int(starts[-1]), dtype=np.int64)
        self.draw(purpose, choose_rows, populations, starts, ranks)
        if purpose == SAMPLING:
            self._tell("rows", ranks, starts)
        return ranks, starts

    @override
    def choose_each(self, shares: Array) -> tuple[Ranks, Ranks]:
        rows = self.tables.counts[self.agents]
        starts, ranks = np.empty(len(rows) + 1, dtype=np.int64), np.empty(int(rows.sum()), dtype=np.int64)
        self.draw(SAMPLING, choose_each, rows, np.ascontiguousarray(shares), ranks, starts)
        self._tell("rows", ranks[: starts[-1]], starts)
        return ranks[: starts[-1]], starts

    @override
    def affords(self) -> bool:
        """Say yes: steps whose budget may run out are not planned."""
        return True


@final
class PlanSource(PlannedSource):
    """Steps of a plan, one or several at once.

    Parameters
    ----------
    tables : StepTables
    charges : NoiseColumns
    seeds : (n,) uint64
        Root seeds of the agents' draws: that of their run.
    numbers : (n,) uint64
        The agents' stable ids.

    Attributes
    ----------
    drawn : (B,) int64 or None
        How often noise was drawn for each step; None if it never was.
    follows : (B,) bool or None
        Whether each step says that what it sends follows from what was released and heard; None if none does.
    """

    def __init__(
        self, tables: StepTables, charges: NoiseColumns, seeds: NDArray[np.uint64], numbers: NDArray[np.uint64]
    ) -> None:
        self.tables, self.charges, self.seeds = tables, charges, seeds
        self.numbers = numbers.astype(np.int64)
        self._forms: dict[Any, Callable[..., Any]] = {}
        self._kinds = {kind: rank for rank, kind in enumerate(tables.names.kinds)}
        self._generators: dict[str, Generator] = {}

    def open(self, plan: StepPlan, run: RunTables, steps: Any) -> None:
        """Take up the steps of a window, in the order in which they are going to be made.

        Parameters
        ----------
        plan : StepPlan
        run : RunTables
            Where versions are.
        steps : (W,) STEP
        """
        self.plan, self.run, self.window = plan, run, steps
        self.all_agents, self._firsts = (np.ascontiguousarray(steps[name]) for name in ("agent", "first"))
        self.all_degrees = self.tables.graph.degrees[self.all_agents]

    def begin(self, places: Any) -> None:
        """Begin some steps of the window, of agents that are all different.

        Parameters
        ----------
        places : slice or (B,) int64
        """
        self.places, self.agents = places, self.all_agents[places]
        self.drawn: Ranks | None = None
        self.follows: NDArray[np.bool_] | None = None
        self._streams: dict[str, NDArray[np.uint64]] | None = None

    @property
    @override
    def steps(self) -> Any:
        return self.window[self.places]

    @override
    def heard_at(self, kind: str, width: int) -> tuple[Any, Ranks, Ranks, Ranks]:
        rank, begins, degrees = self._kinds[kind], self._firsts[self.places], self.all_degrees[self.places]
        return self.run.pool, self.plan.reads, begins + rank * degrees if rank else begins, degrees

    @override
    def rows_of(self, agents: Ranks) -> tuple[Any, Array, Ranks, Ranks]:
        return *self.tables.rows, agents

    @override
    def run_kernel(self, kernel: Any, *arguments: Any) -> Any:
        form = self._forms.get(kernel)
        if form is None:
            form = self._forms[kernel] = kernel.form(arguments)
        return form(*arguments)

    def stream(self, purpose: str) -> tuple[Generator, NDArray[np.uint64]]:
        """The generator of the steps' streams, and (B, WORDS) where they stand; asked twice, they go on."""
        if purpose not in self._generators:
            self._generators[purpose] = generator(purpose)
        if self._streams is None:
            self._streams = {}
        places = self._streams.get(purpose)
        if places is None:
            steps, agents = self.steps, self.agents
            places = beginnings(self.seeds[agents], steps["tick"] + 1, self.numbers[agents], steps["reactions"])
            self._streams[purpose] = places
        return self._generators[purpose], places

    @override
    def draw(self, purpose: str, kernel: Callable[..., Any], *given: Any) -> None:
        kernel(*self.stream(purpose), *given)

    @override
    def drew(self, noisy: NDArray[np.bool_]) -> None:
        self.drew_some(slice(None), noisy)

    def drew_some(self, rows: Any, noisy: NDArray[np.bool_]) -> None:
        """`drew` of some of the steps."""
        if self.drawn is None:
            self.drawn = np.zeros(len(self.agents), dtype=np.int64)
        self.drawn[rows] += noisy

    @override
    def follow(self) -> None:
        self.follow_some(slice(None))

    def follow_some(self, rows: Any) -> None:
        """`follow` of some of the steps."""
        if self.follows is None:
            self.follows = np.zeros(len(self.agents), dtype=bool)
        self.follows[rows] = True

    @override
    def part(self, rows: Ranks) -> StepSource:
        return PlanPart(self, rows) if len(rows) else Nobody(self)


@final
class PlanPart(PlannedSource):
    """Some of the steps that a `PlanSource` has begun.

    Parameters
    ----------
    whole : PlanSource
    rows : (B',) int64
        Their places among these.
    """

    def __init__(self, whole: PlanSource, rows: Ranks) -> None:
        self._whole, self._rows = whole, rows
        self.agents, self.tables, self.charges = whole.agents[rows], whole.tables, whole.charges
        self.plan, self.run = whole.plan, whole.run

    @property
    @override
    def steps(self) -> Any:
        return self._whole.steps[self._rows]

    @override
    def heard_at(self, kind: str, width: int) -> tuple[Any, Ranks, Ranks, Ranks]:
        pool, index, begins, counts = self._whole.heard_at(kind, width)
        return pool, index, begins[self._rows], counts[self._rows]

    @override
    def run_kernel(self, kernel: Any, *arguments: Any) -> Any:
        return self._whole.run_kernel(kernel, *arguments)

    @override
    def draw(self, purpose: str, kernel: Callable[..., Any], *given: Any) -> None:
        stream, places = self._whole.stream(purpose)
        own = places[self._rows]
        kernel(stream, own, *given)
        places[self._rows] = own

    @override
    def drew(self, noisy: NDArray[np.bool_]) -> None:
        self._whole.drew_some(self._rows, noisy)

    @override
    def follow(self) -> None:
        self._whole.follow_some(self._rows)

    @override
    def part(self, rows: Ranks) -> StepSource:
        return PlanPart(self._whole, self._rows[rows]) if len(rows) else Nobody(self)
