"""Columns that share lines of memory."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.simulator.tables.room import LINE, columns, extended_lines, lines

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


@pytest.mark.parametrize("width", [5, 8])
def test_entries_of_a_line_lie_side_by_side_and_columns_are_contiguous(width):
    made = lines(30, KINDS, width)
    start = made["when"].ctypes.data
    assert start % LINE == 0
    for k, (name, column) in enumerate(made.items()):
        assert (column.dtype, column.shape) == (KINDS[name], (30 * width,))
        assert column.flags.c_contiguous
        assert column.ctypes.data == start + 8 * k


@pytest.mark.parametrize("width", [5, 6])
def test_lines_do_not_overlap_and_keep_their_numbers_in_a_longer_table(width):
    class Tables:
        pass

    tables, rng = Tables(), np.random.default_rng(1)
    numbers = {name: rng.integers(-(2**40), 2**40, 40) for name in KINDS}
    for name, column in lines(40, KINDS, width).items():
        assert not column[::width].any()
        column[::width] = numbers[name]
        setattr(tables, name, column)
    more = extended_lines(tables, KINDS, width, 25)
    for name in KINDS:
        assert more[name].dtype == KINDS[name]
        assert np.array_equal(more[name][: 40 * width : width], numbers[name])
        assert not more[name][40 * width :: width].any()
        assert len(more[name]) == 65 * width
