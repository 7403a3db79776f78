"""Tests of noise as it was drawn: by `hushnet run` in the runs of the contract, by tier A of an audit under more seeds.

Everything is compared with what the releases say: their mechanism and their scale.

====================  ==============================================================================================
test                  what it asks
====================  ==============================================================================================
scale                 sums of absolute values (Laplace), squares (Gaussian) or norms (gamma) are distributed as stated,
                      over all agents and for each of them
distribution          log densities of vectors are like those of fresh draws of their width (Kolmogorov-Smirnov,
                      two samples)
coordinate k          so are single coordinates, up to 16 of a vector
signs                 as many numbers are positive as negative (an exact binomial test)
independence          signs of products are as often positive as negative: of a vector's coordinates, one and two apart;
                      of an agent's draws, one to three apart; of two agents' draws of one rank, or one after the other
                      in time; of runs
numbers without       no more numbers than by chance are zero
noise
repeated numbers      no number is drawn twice, whatever its sign, but as rounding has it by chance
precision             no more numbers than by chance are ones of single precision
====================  ==============================================================================================

Tests of signs are for mechanisms whose density does not change when signs of coordinates do.
"""

# SciPy takes long to import, so who tests asks for it; its `stats` would take a second.

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...protocols.privacy.mechanisms import noise_of
from .noise_seen import Array, Drawn, Stack, stacked

Kind = TypeVar("Kind", bound=np.generic)

FEW = 8
"""Numbers below which an agent, and vectors below which a coordinate, is not looked at by itself."""
FRESH, LEAST_FRESH, MOST = 8, 4000, 20_000
"""Fresh draws for every draw, and at least; vectors, evenly spread over all, whose distribution is looked at."""
COLUMNS = 16
"""Coordinates that are looked at one by one."""
NUMBERS = 2_000_000
"""Numbers, the first ones of every vector, among which repeats and products are looked for."""
FINE, FEW_PLACES = 0.01, 10_000
"""How near to single precision a number of more places is by chance in 2 of 100, in units of the last place; numbers
that are looked at."""
EPS, LEAST_CELL = 4 * np.finfo(np.float64).eps, 1e-3
"""Relative rounding of numbers over their scale; the least that is taken for their median, for how dense they are."""


@dataclass(frozen=True)
class Check:
    """One test of noise."""

    name: str
    count: int
    """Numbers, pairs or vectors that it is about."""
    p: float
    said: str
    """What was found, in words."""


def checks(noise: Sequence[Drawn], *, rng: np.random.Generator) -> list[Check]:
    """All tests of some noise, by fresh draws from a generator; none without noise."""
    from scipy import special

    found: list[Check] = []
    by_mechanism: dict[str, list[Stack]] = defaultdict(list)
    for one in stacked(noise):
        by_mechanism[one.mechanism].append(one)
    for mechanism, some in by_mechanism.items():
        found += [
            *_scales(mechanism, some, noise),
            *_distributions(mechanism, some, rng),
            *_repeats(mechanism, some, noise, rng),
        ]
    signed = [one for some in by_mechanism.values() for one in some if _symmetric(one, rng)]
    for name, products in _products(signed, noise).items():
        positive, count = int((products > 0).sum()), int((products != 0).sum())
        if count:
            p = min(1.0, 2 * float(special.bdtr(min(positive, count - positive), count, 0.5)))
            found.append(Check(name, count, p, f"{positive / count:.1%} are positive"))
    return [*found, _precision([one for some in by_mechanism.values() for one in some])] if noise else []


def _scales(mechanism: str, some: Sequence[Stack], noise: Sequence[Drawn]) -> Iterator[Check]:
    if mechanism not in _SUMS:
        return
    measured, shape, power = _SUMS[mechanism]
    sums = np.concatenate([measured(one.values) for one in some])
    shapes = np.concatenate([np.full(len(one.values), shape * one.values.shape[1]) for one in some])
    agents = np.array([noise[owner].agent for one in some for owner in one.owners])
    yield _scale(f"scale of {mechanism} noise", float(sums.sum()), float(shapes.sum()), shape, power)
    present = np.unique(agents)
    if len(present) > 1:
        totals, all_shapes = np.bincount(agents, sums), np.bincount(agents, shapes)
        who = {one.agent: one.who or f"agent {one.agent}" for one in noise}
        for agent in present.tolist():
            if all_shapes[agent] >= FEW * shape:
                name = f"scale of {mechanism} noise of {who[agent]}"
                yield _scale(name, float(totals[agent]), float(all_shapes[agent]), shape, power)


def _scale(name: str, measured: float, shape: float, each: float, power: float) -> Check:
    """The sum of what has a gamma distribution at the right scale: twice the smaller of its two tails."""
    from scipy import special

    p = min(1.0, 2 * min(float(special.gammainc(shape, measured)), float(special.gammaincc(shape, measured))))
    return Check(name, round(shape / each), p, f"{(measured / shape) ** (1 / power):.3g} of what releases say")


_SUMS = {
    "laplace": (lambda values: np.abs(values).sum(axis=1), 1.0, 1.0),
    "gaussian": (lambda values: np.square(values).sum(axis=1) / 2, 0.5, 2.0),
    "gamma": (lambda values: np.linalg.norm(values, axis=1), 1.0, 1.0),
}
"""Gamma distributed sums over vectors, by mechanism; their shape per number, and the power of the scale in them."""


def _distributions(mechanism: str, some: Sequence[Stack], rng: np.random.Generator) -> Iterator[Check]:
    """Log densities and coordinates of the draws, against those of fresh ones of the same shapes and scale 1."""
    kind = noise_of(mechanism)
    for one in some:
        width = one.values.shape[1]
        values = _spread(one.values, max(1, min(MOST // len(some), NUMBERS // width)))
        count = min(max(FRESH * len(values), LEAST_FRESH), max(FRESH * FEW, NUMBERS // width))
        fresh = _fresh(mechanism, (count, width), rng)
        # Coordinate by coordinate where they are independent, so that a few draws say more.
        shape = (-1, 1) if kind.independent else (-1, width)
        own, new = (
            _spread(np.ravel(kind.log_density(each.reshape(shape), 1.0)), FRESH * MOST) for each in (values, fresh)
        )
        yield _same_distribution(f"distribution of {mechanism} noise", own, new)
        if width > 1 and len(values) >= FEW:
            for column in np.unique(np.linspace(0, width - 1, min(width, COLUMNS)).astype(np.int64)).tolist():
                yield _same_distribution(
                    f"coordinate {column} of {mechanism} noise", values[:, column], fresh[:, column]
                )


def _same_distribution(name: str, measured: Array, expected: Array) -> Check:
    from scipy import special

    one, two = np.sort(measured), np.sort(expected)
    at = np.concatenate([one, two])
    shares = [np.searchsorted(some, at, side="right") / len(some) for some in (one, two)]
    numbers = round(len(one) * len(two) / (len(one) + len(two)))
    p = min(1.0, 2 * float(special.smirnov(max(numbers, 1), np.abs(shares[0] - shares[1]).max())))
    return Check(name, len(measured), p, "it is not like fresh draws")


def _spread(values: NDArray[Kind], most: int) -> NDArray[Kind]:
    return values[np.linspace(0, len(values) - 1, min(len(values), most)).astype(np.int64)]


def _repeats(
    mechanism: str, some: Sequence[Stack], noise: Sequence[Drawn], rng: np.random.Generator
) -> Iterator[Check]:
    """Numbers that are zero or occur twice, over the number that rounding has by chance."""
    from scipy import special

    width = _width(some)
    numbers = np.concatenate([np.abs(one.values[:, :width]).ravel() for one in some])
    close = np.concatenate([_close(one, noise)[:, :width].ravel() for one in some]) + EPS * numbers
    owners = np.concatenate([np.repeat(one.owners, min(width, one.values.shape[1])) for one in some])
    fresh = np.sort(np.abs(_fresh_numbers(mechanism, some, rng)))
    cell = max(float(np.median(fresh)), LEAST_CELL) / 100
    shares = np.unique(np.floor(fresh / cell), return_counts=True)[1] / len(fresh)
    zero, crowding = numbers <= close, float(np.square(shares).sum()) / cell
    beside_zero = max(float((fresh < cell).mean()) / cell, crowding)
    p = float(special.pdtrc(zero.sum() - 1, close.sum() * beside_zero)) if zero.any() else 1.0
    first = f", the first for {noise[owners[zero][0]].where}" if zero.any() else ""
    yield Check("numbers without noise", len(numbers), p, f"{int(zero.sum())} of them{first}")
    numbers, close, owners = numbers[~zero], close[~zero], owners[~zero]
    order = np.argsort(numbers)
    twice = np.flatnonzero(np.diff(numbers[order]) <= close[order][1:] + close[order][:-1])
    p = float(special.pdtrc(len(twice) - 1, 2 * crowding * len(numbers) * close.sum())) if len(twice) else 1.0
    pairs = Counter(zip(owners[order[twice]].tolist(), owners[order[twice + 1]].tolist(), strict=True))
    yield Check("repeated numbers", len(numbers), p, _same(pairs, len(twice), noise))


def _same(pairs: Counter[tuple[int, int]], count: int, noise: Sequence[Drawn]) -> str:
    if not pairs:
        return "none of them"
    one, other = sorted(pairs.most_common(1)[0][0])
    if one == other:
        return f"{count} of them, such as coordinates of {noise[one].where}"
    other_run = " in another run" if noise[one].run != noise[other].run else ""
    return f"{count} of them, such as the noise of {noise[one].where} and of {noise[other].where}{other_run}"


def _close(stack: Stack, noise: Sequence[Drawn]) -> Array:
    """(d, p) rounding of standardised noise."""
    scales = np.array([noise[owner].release.scale for owner in stack.owners.tolist()])
    return stack.rounding / scales[:, None]


def _width(some: Sequence[Stack]) -> int:
    """Return the number of coordinates to test per vector, so that all vectors stay within `NUMBERS`."""
    return max(2, NUMBERS // max(1, sum(len(one.values) for one in some)))


def _fresh(mechanism: str, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """(d, p) new noise of scale 1; of the usual mechanisms not as they draw it themselves."""
    if mechanism in _DRAWS:
        return _DRAWS[mechanism](shape, rng)
    return noise_of(mechanism).draw(shape, 1.0, rng=rng)


def _spherical(shape: tuple[int, int], rng: np.random.Generator) -> Array:
    towards = rng.normal(size=shape)
    return towards * (rng.gamma(shape[1], size=(shape[0], 1)) / np.linalg.norm(towards, axis=1, keepdims=True))


_DRAWS = {
    "laplace": lambda shape, rng: rng.laplace(size=shape),
    "gaussian": lambda shape, rng: rng.normal(size=shape),
    "gamma": _spherical,
}


def _fresh_numbers(mechanism: str, some: Sequence[Stack], rng: np.random.Generator) -> Array:
    each = max(1, MOST // len(some))
    widths = [one.values.shape[1] for one in some]
    fresh = [_fresh(mechanism, (max(1, each // width), width), rng) for width in widths]
    return np.concatenate([one[:, : _width(some)].ravel() for one in fresh])


def _symmetric(stack: Stack, rng: np.random.Generator) -> bool:
    """True if a mechanism's density stays the same when signs of coordinates change."""
    kind, width = noise_of(stack.mechanism), stack.values.shape[1]
    fresh = _fresh(stack.mechanism, (16, width), rng)
    flipped = fresh * rng.choice([-1.0, 1.0], fresh.shape)
    return bool(np.allclose(kind.log_density(fresh, 1.0), kind.log_density(flipped, 1.0), rtol=1e-9, atol=1e-9))


def _products(some: Sequence[Stack], noise: Sequence[Drawn]) -> Mapping[str, Array]:
    """Numbers, and products of numbers that have to be independent, by what sets them apart."""
    if not some:
        return {}
    width = min(_width(some), max(one.values.shape[1] for one in some))
    signs = np.zeros((sum(len(one.values) for one in some), width))  # zeros, which no test counts, fill rows up
    for rows, one in zip(np.split(signs, np.cumsum([len(one.values) for one in some])[:-1]), some, strict=True):
        rows[:, : one.values.shape[1]] = np.sign(one.values[:, :width])
    draws = [noise[owner] for one in some for owner in one.owners.tolist()]
    within = np.concatenate([_within(one.owners) for one in some])
    keys = np.array([(one.run, one.agent, one.rank, one.release.time) for one in draws]).T
    run, agent, rank, time = keys
    rank = rank + within / (within.max() + 1)
    found = {"signs": signs}
    for apart in (1, 2):
        found[f"independence between coordinates {apart} apart"] = signs[:, apart:] * signs[:, :-apart]
    steps = np.lexsort((rank, agent, run))
    for apart in (1, 2, 3):
        found[f"independence between draws of an agent {apart} apart"] = _pairs(signs, steps, apart, run, agent)
    found["independence between agents"] = _pairs(signs, np.lexsort((agent, rank, run)), 1, run, rank)
    found["independence between runs"] = _pairs(signs, np.lexsort((run, rank, agent)), 1, agent, rank)
    times = np.lexsort((rank, agent, time, run))
    found["independence between times"] = _pairs(signs, times, 1, run, differing=agent)
    return found


def _within(owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index of each vector among those of its draw, which follow each other."""
    starts = np.r_[True, owners[1:] != owners[:-1]]
    places = np.arange(len(owners))
    return places - np.maximum.accumulate(np.where(starts, places, 0))


def _pairs(signs: Array, order: NDArray[np.intp], apart: int, *same: Array, differing: Array | None = None) -> Array:
    """Products of vectors that are so far apart in an order and have something in common."""
    one, two = order[:-apart], order[apart:]
    fits = np.all([key[one] == key[two] for key in same], axis=0)
    if differing is not None:
        fits &= differing[one] != differing[two]
    return signs[one[fits]] * signs[two[fits]]


def _precision(some: Sequence[Stack]) -> Check:
    """Test that noise is not rounded to single precision, which would leave the last places of exact values visible."""
    from scipy import special

    noise, rounding = (np.concatenate([np.ravel(getattr(one, name)) for one in some]) for name in ("noise", "rounding"))
    with np.errstate(over="ignore", under="ignore"):
        single = noise.astype(np.float32)
        place = np.spacing(np.abs(single)).astype(np.float64)
    # Where the exact value is so large that its own rounding hides the noise's last places, nothing is seen of them.
    seen = _spread(np.flatnonzero(np.isfinite(place) & (rounding < FINE / 10 * place)), FEW_PLACES)
    near = int((np.abs(noise[seen] - single[seen]) < FINE * place[seen]).sum())
    p = float(special.bdtrc(near - 1, len(seen), 2 * FINE)) if near else 1.0
    return Check("precision", len(seen), p, f"{near} numbers of single precision")
