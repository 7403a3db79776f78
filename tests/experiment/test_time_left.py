"""The time that is left is told from the runs that have ended, and does not swing with single ones."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.simulator.experiment.time_left import TimeLeft, range_in_words
from hypothesis import given, settings
from hypothesis import strategies as st

ONE, OTHER, THIRD = ("cd", "near"), ("cd", "far"), ("admm", "far")


def total(bounds):
    low, high = bounds
    assert low == pytest.approx(high)
    return low


def test_what_is_left_is_told_from_runs_of_the_point_then_of_the_protocol_then_of_all():
    left = TimeLeft({ONE: 3, OTHER: 2, THIRD: 1})
    assert left.seconds() is None
    left.ended(ONE, 2.0)
    assert total(left.seconds()) == pytest.approx(2 * 2 + 2 * 2 + 2)
    left.ended(OTHER, 10.0)
    assert total(left.seconds()) == pytest.approx(2 * 2 + 10 + 6)
    left.ended(THIRD, 100.0)
    assert total(left.seconds()) == pytest.approx(2 * 2 + 10)
    for key in (ONE, ONE, OTHER):
        left.ended(key, 1.0)
    assert total(left.seconds()) == 0


def test_a_grid_point_without_runs_takes_between_as_long_and_in_proportion_to_its_work():
    left = TimeLeft({ONE: 2, OTHER: 2, THIRD: 1}, work={ONE: 10.0, OTHER: 40.0, THIRD: 100.0})
    left.ended(ONE, 2.0)
    assert left.seconds() == pytest.approx((2 + 2 * 2 + 2, 2 + 2 * 8 + 20))
    left.ended(OTHER, 5.0)
    assert left.seconds() == pytest.approx((2 + 5 + 3.5, 2 + 5 + 3.5 * 100 / 25)), "the mean of the two points"


@pytest.mark.parametrize(("fixed", "each"), [(1.0, 0.0), (0.0, 0.1), (1.0, 0.1), (0.05, 0.02)])
@pytest.mark.parametrize("order", [1, -1], ids=["rising", "falling"])
def test_times_that_are_a_line_over_work_are_within_the_bounds_throughout(fixed, each, order):
    points = [("cd", size) for size in range(10, 240, 10)][::order]
    seconds = {key: fixed + each * key[1] for key in points}
    left = TimeLeft(dict.fromkeys(points, 2), work={key: float(key[1]) for key in points})
    rest = 2 * sum(seconds.values())
    for key in points:
        for _ in range(2):
            left.ended(key, seconds[key])
            rest -= seconds[key]
            low, high = left.seconds()
            assert low - 1e-9 <= rest <= high + 1e-9


@pytest.mark.parametrize(("fixed", "each"), [(1.0, 0.0), (0.0, 0.1), (1.0, 0.1)])
@pytest.mark.parametrize("order", [1, -1], ids=["rising", "falling"])
def test_points_that_span_a_factor_tell_of_those_as_far_beyond_by_a_line(fixed, each, order):
    sizes = [10, 20, 30, 40, 80][::order]
    left = TimeLeft({("cd", size): 1 for size in sizes}, work={("cd", size): float(size) for size in sizes})
    for rank, size in enumerate(sizes):
        left.ended(("cd", size), fixed + each * size)
        low, high = left.seconds()
        rest, seen = sizes[rank + 1 :], sizes[: rank + 1]
        if max(seen) >= 2 * min(seen) and all(min(seen) / 2 <= other <= 2 * max(seen) for other in rest):
            assert low == pytest.approx(high) == pytest.approx(fixed * len(rest) + each * sum(rest))


def test_runs_that_go_on_side_by_side_are_taken_away_by_their_own_work():
    points = [("cd", size) for size in (10, 20, 30, 40)]
    left = TimeLeft(dict.fromkeys(points, 1), work={key: float(key[1]) for key in points})
    assert left.seconds_after(3.0, begun=points[:2], share=0.5) == pytest.approx((3 + 2 * 3, 3 + 70 * 0.2))
    for key in points[:2]:
        left.ended(key, 0.2 * key[1])
    assert total(left.seconds_after(1.5, begun=points[2:3], share=0.25)) == pytest.approx(4.5 + 8.0)


def test_processes_share_what_is_left():
    left = TimeLeft({ONE: 7}, processes=4)
    left.ended(ONE, 6.0)
    assert total(left.seconds()) == pytest.approx(9)
    for _ in range(4):
        left.ended(ONE, 6.0)
    assert total(left.seconds()) == pytest.approx(6), "two runs, each on a process of its own"


def test_runs_that_are_there_take_no_time():
    left = TimeLeft({ONE: 5})
    left.ended(ONE, None)
    assert left.seconds() is None
    assert left.seconds_after(3.0) is None
    assert total(left.seconds_after(3.0, begun=[ONE], share=0.5)) == pytest.approx(3.0 + 3 * 6.0), "its own pace"
    left.ended(ONE, 2.0)
    assert total(left.seconds()) == pytest.approx(6)
    assert total(left.seconds_after(1.5)) == pytest.approx(4.5)
    assert total(left.seconds_after(100.0)) == pytest.approx(4.2), "a tenth of the run that goes on is still to come"
    for _ in range(2):
        left.ended(ONE, None)
    assert total(left.seconds()) == pytest.approx(2)


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
        now, later = left.seconds(), left.seconds_after(gone)
        for low, high in (now, later):
            assert 0 <= low <= high * (1 + 1e-9) < np.inf
            assert range_in_words((low, high))
        assert all(np.array(later) <= now)
