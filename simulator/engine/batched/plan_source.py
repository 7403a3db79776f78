"""Inputs and random draws of planned steps: the versions that a plan names, and streams at each step's own tick."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
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
from ....protocols.steps.step_tables import OWN, SAMPLING, Forms, StepSource, StepTables
from .step_plan import StepPlan

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
EVERY: Any = slice(None)
"""Rows of all steps that were begun."""


@final
class PlanSource(StepSource):
    """Steps of a plan, one or several at once, or some of those that were begun.

    Draws are by the agents' (n,) root seeds, those of their runs, and their stable (n,) numbers. Of all (B,) steps that
    were begun it has ``noted`` how often each has ``drawn`` noise, and how often it said that what it sends ``follows``
    from what was heard; without what none has done.
    """

    def __init__(
        self, tables: StepTables, charges: NoiseColumns, seeds: NDArray[np.uint64], numbers: NDArray[np.uint64]
    ) -> None:
        self.tables, self.charges, self.seeds = tables, charges, seeds
        self.numbers = numbers.astype(np.int64)
        self.forms = Forms()
        self._kinds = {kind: rank for rank, kind in enumerate(tables.names.kinds)}
        self._generators: dict[str, Generator] = {}

    def open(self, plan: StepPlan, versions: Any, pool: NDArray[np.floating], steps: Any) -> None:
        """Take up the (W,) STEP steps of a window, in the order in which they are going to be made.

        The pool has the (R, width) vectors of (R,) VERSION versions.
        """
        self.plan, self.versions, self.pool, self.window = plan, versions, pool, steps
        self.reads = plan.reads
        self.all_agents, self._firsts = (np.ascontiguousarray(steps[name]) for name in ("agent", "first"))
        self.all_degrees = self.tables.graph.degrees[self.all_agents]

    def begin(self, places: Any) -> None:
        """Begin some steps of the window, a slice or (B,) places, of agents that are all different."""
        self.places = self._begun = places
        self._rows = EVERY
        self.noted: dict[str, Ranks] = {}  # also by parts of them
        self._streams: dict[str, NDArray[np.uint64]] = {}

    @override
    def part(self, rows: Ranks) -> PlanSource:
        some = copy(self)
        some.places = np.r_[self.places][rows]
        some._rows = rows if self._rows is EVERY else self._rows[rows]
        return some

    @property
    def steps(self) -> Any:
        """(B,) STEP of those that are being made."""
        return self.window[self.places]

    @property
    def agents(self) -> Ranks:
        """(B,) the agents that make the steps."""
        return self.all_agents[self.places]

    def _note(self, what: str, counts: Any) -> None:
        """Add what these steps have done to what is noted of all that were begun."""
        if what not in self.noted:
            self.noted[what] = np.zeros(len(self.all_agents[self._begun]), dtype=np.int64)
        self.noted[what][self._rows] += counts

    def _draw(self, purpose: str, kernel: Callable[..., Any], *given: Any) -> None:
        """Let a kernel draw from the steps' streams; asked twice, they go on."""
        if purpose not in self._generators:
            self._generators[purpose] = generator(purpose)
        if purpose not in self._streams:
            steps, agents = self.window[self._begun], self.all_agents[self._begun]
            places = beginnings(self.seeds[agents], steps["tick"] + 1, self.numbers[agents], steps["reactions"])
            self._streams[purpose] = places
        own = self._streams[purpose][self._rows]
        kernel(self._generators[purpose], own, *given)
        if self._rows is not EVERY:
            self._streams[purpose][self._rows] = own

    @override
    def follow(self) -> None:
        self._note("follows", 1)

    @override
    def heard_at(self, kind: str, width: int) -> tuple[Any, Ranks, Ranks]:
        rank, begins = self._kinds[kind], self._firsts[self.places]
        return self.pool, self.reads, begins + rank * self.all_degrees[self.places] if rank else begins

    @override
    def sent_at(self, kind: str) -> Array:
        rows = self.plan.reads[self._places(kind)]
        return np.where(rows >= 0, self.versions["sent_at"][rows], -np.inf)

    @override
    def is_new(self, kind: str) -> NDArray[np.bool_]:
        return self.plan.news[self._places(kind)]

    def _places(self, kind: str) -> Ranks:
        """(R,) where the plan has what was heard of a kind."""
        return segments(self.heard_at(kind, 0)[2], self.all_degrees[self.places])

    @override
    def rows(self, agents: Ranks) -> tuple[Any, Array, Ranks, Ranks]:
        return *self.tables.rows, agents

    @override
    def shard(self, agent: int) -> Shard:
        return self.tables.shard(agent)

    def _noise(self, width: int) -> Array:
        """(B, width) noise of the steps' releases, which is counted."""
        noisy, out = self.charges.undrawn_bits[self.agents] != 0, np.empty((len(self.agents), width))
        scales = self.charges.scales_at(self.agents, self.steps["updates"])
        self._draw("noise", FILLS[self.charges.mechanism], scales, noisy, out)
        self._note("drawn", noisy)
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
        self._draw(OWN, fill_uniform, out)
        return out

    @override
    def normals(self, count: int) -> Array:
        out = np.empty((len(self.agents), count))
        self._draw(OWN, fill_normal, np.ones(len(out)), np.ones(len(out), dtype=bool), out)
        return out

    @override
    def choose(self, purpose: str, populations: Ranks, counts: Ranks) -> tuple[Ranks, Ranks]:
        starts = table_starts(counts)
        ranks = np.empty(int(starts[-1]), dtype=np.int64)
        self._draw(purpose, choose_rows, populations, starts, ranks)
        if purpose == SAMPLING:
            self._tell("rows", ranks, starts)
        return ranks, starts

    @override
    def choose_each(self, shares: Array) -> tuple[Ranks, Ranks]:
        rows = self.tables.counts[self.agents]
        starts, ranks = np.empty(len(rows) + 1, dtype=np.int64), np.empty(int(rows.sum()), dtype=np.int64)
        self._draw(SAMPLING, choose_each, rows, shares, ranks, starts)
        self._tell("rows", ranks[: starts[-1]], starts)
        return ranks[: starts[-1]], starts

    @override
    def affords(self) -> bool:
        """Say yes: steps whose budget may run out are not planned."""
        return True
