"""Check that samples are drawn anew for each release, by a second run in which every other step draws differently.

The second run has the data and the noisy values of the first. A sample that is charged for as one has to follow from
what its own step draws: releases of steps whose draws are the same stay the same, and of those whose draws differ some
change. This finds records that are taken in turn, by a seed that everybody knows, or for an entire epoch at once,
however few releases there are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...protocols.base import Peer
from ...protocols.privacy.mechanisms import WatchedStream
from ..engine.selection import Engine, EventEngine
from ..network.setting import Setting
from ..world.watchers import Phase, Watch
from ..world.world import World
from .draws import SOLVED, Draw
from .forcing import Forcing
from .replay import Make, Noted
from .transcript import Recording
from .violation import ContractViolation

LEVEL = 1e-8
"""Probability, at most, with which honest samples all come out as before although they are drawn anew."""


def alike(rows: int, share: float) -> float:
    """Probability, at most, that two samples are the same, drawn one by one, or so many rows without any twice."""
    return max((share**2 + (1 - share) ** 2) ** rows, 1 / math.comb(rows, min(rows, round(share * rows))))


class _Redrawing(Forcing):
    """A watch that leads a run along another one on the same data, and draws anew in every other step of an agent."""

    def __init__(self, recording: Recording, rows: NDArray[np.int64]) -> None:
        super().__init__(recording)
        self.rows = rows
        self.made: dict[int, int] = defaultdict(int)
        self.agreement, self.different, self.stale = 0.0, 0, False

    @override
    def stream(self, stream: np.random.Generator, purpose: str, agent: int) -> np.random.Generator:
        if self.made[agent] % 2 and not purpose.endswith("before time 0"):
            key = [self.made[agent], agent, *purpose.encode()]
            return WatchedStream(np.random.default_rng(key), self)
        return WatchedStream(stream, self)

    @override
    def stepped(self, phase: Phase, me: Peer) -> None:
        super().stepped(phase, me)
        self.made[me.agent] += 1

    @override
    def _check_change(self, where: str, before: Draw, now: Draw) -> None:
        release, agent = before.release, before.release.agent
        if release.sampling == 1 or release.unit != "record":
            return
        moved = float(np.abs(now.exact - before.exact).max(initial=0.0)) > SOLVED * release.scale
        if self.made[agent] % 2:
            self.agreement += math.log(alike(int(self.rows[agent]), release.sampling))
            self.different += moved
        elif moved:
            self.stale = True
            self.fail(
                f"{where} is over a sample that depends on what another step has drawn; draw one anew for every "
                "release that is charged for one"
            )


def check_drawn_anew(make: Make, setting: Setting, recording: Recording | None = None) -> None:
    """Check that samples of a protocol follow from what its own steps draw, on the event engine where agents hold rows.

    A protocol whose course depends on other draws than its noise is not judged. A recording of such a run may be given.
    Raises `ContractViolation` if a release over a sample depends on another step's draws, or none on those of its own.
    """

    def on_events(setting: Setting, watch: Watch) -> tuple[World, Engine]:
        return make(setting, watch)[0], EventEngine()

    if recording is None:
        recording = Noted(on_events, setting).recording
    redrawing = _Redrawing(recording, setting.task.train.counts)
    with suppress(ContractViolation):
        world, engine = on_events(setting, redrawing)
        engine.run(world)
    if redrawing.violation is not None:
        if redrawing.stale:
            raise redrawing.violation
        return
    if not redrawing.different and redrawing.agreement < math.log(LEVEL):
        raise ContractViolation(
            "releases over samples do not depend on what their steps draw, so that their samples are the same whatever "
            "the seed; draw rows from me.stream(...), or by draw_rows"
        )
