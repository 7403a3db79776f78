"""What the frozen engine takes from the project: random draws, clocks, and the law of a single delay.

The only file between the two. It may be adapted when something in the project gets another name or place; what it gives
to the frozen engine stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from hushnet.simulator.network.clocks import ClockParameters
from hushnet.simulator.network.latency import LatencyParameters
from hushnet.simulator.network.randomness import QUANTUM, Draws, Purpose, quantise, stable_ids
from pydantic import TypeAdapter

__all__ = ["QUANTUM", "Draws", "LatencyLaw", "Purpose", "clock_of", "latency_of", "quantise", "stable_ids"]

_CLOCK: TypeAdapter[Any] = TypeAdapter(ClockParameters)
_LATENCY: TypeAdapter[Any] = TypeAdapter(LatencyParameters)


class LatencyLaw(NamedTuple):
    """A distribution of delays.

    Parameters
    ----------
    delays : callable
        ``delays(uniforms)`` gives (k,) delays before rounding from (k, 3) uniforms.
    average : float
    """

    delays: Any
    average: float


def latency_of(description: Mapping[str, Any]) -> LatencyLaw:
    """The distribution of delays that is described."""
    latency = _LATENCY.validate_python(dict(description))
    return LatencyLaw(latency.delays, latency.average)


def clock_of(description: Mapping[str, Any], ids: Sequence[int | str], numbers: Any, draws: Draws) -> Any:
    """The clocks that are described: ``next_time(agent, tick, now)``, infinite if there is none."""
    return _CLOCK.validate_python(dict(description)).build(list(ids), np.asarray(numbers), draws, None)
