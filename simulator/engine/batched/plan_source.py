"""What planned steps read and draw: versions that their plan names, and streams at their own tick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ....agents.streams import Generator, beginnings, generator
from ....agents.tables import Shard
from ....protocols.steps.charges import StepCharges
from ....protocols.steps.draw_kernels import FILLS, choose_each, choose_rows
from ....protocols.steps.sources import Nobody, StepSource
from ....protocols.steps.tables import StepTables
from .plan import StepPlan

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
DRAWN_BEFORE = "rows are drawn for a whole batch, before a part of it is taken"


@final
class PlanSource(StepSource):
    """Steps of a plan, one or several at once.

    Parameters
    ----------
    tables : StepTables
    charges : StepCharges
    seed : int
        Root seed of the run's draws.
    numbers : (n,) uint64
        The agents' stable ids.

    Attributes
    ----------
    drawn : (B,) int64 or None
        How often noise was drawn for each step; None if it never was.
    follows : (B,) bool or None
        Whether each step says that what it sends follows from what was released and heard; None if none does.
    """

    def __init__(self, tables: StepTables, charges: StepCharges, seed: int, numbers: NDArray[np.uint64]) -> None:
        self.tables, self.charges = tables, charges
        self._seed, self._numbers = seed, numbers.astype(np.int64)
        self._degrees = tables.graph.degrees
        self._kinds = {kind: rank for rank, kind in enumerate(tables.names.kinds)}
        self._generators: dict[str, Generator] = {}

    def begin(self, plan: StepPlan, pool: Array, agents: Ranks, steps: Any) -> None:
        """Begin some steps of a plan, of agents that are all different.

        Parameters
        ----------
        plan : StepPlan
        pool : (R, width) float64
            Where versions are.
        agents : (B,) int64
        steps : (B,) STEP
        """
        self._reads, self._pool, self.agents, self.steps = plan.reads, pool, agents, steps
        self.degrees, self._first = self._degrees[agents], steps["first"]
        self.drawn: Ranks | None = None
        self.follows: NDArray[np.bool_] | None = None
        self._streams: dict[str, NDArray[np.uint64]] = {}

    @property
    def updates(self) -> Ranks:
        """(B,) steps that each agent has completed."""
        return self.steps["updates"]

    @override
    def heard_at(self, kind: str, width: int) -> tuple[Any, Ranks, Ranks, Ranks]:
        degrees = self.degrees
        rank = self._kinds[kind]
        return self._pool, self._reads, self._first + rank * degrees if rank else self._first, degrees

    def begin_one(self, agents: Ranks, degrees: Ranks, steps: Any, first: Ranks) -> None:
        """Begin a step of one agent, of the plan that was begun last.

        Parameters
        ----------
        agents, degrees, first : (1,) int64
            The agent, its edges, and where its reads begin.
        steps : (1,) STEP
        """
        self.agents, self.degrees, self.steps, self._first = agents, degrees, steps, first
        self.drawn = self.follows = None
        if self._streams:
            self._streams = {}

    @override
    def rows(self) -> tuple[Any, Array, Ranks, Ranks]:
        return *self.tables.rows, self.agents

    @override
    def rows_of(self, agents: Ranks) -> tuple[Any, Array, Ranks, Ranks]:
        return *self.tables.rows, agents

    @override
    def shard(self, agent: int) -> Shard:
        return self.tables.shard(agent)

    # Draws.

    def _stream(self, purpose: str) -> tuple[Generator, NDArray[np.uint64]]:
        """The generator of the steps' streams, and (B, WORDS) where they stand; asked twice, they go on."""
        if purpose not in self._generators:
            self._generators[purpose] = generator(self._seed, purpose)
        places = self._streams.get(purpose)
        if places is None:
            steps = self.steps
            places = beginnings(steps["tick"] + 1, self._numbers[self.agents], steps["reactions"])
            self._streams[purpose] = places
        return self._generators[purpose], places

    @property
    def _noisy(self) -> NDArray[np.bool_]:
        """(B,) whose release has noise."""
        return self.charges.undrawn_bits[self.agents] != 0

    def noise(self, width: int, rows: Ranks | None = None) -> Array:
        """(B, width) noise of the steps' releases, or of some of them alone, which is counted."""
        noisy, out = self._noisy, np.empty((len(self.agents), width))
        if rows is not None:
            asked = np.zeros(len(noisy), dtype=bool)
            asked[rows] = True
            noisy &= asked
        scales = self.charges.scales_at(self.agents, self.updates)
        FILLS[self.charges.mechanism](*self._stream("noise"), scales, noisy, out)
        self.drawn = noisy.astype(np.int64) if self.drawn is None else self.drawn + noisy
        return out

    def check_dimension(self, width: int) -> None:
        """Refuse another width than the steps' releases declare."""
        declared = self.tables.protocol.step_noise.dimension
        if declared and width != declared:
            raise ValueError("the vector to be perturbed has not the dimension that the release declares")

    @override
    def perturb(self, values: Array) -> Array:
        if not self.charges.noisy:
            return values
        self.check_dimension(values.shape[1])
        return values + self.noise(values.shape[1])

    @override
    def perturb_objective(
        self, weights: Array, curvatures: Array, linear: Array, influences: Array, minimise: Callable[[Array], Array]
    ) -> Array:
        if not self.charges.noisy:
            return minimise(linear)
        return minimise(linear - influences[:, None] * self.noise(linear.shape[1]))

    @override
    def choose(self, count: int) -> tuple[Ranks, Ranks]:
        rows = self.tables.counts[self.agents]
        starts = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(np.minimum(rows, count), out=starts[1:])
        ranks = np.empty(int(starts[-1]), dtype=np.int64)
        choose_rows(*self._stream("sampling"), rows, starts, ranks)
        return ranks, starts

    @override
    def choose_each(self, shares: Array) -> tuple[Ranks, Ranks]:
        rows = self.tables.counts[self.agents]
        starts, ranks = np.empty(len(rows) + 1, dtype=np.int64), np.empty(int(rows.sum()), dtype=np.int64)
        choose_each(*self._stream("sampling"), rows, np.ascontiguousarray(shares), ranks, starts)
        return ranks[: starts[-1]], starts

    @override
    def affords(self) -> bool:
        """Say yes: steps whose budget may run out are not planned."""
        return True

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
class PlanPart(StepSource):
    """Some of the steps that a `PlanSource` has begun.

    Parameters
    ----------
    whole : PlanSource
    rows : (B',) int64
        Their places among these.
    """

    def __init__(self, whole: PlanSource, rows: Ranks) -> None:
        self._whole, self._rows = whole, rows

    @override
    def heard_at(self, kind: str, width: int) -> tuple[Any, Ranks, Ranks, Ranks]:
        pool, index, begins, counts = self._whole.heard_at(kind, width)
        return pool, index, begins[self._rows], counts[self._rows]

    @override
    def rows(self) -> tuple[Any, Array, Ranks, Ranks]:
        return *self._whole.tables.rows, self._whole.agents[self._rows]

    @override
    def shard(self, agent: int) -> Shard:
        return self._whole.shard(agent)

    @override
    def perturb(self, values: Array) -> Array:
        if not self._whole.charges.noisy:
            return values
        self._whole.check_dimension(values.shape[1])
        return values + self._whole.noise(values.shape[1], self._rows)[self._rows]

    @override
    def perturb_objective(
        self, weights: Array, curvatures: Array, linear: Array, influences: Array, minimise: Callable[[Array], Array]
    ) -> Array:
        if not self._whole.charges.noisy:
            return minimise(linear)
        noise = self._whole.noise(linear.shape[1], self._rows)[self._rows]
        return minimise(linear - influences[:, None] * noise)

    @override
    def choose(self, count: int) -> tuple[Ranks, Ranks]:
        raise ValueError(DRAWN_BEFORE)

    @override
    def choose_each(self, shares: Array) -> tuple[Ranks, Ranks]:
        raise ValueError(DRAWN_BEFORE)

    @override
    def affords(self) -> bool:
        return self._whole.affords()

    @override
    def follow(self) -> None:
        self._whole.follow_some(self._rows)

    @override
    def part(self, rows: Ranks) -> StepSource:
        return PlanPart(self._whole, self._rows[rows]) if len(rows) else Nobody(self)
