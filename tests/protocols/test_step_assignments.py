"""What a step assigns to its blocks is what NumPy would, and what does not fit is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.compilation.compiled import compiled
from hushnet.protocols.steps.assigning import put, put_at


@compiled
def assign(block, value):
    """``block[:] = value``."""
    put(block, value)


@compiled(boundscheck=True)
def assign_at(block, place, value):
    """``block[place] = value``."""
    put_at(block, place, value)


ROWS = np.arange(12.0).reshape(3, 4)
VALUES = [
    2.5,
    3,
    True,
    np.arange(4.0) + 0.5,
    np.arange(4),
    np.arange(4) > 1,
    np.arange(4, dtype=np.float32),
    np.arange(8.0)[::2],
    np.arange(4.0)[::-1],
    np.array([7.0]),
    ROWS + 1.0,
    ROWS[:1] + 1.0,
    ROWS[:, :1] + 1.0,
    np.asfortranarray(ROWS + 1.0),
    ROWS[::-1],
    ROWS[0, :2],
    np.zeros((2, 4)),
    np.zeros(0),
]


BLOCKS = [np.full(4, 9.0), np.full((3, 4), 9.0), np.full((1, 1), 9.0)]


@pytest.mark.parametrize(
    ("block", "value"),
    [(block, value) for block in BLOCKS for value in VALUES if np.ndim(value) <= block.ndim],
    ids=repr,
)
def test_a_block_is_assigned_as_numpy_assigns_it(block, value):
    expected, found = block.copy(), block.copy()
    try:
        expected[:] = value
    except ValueError:
        with pytest.raises(ValueError, match="another length"):
            assign(found, value)
        assert np.array_equal(found, block)
        return
    assign(found, value)
    assert np.array_equal(found, expected)


@compiled
def tell(pool, rows, width, value):
    """What `put` does where messages of several neighbours are rows of a pool."""
    put((pool, rows, width), value)


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("rows", [[5, 0, 2], [1], []], ids=repr)
def test_rows_of_a_pool_are_assigned_as_numpy_assigns_a_block_of_them(rows, value):
    pool, rows = np.full((6, 5), 9.0), np.array(rows, dtype=np.int64)
    expected, block = pool.copy(), np.empty((len(rows), 4))
    try:
        block[:] = value
    except ValueError:
        with pytest.raises(ValueError, match="another length"):
            tell(pool, rows, 4, value)
        assert np.array_equal(pool, expected)
        return
    expected[rows, :4] = block
    tell(pool, rows, 4, value)
    assert np.array_equal(pool, expected)


NUMBERS, PARTS = [(0, 1), (2, -1)], [0, -1, (1, slice(None, 2)), (2, slice(1, None)), slice(1, 3)]
ASSIGNED = [2.5, np.array([1.5]), np.arange(2.0), np.arange(3.0), np.arange(4.0)]


@pytest.mark.parametrize(
    ("place", "value"),
    [(place, value) for place in PARTS for value in ASSIGNED] + [(place, 2.5) for place in NUMBERS],
    ids=repr,
)
def test_a_part_is_assigned_as_numpy_assigns_it(place, value):
    expected, found = ROWS.copy(), ROWS.copy()
    try:
        expected[place] = value
    except ValueError:
        with pytest.raises(ValueError, match="another length"):
            assign_at(found, place, value)
        return
    assign_at(found, place, value)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("place", [3, -4, (3, slice(None, 2)), (0, 4)], ids=repr)
def test_a_place_that_is_not_there_is_refused(place):
    block = ROWS.copy()
    with pytest.raises(IndexError):
        assign_at(block, place, 0.0)
    assert np.array_equal(block, ROWS)


def overlapping(what):
    """A vector, and a view of the same numbers in other places."""
    whole = np.arange(8.0)
    return {
        "before": (whole[2:6], whole[1:5]),
        "after": (whole[2:6], whole[3:7]),
        "backwards": (whole[2:6], whole[5:1:-1]),
        "same": (whole[2:6], whole[2:6]),
        "every other": (whole[2:6], whole[::2]),
    }[what]


@pytest.mark.parametrize("what", ["before", "after", "backwards", "same", "every other"])
def test_what_is_assigned_may_be_a_part_of_the_block(what):
    block, value = overlapping(what)
    expected = value.copy()
    assign(block, value)
    assert np.array_equal(block, expected)
    block, value = overlapping(what)
    rows, others = block.reshape(2, 2), value.reshape(2, 2)
    expected = others.copy()
    assign(rows, others)
    assert np.array_equal(rows, expected)
