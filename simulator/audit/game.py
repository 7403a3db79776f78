"""Tier C: tell D from D', by the exact likelihood of what is released.

A trial is a run on D or on D', with a seed of its own. Whoever knows both data sets, all parameters and everything that
was sent can compute how likely the transcript is on either: a run on the other data is led along the same noisy values
(`hushnet.simulator.contract.forcing.Led`), which gives the exact values under them, and the mechanisms have densities.
The log-likelihood ratio is the best statistic that there is (Neyman, Pearson 1933).

Where rows are sampled, nobody sees which ones, and a release has a mixture for its density. The attacked agent's other
rows are then without features, so that a release has two exact values, with the changed row drawn and without: two
more runs give them, one on rows that are all like the changed one and one without any features. Rows of Poisson samples
are drawn in varying numbers, and the two values do not follow from two runs: no game is played.

The mechanism alone is played with as well: where the realised changes do not depend on what was released before, which
two runs of different seeds tell, fresh noise and these changes give the distribution of the ratio at little cost.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...protocols.privacy.accounting import verified
from ...protocols.privacy.mechanisms import Release, noise_of
from ..contract.draws import Draw
from ..contract.transcript import Recording
from .pairs import Pair, alone
from .worlds import Subject

Array = NDArray[np.float64]

SAME = 1e-6
"""Relative difference of two realised changes that counts as none."""
MOST_NUMBERS = 4e8
"""Numbers drawn for the mechanism alone: about ten seconds."""
AT_ONCE = 2_000_000
"""Numbers that are in memory at a time."""


@dataclass(frozen=True)
class JudgedRun:
    """One run that was judged."""

    ratio: float
    """log p(seen | D) - log p(seen | D')."""
    verified: float
    """Epsilon of the attacked agent in this run."""


def trial(subject: Subject, pair: Pair, rank: int, changed: bool) -> JudgedRun:
    """The trial of a number, on D or, if it is to be on changed data, on D'."""
    seed = trial_seed(subject.key, rank, changed=changed)
    world, seen = subject.record(pair.neighbour if changed else pair.data, seed=seed)
    agent = pair.agent
    proved = verified(world.ledger.histogram(agent), subject.delta)
    if any(draw.release.sampling < 1 for draw in seen.draws[agent]):
        return JudgedRun(_mixed_ratio(subject, pair, seen, seed), proved)
    other = subject.led(pair.data if changed else pair.neighbour, seen, seed=seed)
    own, others = (sum(map(log_likelihood, watch.draws[agent])) for watch in (seen, other))
    return JudgedRun(others - own if changed else own - others, proved)


def log_likelihood(draw: Draw) -> float:
    """Logarithm of the density of what was released, given what was released before, up to what no data change."""
    return float(_log_density(draw.release, draw.explained).sum()) + (draw.log_jacobian or 0.0)


def _log_density(release: Release, noise: Array) -> Array:
    """Logarithm of the density of (..., p) noise, of shape (...)."""
    return noise_of(release.mechanism).log_density(noise, release.scale)


def _mixed_ratio(subject: Subject, pair: Pair, seen: Recording, seed: int) -> float:
    """The ratio of two mixtures over whether the changed row was drawn."""
    runs = [subject.led(task, seen, seed=seed).draws[pair.agent] for task in alone(pair)]
    ratio, rows = 0.0, int(subject.task.train.counts[pair.agent])
    for draw, without, before, after in zip(seen.draws[pair.agent], *runs, strict=True):
        share = 1 / max(1, round(draw.release.sampling * rows))
        moved = [share * (one.exact - without.exact) for one in (before, after)]
        logs = [_mixture(draw.release, draw.noisy - without.exact, shift) for shift in moved]
        ratio += float(logs[0] - logs[1])
    return ratio


def _mixture(release: Release, noisy: Array, shift: Array) -> Array:
    """Log density of noise that is moved by a shift with the probability of the release's sampling."""
    share = release.sampling
    without, moved = _log_density(release, noisy), _log_density(release, noisy - shift)
    return np.logaddexp(math.log1p(-share) + without, math.log(share) + moved)


def trial_seed(key: str, rank: int, *, changed: bool) -> int:
    """The seed of a trial, which no other trial has."""
    return int.from_bytes(hashlib.blake2s(f"audit {key} {rank} {changed}".encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True)
class Shifts:
    """A release whose exact values do not depend on what was released before."""

    release: Release
    on_data: Array
    on_neighbour: Array
    """`on_data` and `on_neighbour`: (..., p) float64: Exact values on D and on D', less what both have in common; with
    sampling, those with the changed row drawn."""


def constant_shifts(subject: Subject, pair: Pair, seeds: Sequence[int | None]) -> list[Shifts] | None:
    """The shifts of the pair's releases, if runs of different seeds agree about them; None if they do not."""
    found = [_shifts(subject, pair, seed) for seed in seeds]
    if any(one is None for one in found):
        return None
    first = found[0]
    for other in found[1:]:
        for one, two in zip(first or (), other or (), strict=False):
            for name in ("on_data", "on_neighbour"):
                here, there = getattr(one, name), getattr(two, name)
                if here.shape != there.shape or np.abs(here - there).max() > SAME * np.abs(here).max(initial=1e-300):
                    return None
    return first


def _shifts(subject: Subject, pair: Pair, seed: int | None) -> list[Shifts] | None:
    _, seen = subject.record(pair.data, seed=seed)
    draws, rows = seen.draws[pair.agent], int(subject.task.train.counts[pair.agent])
    if not any(draw.release.sampling < 1 for draw in draws):
        other = subject.led(pair.neighbour, seen, seed=seed).draws[pair.agent]
        both = list(zip(draws, other, strict=True))
        if any(abs((one.log_jacobian or 0.0) - (two.log_jacobian or 0.0)) > SAME for one, two in both):
            return None
        # What the noise that explains a release on D is longer than that on D'.
        return [Shifts(one.release, np.zeros_like(one.exact), one.explained - two.explained) for one, two in both]
    runs = [subject.led(task, seen, seed=seed).draws[pair.agent] for task in alone(pair)]
    found = []
    for draw, without, before, after in zip(draws, *runs, strict=True):
        share = 1 / max(1, round(draw.release.sampling * rows))
        found.append(Shifts(draw.release, *(share * (one.exact - without.exact) for one in (before, after))))
    return found


def alone_ratios(shifts: Sequence[Shifts], count: int, *, rng: np.random.Generator) -> tuple[Array, Array]:
    """(n,) log-likelihood ratios of fresh draws of the mechanism on D, and on D'.

    There are fewer than `count` draws where they would take more than `MOST_NUMBERS` numbers.
    """
    groups: dict[tuple[object, ...], tuple[Shifts, int]] = {}
    for one in map(_reduced, shifts):
        release = one.release
        places = [np.round(values / release.scale, 9).tobytes() for values in (one.on_data, one.on_neighbour)]
        key = (release.mechanism, release.scale, release.sampling, one.on_data.shape, *places)
        groups[key] = (one, groups.get(key, (one, 0))[1] + 1)
    numbers = sum(one.on_data.size * times for one, times in groups.values())
    count = int(min(count, max(1, MOST_NUMBERS // max(1, 2 * numbers))))
    first, second = np.zeros(count), np.zeros(count)
    for one, times in groups.values():
        for start in range(0, count, step := max(1, AT_ONCE // (one.on_data.size * times))):
            some = slice(start, min(start + step, count))
            size = some.stop - start
            first[some] += _ratio(one, one.on_data, size, times, rng)
            second[some] += _ratio(one, one.on_neighbour, size, times, rng)
    return first, second


def _ratio(one: Shifts, truth: Array, size: int, times: int, rng: np.random.Generator) -> Array:
    """(size,) ratios of as many releases of a kind, under one of the two exact values."""
    release = one.release
    noise = noise_of(release.mechanism).draw((size, times, *truth.shape), release.scale, rng=rng)
    if release.sampling == 1:
        noise += truth
        logs = [_log_density(release, noise - shift) for shift in (one.on_data, one.on_neighbour)]
    else:
        noise[rng.random((size, times)) < release.sampling] += truth
        logs = [_mixture(release, noise, shift) for shift in (one.on_data, one.on_neighbour)]
    return (logs[0] - logs[1]).reshape(size, -1).sum(axis=1)


def _reduced(one: Shifts) -> Shifts:
    """The same without coordinates that tell nothing: noise of which is independent of all others."""
    mechanism, flat = noise_of(one.release.mechanism), np.array([one.on_data, one.on_neighbour]).reshape(2, -1)
    if mechanism.gaussian:
        # Rotations change nothing about normal noise, so that its part along the shifts is all that matters.
        kept = np.linalg.qr(flat.T, mode="reduced")[1].T if flat.shape[1] > 2 else flat
    elif mechanism.independent:
        kept = flat[:, (flat != 0).any(axis=0)]
    else:
        return one
    if not kept.shape[1]:
        kept = np.zeros((2, 1))
    return Shifts(one.release, kept[0], kept[1])
