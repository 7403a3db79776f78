"""Columns that share lines of memory, and asking for memory before it is needed."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.compilation.compiled import compiled
from hushnet.agents.compilation.fetching import prefetch
from hushnet.simulator.tables.room import LINE, columns, extended_columns

KINDS = {"when": np.float64, "who": np.int64, "how": np.int64, "last": np.int64, "size": np.float64}


@pytest.mark.parametrize("length", [0, 1, 7, 1000])
@pytest.mark.parametrize("count", range(1, 6))
def test_the_columns_of_a_row_lie_in_one_line_of_memory(length, count):
    names = list(KINDS)[:count]
    made = columns(length, {name: KINDS[name] for name in names})
    assert [(name, column.dtype, column.shape) for name, column in made.items()] == [
        (name, np.dtype(KINDS[name]), (length,)) for name in names
    ]
    for row in range(length):
        lines = {(column.ctypes.data + row * column.strides[0]) // LINE for column in made.values()}
        assert len(lines) == 1


def test_columns_do_not_overlap_and_keep_their_numbers_in_a_longer_table():
    class Tables:
        pass

    tables, rng = Tables(), np.random.default_rng(1)
    for name, column in columns(40, KINDS).items():
        assert not column.any()
        column[:] = rng.integers(-(2**40), 2**40, 40)
        setattr(tables, name, column)
    more = extended_columns(tables, tuple(KINDS), 25)
    for name in KINDS:
        assert more[name].dtype == KINDS[name]
        assert np.array_equal(more[name][:40], getattr(tables, name))
        assert not more[name][40:].any()
        assert len(more[name]) == 65


@compiled(_nrt=False)
def fetched(array, place):
    """What asking leaves."""
    prefetch(array, place)
    return len(array)


@pytest.mark.parametrize("array", [np.arange(6.0), np.arange(12)[::3], np.ones((3, 4)), np.zeros((0, 4))], ids=repr)
@pytest.mark.parametrize("place", [0, 2, -1, 10**12])
def test_asking_for_memory_changes_nothing_and_needs_no_such_place(array, place):
    before = array.copy()
    assert fetched(array, place) == len(array)
    assert prefetch(array, place) is None
    assert np.array_equal(array, before)
