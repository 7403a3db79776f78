"""Rows of the matrix: floor and engine in alternation, in one process."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from hushnet.simulator.engine.selection import engine_for
from hushnet.simulator.network.setting import Stop
from threadpoolctl import threadpool_limits

from ...engine.driving import drive, prepared
from ..floors import FLOORS, Floor, started
from ..measure import Stopwatch, undisturbed
from .cases import AGENTS, Row

SECONDS = 0.5
"""Of processor time that a run is to take, about; it makes `FEWEST` to `MOST` updates an agent.

A run meets the memory of its messages for the first time, the floor that of its blocks before: of few updates that is a
good part of the time.
"""
FEWEST, MOST = 3, 200
"""Updates of each of `AGENTS` agents."""
GIVEN, DRAWING, NOISELESS = "given", "drawing", "noiseless"
"""Forms of a floor: what agents draw is given, or drawn by itself, or there is no noise."""


@dataclass(frozen=True)
class Cell:
    """One row in one network.

    Parameters
    ----------
    network : str
    engine : str
        Which engine ran it, with which form of the step.
    updates : int
        Steps of an agent, on average.
    microseconds, floors : tuple of float
        A step of each run, and of the floor that ran just before it and was given what agents draw.
    drawing, noiseless : tuple of float
        Where agents draw, and nothing is lost: floors by turns with them that draw for themselves, and those, where
        updates have noise, that are given none.
    """

    network: str
    engine: str
    updates: int
    microseconds: tuple[float, ...]
    floors: tuple[float, ...]
    drawing: tuple[float, ...] = ()
    noiseless: tuple[float, ...] = ()

    @property
    def ratios(self) -> list[float]:
        """Each run against the floor just before it."""
        return self.against(self.floors)

    @property
    def drawing_ratios(self) -> list[float]:
        """Each against the floor that draws for itself; none where nothing is drawn."""
        return self.against(self.drawing)

    def against(self, floors: tuple[float, ...]) -> list[float]:
        """Each run against such floors; none where there are none."""
        return [mine / floor for mine, floor in zip(self.microseconds, floors, strict=True)] if floors else []

    @property
    def ratio(self) -> float:
        """Their median."""
        return statistics.median(self.ratios)

    @property
    def time(self) -> float:
        """The median of microseconds a step."""
        return statistics.median(self.microseconds)

    @property
    def floor(self) -> float:
        """That of the floor."""
        return statistics.median(self.floors)

    @property
    def form(self) -> str:
        """How its steps were made: in batches, planned, or one by one; on which engine, if not the batched one."""
        if not self.engine.startswith("batched"):
            return f"one by one, {self.engine.replace(',', ' ').split()[0]}"
        forms = {"(steps in batches": "batches", "(planned steps": "planned"}
        return next((form for words, form in forms.items() if words in self.engine), "one by one")


def measure_row(row: Row, repetitions: int) -> list[Cell]:
    """A row in all networks that it can run in."""
    with threadpool_limits(limits=1):
        return [measure_cell(row, network, repetitions) for network in row.networks]


def measure_cell(row: Row, network: str, repetitions: int) -> Cell:
    """A row in one network."""
    floors = Floors(row)
    engine = run_once(row, network, FEWEST)[0]  # compiles
    # Of few agents so many more, for a run takes .4 ms whatever happens in it.
    most = MOST * max(1, AGENTS // floors.agents)
    updates = FEWEST if row.toy else updates_for(lambda: run_once(row, network, FEWEST)[1], most)
    if row.entry.protocol.learns_from == "columns":
        updates = max(updates, 20)
    forms = floors.forms if network == "lossless" else [GIVEN]
    for form in forms:
        floors.seconds(updates, form)
    taken: list[float] = []
    least: dict[str, list[float]] = {form: [] for form in forms}
    for _ in range(repetitions):
        for form in reversed(forms):  # the one that all rows have comes last, just before the run
            with undisturbed():
                least[form].append(1e6 * floors.seconds(updates, form) / (updates * floors.agents))
        with undisturbed():
            taken.append(1e6 * run_once(row, network, updates)[1] / (updates * floors.agents))
    given, drawing, noiseless = (tuple(least.get(form, ())) for form in (GIVEN, DRAWING, NOISELESS))
    return Cell(network, engine, updates, tuple(taken), given, drawing, noiseless)


def updates_for(short_run: Callable[[], float], most: int = MOST) -> int:
    """How many updates an agent take `SECONDS`, once a run of `FEWEST` neither compiles nor loads anything any more.

    Parameters
    ----------
    short_run : callable
        Seconds of a run of `FEWEST` updates an agent. It is called until it has twice in succession not become quicker
        by a tenth, or is so quick that more could not be made of it.
    most : int
        Never more.
    """
    least, idle = short_run(), 0
    while idle < 2 and least * most > SECONDS * FEWEST:
        seconds = short_run()
        idle = 0 if seconds < 0.9 * least else idle + 1
        least = min(least, seconds)
    return int(min(max(SECONDS * FEWEST / max(least, 1e-9), FEWEST), most))


class Floors:
    """The floor of a row, from the same start again and again."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.world = started(row.world("lossless", Stop(time=1.0)))
        self.agents = len(self.world.agents)

    @property
    def forms(self) -> list[str]:
        """Those that differ for this row, that of all rows first."""
        plan = self.row.plan(self.new(), 1)
        return [GIVEN, *([DRAWING] if plan.draws else []), *([NOISELESS] if plan.noise.shape[1] else [])]

    def new(self) -> Floor:
        """A floor at the start."""
        return FLOORS[self.row.entry.kind](self.world)

    def seconds(self, updates: int, form: str = GIVEN) -> float:
        """Processor time of so many updates an agent."""
        floor = self.new()
        steps = updates * self.agents
        plan = self.row.plan(floor, steps)
        if form == DRAWING:
            plan = replace(plan, itself=True)
        elif form == NOISELESS:
            plan = replace(plan, noise=np.empty((steps, 0)))
        return floor.timed(plan)


def run_once(row: Row, network: str, updates: int) -> tuple[str, float]:
    """Which engine ran a row, and the processor time of its steps, all agents having started."""
    watch = Stopwatch()
    agents = len(row.setting(network, Stop(time=1.0)).task.ids)
    world = row.world(network, Stop(activations=updates * agents), recorder=watch)
    drive(prepared(world, engine_for("auto", world)))
    assert world.activations == updates * agents, f"{row}: ended {world.ended}"
    return world.engine, watch.ended - watch.began
