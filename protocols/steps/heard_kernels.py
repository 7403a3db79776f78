"""Kernels over what a batch of agents has heard, and over their edges.

What was heard is a pool of vectors and, for each edge of the batch's agents in order, the index of one of them: -1 if
nothing was heard there, for which the agent's row of ``own`` stands. ``starts`` are (B + 1,).
"""

from __future__ import annotations

from typing import Any

from ...agents.compilation.compiled import REASSOCIATED, compiled


def _kernel(function: Any) -> Any:
    return compiled(function, fastmath=REASSOCIATED, error_model="numpy", _nrt=False)


@_kernel
def weighted_sums(pool, index, starts, weights, own, out):  # pragma: no cover - compiled
    """Fill (B, width) with sums over the edges of each agent, of what was heard there times the edge's weight."""
    for b in range(len(out)):
        total = out[b]
        total[:] = 0.0
        for edge in range(starts[b], starts[b + 1]):
            row, weight = index[edge], weights[edge]
            if row >= 0:
                heard = pool[row]
                for k in range(len(total)):
                    total[k] += weight * heard[k]
            else:
                mirror = own[b]
                for k in range(len(total)):
                    total[k] += weight * mirror[k]


@_kernel
def averages(pool, index, starts, agents, offsets, weights, own, out):  # pragma: no cover - compiled
    """Fill (B, width) with weighted means; ``weights`` are those of all edges. Without edges, the agent's own row."""
    for b in range(len(out)):
        total, first = out[b], offsets[agents[b]]
        if starts[b + 1] == starts[b]:
            for k in range(len(total)):
                total[k] = own[b, k]
            continue
        total[:] = 0.0
        strength, missing = 0.0, 0.0
        for place in range(starts[b + 1] - starts[b]):
            row, weight = index[starts[b] + place], weights[first + place]
            strength += weight
            if row < 0:
                missing += weight
                continue
            heard = pool[row]
            for k in range(len(total)):
                total[k] += weight * heard[k]
        if missing > 0.0:
            for k in range(len(total)):
                total[k] += missing * own[b, k]
        for k in range(len(total)):
            total[k] /= strength


@_kernel
def gathered(pool, index, starts, own, out):  # pragma: no cover - compiled
    """Fill (R, width) with what was heard, edge by edge."""
    for b in range(len(starts) - 1):
        for edge in range(starts[b], starts[b + 1]):
            row = index[edge]
            for k in range(out.shape[1]):
                out[edge, k] = pool[row, k] if row >= 0 else own[b, k]


@_kernel
def segment_sums(values, starts, out):  # pragma: no cover - compiled
    """Fill (B, width) with sums of the (R, width) values over the edges of each agent; zeros without edges."""
    for b in range(len(out)):
        total = out[b]
        total[:] = 0.0
        for edge in range(starts[b], starts[b + 1]):
            for k in range(len(total)):
                total[k] += values[edge, k]
