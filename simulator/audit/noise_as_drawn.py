"""Tier A: the noise that releases were given, as it was drawn in the scenario's own worlds.

Everything is compared with what the releases say: their mechanism and their scale.

==============  ====================================================================================================
test            what it asks
==============  ====================================================================================================
scale           sums of absolute values (Laplace), squares (Gaussian) or norms (gamma) have their exact law, over all
                agents and for each of them
law             log densities of vectors are like those of fresh draws (Kolmogorov-Smirnov, two samples)
coordinates,    signs of products of neighbouring coordinates, of an agent's consecutive draws, of two agents' draws of
steps, agents,  one rank, of two agents' draws that follow each other in time, of draws under different seeds: positive
times, seeds    as often as negative (an exact binomial test, as noise is symmetric)
precision       no more numbers than by chance are ones of single precision
repeats         no number is drawn twice, whatever its sign: matches to eleven digits are as rare as by chance
==============  ====================================================================================================

All p values of a command are judged together (Holm).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy import stats

from ...protocols.privacy.mechanisms import Release, noise_of
from ..contract.draws import Draw
from ..contract.transcript import Recording
from .noise import Array, drawn, fresh, log_density
from .worlds import Subject

FEW = 8
"""Draws below which an agent is not looked at by itself."""
FRESH = 8
"""Fresh draws for every draw."""
FINE = 0.01
"""How near to single precision a number of more places is by chance in 2 of 100, in units of the last place."""
MATCH = 1e-11
"""Relative difference of two numbers that are the same."""


@dataclass(frozen=True)
class Drawn:
    """One draw of noise, and where it was made.

    Parameters
    ----------
    seed : int
        Which of the runs.
    agent, rank : int
        Whose, and the how manieth of it.
    release : Release
    values : (..., p) float64
        The noise over its scale.
    offsets : (k,) float64
        How far numbers of the noise are from the nearest one of single precision, in units of its last place.
    """

    seed: int
    agent: int
    rank: int
    release: Release
    values: Array
    offsets: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class Check:
    """One test of noise.

    Parameters
    ----------
    name : str
    count : int
        Numbers, pairs or vectors that it is about.
    p : float
    said : str
        What was found, in words.
    """

    name: str
    count: int
    p: float
    said: str


def noise_checks(subject: Subject, seeds: Sequence[int | None], *, rng: np.random.Generator) -> list[Check]:
    """Run a subject with several seeds and test its noise.

    Parameters
    ----------
    subject : Subject
    seeds : sequence of int or None
        Luck of the runs; None is that of the scenario's own first run.
    rng : numpy.random.Generator
        For the fresh draws that noise is compared with.
    """
    return checks(gathered(subject.record(subject.task, seed=seed)[1] for seed in seeds), rng=rng)


def gathered(recordings: Iterable[Recording]) -> list[Drawn]:
    """All noise of some runs, in order; a value that an agent has drawn twice, noise and all, is one draw."""
    found = []
    for seed, recording in enumerate(recordings):
        for agent, draws in sorted(recording.draws.items()):
            distinct = {draw.noisy.tobytes(): draw for draw in reversed(draws)}
            for rank, draw in enumerate(reversed(distinct.values())):
                found.append(Drawn(seed, agent, rank, draw.release, _scaled(draw), _offsets(draw)))
    return found


def _offsets(draw: Draw) -> Array:
    """Where the exact value is not so large that its own rounding hides the noise's last places."""
    noise = np.ravel(drawn(draw))
    with np.errstate(over="ignore", under="ignore"):
        single = noise.astype(np.float32)
        place = np.spacing(np.abs(single)).astype(np.float64)
    seen = np.isfinite(place) & (np.spacing(np.abs(np.ravel(draw.noisy))) < FINE / 10 * place)
    return np.abs(noise[seen] - single[seen]) / place[seen]


def _scaled(draw: Draw) -> Array:
    return drawn(draw) / draw.release.scale


def checks(noise: Sequence[Drawn], *, rng: np.random.Generator) -> list[Check]:
    """All tests of some noise; none without noise."""
    found: list[Check] = []
    by_mechanism: dict[str, list[Drawn]] = defaultdict(list)
    for one in noise:
        by_mechanism[one.release.mechanism].append(one)
    for mechanism, some in sorted(by_mechanism.items()):
        found += [*_scales(mechanism, some), _law(mechanism, some, rng)]
    for name, products in _products(noise).items():
        if len(products):
            found.append(_signs(name, products))
    return [*found, _repeats(noise), _precision(noise)] if noise else []


def _scales(mechanism: str, noise: Sequence[Drawn]) -> Iterator[Check]:
    """The scale of all draws of a mechanism, and of each agent's."""
    if mechanism not in _SUMS:
        return
    yield _scale(f"scale of {mechanism} noise", mechanism, noise)
    by_agent: dict[int, list[Drawn]] = defaultdict(list)
    for one in noise:
        by_agent[one.agent].append(one)
    for agent, some in by_agent.items():
        if len(by_agent) > 1 and sum(one.values.size for one in some) >= FEW:
            yield _scale(f"scale of {mechanism} noise of agent {agent}", mechanism, some)


def _scale(name: str, mechanism: str, noise: Sequence[Drawn]) -> Check:
    """The sum of what has a gamma law at the right scale: twice the smaller of its two tails."""
    measured, shape, mean = np.array([_SUMS[mechanism](one.values) for one in noise]).sum(axis=0)
    law = stats.gamma(shape)
    p = min(1.0, 2 * min(float(law.cdf(measured)), float(law.sf(measured))))
    ratio = float((measured / shape) ** (1 / mean * len(noise)))
    return Check(name, int(sum(one.values.size for one in noise)), p, f"{ratio:.3g} of what releases say")


def _laplace(values: Array) -> tuple[float, float, float]:
    return float(np.abs(values).sum()), float(values.size), 1.0


def _gaussian(values: Array) -> tuple[float, float, float]:
    return float(np.square(values).sum()) / 2, values.size / 2, 2.0


def _gamma(values: Array) -> tuple[float, float, float]:
    return float(np.linalg.norm(values, axis=-1).sum()), float(values.size), 1.0


_SUMS = {"laplace": _laplace, "gaussian": _gaussian, "gamma": _gamma}
"""A sum with a gamma law by mechanism, its shape, and the power of the scale that it grows with."""


def _law(mechanism: str, noise: Sequence[Drawn], rng: np.random.Generator) -> Check:
    """Log densities of the draws, against those of fresh ones of the same shapes."""
    own, new = [], []
    for one in noise:
        # Coordinate by coordinate where they are independent, so that a few draws say more.
        values = one.values.reshape(-1, 1) if noise_of(mechanism).independent else one.values
        release = one.release
        own.append(np.atleast_1d(log_density(release, values * release.scale)).ravel() + _width(release, values))
        other = fresh(release, (FRESH, *values.shape), rng=rng)
        new.append(np.atleast_1d(log_density(release, other)).ravel() + _width(release, values))
    measured, expected = np.concatenate(own), np.concatenate(new)
    p = float(stats.ks_2samp(measured, expected, method="asymp").pvalue)  # pyright: ignore[reportAttributeAccessIssue]
    return Check(f"law of {mechanism} noise", len(measured), p, "against fresh draws")


def _width(release: Release, values: Array) -> float:
    """What makes densities at different scales comparable."""
    return values.shape[-1] * float(np.log(release.scale))


def _products(noise: Sequence[Drawn]) -> Mapping[str, Array]:
    """Products of numbers that have to be independent, by what sets them apart."""
    found: dict[str, list[Array]] = {name: [] for name in ("coordinates", "steps", "agents", "times", "seeds")}
    places = {(one.seed, one.agent, one.rank): one.values.ravel() for one in noise}
    for values in places.values():
        even = values[: len(values) // 2 * 2]
        found["coordinates"].append(even[::2] * even[1::2])
    orders = {
        "steps": lambda place: place,
        "agents": lambda place: (place[0], place[2], place[1]),
        "seeds": lambda place: (place[1], place[2], place[0]),
    }
    for name, order in orders.items():
        for one, two in pairwise(sorted(places, key=order)):
            if order(one)[:2] == order(two)[:2]:
                found[name].append(_product(places[one], places[two]))
    for one, two in pairwise(sorted(noise, key=lambda one: (one.seed, one.release.time, one.agent, one.rank))):
        if one.seed == two.seed and one.agent != two.agent:
            found["times"].append(_product(one.values.ravel(), two.values.ravel()))
    return {name: np.concatenate([np.zeros(0), *products]) for name, products in found.items()}


def _product(one: Array, two: Array) -> Array:
    """Numbers of two draws multiplied, as far as both go."""
    length = min(len(one), len(two))
    return one[:length] * two[:length]


def _signs(name: str, products: Array) -> Check:
    positive, count = int((products > 0).sum()), int((products != 0).sum())
    p = float(stats.binomtest(positive, count).pvalue) if count else 1.0
    share = positive / count if count else 0.0
    return Check(f"independence between {name}", count, p, f"{share:.1%} of products positive")


def _precision(noise: Sequence[Drawn]) -> Check:
    """Whether numbers have more places than those of single precision, whose last ones would stay visible."""
    offsets = np.concatenate([one.offsets for one in noise])
    near = int((offsets < FINE).sum())
    p = float(stats.binom.sf(near - 1, len(offsets), 2 * FINE)) if near else 1.0
    return Check("precision", len(offsets), p, f"{near} numbers of single precision")


def _repeats(noise: Sequence[Drawn]) -> Check:
    """Numbers that occur twice, over the number that chance has twice."""
    numbers = np.sort(np.abs(np.concatenate([one.values.ravel() for one in noise])))
    matches = int((np.diff(numbers) <= MATCH * numbers[1:]).sum())
    # Absolute values of density g: a pair matches with probability 2 MATCH E[x g(x)], which no law here has above 1/2.
    expected = MATCH * len(numbers) ** 2 / 2
    p = float(stats.poisson.sf(matches - 1, expected)) if matches else 1.0
    return Check("repeated numbers", len(numbers), p, f"{matches} of them")
