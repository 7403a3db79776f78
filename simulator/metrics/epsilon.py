"""Epsilon of the protected agents, as claimed and as verified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...agents.quantity import Quantity, epsilon_quantity
from .metric import Metric, Reading, Rows, quantile, register

Which = Literal["claimed", "verified"]


def _rows_of(which: Which) -> Callable[[Reading], Rows]:
    """Claimed at every sample; verified takes long, and is read where `Reading.expensive` says so."""

    def rows(reading: Reading) -> Rows:
        if which == "claimed" or reading.expensive:
            values = reading.world.ledger.epsilon(which, reading.delta)[reading.world.protected]
            yield "worst", values.max()
            yield "median", quantile(values, 0.5)
            yield "q90", quantile(values, 0.9)

    return rows


def _quantity(reading: Reading, which: Which) -> Quantity:
    world = reading.world
    privacy = world.protocol.privacy
    inside = world.protected.nonzero()[0].tolist()
    by = f" by {privacy.claimed_by}" if privacy is not None and which == "claimed" else ""
    unit, adjacency = (" and ".join(names(inside)) for names in (world.ledger.units, world.ledger.adjacencies))
    return epsilon_quantity(f"{which}{by}", reading.delta, unit, adjacency, str(world.protocol.observer))


DEFINITIONS: dict[Which, str] = {
    "claimed": (
        r"{math}`\varepsilon_i(\delta)` of all that agent i has released so far, composed as the protocol's "
        "paper does"
    ),
    "verified": (
        r"{math}`\varepsilon_i(\delta)`, the least that is proved of all that agent i has released so far, "
        "at a time fixed in advance, and infinite where nothing is"
    ),
}


def _metric(which: Which) -> Metric:
    return Metric(
        name=f"epsilon_{which}",
        better="less",
        compute=_rows_of(which),
        quantity=lambda reading: _quantity(reading, which),
        label=f"\N{GREEK SMALL LETTER EPSILON} {which}",
        definition=f"{DEFINITIONS[which]}; `worst`, `median` and `q90` over the protected agents.",
        statistics=("worst", "median", "q90"),
        default="worst",
        low=0.0,
        per_agent=lambda reading: reading.world.ledger.epsilon(which, reading.delta),
        unasked=True,
        learning=False,
        group="epsilon",
    )


def _pairs(reading: Reading) -> Rows:
    """Against the scenario's observers, where there are some and `Reading.expensive` says so."""
    if reading.expensive and reading.world.learned is not None:
        yield from reading.world.learned(reading.world, reading.delta).summary(reading.world)


def _of_agents(reading: Reading) -> NDArray[np.float64]:
    """(n,) largest epsilon of each agent against the scenario's observers; NaN where there are none."""
    world = reading.world
    if world.learned is None:
        return np.full(len(world.protected), np.nan)
    return world.learned(world, reading.delta).of_agents()


def _pair_quantity(reading: Reading) -> Quantity:
    world = reading.world
    inside = world.protected.nonzero()[0].tolist()
    unit, adjacency = (" and ".join(names(inside)) for names in (world.ledger.units, world.ledger.adjacencies))
    return epsilon_quantity("verified", reading.delta, unit, adjacency, "the scenario's observers")


PAIRS = register(
    Metric(
        name="epsilon_observers",
        better="less",
        compute=_pairs,
        quantity=_pair_quantity,
        label="\N{GREEK SMALL LETTER EPSILON} against observers",
        definition=(
            r"{math}`\max_{i,o} \varepsilon_{io}(\delta)`, what is proved of all that observer o of the scenario "
            "has received of agent i's releases (`worst`), at a time fixed in advance; of an agent, the largest."
        ),
        default="worst",
        low=0.0,
        per_agent=_of_agents,
        learning=False,
    )
)
CLAIMED, VERIFIED = register(_metric("claimed")), register(_metric("verified"))
EPSILONS = (VERIFIED.name, CLAIMED.name)
"""Privacy axes of a frontier."""
