"""Changes of availability: compiled and told, in order, as far ahead as is asked for, and as arrays to look in."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hushnet.agents.availability import Always, Diurnal, OnOff
from hushnet.simulator.engine.batched.changes import DrawnChanges, ToldChanges, changes_of
from hushnet.simulator.network.randomness import Draws, Purpose, quantise
from hushnet.simulator.tables.effects import DOWN, GONE, UP

KINDS = [
    OnOff(kind="on_off", online=0.8, mean_down=0.5),
    OnOff(kind="on_off", online=0.5, mean_down=1e-9),
    OnOff(kind="on_off", online=0.3, mean_down=2.0, distribution="lognormal", sigma=1.7),
    OnOff(kind="on_off", online=1, mean_down=2.0),
    Diurnal(kind="diurnal", period=1.3, online=0.7),
    Diurnal(kind="diurnal", period=2.0, online=0.5, spread=0.0),
    Always(kind="always"),
]
DRAWS = Draws(12345678901234567)
TOLD = [
    [(0.0, True), (1.0, False), (2.0, False), (3.0, True), (3.5, True), (5.0, False)],
    [(0.0, False)],
    [(0.0, False), (0.0, True), (1.0, False), (1.0, True)],
    [(0.0, True), (1.0, True), (1.0, False), (2.0, True)],
]


def pass_by():
    """Look at nothing."""


def numbers_of(agents):
    return np.random.default_rng(5).integers(0, 2**32, agents).astype(np.uint64)


def told_by(availability, numbers):
    return availability.timelines(
        range(len(numbers)),
        numbers.tolist(),
        draw=lambda number, index: DRAWS.pair(Purpose.AVAILABILITY, number, 0, index),
        round_time=quantise,
    )


def horizon_of(availability, numbers):
    """Some time after about ten changes of an agent."""
    firsts = [list(itertools.islice(timeline, 11))[-1][0] for timeline in told_by(availability, numbers)]
    return float(np.median(firsts))


@pytest.mark.parametrize("availability", KINDS, ids=str)
def test_compiled_changes_are_those_that_timelines_tell_bit_for_bit_and_in_their_order(availability):
    numbers = numbers_of(150)
    drawn = changes_of(availability, DRAWS, numbers, told_by(availability, numbers), pass_by)
    told = ToldChanges(told_by(availability, numbers), pass_by)
    assert isinstance(drawn, DrawnChanges)
    assert np.array_equal(drawn.up, told.up)
    assert np.array_equal(drawn.gone, told.gone)
    end = horizon_of(availability, numbers)
    found = 0
    for until in (0.0, end / 3, end / 3, end):
        pairs = list(zip(drawn.draw(until, until), told.draw(until, until), strict=True))
        assert all(one.tobytes() == other.tobytes() for one, other in pairs)
        assert drawn.known_until == told.known_until
        found += len(pairs[0][0])
    assert found > 600 or drawn.known_until == math.inf


def test_changes_at_one_instant_come_in_the_order_of_agents():
    found = ToldChanges([iter(one) for one in TOLD], pass_by).draw(0.0, 9.0)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == [
        (0.0, UP, 2),
        (1.0, DOWN, 0),
        (1.0, DOWN, 2),
        (1.0, UP, 2),
        (1.0, UP, 3),
        (1.0, DOWN, 3),
        (2.0, DOWN, 0),
        (2.0, UP, 3),
        (3.0, UP, 0),
        (3.5, UP, 0),
        (5.0, GONE, 0),
    ]
