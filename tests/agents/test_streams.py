"""Compiled random streams are NumPy's, bit for bit: values and what is left of the stream after them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hushnet.agents import streams
from hushnet.agents.compilation import compiled
from hushnet.agents.streams import agreement
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.simulator.network.randomness import Draws
from hypothesis import given, settings
from hypothesis import strategies as st

TOP = 2**64 - 1
PURPOSES = ["noise", "sampling", "order of rows before time 0", "output perturbation before time 0", "Größe"]
FILLS = {
    "uniform": (streams.fill_uniform, (), lambda rng, size: rng.random(size)),
    "normal": (streams.fill_normal, (0.3,), lambda rng, size: rng.normal(0.0, 0.3, size)),
    "Laplace": (streams.fill_laplace, (0.3,), lambda rng, size: rng.laplace(0.0, 0.3, size)),
}
WORDS = st.one_of(st.integers(0, TOP), st.sampled_from([0, 1, 2**11 - 1, 2**32 - 1, 2**32, 2**63, TOP - 255, TOP]))


def generator_of(stream):
    """A NumPy generator in the middle of the same stream."""
    bits = np.random.Philox(0)
    bits.state = {
        "bit_generator": "Philox",
        "state": {"counter": stream[0:4].copy(), "key": stream[4:6].copy()},
        "buffer": stream[6:10].copy(),
        "buffer_pos": int(stream[10]),
        "has_uint32": int(stream[11]),
        "uinteger": int(stream[12]),
    }
    return np.random.Generator(bits)


def left_of(rng):
    """What is left of a generator's stream, as a stream."""
    state = rng.bit_generator.state
    inner = state["state"]
    rest = [state["buffer_pos"], state["has_uint32"], state["uinteger"]]
    return np.concatenate([inner["counter"], inner["key"], state["buffer"], np.array(rest, dtype=np.uint64)])


def bits_of(values):
    """Values that are equal only if all their bits are: minus zero is not zero."""
    values = np.atleast_1d(values)
    return values.view(np.uint64).tolist() if values.dtype == np.float64 else values.astype(np.int64).tolist()


def chosen(stream, population, count):
    out = np.full(count, -1, dtype=np.int64)
    streams.choose(stream, population, out)
    return out


def filled(fill, stream, *given, size):
    out = np.full(size, np.nan)
    fill(stream, *given, out)
    return out


SHAPES = st.one_of(st.floats(1e-3, 1e3), st.sampled_from([0.0, 1 / 3, 0.5, 1.0, np.nextafter(1, 2), 2.0]))
SCALES = st.floats(1e-9, 1e9)
SIZES = st.integers(0, 9)
HIGHS = st.one_of(
    st.integers(1, 2**63 - 1), st.integers(1, 200), st.sampled_from([1, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1])
)
DRAWINGS = st.one_of(
    st.tuples(st.just("word")),
    st.tuples(st.just("uniform")),
    st.tuples(st.just("standard normal")),
    st.tuples(st.just("standard exponential")),
    st.tuples(st.just("standard gamma"), SHAPES),
    st.tuples(st.just("normal"), SCALES),
    st.tuples(st.just("laplace"), SCALES),
    st.tuples(st.just("gamma"), SHAPES, SCALES),
    st.tuples(st.just("integer"), HIGHS),
    st.tuples(st.just("sample"), st.integers(9, 100), SIZES),
    st.tuples(st.just("normals"), SCALES, SIZES),
    st.tuples(st.just("laplaces"), SCALES, SIZES),
)
OURS = {
    "word": streams.next_word,
    "uniform": streams.uniform,
    "standard normal": streams.standard_normal,
    "standard exponential": streams.standard_exponential,
    "standard gamma": streams.standard_gamma,
    "normal": streams.normal,
    "laplace": streams.laplace,
    "gamma": streams.gamma,
    "integer": streams.integers,
    "sample": chosen,
    "normals": lambda stream, scale, size: filled(streams.fill_normal, stream, scale, size=size),
    "laplaces": lambda stream, scale, size: filled(streams.fill_laplace, stream, scale, size=size),
}
NUMPYS = {
    "word": lambda rng: np.int64(np.uint64(rng.bit_generator.random_raw()).view(np.int64)),
    "uniform": lambda rng: rng.random(),
    "standard normal": lambda rng: rng.standard_normal(),
    "standard exponential": lambda rng: rng.standard_exponential(),
    "standard gamma": lambda rng, shape: rng.standard_gamma(shape),
    "normal": lambda rng, scale: rng.normal(0.0, scale),
    "laplace": lambda rng, scale: rng.laplace(0.0, scale),
    "gamma": lambda rng, shape, scale: rng.gamma(shape, scale),
    "integer": lambda rng, high: rng.integers(high),
    "sample": lambda rng, population, count: rng.choice(population, count, replace=False),
    "normals": lambda rng, scale, size: rng.normal(0.0, scale, size),
    "laplaces": lambda rng, scale, size: rng.laplace(0.0, scale, size),
}


@given(
    st.integers(0, TOP),
    st.lists(st.integers(0, TOP), max_size=3),
    st.lists(WORDS, min_size=4, max_size=4),
    st.integers(0, 4),
    st.lists(DRAWINGS, min_size=1, max_size=12),
)
@settings(max_examples=400, deadline=None)
def test_any_sequence_of_draws_is_numpys_and_leaves_its_stream(seed, ids, block, used, drawings):
    """Words of 64 and halves of 32 bits in any order, from any place of a block, which holds rare words."""
    stream = streams.new_stream(seed, "noise", *ids)
    stream[6:10], stream[10] = block, used
    rng = generator_of(stream)
    for name, *arguments in drawings:
        ours, numpys = OURS[name](stream, *arguments), NUMPYS[name](rng, *arguments)
        if name == "word":
            ours = np.uint64(ours).view(np.int64)
        assert bits_of(ours) == bits_of(numpys), (name, arguments)
        assert stream.tolist() == left_of(rng).tolist(), (name, arguments)


@pytest.mark.parametrize("purpose", PURPOSES)
@given(st.integers(0, TOP), st.integers(-1, 2**40), st.integers(0, 2**32 - 1), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_a_stream_begins_where_the_generator_of_its_purpose_does(purpose, seed, tick, number, reactions):
    used = streams.new_stream(seed, purpose, 1, 2, 3)
    streams.integers(used, 5)
    streams.begin_stream(used, tick, number, reactions)
    for stream in (used, streams.new_stream(seed, purpose, tick + 1, number, reactions)):
        expected = Draws(seed).generator(purpose, tick + 1, number, reactions)
        assert [streams.uniform(stream) for _ in range(9)] == expected.random(9).tolist()
        assert [streams.integers(stream, 7) for _ in range(9)] == [expected.integers(7) for _ in range(9)]
        assert [streams.uniform(stream) for _ in range(9)] == expected.random(9).tolist()


@pytest.mark.parametrize("law", FILLS)
@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 200_000])
def test_vectors_are_numpys(law, size):
    fill, arguments, numpys = FILLS[law]
    for seed in range(5):
        stream = streams.new_stream(seed, "noise", seed, 4)
        rng = generator_of(stream)
        assert bits_of(filled(fill, stream, *arguments, size=size)) == bits_of(numpys(rng, size))
        assert stream.tolist() == left_of(rng).tolist()


@pytest.mark.parametrize("population", [1, 2, 5, 100, 9_999, 10_000, 10_001, 60_000])
def test_samples_are_numpys_on_both_sides_of_every_change_of_method(population):
    few = population // 50
    counts = {0, 1, 2, 32, 33, 64, 65, few - 1, few, few + 1, few + 2, population // 2, population - 1, population}
    for count in sorted(count for count in counts if 0 <= count <= population):
        stream = streams.new_stream(count, "sampling", population)
        rng = generator_of(stream)
        ours = chosen(stream, population, count)
        assert ours.tolist() == rng.choice(population, count, replace=False).tolist()
        assert len(set(ours.tolist())) == count
        assert stream.tolist() == left_of(rng).tolist()


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "gamma"])
@pytest.mark.parametrize("dimension", [*range(1, 18), 31, 100, 127, 128, 129, 136, 137, 255, 257, 1000, 4097])
def test_noise_is_what_a_release_adds(mechanism, dimension):
    """Also in the last place: lengths of vectors are summed up as NumPy does."""
    fills = {"gaussian": streams.fill_normal, "laplace": streams.fill_laplace, "gamma": streams.fill_spherical}
    norm = "l1" if mechanism == "laplace" else "l2"
    for seed in range(20):
        release = Release(0, 0.0, mechanism, norm, 1.0, "clip", 1.0, 0.37, 1.0, 0.0, 1, dimension=dimension)
        stream = streams.new_stream(seed, "noise", 3, dimension)
        exact = np.linspace(-2, 3, dimension)
        expected = release.perturb(exact, rng=generator_of(stream))
        assert bits_of(exact + filled(fills[mechanism], stream, 0.37, size=dimension)) == bits_of(expected)


@pytest.mark.parametrize("shape", [(1, 1), (7, 1), (50, 3), (3, 129), (2, 500)])
def test_noise_of_rows_is_what_a_release_adds(shape):
    for seed in range(20):
        release = Release(0, 0.0, "gamma", "l2", 1.0, "clip", 1.0, 0.37, 1.0, 0.0, 1)
        stream = streams.new_stream(seed, "noise", *shape)
        expected = release.perturb(np.zeros(shape), rng=generator_of(stream))
        out = np.empty(shape)
        streams.fill_spherical_rows(stream, 0.37, out)
        assert bits_of(0.0 + out) == bits_of(expected)


@compiled(_nrt=False)
def _without_memory(stream, out, rows):
    streams.begin_stream(stream, 3, 4, 0)
    streams.fill_spherical(stream, 0.3, out)
    streams.choose(stream, 100, rows)


def test_callers_that_must_not_allocate_may_draw():
    stream, out, rows = streams.new_stream(5, "noise"), np.empty(300), np.empty(50, dtype=np.int64)
    _without_memory(stream, out, rows)
    again = streams.new_stream(5, "noise", 4, 4)
    assert bits_of(out) == bits_of(filled(streams.fill_spherical, again, 0.3, size=300))
    assert rows.tolist() == chosen(again, 100, 50).tolist()


FAST_CALLER = """
import numpy as np
from hushnet.agents.compilation import REASSOCIATED, compiled
from hushnet.agents import streams
from hushnet.agents.streams.philox import SMALL

def draws(rng, stream):
    yield rng.random(N), fast(stream, 0)
    yield rng.normal(0.0, 0.3, N), fast(stream, 1)
    yield rng.laplace(0.0, 0.3, N), fast(stream, 2)
    yield rng.standard_exponential(N), fast(stream, 3)
    yield rng.standard_gamma(0.5, N), fast(stream, 4)
    yield rng.standard_gamma(2.5, N), fast(stream, 5)
    yield rng.gamma(20.0, 0.3, N), fast(stream, 6)
    yield rng.integers(3_000_000_000, size=N), fast(stream, 7)
    yield rng.standard_gamma(0.5, N), halves(stream)

N = 200_000

@compiled(fastmath=REASSOCIATED, error_model="numpy", forceinline=True)
def one(stream, law):
    if law == 0:
        return streams.uniform(stream)
    if law == 1:
        return streams.normal(stream, 0.3)
    if law == 2:
        return streams.laplace(stream, 0.3)
    if law == 3:
        return streams.standard_exponential(stream)
    if law == 4:
        return streams.standard_gamma(stream, 0.5)
    if law == 5:
        return streams.standard_gamma(stream, 2.5)
    if law == 6:
        return streams.gamma(stream, 20.0, 0.3)
    return np.float64(streams.integers(stream, 3_000_000_000))

@compiled(fastmath=REASSOCIATED, error_model="numpy")
def fast(stream, law):
    out = np.empty(N)
    for k in range(N):
        out[k] = one(stream, law)
    return out

inlined = compiled(**SMALL)(streams.standard_gamma.py_func)

@compiled(fastmath=REASSOCIATED, error_model="numpy")
def halves(stream):
    out = np.empty(N)
    for k in range(N):
        out[k] = inlined(stream, 0.5)
    return out

@compiled(fastmath=REASSOCIATED, error_model="numpy")
def fast_vector(stream, out):
    streams.fill_spherical(stream, 0.3, out)

stream = streams.new_stream(7, "noise", 1)
rng = np.random.Generator(np.random.Philox(key=stream[4:6], counter=stream[:4]))
for law, (numpys, ours) in enumerate(draws(rng, stream)):
    assert np.array_equal(numpys, ours), law
towards = rng.normal(size=N)
out = np.empty(N)
fast_vector(stream, out)
assert np.array_equal(out, towards * (rng.gamma(N, 0.3, 1) / np.linalg.norm(towards, axis=-1, keepdims=True)))
"""


def test_callers_with_fast_arithmetic_get_the_same_bits(tmp_path):
    """Nothing is cached, so all is compiled for the sake of the fast caller: 200,000 draws of each law.

    A shape of 0.5 is known where ``halves`` is compiled, and would make a power a product.
    """
    script = tmp_path / "fast_caller.py"
    script.write_text(FAST_CALLER)
    environment = {**os.environ, "HUSHNET_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_numpy_that_is_installed_draws_so():
    assert {law: streams.disagreement(law) for law in streams.LAWS} == dict.fromkeys(streams.LAWS)
    assert streams.agrees()


def test_the_draws_that_are_compared_reach_both_tails():
    stream = streams.new_stream(agreement.AGREED, "agreement")
    assert np.abs(streams.LAWS["normal"][1](generator_of(stream))).max() > 0.3 * 3.6542
    assert np.max(streams.LAWS["exponential"][1](generator_of(stream))) > 7.6972


@pytest.mark.parametrize("law", streams.LAWS)
def test_another_stream_of_numpys_is_found(law, monkeypatch):
    ours, numpys = streams.LAWS[law]
    streams.disagreement.cache_clear()
    monkeypatch.setitem(streams.LAWS, law, (ours, lambda rng: numpys(np.random.Generator(rng.bit_generator.jumped()))))
    assert law in streams.disagreement(law)
    assert not streams.agrees(law)
    streams.disagreement.cache_clear()


def test_nothing_is_compiled_where_numba_is_told_not_to():
    code = "from hushnet.agents import streams; print(streams.disagreement('normal'))"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "numba is told to compile nothing\n"
