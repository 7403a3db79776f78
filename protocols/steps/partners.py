"""Choice of the neighbour that an agent calls, by a random draw and by the weights of its edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...agents.compilation import part

NO_LAW = np.empty(0)
"""Stands for the uniform distribution of partners."""


@part(_nrt=False)
def rank_of(uniform: float, degree: int, law: NDArray[np.float64]) -> int:
    """The partner that a draw picks.

    Parameters
    ----------
    uniform : float
        In (0, 1), one for each tick of the caller's clock.
    degree : int
        Number of neighbours, > 0.
    law : (degree,) float64
        Weights > 0 of the neighbours; empty for the uniform distribution (`NO_LAW`).

    Examples
    --------
    >>> rank_of(0.5, 3, NO_LAW), rank_of(0.5, 3, np.array([0.1, 0.1, 0.8]))
    (1, 2)
    """
    if len(law) == 0:
        return min(int(uniform * degree), degree - 1)
    total = 0.0
    for weight in law:
        total += weight
    rest = uniform * total
    for rank in range(degree - 1):
        rest -= law[rank]
        if rest < 0.0:
            return rank
    return degree - 1
