"""Sums over everybody's rows and edges, compiled: one pass over the data, and no array of their size beside them.

All arguments come read-only (`read_only`), so that each function is compiled once for every precision of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compilation import REASSOCIATED, compiled


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of an array, or of a contiguous copy where it is not contiguous."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@compiled(fastmath=REASSOCIATED)
def scores_of_rows(features, offsets, models, chosen):  # pragma: no cover - compiled
    """Scores x_k . theta of all rows x_k of the owners of some models, one model after the other.

    Agent i of n owns the rows ``offsets[i]`` to ``offsets[i + 1] - 1`` of the (M, p) features, and the models of the
    ranks i, i + n, i + 2 n and so on: its models at several instants.
    """
    count, agents = 0, len(offsets) - 1
    for rank in chosen:
        count += offsets[rank % agents + 1] - offsets[rank % agents]
    scores = np.empty(count)
    place = 0
    for rank in chosen:
        model, agent = models[rank], rank % agents
        for row in range(offsets[agent], offsets[agent + 1]):
            x = features[row]
            score = 0.0
            for k in range(len(model)):
                score += x[k] * model[k]
            scores[place] = score
            place += 1
    return scores


@compiled(fastmath=REASSOCIATED)
def weighted_rows(features, offsets, weights, squared):  # pragma: no cover - compiled
    """(n, p) sum over each agent's rows of weight_k x_k, or of weight_k x_k^2 elementwise."""
    sums = np.zeros((len(offsets) - 1, features.shape[1]))
    for agent in range(len(sums)):
        own = sums[agent]
        for row in range(offsets[agent], offsets[agent + 1]):
            x, weight = features[row], weights[row]
            for k in range(len(own)):
                value = np.float64(x[k])
                own[k] += weight * (value * value if squared else value)
    return sums


@compiled(fastmath=REASSOCIATED)
def squared_gaps(offsets, heads, weights, models):  # pragma: no cover - compiled
    """Sum over undirected edges of W_ij |theta_i - theta_j|^2."""
    total = 0.0
    for tail in range(len(offsets) - 1):
        own = models[tail]
        for edge in range(offsets[tail], offsets[tail + 1]):
            if heads[edge] > tail:
                other = models[heads[edge]]
                square = 0.0
                for k in range(len(own)):
                    gap = own[k] - other[k]
                    square += gap * gap
                total += weights[edge] * square
    return total
