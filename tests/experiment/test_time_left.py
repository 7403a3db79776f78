"""The time that is left is told from the runs that have ended, and does not swing with single ones."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.simulator.experiment.time_left import TimeLeft, in_words
from hypothesis import given, settings
from hypothesis import strategies as st

ONE, OTHER, THIRD = ("cd", "near"), ("cd", "far"), ("admm", "far")


def test_what_is_left_is_told_from_runs_of_the_point_then_of_the_protocol_then_of_all():
    left = TimeLeft({ONE: 3, OTHER: 2, THIRD: 1})
    assert left.seconds() is None
    left.ended(ONE, 2.0)
    assert left.seconds() == pytest.approx(2 * 2 + 2 * 2 + 2)
    left.ended(OTHER, 10.0)
    assert left.seconds() == pytest.approx(2 * 2 + 10 + 6)
    left.ended(THIRD, 100.0)
    assert left.seconds() == pytest.approx(2 * 2 + 10)
    for key in (ONE, ONE, OTHER):
        left.ended(key, 1.0)
    assert left.seconds() == 0


def test_runs_of_a_grid_point_without_any_lie_on_a_line_over_work():
    left = TimeLeft({ONE: 2, OTHER: 2, THIRD: 1}, work={ONE: 10.0, OTHER: 40.0, THIRD: 20.0})
    left.ended(ONE, 2.0)
    assert left.seconds() == pytest.approx(2 + 2 * 8 + 4), "proportional to work"
    left.ended(OTHER, 5.0)
    assert left.seconds() == pytest.approx(2 + 5 + (1 + 0.1 * 20)), "1 s, and .1 s for a unit of work"
    less = TimeLeft({ONE: 1, OTHER: 1, THIRD: 1}, work={ONE: 10.0, OTHER: 40.0, THIRD: 1e6})
    less.ended(ONE, 5.0)
    less.ended(OTHER, 2.0)
    assert less.seconds() == pytest.approx(3.5), "more work took no longer"


def test_processes_share_what_is_left():
    left = TimeLeft({ONE: 7}, processes=4)
    left.ended(ONE, 6.0)
    assert left.seconds() == pytest.approx(9)
    for _ in range(4):
        left.ended(ONE, 6.0)
    assert left.seconds() == pytest.approx(6), "two runs, each on a process of its own"


def test_runs_that_are_there_take_no_time():
    left = TimeLeft({ONE: 5})
    left.ended(ONE, None)
    assert left.seconds() is None
    assert left.seconds_after(3.0) is None
    left.ended(ONE, 2.0)
    assert left.seconds() == pytest.approx(6)
    assert left.seconds_after(1.5) == pytest.approx(4.5)
    assert left.seconds_after(100.0) == pytest.approx(4.2), "a tenth of the run that goes on is still to come"
    for _ in range(2):
        left.ended(ONE, None)
    assert left.seconds() == pytest.approx(2)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(1e-4, 1e5) | st.none()), max_size=30),
    st.integers(1, 8),
    st.floats(0, 1e6),
)
@settings(max_examples=200, deadline=None)
def test_what_is_told_is_a_time(ended, processes, gone):
    keys = [("p", place) for place in range(6)]
    left = TimeLeft(dict.fromkeys(keys, 10), processes)
    for place, seconds in ended:
        left.ended(keys[place], seconds)
        if left.seconds() is None:
            continue
        for told in (left.seconds(), left.seconds_after(gone)):
            assert 0 <= told < np.inf
        assert left.seconds_after(gone) <= left.seconds()
        assert in_words(left.seconds())
