"""Kernels over what a batch of agents has heard, and over their edges.

What was heard is a pool of vectors and, for each edge, the index of one of them: -1 if nothing was heard, for which
the agent's row of ``own`` stands. The indices of agent b are ``index[begins[b] : begins[b] + counts[b]]``; values over
edges that are handed over beside them are (R, ...), one agent's after the other's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...agents.compilation import REASSOCIATED, compiled


def _kernel(function: Any) -> Any:
    return compiled(function, fastmath=REASSOCIATED, error_model="numpy", _nrt=False)


@_kernel
def weighted_sums(pool, index, begins, counts, weights, own, out):  # pragma: no cover - compiled
    """Fill (B, width) with sums over the edges of each agent, of what was heard there times the edge's weight."""
    place = 0
    for b in range(len(out)):
        total, mirror = out[b], own[b]
        total[:] = 0.0
        for edge in range(begins[b], begins[b] + counts[b]):
            row, weight = index[edge], weights[place]
            place += 1
            heard = pool[row] if row >= 0 else mirror
            for k in range(len(total)):
                total[k] += weight * heard[k]


@_kernel
def averages(pool, index, begins, agents, offsets, weights, own, out):  # pragma: no cover - compiled
    """Fill (B, width) with weighted means; ``weights`` are those of all edges. Without edges, the agent's own row."""
    for b in range(len(out)):
        total, mirror, first = out[b], own[b], offsets[agents[b]]
        degree = offsets[agents[b] + 1] - first
        if degree == 0:
            for k in range(len(total)):
                total[k] = mirror[k]
            continue
        total[:] = 0.0
        strength, missing = 0.0, 0.0
        for place in range(degree):
            row, weight = index[begins[b] + place], weights[first + place]
            strength += weight
            if row < 0:
                missing += weight
                continue
            heard = pool[row]
            for k in range(len(total)):
                total[k] += weight * heard[k]
        if missing > 0.0:
            for k in range(len(total)):
                total[k] += missing * mirror[k]
        for k in range(len(total)):
            total[k] /= strength


@compiled(error_model="numpy")
def trimmed_means(pool, index, begins, counts, cuts, own, out):  # pragma: no cover - compiled
    """Fill (B, width) with means of what was heard without ``cuts`` of either end, coordinate by coordinate.

    At least one has to be left of every agent's; without edges, the agent's own row.
    """
    sorted_ones = np.empty(max(1, counts.max()) if len(counts) else 1)
    for b in range(len(out)):
        begin, count, cut = begins[b], counts[b], cuts[b]
        values = sorted_ones[:count]
        for k in range(out.shape[1]):
            if count == 0:
                out[b, k] = own[b, k]
                continue
            for place in range(count):
                row = index[begin + place]
                values[place] = pool[row, k] if row >= 0 else own[b, k]
            values.sort()
            total = 0.0
            for place in range(cut, count - cut):
                total += values[place]
            out[b, k] = total / (count - 2 * cut)


@_kernel
def gathered(pool, index, begins, counts, own, out):  # pragma: no cover - compiled
    """Fill (R, width) with what was heard, edge by edge."""
    place = 0
    for b in range(len(begins)):
        mirror = own[b]
        for edge in range(begins[b], begins[b] + counts[b]):
            row, own_row = index[edge], out[place]
            heard = pool[row] if row >= 0 else mirror
            for k in range(len(own_row)):
                own_row[k] = heard[k]
            place += 1


@_kernel
def known(index, begins, counts, out):  # pragma: no cover - compiled
    """Fill (R,) with whether anything was heard over each edge."""
    place = 0
    for b in range(len(begins)):
        for edge in range(begins[b], begins[b] + counts[b]):
            out[place] = index[edge] >= 0
            place += 1


@_kernel
def segment_sums(values, counts, out):  # pragma: no cover - compiled
    """Fill (B, width) with sums of the (R, width) values over the edges of each agent; zeros without edges."""
    place = 0
    for b in range(len(out)):
        total = out[b]
        total[:] = 0.0
        for _ in range(counts[b]):
            value = values[place]
            for k in range(len(total)):
                total[k] += value[k]
            place += 1
