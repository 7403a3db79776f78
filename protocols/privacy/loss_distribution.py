"""Numerical composition of Laplace, gamma and sampled releases with dp-accounting's privacy loss distributions.

All rounding is pessimistic: connect-the-dots discretisation (Doroshenko et al. 2022), tails moved to infinite loss, and
multipliers rounded down to a geometric grid where more than 128 different ones occur. The grids are nested, so one more
release never lowers epsilon. Multipliers are relative to the run's own sensitivity, so adjacency is always passed as
ADD_OR_REMOVE_ONE with sensitivity 1: what REPLACE_ONE does to it differs between the library's accountants.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

Part = tuple[tuple[str, float, float], int]
"""Counted releases: ((mechanism, multiplier, sampling), count)."""
Parts = tuple[Part, ...]
"""Counted releases, sorted."""

SMALLEST_DELTA = 1e-10
"""Convolution by FFT errs by about 1e-15 per point, so no smaller delta can be read off."""
EXACT_SCALES = 128
FINE_SCALES = 256
COARSE_STEP = math.log(1.01)
FINE_STEP = COARSE_STEP / 4
MOST_POINTS = 2**20
"""Points of the composed distribution: 8 MB each, about a second in all."""
MOST_SAMPLED_POINTS = 1e5
"""Points of one sampled release, whose distribution is built slowly (8 microseconds a point)."""
LARGEST_LOSS = 700.0
"""Beyond it exp overflows; larger losses of a replaced record count as infinite."""


def composed_epsilon(parts: Parts, delta: float, *, replaced: bool = False) -> float:
    """Upper bound on the epsilon of all ``parts`` together, at ``delta >= SMALLEST_DELTA``; inf if none is found.

    Each part is composed with itself by one FFT, then the two smallest distributions are merged until one is left.
    ``replaced`` accounts for sampled releases under replace-one instead of add-or-remove-one.
    """
    parts = on_grid(_merge_gaussians(parts))
    interval = discretisation(parts)
    try:
        heap = [_sized(_distribution(part, interval, replaced), serial) for serial, part in enumerate(parts)]
        heapq.heapify(heap)
        for serial in range(len(parts), 2 * len(parts) - 1):
            first, second = heapq.heappop(heap)[2], heapq.heappop(heap)[2]
            heapq.heappush(heap, _sized(first.compose(second, tail_mass_truncation=1e-15), serial))
        return float(heap[0][2].get_epsilon_for_delta(delta))
    except OverflowError:  # the library takes exp of losses beyond 709: sampled releases with next to no noise
        return math.inf


def on_grid(parts: Parts) -> Parts:
    """Round multipliers down, by at most 1 %, where there are more than 128 different ones."""
    if len(parts) <= EXACT_SCALES:
        return parts
    rounded = _rounded(parts, FINE_STEP)
    return rounded if len(rounded) <= FINE_SCALES else _rounded(parts, COARSE_STEP)


def discretisation(parts: Parts) -> float:
    """Width of the loss grid: a small part of the typical loss, coarser where the distribution would not fit."""
    counts = np.array([count for _, count in parts], dtype=float)
    spread, largest = (np.array(column) for column in zip(*(_extent(part) for part, _ in parts), strict=True))
    slow = [width for ((_, _, sampling), _), width in zip(parts, largest, strict=True) if sampling < 1]
    typical = math.sqrt(float(counts @ spread**2 / counts.sum()))
    interval = max(
        min(0.05, typical / (50 if slow else 200)),
        float(_width(counts, spread, largest).sum()) / MOST_POINTS,
        max(slow, default=0.0) / MOST_SAMPLED_POINTS,
    )
    if len(parts) == 1 and parts[0][0][0] != "gaussian" and interval < largest[0]:
        interval = float(largest[0]) / math.ceil(largest[0] / interval)  # the atom of the loss falls on the grid
    return interval


def _extent(part: tuple[str, float, float]) -> tuple[float, float]:
    """Standard deviation (roughly) and largest value of one release's privacy loss."""
    mechanism, multiplier, sampling = part
    shift = 1 / multiplier
    if mechanism != "gaussian":
        spread, largest, exponent = min(shift, 2.0), shift, shift
    else:
        spread, largest, exponent = shift, shift * shift / 2 + 10 * shift, shift * shift
    if sampling == 1:
        return spread, largest
    if exponent < 50:
        spread = min(spread, sampling * math.sqrt(math.expm1(exponent)))
    return spread, float(np.logaddexp(math.log1p(-sampling), math.log(sampling) + largest))


def _width(
    counts: NDArray[np.float64], spread: NDArray[np.float64], largest: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Range of losses that the library keeps of each part: Chernoff bounds of order (1 to 20) / (2 largest)."""
    variance = counts * spread**2
    order = np.clip(2 * largest * np.sqrt(70 / variance), 1, 20)
    return np.minimum(2 * counts * largest, variance * order / (2 * largest) + 140 * largest / order)


def _distribution(part: Part, interval: float, replaced: bool) -> PrivacyLossDistribution:
    from dp_accounting.pld import privacy_loss_distribution as library

    (mechanism, multiplier, sampling), count = part
    if mechanism == "gamma":
        single = _randomised_response(_extent(part[0])[1], interval)
        return single.self_compose(count) if count > 1 else single
    build = library.from_laplace_mechanism if mechanism == "laplace" else library.from_gaussian_mechanism
    single = build(multiplier, value_discretization_interval=interval, sampling_prob=sampling)
    single = _worse_order(single, interval) if replaced and sampling < 1 else single
    return single.self_compose(count) if count > 1 else single


def _worse_order(single: PrivacyLossDistribution, interval: float) -> PrivacyLossDistribution:
    """The loss whose curve is, at every epsilon, that of the sampled pair in its worse order (P sampled into Q).

    For epsilon >= 0 that order is removing a record; for epsilon < 0 the curve follows from the same order, as the
    swapped pair has delta(epsilon) = 1 - e^epsilon + e^epsilon delta'(-epsilon).
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as library

    removed = single._pmf_remove.to_dense_pmf()
    count = max(min(removed._lower_loss + len(removed._probs), math.floor(LARGEST_LOSS / interval)), 1)
    positive = np.arange(count + 1) * interval
    above = np.asarray(removed.get_delta_for_epsilon(positive.tolist()), dtype=np.float64)
    below = -np.expm1(-positive[:0:-1]) + np.exp(-positive[:0:-1]) * above[:0:-1]
    return library.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots(
            interval, np.arange(-count, count + 1), np.concatenate([below, above])
        )
    )


def _randomised_response(epsilon: float, interval: float) -> PrivacyLossDistribution:
    """The privacy loss of randomised response: epsilon with probability 1 / (1 + e^-epsilon), else -epsilon.

    Connecting the dots means that both values are split between their neighbours on the grid, so that neither the
    probability nor that under the other input changes.
    """
    from dp_accounting.pld import privacy_loss_distribution as library

    masses: dict[int, float] = {}
    for loss in (epsilon, -epsilon):
        below = math.floor(loss / interval)
        up = math.expm1(below * interval - loss) / math.expm1(-interval)
        mass = 1 / (1 + math.exp(-epsilon)) * math.exp(min(loss, 0.0))
        masses[below] = masses.get(below, 0.0) + max(0.0, 1 - up) * mass
        masses[below + 1] = masses.get(below + 1, 0.0) + up * mass
    return library.PrivacyLossDistribution.create_from_rounded_probability(masses, 0.0, interval)


def _sized(distribution: PrivacyLossDistribution, serial: int) -> tuple[int, int, PrivacyLossDistribution]:
    return distribution._pmf_remove.size, serial, distribution


def _merge_gaussians(parts: Parts) -> Parts:
    """Replace all unsampled Gaussian releases by the one Gaussian that they are equivalent to."""
    plain = [(part, count) for part, count in parts if part[0] == "gaussian" and part[2] == 1]
    if not plain:
        return parts
    mu = math.sqrt(math.fsum(count / part[1] ** 2 for part, count in plain))
    return (*(item for item in parts if item not in plain), (("gaussian", 1 / mu, 1.0), 1))


def _rounded(parts: Iterable[Part], step: float) -> Parts:
    counts: dict[tuple[str, float, float], int] = {}
    for (mechanism, multiplier, sampling), count in parts:
        cell = math.floor(math.log(multiplier) / step)
        if math.exp(cell * step) > multiplier:
            cell -= 1
        key = (mechanism, math.exp(cell * step), sampling)
        counts[key] = counts.get(key, 0) + count
    return tuple(sorted(counts.items()))
