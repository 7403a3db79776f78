"""How long steps take, as they were measured once on some machine: a table, read between its points.

The table is ``step_times.json`` beside this file, written by ``python -m tests.benchmarks.step_times``. It serves
estimates before a run and nothing else: no limit and no result depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...agents.files import read_bytes
from ...protocols.base import Protocol, ProtocolParameters
from ...protocols.schedule_selection import rounds_of

Way = Literal["broadcast", "rounds", "exchange"]
Form = Literal["compiled", "Python", "event"]
"""How steps run: compiled or as Python on the batched engine, or on the event engine."""
FILE = Path(__file__).with_name("step_times.json")


@dataclass(frozen=True)
class Size:
    """What the time of a step depends on.

    Parameters
    ----------
    dimension : float
        p.
    rows, degree : float
        Of an agent, on average.
    """

    dimension: float
    rows: float
    degree: float


@dataclass(frozen=True)
class Steps:
    """Whose steps, and in what surroundings.

    Parameters
    ----------
    kind : str
        Of the protocol.
    way : {"broadcast", "rounds", "exchange"}
    noise : str
        The mechanism; ``plain`` without.
    form : {"compiled", "Python", "event"}
    lossy : bool
        Whether messages are lost or agents absent.
    """

    kind: str
    way: Way
    noise: str
    form: Form
    lossy: bool = False

    @property
    def key(self) -> str:
        """The key under which the file has a step's time."""
        return " ".join((self.kind, self.way, self.noise, self.form, *(["lossy"] if self.lossy else [])))


class StepTimes:
    """A table of times over a grid of sizes.

    Parameters
    ----------
    content : mapping
        ``date``, ``machine``; ``run``, seconds of a run of nothing; ``dimension``, ``rows`` and ``degree``, the grid's
        values, ascending; of columns, ``columns`` with the same; ``record``, microseconds an agent and record by
        dimension and rows; ``steps`` and ``starts``, microseconds a step and an agent's start by `Steps.key`, one
        number for each point of the grid with the degree changing fastest.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content

    @classmethod
    @cache
    def shipped(cls) -> StepTimes:
        """The table that comes with the package."""
        return cls(json.loads(read_bytes(FILE)))

    @property
    def source(self) -> str:
        """The machine and the date of the table."""
        return f"a machine like that of {self.content['date']} ({self.content['machine']})"

    def step(self, steps: Steps, size: Size) -> float | None:
        """Seconds of a step; None if nobody has measured such steps.

        Noise that was not measured counts as none, and a form in which a protocol was not measured as the one in which
        it was. What losses add was measured without noise.
        """
        calm = self._read("steps", replace(steps, lossy=False), size)
        if calm is None or not steps.lossy:
            return calm
        without, lossy = (self._read("steps", replace(steps, noise="plain", lossy=how), size) for how in (False, True))
        return calm + max((lossy or 0.0) - (without or 0.0), 0.0)

    def start(self, steps: Steps, size: Size) -> float | None:
        """Seconds of building and starting an agent; None likewise."""
        return self._read("starts", replace(steps, lossy=False), size)

    def record(self, agents: float, size: Size) -> float:
        """Seconds of measuring objective and accuracy once."""
        axes = [self.content[name] for name in ("dimension", "rows")]
        values = rising(axes, self.content["record"])
        return 1e-6 * agents * between(axes, values, (size.dimension, size.rows))

    @property
    def run(self) -> float:
        """Seconds of a run in which nothing happens."""
        return self.content["run"]

    def _read(self, what: str, steps: Steps, size: Size) -> float | None:
        tables = self.content[what]
        for key in _alike(steps):
            if key in tables:
                grid = self.content["columns"] if steps.kind in self.content["columns"]["kinds"] else self.content
                axes = [grid[name] for name in ("dimension", "rows", "degree")]
                at = (size.dimension, size.rows, size.degree)
                return 1e-6 * between(axes, rising(axes, tables[key]), at)
        return None


def _alike(steps: Steps) -> list[str]:
    """Keys of the steps, and of others that stand for them."""
    forms = dict.fromkeys((steps.form, "Python", *(() if steps.form == "event" else ("compiled",))))
    noises = dict.fromkeys((steps.noise, "plain", "gamma"))
    return [replace(steps, form=form, noise=noise).key for form in forms for noise in noises]


def between(axes: Sequence[Sequence[float]], values: Sequence[float], at: Sequence[float]) -> float:
    """A number between the points of a grid: linear in every direction, and beyond its end as between the last points.

    Beyond the end it is no less than at the end.

    Parameters
    ----------
    axes : sequence of sequences of float
        Each ascending, of two values or more.
    values : sequence of float
        One for each point, the last axis changing fastest.
    at : sequence of float
        Where; what is below the first point of an axis counts as that.
    """
    table: NDArray[np.float64] = np.array(values, dtype=np.float64).reshape([len(axis) for axis in axes])
    for axis, x in zip(axes, at, strict=True):
        x = max(x, axis[0])
        right = min(max(int(np.searchsorted(axis, x)), 1), len(axis) - 1)
        share = (x - axis[right - 1]) / (axis[right] - axis[right - 1])
        table = (1 - share) * table[right - 1] + share * table[right]
    within = [min(x, axis[-1]) for axis, x in zip(axes, at, strict=True)]
    return float(table) if within == list(at) else max(float(table), between(axes, values, within))


def rising(axes: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """Values at the points of a grid that fall nowhere: what took less time at a larger size was noise."""
    table: NDArray[np.float64] = np.array(values, dtype=np.float64).reshape([len(axis) for axis in axes])
    for axis in range(len(axes)):
        table = np.maximum.accumulate(table, axis=axis)
    return table.ravel().tolist()


def way_of(protocol: type[Protocol], parameters: ProtocolParameters) -> Way:
    """How a protocol's agents tell one another what they have."""
    traits = protocol.traits_for(parameters)
    if rounds_of(traits, parameters) is not None:
        return "rounds"
    return "exchange" if traits.exchange == "pairwise" else "broadcast"


def noise_of(parameters: ProtocolParameters) -> str:
    """The mechanism that a protocol's parameters ask for, or ``plain``."""
    for name in ("privacy", "noise"):
        given = getattr(parameters, name, None)
        if given is not None and not given.noiseless:
            return given.mechanism
    return "plain"
