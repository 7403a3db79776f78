"""Norms that neither overflow nor underflow, and contributions that are bounded whatever the data are.

Noise protects a record as far as its contribution is bounded, and the one record that a bound is for is the extreme
one. A row of 1e155 has a norm of 1e155 though its squares are infinite, and a slope times a row may be infinite though
both are finite. So what is out of the ordinary is computed in units of its largest entry, and ordinary rows as ever, to
the bit. A contribution that has no finite direction left (its slope overflowed, or is not a number) counts as zero.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Norm = Literal["l1", "l2"]

LEAST, MOST = 1e-40, 1e100
"""Between these, products of two numbers and their squares neither overflow nor underflow."""
ORDINARY = MOST**2
"""A sum of squares below this has no term above `MOST` and none that is not a number."""
SHORT = 1.0 - 2.0**-47
"""What is scaled down is scaled a little further, so that its own norm, computed again, is within the bound."""


def norms(rows: Array, norm: Norm = "l2") -> Array:
    """(m,) l1 or l2 norms of (m, p) rows: infinite only where a norm is above every float64, or a row not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = _plain_norms(rows, norm)
        odd = np.flatnonzero(~((lengths > LEAST) & (lengths < MOST)))
        if len(odd):
            units, sizes = _units(rows[odd])
            lengths[odd] = np.where(np.isfinite(sizes), _plain_norms(units, norm) * sizes, np.inf)
    return lengths


def clipped_terms(slopes: Array, rows: Array, norm: Norm, bound: float) -> tuple[Array, Array]:
    """Coefficients c and rows u whose products c_k u_k are the contributions slope_k row_k, clipped to a norm.

    The caller ignores floating-point overflow and what is invalid (`numpy.errstate`): (m,) slopes are infinite or NaN
    where computing them overflowed. The norm of a contribution is at most the bound, > 0. A coefficient is 0 where the
    slope or the row is not finite; (m, p) rows are as given, but those that are out of the ordinary are divided by a
    power of 2 near their largest entry.
    """
    lengths = _plain_norms(rows, norm)
    if lengths.dot(lengths) < ORDINARY and slopes.dot(slopes) < ORDINARY and LEAST < bound < MOST:
        lengths *= np.abs(slopes)
        short = SHORT * bound
        return slopes * (short / np.maximum(lengths, short)), rows
    odd = ~((lengths < MOST) & (np.abs(slopes) < MOST) & (LEAST < bound < MOST))
    return _extreme_terms(slopes, rows, odd, norm, bound)


def _extreme_terms(slopes: Array, rows: Array, odd: NDArray[np.bool_], norm: Norm, bound: float) -> tuple[Array, Array]:
    """`clipped_terms` where some rows, their slopes or the bound are out of the ordinary."""
    rows, powers = rows.copy(), np.ones(len(rows))
    rows[odd], powers[odd] = _units(rows[odd])
    lengths, scales = _plain_norms(rows, norm), slopes * powers
    long = np.abs(scales) * lengths > bound
    short = SHORT * bound / np.where(lengths > 0.0, lengths, 1.0)
    coefficients = np.where(long, np.sign(slopes) * short, scales)
    coefficients[~(np.isfinite(slopes) & np.isfinite(powers))] = 0.0
    return coefficients, rows


def clip_rows(features: Array, radius: float, norm: Norm = "l2") -> Array:
    """Scale (m, p) rows whose norm is above the radius, > 0, down to it; other rows are kept bit for bit.

    None is too large then. A row that is not finite becomes zero.
    """
    lengths = norms(features, norm)
    long = np.flatnonzero(~(lengths <= radius))
    clipped = np.array(features)
    if len(long):
        with np.errstate(over="ignore", invalid="ignore"):
            coefficients, rows = clipped_terms(np.ones(len(long)), features[long], norm, radius)
            clipped[long] = coefficients[:, None] * rows
    return clipped


def _plain_norms(rows: Array, norm: Norm) -> Array:
    """Norm of each row, equal to that of `numpy.linalg.norm` to the bit, without its overhead."""
    if norm == "l1":
        return np.add.reduce(np.abs(rows), axis=1)
    return np.sqrt(np.add.reduce(rows * rows, axis=1))


def _units(rows: Array) -> tuple[Array, Array]:
    """Rows divided by powers of 2, so that their largest entries are in [1, 2), and these powers.

    A row that is not finite becomes zero, and its power infinite.
    """
    largest = np.abs(rows).max(axis=1, initial=0.0)
    known = np.isfinite(largest)
    powers = np.frexp(np.where(known, largest, 0.0))[1] - 1
    units = np.where(known[:, None], np.ldexp(rows, -powers[:, None]), 0.0)
    return units, np.where(known, np.ldexp(1.0, powers), np.inf)
