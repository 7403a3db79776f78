"""Philox, named streams, rounding and stable ids.

The known answers are Random123's (tests/kat_vectors, philox4x32, 10 rounds).
"""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
from hushnet.agents.compilation import compiled
from hushnet.agents.errors import InputError
from hushnet.agents.parameters import LONGEST
from hushnet.simulator.network.randomness import (
    BEYOND,
    QUANTUM,
    Draws,
    Purpose,
    draw,
    lasting,
    philox,
    quantise,
    stable_ids,
    uniform32,
    uniform53,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_known_answers(counter, key, expected):
    assert tuple(int(word) for word in compiled(philox)(*key, *counter)) == expected


@pytest.mark.parametrize("word", [0, 1, 2**31, ONES - 1, ONES])
def test_uniforms_lie_strictly_between_0_and_1(word):
    for other in (0, ONES):
        assert 0 < uniform53(np.uint64(word), np.uint64(other)) < 1
        assert 0 < uniform53(np.uint64(other), np.uint64(word)) < 1
    assert 0 < uniform32(np.uint64(word)) < 1


def test_the_three_uniforms_of_a_block_are_uniform_and_uncorrelated():
    """Seed 11; three KS tests and three correlations, each at false-alarm probability 1e-4 (6e-4 together)."""
    many = np.arange(20_000, dtype=np.uint64)
    uniforms = Draws(11).messages(5, many, 3, 0)
    for column in uniforms.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4
    for one, other in itertools.combinations(uniforms.T, 2):
        assert stats.pearsonr(one, other).pvalue > 1e-4


def test_every_part_of_a_message_key_matters():
    keys = itertools.product((0, 2**40), (1, 2), (3, 4), (0, 1, 2), (0, 1, 256, 2**16))
    seen = {
        tuple(Draws(seed).messages(sender, np.array([receiver], dtype=np.uint64), tick, transmission)[0])
        for seed, sender, receiver, tick, transmission in keys
    }
    assert len(seen) == 2 * 2 * 2 * 3 * 4


def test_purposes_do_not_share_draws():
    seen = {Draws(1).uniform(purpose, 1, 2, 3) for purpose in Purpose}
    transmissions = {
        Draws(1).messages(1, np.array([2], dtype=np.uint64), 3, transmission)[0, 0]
        for transmission in (0, 1, 2**24 - 1)
    }
    assert len(seen) == len(Purpose)
    assert len(seen | transmissions) == len(Purpose) + 2  # transmission 0 is the plain MESSAGE draw


@pytest.mark.parametrize("transmission", [-1, 2**24, 2**24 + 5])
def test_a_leg_that_would_run_into_another_purpose_is_refused(transmission):
    with pytest.raises(ValueError, match="transmission"):
        Draws(1).messages(1, np.array([2], dtype=np.uint64), 0, transmission)


def test_a_message_before_the_first_tick_has_a_32_bit_counter():
    receivers = np.array([2], dtype=np.uint64)
    expected = draw(7, 0, 1, 2, 0xFFFFFFFF, int(Purpose.MESSAGE), 0)
    assert tuple(Draws(7).messages(1, receivers, -1, 0)[0]) == expected


def test_the_whole_seed_enters_the_key():
    assert Draws(2**64 - 1).key == (ONES, ONES)
    assert Draws(1).key == (1, 0)
    assert Draws(2**32).key == (0, 1)
    assert len({Draws(seed).uniform(Purpose.CLOCK, 0) for seed in (1, 2**32, 2**32 + 1)}) == 3
    assert len({Draws(seed).generator("noise").integers(2**63) for seed in (1, 2**32, 2**64 - 1)}) == 3


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1])
def test_a_generator_is_the_philox_of_its_purpose_and_ids(seed):
    """Its key is the seed and the hash of the purpose, its counter begins with the ids."""
    tag = int.from_bytes(hashlib.blake2s(b"noise", digest_size=8).digest(), "big")
    key, counter = np.array([seed, tag], dtype=np.uint64), np.array([0, 3, 2**40, 0], dtype=np.uint64)
    named = np.random.Generator(np.random.Philox(key=key, counter=counter)).normal(size=1000)
    assert np.array_equal(Draws(seed).generator("noise", 3, 2**40).normal(size=1000), named)


def test_a_fourth_id_is_refused():
    with pytest.raises(ValueError, match="three"):
        Draws(1).generator("noise", 1, 2, 3, 4)


@given(st.floats(0, 1e6))
def test_rounding_moves_a_duration_by_at_most_half_a_quantum(duration):
    rounded = quantise(duration)
    assert (rounded / QUANTUM).is_integer()
    assert abs(rounded - duration) <= QUANTUM / 2


@settings(deadline=None)
@given(st.floats(0, 1e300))
def test_a_drawn_duration_that_outlasts_every_run_is_just_beyond_the_end(duration):
    drawn = lasting(duration)
    assert drawn == (quantise(duration) if duration <= BEYOND else BEYOND)
    assert (drawn / QUANTUM).is_integer()
    assert LONGEST - 1 + drawn - drawn == LONGEST - 1, "sums are exact"


def test_text_ids_do_not_depend_on_order_or_on_the_others():
    together = dict(zip(["ada", "bob", "cyd"], stable_ids(["ada", "bob", "cyd"]).tolist(), strict=True))
    assert stable_ids(["cyd", "ada"]).tolist() == [together["cyd"], together["ada"]]
    assert all(0 <= number < 2**32 for number in together.values())


@pytest.mark.parametrize("ids", [[-1, 5], [2**32, 5], ["5", "six"]])
def test_ids_beyond_32_bits_are_hashed(ids):
    numbers = stable_ids(ids).tolist()
    assert len(set(numbers)) == 2
    assert all(0 <= number < 2**32 for number in numbers)
    assert 5 not in numbers


@pytest.mark.parametrize("ids", [[3, 3], ["a", "b", "a"], [1, "1"]])
def test_two_agents_with_one_number_are_refused(ids):
    with pytest.raises(InputError, match="share the 32-bit number"):
        stable_ids(ids)


def test_a_hash_collision_of_different_names_is_refused():
    """Two names with equal hashes, found by the birthday paradox over 2^32 numbers."""
    seen: dict[int, str] = {}
    for k in range(400_000):
        number = int(stable_ids([f"agent-{k}"])[0])
        if number in seen:
            with pytest.raises(InputError, match=f"agent-{k}"):
                stable_ids([seen[number], f"agent-{k}"])
            return
        seen[number] = f"agent-{k}"
    pytest.fail("no collision among the names tried")
