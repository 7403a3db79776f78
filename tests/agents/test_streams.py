"""Compiled draws are NumPy's, bit for bit, row by row, whatever else is drawn in between."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hushnet.agents.streams import beginnings, generator
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.protocols.steps import kernels as draw_kernels
from hushnet.protocols.steps.kernels import FILLS, choose_each, choose_rows, disagreement
from hushnet.simulator.network.randomness import Draws
from hypothesis import given, settings
from hypothesis import strategies as st

TOP = 2**64 - 1


def chosen(one, place, population: int, count: int) -> list[int]:
    ranks = np.empty(count, dtype=np.int64)
    choose_rows(one, place, np.array([population]), np.array([0, count]), ranks)
    return ranks.tolist()


@pytest.mark.parametrize("purpose", ["noise", "sampling"])
@given(st.integers(0, TOP), st.lists(st.tuples(*[st.integers(0, 2**40)] * 3), min_size=1, max_size=4, unique=True))
@settings(max_examples=40, deadline=None)
def test_streams_are_the_generators_of_their_ids_and_go_on(purpose, seed, ids):
    """Noise, samples and shares in turn: what a row draws follows from its own draws alone."""
    seeds = [seed, seed // 2] * 2  # streams of two runs
    one, places = generator(purpose), beginnings(seeds[: len(ids)], *map(np.array, zip(*ids, strict=True)))
    numpys = [Draws(root).generator(purpose, *own) for root, own in zip(seeds, ids, strict=False)]
    rows, out = np.full(len(ids), 7), np.empty((len(ids), 5))
    ranks, starts = np.empty(7 * len(ids), dtype=np.int64), np.empty(len(ids) + 1, dtype=np.int64)
    for _ in range(3):
        FILLS["gaussian"](one, places, np.full(len(ids), 0.3), np.ones(len(ids), dtype=np.bool_), out)
        assert out.tolist() == [rng.normal(0.0, 0.3, 5).tolist() for rng in numpys]
        choose_rows(one, places, rows, 3 * np.arange(len(ids) + 1), ranks)
        assert ranks[: 3 * len(ids)].tolist() == [k for rng in numpys for k in rng.choice(7, 3, replace=False)]
        choose_each(one, places, rows, np.full(len(ids), 0.4), ranks, starts)
        expected = [np.flatnonzero(rng.random(7) < 0.4).tolist() for rng in numpys]
        assert [ranks[a:b].tolist() for a, b in itertools.pairwise(starts)] == expected


@pytest.mark.parametrize("population", [1, 2, 5, 100, 9_999, 10_000, 10_001, 60_000])
def test_samples_are_numpys_on_both_sides_of_every_change_of_method(population):
    few = population // 50
    counts = {1, 2, 32, 33, 64, 65, few - 1, few, few + 1, few + 2, population // 2, population - 1, population}
    for count in sorted(count for count in counts if 1 <= count <= population):
        one, place = generator("sampling"), beginnings(count, [population])
        rng = Draws(count).generator("sampling", population)
        for _ in range(2):
            assert chosen(one, place, population, count) == rng.choice(population, count, replace=False).tolist()


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "gamma"])
@pytest.mark.parametrize("dimension", [*range(1, 18), 31, 100, 127, 128, 129, 136, 137, 255, 257, 1000, 4097])
def test_noise_is_what_a_release_adds(mechanism, dimension):
    """Also in the last place: lengths of vectors are summed up as NumPy does; and in rows of a batch as alone."""
    norm = "l1" if mechanism == "laplace" else "l2"
    release = Release(0, 0.0, mechanism, norm, 1.0, "clip", 1.0, 0.37, 1.0, 0.0, 1, dimension=dimension)
    exact, rows = np.linspace(-2, 3, dimension), 6
    one, places, out = generator("noise"), beginnings(8, np.arange(rows)), np.empty((rows, dimension))
    noisy = np.arange(rows) != 4
    FILLS[mechanism](one, places, np.full(rows, 0.37), noisy, out)
    assert not out[4].any()
    for b in np.flatnonzero(noisy).tolist():
        expected = release.perturb(exact, rng=Draws(8).generator("noise", b))
        assert (exact + out[b]).tobytes() == expected.tobytes()


def test_the_numpy_that_is_installed_draws_so():
    assert disagreement() == ""


def test_another_stream_of_numpys_is_found(monkeypatch):
    disagreement.cache_clear()
    monkeypatch.setattr(draw_kernels, "beginnings", lambda seed, ids: beginnings(seed, np.array(ids) + 1))
    assert disagreement() == f"NumPy {np.__version__} draws otherwise than the compiled streams"
    disagreement.cache_clear()


def test_nothing_is_drawn_compiled_where_numba_is_told_to_compile_nothing(monkeypatch):
    disagreement.cache_clear()
    monkeypatch.setattr(draw_kernels, "is_compiled", lambda: False)
    assert disagreement() == "numba is told to compile nothing"
    disagreement.cache_clear()
