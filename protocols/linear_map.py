"""Declaration that what agents send is linear in values that they release: what a linear bound on privacy reads.

Where it holds, an observer sees a matrix times the released values and their noise
(`hushnet.simulator.observers.linear_view`). Weights may depend on the graph and on what was heard, never on a number,
and a released value depends on nothing but its agent's own data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .privacy.mechanisms import Release

START = -1
"""In place of a step's number: an agent's start."""


@dataclass(frozen=True)
class LinearStep:
    """Weights of one step: each block that it changes, as a sum of blocks, of what was heard and of what is released.

    Parameters
    ----------
    own : mapping of str to mapping of str to float
        By changed block, the weights of the agent's blocks as they were before the step.
    heard : mapping of str to (degree,) float64
        By changed block, the weights of the newest vectors of its neighbours, in the order of its edges; those that
        it never heard count as zeros.
    drawn : mapping of str to float
        By changed block, the weight of the value that the step releases, with its noise.
    """

    own: Mapping[str, Mapping[str, float]]
    heard: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    drawn: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LinearMap:
    """Linear map from released values to all that is sent.

    A run compares it with its agents' blocks and with what they have sent last, where all values are released at
    starts; the contract compares it with every message, and its releases with the noise that was drawn.

    Parameters
    ----------
    released : callable
        ``released(agent, number)`` gives the release of the value that an agent's step of that number draws noise for,
        from 0, or its start (`START`); a free one if the value is public, such as that of an agent without data; None
        if none is released.
    start : mapping of str to float
        Blocks at the start, as multiples of the agent's value released there; others are zero.
    step : callable
        ``step(agent, heard)`` gives the `LinearStep` of an agent that has ever heard the neighbours marked in the
        (degree,) array ``heard``.
    sent : mapping of str to str
        By kind of message, the block that it carries after the step (and after the start, if that sends it); there is
        one kind.
    """

    released: Callable[[int, int], Release | None]
    start: Mapping[str, float]
    step: Callable[[int, NDArray[np.bool_]], LinearStep]
    sent: Mapping[str, str]
