"""Rows of the matrix: floor and engine in alternation, in one process."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from hushnet.simulator.engine.choice import engine_for
from hushnet.simulator.network.setting import Stop
from threadpoolctl import threadpool_limits

from ...engine.driving import drive, prepared
from ..floors import FLOORS, Floor, started
from ..measure import Stopwatch, undisturbed
from .cases import Row

SECONDS = 0.15
"""Of processor time that a run is to take, about; it makes `FEWEST` to `MOST` updates an agent."""
FEWEST, MOST = 3, 40


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
        A step of each run, and of the floor that ran just before it.
    """

    network: str
    engine: str
    updates: int
    microseconds: tuple[float, ...]
    floors: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """Each run against the floor just before it."""
        return [mine / floor for mine, floor in zip(self.microseconds, self.floors, strict=True)]

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
        """How its steps ran: compiled from the text, or as Python; on which engine, if not the batched one."""
        step = "text" if "compiled step" in self.engine else "Python"
        return step if self.engine.startswith("batched") else f"{step}, {self.engine.replace(',', ' ').split()[0]}"


def measure_row(row: Row, repetitions: int) -> list[Cell]:
    """A row in all networks that it can run in."""
    with threadpool_limits(limits=1):
        return [measure_cell(row, network, repetitions) for network in row.networks]


def measure_cell(row: Row, network: str, repetitions: int) -> Cell:
    """A row in one network."""
    floors = Floors(row)
    run_once(row, network, FEWEST)  # compiles
    engine, seconds = run_once(row, network, FEWEST)
    updates = int(min(max(SECONDS / max(seconds / FEWEST, 1e-9), FEWEST), MOST))
    if row.toy:
        updates = FEWEST
    if row.entry.protocol.learns_from == "columns":
        updates = max(updates, 20)
    floors.seconds(updates)
    taken, least = [], []
    for _ in range(repetitions):
        with undisturbed():
            least.append(1e6 * floors.seconds(updates) / (updates * floors.agents))
        with undisturbed():
            taken.append(1e6 * run_once(row, network, updates)[1] / (updates * floors.agents))
    return Cell(network, engine, updates, tuple(taken), tuple(least))


class Floors:
    """The floor of a row, from the same start again and again."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.world = started(row.world("lossless", Stop(time=1.0)))
        self.agents = len(self.world.agents)

    def seconds(self, updates: int) -> float:
        """Processor time of so many updates an agent."""
        floor: Floor = FLOORS[self.row.entry.kind](self.world)
        return floor.timed(self.row.plan(self.agents, updates * self.agents))


def run_once(row: Row, network: str, updates: int) -> tuple[str, float]:
    """Which engine ran a row, and the processor time of its steps, all agents having started."""
    watch = Stopwatch()
    agents = len(row.setting(network, Stop(time=1.0)).task.ids)
    world = row.world(network, Stop(activations=updates * agents), recorder=watch)
    drive(prepared(world, engine_for("auto", world)))
    assert world.activations == updates * agents, f"{row}: ended {world.ended}"
    return world.engine, watch.ended - watch.began
