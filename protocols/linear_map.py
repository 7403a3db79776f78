"""Declaration that what agents send is linear in values that each releases once: what a linear bound on privacy reads.

Where it holds, an observer sees a matrix times the released values and their noise
(`hushnet.simulator.observers.linear_view`). Weights may depend on the graph and on what was heard, never on a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .privacy.mechanisms import Release


@dataclass(frozen=True)
class LinearStep:
    """Weights of one step: each block that it changes, as a sum of the agent's blocks and of what it has heard.

    Parameters
    ----------
    own : mapping of str to mapping of str to float
        By changed block, the weights of the agent's blocks as they were before the step.
    heard : mapping of str to (degree,) float64
        By changed block, the weights of the newest vectors of its neighbours, in the order of its edges; those that
        it never heard count as zeros.
    """

    own: Mapping[str, Mapping[str, float]]
    heard: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)


@dataclass(frozen=True)
class LinearMap:
    """Linear map from released values to all that is sent.

    Parameters
    ----------
    released : callable
        ``released(agent)`` gives the release of the agent's value, drawn at its start and never again; a free one if
        its value is public, such as that of an agent without data.
    start : mapping of str to float
        Blocks at the start, as multiples of the agent's released value; others are zero.
    step : callable
        ``step(agent, heard)`` gives the `LinearStep` of an agent that has ever heard the neighbours marked in the
        (degree,) array ``heard``.
    sent : mapping of str to str
        By kind of message, the block that it carries after the step (and after the start, if that sends it).
    """

    released: Callable[[int], Release]
    start: Mapping[str, float]
    step: Callable[[int, NDArray[np.bool_]], LinearStep]
    sent: Mapping[str, str]
