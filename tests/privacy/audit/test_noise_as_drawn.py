"""Tier A: planted mistakes in noise are found, and noise without mistakes passes.

Noise is seeded. What has no mistake passes at 1e-4, Holm's correction included: a false alarm has that probability.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.protocols.privacy.mechanisms import Release, draw_noise, mechanism_of
from hushnet.simulator.compare.statistics import holm
from hushnet.simulator.contract.noise_seen import Drawn
from hushnet.simulator.contract.noise_tests import checks

AGENTS, RANKS, SEEDS, WIDTH = 6, 8, 3, 4
MECHANISMS = ("laplace", "gaussian", "gamma")


def release_of(mechanism, agent, scale=1.0):
    return Release(agent, 0.0, mechanism, mechanism_of(mechanism).norm, 1.0, "clip", 1.0, scale, 1.0, 0.0, 1)


def noise_of(mechanism, change=lambda values, **place: values, drawn=None, ranks=RANKS):
    """Noise of six agents, eight draws each, in three runs; ``change`` plants a mistake."""
    rng, found = np.random.default_rng(12), []
    for seed in range(SEEDS):
        for agent in range(AGENTS):
            for rank in range(ranks):
                values = draw_noise(drawn or mechanism, WIDTH, 1.0, rng=rng)
                values = change(values, seed=seed, agent=agent, rank=rank, found=found)
                found.append(Drawn(seed, agent, rank, release_of(mechanism, agent), values, np.spacing(np.abs(values))))
    return found


def caught(noise):
    """Names of the tests that fail at 1e-4."""
    every = checks(noise, rng=np.random.default_rng(0))
    adjusted = holm([check.p for check in every])
    return [check.name for check, p in zip(every, adjusted, strict=True) if p <= 1e-4]


def at(found, **place):
    """The noise of a place."""
    return next(
        one.noise
        for one in found
        if all(getattr(one, {"seed": "run"}.get(name, name)) == value for name, value in place.items())
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_without_a_mistake_passes(mechanism):
    assert caught(noise_of(mechanism)) == []


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_of_many_narrow_and_few_wide_vectors_passes(mechanism):
    """Log densities of vectors of 16 numbers are far from those of 4, and fewer than of these are drawn."""
    wide = lambda values, **_: draw_noise(mechanism, 4 * WIDTH, 1.0, rng=np.random.default_rng(list(values.tobytes())))  # noqa: E731
    assert caught(noise_of(mechanism, ranks=20) + noise_of(mechanism, wide, ranks=4)) == []


@pytest.mark.parametrize(("said", "drawn"), [("gaussian", "laplace"), ("laplace", "gaussian"), ("gamma", "gaussian")])
def test_noise_of_another_distribution_is_found(said, drawn):
    spread = {"laplace": 2**0.5, "gaussian": 1.0, "gamma": (WIDTH + 1) ** 0.5}
    noise = noise_of(said, lambda values, **_: values * spread[said] / spread[drawn], drawn=drawn, ranks=60)
    assert any(name.startswith(("distribution", "scale")) for name in caught(noise))


@pytest.mark.parametrize(
    ("mistake", "name"),
    [
        (
            lambda values, found, seed, agent, rank: at(found, seed=seed, agent=0, rank=rank) if agent == 1 else values,
            "repeated numbers",
        ),
        (
            lambda values, found, seed, agent, rank: at(found, seed=seed, agent=agent, rank=0) if rank == 5 else values,
            "repeated numbers",
        ),
        (
            lambda values, found, seed, agent, rank: (
                -at(found, seed=seed, agent=0, rank=rank) if agent == 3 else values
            ),
            "repeated numbers",
        ),
        (
            lambda values, found, seed, agent, rank: at(found, seed=0, agent=agent, rank=rank) if seed else values,
            "repeated numbers",
        ),
        (lambda values, **_: np.repeat(values[:1], WIDTH), "repeated numbers"),
    ],
    ids=["two agents", "two steps", "opposite noise of two agents", "all seeds", "one number for all coordinates"],
)
def test_noise_that_is_shared_is_found(mistake, name):
    assert name in caught(noise_of("laplace", mistake))


def test_noise_that_agents_share_at_a_time_is_found_whatever_its_rank():
    late = lambda one: replace(one.release, time=float(one.rank + one.agent))  # noqa: E731

    def mixed(values, found, seed, agent, rank):
        others = [one.noise for one in found if (one.run, one.rank + one.agent) == (seed, rank + agent)]
        return (values + 2 * others[0]) / 5**0.5 if others else values

    noise = [replace(one, release=late(one)) for one in noise_of("gaussian", mixed, ranks=30)]
    assert caught(noise) == ["independence between times"]
