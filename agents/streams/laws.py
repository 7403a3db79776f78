"""Random variables of a stream, one at a time: what NumPy's generator makes of the same bits.

Normal and exponential variables come from the ziggurat of Marsaglia and Tsang [1]_, gamma variables from their method
of squeezing [2]_, integers from Lemire's multiplication [3]_.

References
----------
.. [1] G. Marsaglia and W. W. Tsang, "The ziggurat method for generating random variables", J. Stat. Software 5, 2000.
.. [2] G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26, 2000.
.. [3] D. Lemire, "Fast random integer generation in an interval", ACM TOMACS 29, 2019.
"""

from __future__ import annotations

import math

import numpy as np
from numba.np.random._constants import (
    fe_double,
    fi_double,
    ke_double,
    ki_double,
    we_double,
    wi_double,
    ziggurat_exp_r,
    ziggurat_nor_inv_r,
    ziggurat_nor_r,
)

from ..compilation.compiled import compiled
from .philox import EXACT, HALF, LOW32, ONE, SMALL, next_half, next_word, product

NORMAL_TAIL, NORMAL_TAIL_INVERSE = float(ziggurat_nor_r), float(ziggurat_nor_inv_r)
EXPONENTIAL_TAIL = float(ziggurat_exp_r)


@compiled(**SMALL)
def uniform(stream):  # pragma: no cover - compiled
    """A uniform variable in [0, 1), as ``Generator.random()``."""
    return np.float64(next_word(stream) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled(**SMALL)
def standard_normal(stream):  # pragma: no cover - compiled
    """A normal variable of mean 0 and deviation 1, as ``Generator.standard_normal()``."""
    word = next_word(stream)
    layer, size, x = _normal_layer(word)
    return x if size < ki_double[layer] else _rarer_normal(stream, word)


@compiled(**SMALL)
def _normal_layer(word):  # pragma: no cover - compiled
    """The layer of the ziggurat that 64 bits name, how far out they point in it (52 bits), and where that is."""
    layer = word & np.uint64(0xFF)
    size = (word >> np.uint64(9)) & np.uint64(0x000FFFFFFFFFFFFF)
    x = np.float64(size) * wi_double[layer]
    return layer, size, -x if (word >> np.uint64(8)) & ONE else x


@compiled(**EXACT)
def _rarer_normal(stream, word):  # pragma: no cover - compiled
    """What becomes of bits, one time in a hundred, that point to where a layer sticks out of the curve."""
    while True:
        layer, size, x = _normal_layer(word)
        if size < ki_double[layer]:
            return x
        if layer == 0:
            while True:
                beyond = -NORMAL_TAIL_INVERSE * math.log1p(-uniform(stream))
                other = -math.log1p(-uniform(stream))
                if other + other > beyond * beyond:
                    return -(NORMAL_TAIL + beyond) if (size >> np.uint64(8)) & ONE else NORMAL_TAIL + beyond
        below = fi_double[layer]
        if (fi_double[layer - ONE] - below) * uniform(stream) + below < math.exp(-0.5 * x * x):
            return x
        word = next_word(stream)


@compiled(**SMALL)
def standard_exponential(stream):  # pragma: no cover - compiled
    """An exponential variable of mean 1, as ``Generator.standard_exponential()``."""
    word = next_word(stream)
    layer, size, x = _exponential_layer(word)
    return x if size < ke_double[layer] else _rarer_exponential(stream, word)


@compiled(**SMALL)
def _exponential_layer(word):  # pragma: no cover - compiled
    """As of a normal variable: the layer, how far out (53 bits), and where that is."""
    layer = (word >> np.uint64(3)) & np.uint64(0xFF)
    size = word >> np.uint64(11)
    return layer, size, np.float64(size) * we_double[layer]


@compiled(**EXACT)
def _rarer_exponential(stream, word):  # pragma: no cover - compiled
    """As of a normal variable."""
    while True:
        layer, size, x = _exponential_layer(word)
        if size < ke_double[layer]:
            return x
        if layer == 0:
            return EXPONENTIAL_TAIL - math.log1p(-uniform(stream))
        below = fe_double[layer]
        if (fe_double[layer - ONE] - below) * uniform(stream) + below < math.exp(-x):
            return x
        word = next_word(stream)


@compiled(**EXACT)
def standard_gamma(stream, shape):  # pragma: no cover - compiled
    """A gamma variable of scale 1, as ``Generator.standard_gamma(shape)``; ``shape`` is ``>= 0``."""
    if shape == 1.0:
        return standard_exponential(stream)
    if shape == 0.0:
        return 0.0
    if shape < 1.0:
        # Of a constant shape LLVM would make another power (x * x where the exponent is 2, which rounds otherwise than
        # pow), were the exponent not unknown to it: there are at most 4 used words, so nothing is added.
        power = 1.0 / (shape + np.float64(stream[10] >> np.uint64(63)))
        while True:
            u = uniform(stream)
            v = standard_exponential(stream)
            if u <= 1.0 - shape:
                x = u**power
                if x <= v:
                    return x
            else:
                y = -math.log((1.0 - u) / shape)
                x = (1.0 - shape + shape * y) ** power
                if x <= v + y:
                    return x
    b = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * b)
    while True:
        x = v = 0.0
        while v <= 0.0:
            x = standard_normal(stream)
            v = 1.0 + c * x
        v = v * v * v
        u = uniform(stream)
        if u < 1.0 - 0.0331 * (x * x) * (x * x):
            return b * v
        if math.log(u) < 0.5 * x * x + b * (1.0 - v + math.log(v)):
            return b * v


@compiled(**SMALL)
def normal(stream, scale):  # pragma: no cover - compiled
    """A normal variable of mean 0 and deviation ``scale``, as ``Generator.normal(0.0, scale)``."""
    return 0.0 + scale * standard_normal(stream)


@compiled(**EXACT)
def laplace(stream, scale):  # pragma: no cover - compiled
    """A Laplace variable of mean 0 and deviation sqrt(2) scale, as ``Generator.laplace(0.0, scale)``."""
    while True:
        u = uniform(stream)
        if u >= 0.5:
            return 0.0 - scale * math.log(2.0 - u - u)
        if u > 0.0:
            return 0.0 + scale * math.log(u + u)


@compiled(**SMALL)
def gamma(stream, shape, scale):  # pragma: no cover - compiled
    """A gamma variable of mean shape * scale, as ``Generator.gamma(shape, scale)``."""
    return scale * standard_gamma(stream, shape)


@compiled(**EXACT)
def integers(stream, high):  # pragma: no cover - compiled
    """A uniform int64 of 0 to ``high - 1``, as ``Generator.integers(high)``; ``high`` is an int ``>= 1``."""
    count = np.uint64(high)
    if count == ONE:
        return np.int64(0)  # nothing is drawn for what is certain
    if count <= LOW32:
        scaled = next_half(stream) * count
        if (scaled & LOW32) < count:
            least = (LOW32 - count + ONE) % count
            while (scaled & LOW32) < least:
                scaled = next_half(stream) * count
        return np.int64(scaled >> HALF)
    if count == LOW32 + ONE:
        return np.int64(next_half(stream))
    upper, lower = product(next_word(stream), count)
    if lower < count:
        least = (~count + ONE) % count
        while lower < least:
            upper, lower = product(next_word(stream), count)
    return np.int64(upper)
