"""The time that is left is told for every protocol and grid point, and does not swing with single runs."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.experiment.time_left import TimeLeft, in_words, key_of, processes_of, time_left
from hushnet.simulator.language.loading import load
from hypothesis import given, settings
from hypothesis import strategies as st


def left_over(true, events, order, processes=1):
    """What is told before the runs and after each, beside what is really left."""
    runs = {key: order.count(key) for key in true}
    guess, told, real = TimeLeft(runs, events, processes), [], []
    assert guess.seconds() is None
    for place, key in enumerate(order):
        told.append(guess.seconds() or 0.0)
        real.append(sum(true[each] for each in order[place:]) / processes)
        guess.ended(key, true[key])
    assert guess.seconds() == 0
    return np.array(told), np.array(real)


def test_points_whose_runs_take_ten_times_as_long_do_not_make_it_swing():
    # Twenty grid points, of which each takes longer than the one before, by its events.
    keys = [(name, point) for point in range(20) for name in ("cd", "admm")]
    true = {(name, point): (1 + point) * (3.0 if name == "admm" else 0.3) for name, point in keys}
    order = [key for key in keys for _ in range(5)]
    told, real = left_over(true, {key: 1000.0 * seconds for key, seconds in true.items()}, order)
    after = slice(10, None)  # both protocols have been seen
    assert np.all(told[after] < 1.6 * real[after])
    assert np.all(told[after] > real[after] / 1.6)


def test_one_run_that_compiles_moves_the_whole_a_little():
    key = ("cd", ())
    guess = TimeLeft({key: 100}, {key: 1.0})
    for _ in range(10):
        guess.ended(key, 1.0)
    before = guess.seconds()
    guess.ended(key, 60.0)
    assert guess.seconds() < 1.3 * before


def test_runs_that_are_there_take_no_time():
    key = ("cd", ())
    guess = TimeLeft({key: 5}, {key: 70.0})
    guess.ended(key, None)
    assert guess.seconds() is None
    assert guess.seconds_after(3.0) is None
    guess.ended(key, 2.0)
    assert guess.seconds() == pytest.approx(6)
    for _ in range(2):
        guess.ended(key, None)
    assert guess.seconds() == pytest.approx(2)


def test_a_protocol_whose_events_cannot_be_counted_is_told_from_its_own_runs():
    mine, other = ("mine", ()), ("cd", ())
    guess = TimeLeft({mine: 11, other: 1}, {mine: 0.0, other: 200.0})
    for _ in range(10):
        guess.ended(mine, 20.0)
    assert guess.of(mine) == pytest.approx(20, rel=0.01)


@given(
    st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), st.floats(1e-4, 1e5) | st.none()), max_size=30),
    st.integers(1, 8),
    st.floats(0, 1e6),
)
@settings(max_examples=200, deadline=None)
def test_what_is_told_is_a_time(guesses, ended, processes, gone):
    keys = [("p", place) for place in range(len(guesses))]
    guess = TimeLeft(dict.fromkeys(keys, 10), dict(zip(keys, guesses, strict=True)), processes)
    for place, seconds in ended:
        guess.ended(keys[place % len(keys)], seconds)
        if guess.seconds() is None:
            continue
        for told in (guess.seconds(), guess.seconds_after(gone)):
            assert 0 <= told < np.inf
        assert guess.seconds_after(gone) <= guess.seconds()
        assert in_words(guess.seconds())


def test_events_are_counted_for_each_protocol_and_point(tmp_path):
    loaded = load("loss-sweep")
    told = time_left([Experiment(loaded, tmp_path)], processes_of(2))
    keys = {key_of(run) for run in Experiment(loaded, tmp_path).runs()}
    assert len(keys) == len(loaded.points) * len(loaded.scenario.protocols)
    first = next(iter(keys))
    told.ended(first, 3.0)
    assert all(told.of(key) > 0 for key in keys)
    assert told.of(first) == pytest.approx(3.0)
    assert not list(tmp_path.iterdir())
