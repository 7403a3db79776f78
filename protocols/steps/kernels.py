"""Kernels of steps, compiled, over a batch of agents: rows of data, what was heard, and random draws.

Each serves one agent as it serves many, so a row of a batch has the bits that it has alone. Arguments named ``agents``
are (B,) int64, ``features``, ``labels`` and ``offsets`` the packed rows of all agents (`hushnet.agents.tables.Table`).

What was heard is a pool of vectors and, for each edge, the index of one of them: -1 if nothing was heard, for which
the agent's row of ``own`` stands. The indices of agent b are ``index[begins[b] : begins[b] + counts[b]]``; values over
edges that are handed over beside them are (R, ...), one agent's after the other's.

Kernels that draw do so row by row, each from the stream of its own agent and step, which goes on while a step lasts.
All numbers are NumPy's (`hushnet.agents.streams`).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.compilation import REASSOCIATED, compiled, is_compiled, part
from ...agents.loss_codes import slope_of, summed
from ...agents.optimisation.compiled_newton import minimise
from ...agents.streams import DRAWS, Generator, beginnings, choose, enter, generator, leave

ORDINARY, EXTREME = 1e-40, 1e100
"""As in `hushnet.agents.clipping`: between these, products of two numbers and their squares are ordinary."""
SHORT = 1.0 - 2.0**-47
NORMS = {"": 0, "l1": 1, "l2": 2}
"""Norms to which gradients of examples are clipped; the first is for none."""


def _kernel(function: Any) -> Any:
    return compiled(function, fastmath=REASSOCIATED, error_model="numpy", _nrt=False)


def _small(function: Any) -> Any:
    return part(function, fastmath=REASSOCIATED, error_model="numpy")


@_kernel
def all_finite(vector):  # pragma: no cover - compiled
    """True if all numbers of a vector are finite."""
    found = True
    for k in range(len(vector)):
        found &= math.isfinite(vector[k])
    return found


@_small
def length_of(norm, row, unit):  # pragma: no cover - compiled
    """Norm of a row in units."""
    total = 0.0
    if norm == 1:
        for k in range(len(row)):
            total += abs(row[k] * unit)
        return total
    for k in range(len(row)):
        x = row[k] * unit
        total += x * x
    return math.sqrt(total)


@_small
def shortened(norm, slope, row, bound):  # pragma: no cover - compiled
    """Factor and unit of a row in a sum of clipped gradients, see `hushnet.agents.clipping.clipped_terms`."""
    length = length_of(norm, row, 1.0)
    if length < EXTREME and abs(slope) < EXTREME and ORDINARY < bound < EXTREME:
        short = SHORT * bound
        return slope * (short / max(length * abs(slope), short)), 1.0
    largest = 0.0
    for k in range(len(row)):
        if not math.isfinite(row[k]):
            return 0.0, 0.0
        largest = max(largest, abs(row[k]))
    if not math.isfinite(slope):
        return 0.0, 0.0
    power = 2.0 ** (math.frexp(largest)[1] - 1)
    length = length_of(norm, row, 1.0 / power)
    scaled = slope * power
    if abs(scaled) * length > bound:
        return (math.copysign(1.0, slope) if slope != 0.0 else 0.0) * SHORT * bound / length, 1.0 / power
    return scaled, 1.0 / power


@_small
def add_row(x, label, model, loss, scale, out):  # pragma: no cover - compiled
    """Add a multiple of one example's gradient to a vector."""
    score = 0.0
    for k in range(len(model)):
        score += x[k] * model[k]
    share = scale * slope_of(loss, score, label)
    for k in range(len(model)):
        out[k] += share * x[k]


@_small
def add_clipped_row(x, label, model, loss, norm, bound, scale, out):  # pragma: no cover - compiled
    """Add a multiple of one example's clipped gradient to a vector."""
    score = 0.0
    for k in range(len(model)):
        score += x[k] * model[k]
    share, unit = shortened(norm, slope_of(loss, score, label), x, bound)
    share *= scale
    if unit == 1.0:
        for k in range(len(model)):
            out[k] += share * x[k]
    elif unit > 0.0:
        for k in range(len(model)):
            out[k] += share * (x[k] * unit)


@_kernel
def gradients(features, labels, offsets, agents, models, decays, loss, norm, bound, out):  # pragma: no cover - compiled
    """Fill (B, p) with gradients of mean losses over all rows of each agent, plus ``decays`` times the models."""
    for b in range(len(agents)):
        first, last = offsets[agents[b]], offsets[agents[b] + 1]
        model, own, decay = models[b], out[b], decays[b] if last > first else 0.0
        for k in range(len(own)):
            own[k] = decay * model[k]
        scale = 1.0 / max(last - first, 1)
        if norm:
            for row in range(first, last):
                add_clipped_row(features[row], labels[row], model, loss, norm, bound, scale, own)
        else:
            for row in range(first, last):
                add_row(features[row], labels[row], model, loss, scale, own)


@_kernel
def gradients_at(
    features, labels, offsets, agents, models, ranks, starts, loss, norm, bound, out
):  # pragma: no cover - compiled
    """Fill (B, p) with gradients of mean losses over the rows of agent b that ranks[starts[b]:starts[b + 1]] name."""
    for b in range(len(agents)):
        first, own, model = offsets[agents[b]], out[b], models[b]
        own[:] = 0.0
        scale = 1.0 / max(starts[b + 1] - starts[b], 1)
        for place in range(starts[b], starts[b + 1]):
            row = first + ranks[place]
            if norm:
                add_clipped_row(features[row], labels[row], model, loss, norm, bound, scale, own)
            else:
                add_row(features[row], labels[row], model, loss, scale, own)


@compiled(fastmath=REASSOCIATED, error_model="numpy")
def objectives(features, labels, offsets, agents, models, regularisation, loss, out):  # pragma: no cover - compiled
    """Fill (B, 1) with mean losses over all rows of each agent, plus ``regularisation`` times the squared norms."""
    for b in range(len(agents)):
        first, last = offsets[agents[b]], offsets[agents[b] + 1]
        out[b, 0] = 0.0
        if last == first:
            continue
        model, squares = models[b], 0.0
        scores = np.empty(last - first)
        for k in range(len(model)):
            squares += model[k] * model[k]
        for row in range(first, last):
            score = 0.0
            for k in range(len(model)):
                score += features[row, k] * model[k]
            scores[row - first] = score
        total = summed(loss, scores, labels[first:last], last - first)
        out[b, 0] = total / (last - first) + regularisation[b] * squares


@compiled(fastmath=REASSOCIATED, error_model="numpy")
def minimisers(
    features, labels, offsets, agents, weights, curvatures, linear, starts, tolerances, loss, out
):  # pragma: no cover - compiled
    """Fill (B, p) with minimisers, see `hushnet.agents.optimisation.compiled_newton.minimise`."""
    for b in range(len(agents)):
        first, last = offsets[agents[b]], offsets[agents[b] + 1]
        found = minimise(
            features[first:last],
            labels[first:last],
            weights[b],
            curvatures[b],
            linear[b],
            starts[b],
            tolerances[b],
            loss,
        )
        for k in range(len(found)):
            out[b, k] = found[k]


def table_starts(counts: Any) -> Any:
    """(B + 1,) where each of some segments begins, of (B,) lengths."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


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


Array = NDArray[np.float64]


@compiled(**DRAWS)
def fill_normal(generator, places, scales, noisy, out):  # pragma: no cover - compiled
    """Fill the rows of (B, width) that are ``noisy`` with normal numbers of their scale, and the others with zeros."""
    for b in range(len(out)):
        out[b] = 0.0
        if noisy[b]:
            enter(generator, places[b])
            for k in range(out.shape[1]):
                out[b, k] = generator.rng.normal(0.0, scales[b])
            leave(generator, places[b])


@compiled(**DRAWS)
def fill_uniform(generator, places, out):  # pragma: no cover - compiled
    """Fill (B, k) with uniform numbers of [0, 1)."""
    for b in range(len(out)):
        enter(generator, places[b])
        for k in range(out.shape[1]):
            out[b, k] = generator.rng.random()
        leave(generator, places[b])


@compiled(**DRAWS)
def fill_laplace(generator, places, scales, noisy, out):  # pragma: no cover - compiled
    """`fill_normal`, with Laplace numbers."""
    for b in range(len(out)):
        out[b] = 0.0
        if noisy[b]:
            enter(generator, places[b])
            for k in range(out.shape[1]):
                out[b, k] = generator.rng.laplace(0.0, scales[b])
            leave(generator, places[b])


@compiled(**DRAWS)
def fill_gamma(generator, places, shape, scales, noisy, out):  # pragma: no cover - compiled
    """Fill (B,) with gamma numbers of their scale for the rows that are ``noisy``, and zeros."""
    for b in range(len(out)):
        out[b] = 0.0
        if noisy[b]:
            enter(generator, places[b])
            out[b] = generator.rng.gamma(shape, scales[b])
            leave(generator, places[b])


def fill_spherical(generator: Generator, places: Any, scales: Array, noisy: Any, out: Array) -> None:
    """`fill_normal`, with vectors of uniform direction whose norms are Gamma(width, scale): mechanism ``gamma``."""
    fill_normal(generator, places, np.ones(len(out)), noisy, out)
    norms = np.empty(len(out))
    fill_gamma(generator, places, float(out.shape[1]), scales, noisy, norms)
    lengths = np.linalg.norm(out, axis=-1)
    out *= np.divide(norms, lengths, out=np.zeros(len(out)), where=noisy)[:, None]


FILLS: dict[str, Any] = {"gaussian": fill_normal, "laplace": fill_laplace, "gamma": fill_spherical}
"""Mechanisms whose noise kernels draw."""


@compiled(**DRAWS)
def choose_rows(generator, places, rows, starts, ranks):  # pragma: no cover - compiled
    """Fill ranks[starts[b]:starts[b + 1]] with a sample without replacement of each agent's ``rows``."""
    for b in range(len(rows)):
        if starts[b + 1] > starts[b]:
            enter(generator, places[b])
            choose(generator.rng, rows[b], ranks[starts[b] : starts[b + 1]])
            leave(generator, places[b])


@compiled(**DRAWS)
def choose_each(generator, places, rows, shares, ranks, starts):  # pragma: no cover - compiled
    """Fill ``ranks`` with the rows of which each is drawn with a share of its own, and ``starts`` with their segments.

    ``ranks`` has room for the rows of all agents.
    """
    count = 0
    for b in range(len(rows)):
        starts[b] = count
        enter(generator, places[b])
        for row in range(rows[b]):
            if generator.rng.random() < shares[b]:
                ranks[count] = row
                count += 1
        leave(generator, places[b])
    starts[len(rows)] = count


@cache
def disagreement() -> str:
    """Return the reason why kernels draw other numbers than NumPy's generators; empty if they draw the same.

    NumPy promises no stream for ever, and what it keeps of a generator's state is its own. So some draws are compared,
    once in a process.
    """
    if not is_compiled():
        return "numba is told to compile nothing"
    one, places, out = generator("agreement"), beginnings(6, [7, 8, 9]), np.empty((2, 3, 1001))
    for half in out:
        fill_normal(one, places, np.full(3, 0.3), np.ones(3, dtype=np.bool_), half)
    key = one.rng.bit_generator.state["state"]["key"]
    for b in range(3):
        rng = np.random.Generator(np.random.Philox(key=key, counter=[0, 7 + b, 0, 0]))
        if not np.array_equal(out[:, b].ravel(), rng.normal(0.0, 0.3, 2002)):
            return f"NumPy {np.__version__} draws otherwise than the compiled streams"
    return ""


NO_WEIGHTS = np.empty(0)
"""Stands for the uniform distribution of partners."""


@part(_nrt=False)
def rank_of(uniform: float, degree: int, weights: NDArray[np.float64]) -> int:
    """The partner that a draw, in (0, 1), one for each tick of the caller's clock, picks of its neighbours.

    There are (degree,) weights > 0 of them; none for the uniform distribution (`NO_WEIGHTS`).

    Examples
    --------
    >>> rank_of(0.5, 3, NO_WEIGHTS), rank_of(0.5, 3, np.array([0.1, 0.1, 0.8]))
    (1, 2)
    """
    if len(weights) == 0:
        return min(int(uniform * degree), degree - 1)
    total = 0.0
    for weight in weights:
        total += weight
    rest = uniform * total
    for rank in range(degree - 1):
        rest -= weights[rank]
        if rest < 0.0:
            return rank
    return degree - 1
