"""Privacy profiles: epsilon by delta, as claimed, as verified and as an attack found it at least."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..world.world import World
from .outcome import Game

DELTAS = tuple(float(f"{10.0**power:.3g}") for power in np.arange(-6.0, -0.9, 0.5))
"""Deltas of a profile."""


def profile(world: World, agent: int, delta: float, games: list[Game], level: float) -> list[dict[str, Any]]:
    """Rows of a profile of an attacked agent: ``curve, epsilon, delta``; epsilons are reported at one delta.

    The world is at the end of the scenario's own first run. Each game's bound is wrong at a level. One test bounds
    epsilon at every delta together, as its two probabilities do.
    """
    rows = []
    for place in sorted({*DELTAS, delta}):
        found = {
            "claimed": float(world.ledger.epsilon("claimed", place)[agent]),
            "verified": float(world.ledger.verified(place)[agent]),
        }
        lower = max((game.test.epsilon(place, level) for game in games), default=math.nan)
        rows += [{"curve": name, "epsilon": value, "delta": place} for name, value in found.items()]
        rows += [{"curve": "audited at least", "epsilon": lower, "delta": place}] if lower > 0 else []
    return rows
