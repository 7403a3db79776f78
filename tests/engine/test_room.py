"""Room in tables: where it begins, and that nothing is lost when there is more of it."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.simulator.tables.run import AGENT, LINE, extended, zeros


@pytest.mark.parametrize("dtype", [np.float64, np.int64, AGENT])
@pytest.mark.parametrize("shape", [1, 7, (5, 3)])
def test_tables_begin_at_a_line_of_memory_and_keep_their_entries(shape, dtype):
    made = zeros(shape, dtype)
    assert made.ctypes.data % LINE == 0
    assert not made.view(np.uint8).any()
    made[...] = np.ones(1, dtype=dtype)
    more = extended(made, 4)
    assert (more.dtype, more.shape) == (made.dtype, (len(made) + 4, *made.shape[1:]))
    assert np.array_equal(more[: len(made)], made)
    assert not np.ascontiguousarray(more[len(made) :]).view(np.uint8).any()


def test_fields_of_records_are_attributes():
    agents = extended(zeros(3, AGENT), 2)
    agents.ticks[4] = 7
    assert agents["ticks"].tolist() == [0, 0, 0, 0, 7]
