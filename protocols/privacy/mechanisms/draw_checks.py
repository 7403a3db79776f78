"""Checks that a mechanism draws what its density says: at a scale, and in a number of dimensions.

All draws are seeded, so that a mechanism passes always or never. The false alarm of each comparison is `FALSE_ALARM`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .mechanism import Noise

Array = NDArray[np.float64]

SEED = 1706
FALSE_ALARM = 1e-9
NUMBERS, IN_VECTORS = 1_000_000, 500_000
"""Numbers in a sample on the line, where scales that are 2 % off are found out, and in one of vectors."""
LEAST_VECTORS, MOST_NUMBERS = 1000, 2_000_000
"""Vectors in a sample, unless they are of more numbers than that."""
CALLS = 3000
"""Vectors that are drawn one by one, as steps draw them."""
TAIL = 50_000_000
"""Numbers whose largest and smallest are compared with their distribution: values cut at 5 standard deviations."""
VECTORS = 40_000
DEVIATIONS = 6.2
"""Standard errors that a mean exceeds with a probability of `FALSE_ALARM`, both ways."""
REACH, POINTS = 30.0, 100_001
"""The line is integrated over sinh(u), abs(u) <= REACH, which holds tails as heavy as x^-1.5."""
ROUGHNESS = 1e-3
"""Error of that integral for a density with jumps."""
REPEATS = 4
"""Equal numbers that chance admits: of two million there is one pair in 5,000 samples."""
RARE = 60
"""Draws that are expected in the part of a tail whose emptiness is told from chance."""
SHIFTED = 400_000
"""Numbers in a sample that is shifted."""
LAGS = (1, 2, 3, 4, 5, 7, 8, 16)
AXES, PAIRED = 24, 512
"""Axes along which noise with dependent coordinates is shifted, and coordinates that are correlated at most."""


class MechanismViolation(ValueError):
    """A mechanism is not what it says."""


def rng_of(*key: int) -> np.random.Generator:
    """A stream of the checks' own."""
    return np.random.default_rng([SEED, *key])


def require(condition: bool | np.bool_, sentence: str) -> None:
    """Refuse a mechanism with a sentence, unless a condition holds."""
    if not condition:
        raise MechanismViolation(sentence)


def check_repeatable(mechanism: Noise) -> None:
    """The same stream gives the same noise, and going on gives other noise, in the shape that was asked for."""
    for size in ((5,), (4, 3)):
        first, rng = mechanism.draw(size, 1.5, rng=rng_of(1)), rng_of(1)
        same, other = mechanism.draw(size, 1.5, rng=rng), mechanism.draw(size, 1.5, rng=rng)
        require(first.shape == size, f"noise of shape {size} was asked for, and {first.shape} was drawn")
        require(np.isfinite(first).all(), "noise is not finite")
        require(np.array_equal(first, same), "the same stream does not give the same noise")
        require(not np.any(first == other), "a stream gives the same noise again")
        require(len(np.unique(first)) == first.size, "coordinates share one draw")


def check_noise(mechanism: Noise, scale: float, dimension: int) -> None:
    """Compare draws of vectors with their density, at one scale > 0 and in one number of dimensions ``>= 1``.

    Vectors are drawn at once and one by one. Raises `MechanismViolation`.
    """
    where = f"at scale {scale:.6g}" + (f" in {dimension} dimensions" if dimension > 1 else "")
    independent = _check_density(mechanism, scale, dimension, where)
    few = max(min(LEAST_VECTORS, MOST_NUMBERS // dimension), 4)
    many = NUMBERS if dimension == 1 else max(IN_VECTORS // dimension, few)
    rng = rng_of(3, dimension)
    together = mechanism.draw((many, dimension), scale, rng=rng)
    calls = max(min(CALLS, IN_VECTORS // dimension), 4)
    apart = np.stack([mechanism.draw((dimension,), scale, rng=rng) for _ in range(calls)])
    for noise in (together, apart):
        values = np.sort(np.abs(noise), axis=None)
        repeats = int(np.count_nonzero(values[1:] == values[:-1]))
        require(repeats <= REPEATS, f"draws {where} repeat: {repeats} of {noise.size} numbers occur before")
    if independent:
        distribution = _Distribution(mechanism, scale)
        for noise in (together, apart):
            below = distribution.below(noise)
            _check_coordinates(below, ROUGHNESS / 5, where, pooled=True)
            distribution.check_ends(float(noise.min()), float(noise.max()), noise.size, where)
            _check_apart(below, where)
        return
    _check_shifts(mechanism, scale, together[: min(VECTORS, max(SHIFTED // dimension, LEAST_VECTORS // 2))], where)
    _check_stretched(mechanism, scale, together, where)
    if _symmetric(mechanism, scale, together[:20]):
        pooled = np.sort(together, axis=None)
        slack = _widest(len(together), dimension)
        _check_coordinates(np.searchsorted(pooled, apart) / pooled.size, slack, where, pooled=False)


def check_tails(mechanism: Noise) -> None:
    """The largest and the smallest of very many draws at scale 1 on the line are as their distribution says.

    Raises `MechanismViolation`.
    """
    rng, low, high = rng_of(8), math.inf, -math.inf
    for _ in range(TAIL // NUMBERS):
        noise = mechanism.draw((NUMBERS, 1), 1.0, rng=rng)
        low, high = min(low, float(noise.min())), max(high, float(noise.max()))
    _Distribution(mechanism, 1.0).check_ends(low, high, TAIL, "at scale 1")


def _check_density(mechanism: Noise, scale: float, dimension: int, where: str) -> bool:
    """Scaling noise and sensitivity alike changes nothing: f(x; b) = f(x / b; 1) / b^p. Whether it is a product."""
    noise = mechanism.draw((50, dimension), 1.0, rng=rng_of(2))
    single = mechanism.log_density(noise, 1.0)
    given = mechanism.log_density(noise * scale, scale)
    require(given.shape == (50,), f"the density of (50, {dimension}) noise has the shape {given.shape}")
    close = np.allclose(given, single - dimension * math.log(scale), rtol=1e-9, atol=1e-6)
    require(close, f"its density {where} is not its density at scale 1, stretched")
    product = mechanism.log_density(noise.reshape(-1, 1), 1.0).reshape(50, dimension).sum(axis=1)
    independent = np.allclose(product, single, rtol=1e-9, atol=1e-6)
    require(independent or not mechanism.independent, f"its coordinates {where} are not independent")
    return independent


def line(scale: float) -> tuple[Array, Array]:
    """Points of the line and their weights."""
    u = np.linspace(-REACH, REACH, POINTS)
    return scale * np.sinh(u), scale * np.cosh(u) * (u[1] - u[0])


def density(mechanism: Noise, points: Array, scale: float) -> Array:
    """The density at (k,) points of the line."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return np.exp(mechanism.log_density(points[:, None], scale))


class _Distribution:
    """The distribution function of noise on the line, integrated from its density."""

    def __init__(self, mechanism: Noise, scale: float) -> None:
        self.points, weights = line(scale)
        masses = density(mechanism, self.points, scale) * weights
        total = float(masses.sum())
        require(abs(total - 1) < ROUGHNESS, f"its density at scale {scale:.6g} adds up to {total:.6g} on the line")
        self._below = np.cumsum(masses) - masses / 2
        self._above = np.cumsum(masses[::-1])[::-1] - masses / 2

    def below(self, noise: Array) -> Array:
        """The probability of what is smaller, of noise of any shape."""
        return np.interp(noise, self.points, self._below)

    def check_ends(self, low: float, high: float, count: int, where: str) -> None:
        """The smallest and the largest of draws are neither too near nor too far.

        All of ``count`` draws stay out of a set of probability q with a probability of e^(-count q) at most, and one
        falls into it with a probability of count q at most; integration errs by less than a tenth.
        """
        farther = [float(np.interp(low, self.points, self._below)), float(np.interp(high, self.points, self._above))]
        ends = (("smallest", low, farther[0]), ("largest", high, farther[1]))
        for name, value, mass in (*ends, ("widest", max(-low, high), 2 * min(farther))):
            expected = f"where {count * mass:.3g} of its density's lie beyond"
            sentence = f"the {name} of {count} draws {where} is {value:.6g}, {expected}"
            require(count * mass * 1.1 >= FALSE_ALARM and count * mass <= -1.1 * math.log(FALSE_ALARM), sentence)


def _widest(count: int, dimension: int) -> float:
    """Distance of distribution functions that chance allows (Dvoretzky, Kiefer, Wolfowitz, Massart), of p at once."""
    return math.sqrt(math.log(2 * dimension / FALSE_ALARM) / (2 * count))


def _check_coordinates(below: Array, slack: float, where: str, *, pooled: bool) -> None:
    """(n, p) values of the distribution function are uniform in every coordinate and, if so said, in all together.

    Folded, they show a wrong scale twice as clearly.
    """
    count, dimension = below.shape
    for values in (below, np.abs(2 * below - 1)):
        apart = _apart(np.sort(values, axis=0))
        admissible = _widest(count, dimension) + 2 * slack
        worst = int(apart.argmax())
        require(
            apart[worst] <= admissible,
            f"the draws {where} and the density have distribution functions {apart[worst]:.4f} apart"
            f"{f' in coordinate {worst}' if dimension > 1 else ''}, where chance allows {admissible:.4f}",
        )
        if pooled:
            far = float(_apart(np.sort(values, axis=None)[:, None])[0])
            admissible = _widest(values.size, 1) + 2 * slack
            require(
                far <= admissible,
                f"the draws {where} and the density have distribution functions {far:.4f} apart in all coordinates "
                f"together, where chance allows {admissible:.4f}",
            )


def _apart(ordered: Array) -> Array:
    """Distance of each column of sorted values from the uniform distribution."""
    ranks = (np.arange(len(ordered)) + 0.5) / len(ordered)
    return np.abs(ordered - ranks[:, None]).max(axis=0)


def _check_apart(below: Array, where: str) -> None:
    """Independent coordinates, and vectors one after another, are not correlated; nor are their sizes."""
    count, dimension = below.shape
    chosen = list(range(dimension))
    if dimension > PAIRED:
        first = [int(axis) for axis in rng_of(9).choice(dimension - 1, PAIRED // 2, replace=False)]
        chosen = sorted({*first, *(axis + 1 for axis in first)})
    pairs = -math.log(FALSE_ALARM / (2 * len(chosen) ** 2))
    admissible = (pairs + math.sqrt(pairs * pairs + 2 * count * pairs)) / count + 5 * ROUGHNESS  # Bernstein
    martingale = 3 * math.sqrt(2 * math.log(2 / FALSE_ALARM) / below.size) + 5 * ROUGHNESS  # Azuma
    for values in (below, np.abs(2 * below - 1)):
        uniform = math.sqrt(12) * (values - 0.5)
        held = uniform[:, chosen]
        together = np.abs(held.T @ held / count) - 9 * np.eye(len(chosen))
        one, other = divmod(int(together.argmax()), len(chosen))
        require(
            together[one, other] <= admissible,
            f"draws {where} have a correlation of {together[one, other]:.3f} between coordinates {chosen[one]} and "
            f"{chosen[other]}, where chance allows {admissible:.3f}",
        )
        flat = uniform.reshape(-1)
        for lag in {lag * step for lag in LAGS for step in (1, dimension) if 2 * lag * step <= flat.size}:
            found = abs(float(flat[lag:] @ flat[:-lag]) / (flat.size - lag))
            limit = martingale * math.sqrt(flat.size / (flat.size - lag))
            require(found <= limit, f"draws {where} have a correlation of {found:.3f} with those {lag} numbers before")
    if dimension > 2:
        signs = np.sign(below[:, chosen] - 0.5)
        triples = np.abs((signs[:, :-2] * signs[:, 1:-1] * signs[:, 2:]).mean(axis=0))
        limit = math.sqrt(2 * math.log(2 * dimension / FALSE_ALARM) / count) + 5 * ROUGHNESS
        require(triples.max() <= limit, f"draws {where} have signs that follow from those of two other coordinates")


def ratio_of(mechanism: Noise, noise: Array, shift: Array, scale: float) -> Array:
    """Log likelihood ratio of noise around 0 and around a shift."""
    with np.errstate(invalid="ignore"):
        ratio = mechanism.log_density(noise, scale) - mechanism.log_density(noise - shift, scale)
    return np.where(np.isnan(ratio), -np.inf, ratio)  # outside both


def directions(mechanism: Noise, dimension: int) -> Iterator[Array]:
    """Shifts of length 1: along an axis, along a diagonal, in any direction; and a shorter one."""
    axis, diagonal = np.zeros(dimension), np.ones(dimension)
    axis[0] = 1.0
    anywhere = rng_of(4).normal(size=dimension)
    for shift in (axis, diagonal, anywhere, 0.4 * axis):
        length = 0.4 if shift[0] == 0.4 else 1.0
        yield length * shift / mechanism.length(shift)


def _check_shifts(mechanism: Noise, scale: float, around: Array, where: str) -> None:
    """Draws around a shift, weighed by the likelihood ratio, are like draws around 0."""
    dimension = around.shape[1]
    size = math.sqrt(float(np.square(around).mean()))
    rng = rng_of(5, dimension)
    axes = {*range(min(dimension, AXES // 2)), *rng.integers(0, dimension, AXES // 2).tolist()}
    along = [size * np.eye(1, dimension, axis)[0] for axis in sorted(axes)]
    spread = [size * rng.choice([-1.0, 1.0], dimension) / math.sqrt(dimension)]
    for shift in [scale / 1.5 * one for one in directions(mechanism, dimension)] + along + spread:
        moved = mechanism.draw(around.shape, scale, rng=rng) + shift
        here, there = (ratio_of(mechanism, noise, shift, scale) for noise in (around, moved))
        _check_weighed(here, there, np.quantile(here[np.isfinite(here)], (0.2, 0.5, 0.8, 0.95)), where)


def _check_stretched(mechanism: Noise, scale: float, noise: Array, where: str) -> None:
    """Draws at a larger scale, weighed by the likelihood ratio, are like draws at this one, down to the thin tail."""
    dimension = noise.shape[1]
    wider = scale * (1 + 2 / math.sqrt(dimension + 1))
    drawn = mechanism.draw(noise.shape, wider, rng=rng_of(10, dimension))
    here, there = (mechanism.log_density(one, scale) - mechanism.log_density(one, wider) for one in (noise, drawn))
    ordered = np.sort(there)
    rare = int(np.searchsorted(np.cumsum(np.exp(ordered)), RARE))
    levels = [*np.quantile(here, (0.05, 0.2, 0.5, 0.8, 0.95)), ordered[min(rare, len(ordered) - 1)]]
    _check_weighed(here, there, np.array(levels), where)


def _check_weighed(here: Array, there: Array, levels: Array, where: str) -> None:
    """P(L <= a) = E_Q[e^L; L <= a], of the log likelihood ratio L under P and under Q."""
    count = len(here)
    for level in levels:
        weighed = np.where(there <= level, np.exp(np.minimum(there, level)), 0.0)
        counted = (here <= level).astype(float)
        apart = float(weighed.mean() - counted.mean())
        error = math.sqrt((weighed.var() + max(counted.var(), min(weighed.mean(), 0.25))) / count)
        require(
            abs(apart) <= DEVIATIONS * error + 1e-9,
            f"draws {where} do not have the ratio of its densities: an event of probability {counted.mean():.3g} "
            f"should have {weighed.mean():.3g}",
        )


def _symmetric(mechanism: Noise, scale: float, noise: Array) -> bool:
    """True if the density of a mechanism is the same when coordinates change places and signs."""
    rng = rng_of(11)
    other = noise[:, rng.permutation(noise.shape[1])] * rng.choice([-1.0, 1.0], noise.shape)
    return np.allclose(mechanism.log_density(noise, scale), mechanism.log_density(other, scale), rtol=1e-9, atol=1e-9)
