"""One table of whole numbers says where arrays are, and that what is written is written where it is."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hushnet.agents.compilation.address_table import AddressTable


def found(table, place, count, kind):
    """The numbers at the address that a place of a table has."""
    return list((kind * count).from_address(int(table.values[place])))


def test_an_array_has_one_place_for_every_type_that_it_is_read_as():
    table, array = AddressTable(), np.array([1.0, 2.0, 3.0])
    reals, wholes = table.array(array), table.array(array, np.int64)
    assert reals != wholes
    assert (table.array(array), table.array(array, np.int64)) == (reals, wholes)
    assert found(table, reals, 3, ctypes.c_double) == [1.0, 2.0, 3.0]
    assert found(table, wholes, 3, ctypes.c_int64) == [1, 2, 3]
    assert table.values[reals] == array.ctypes.data


def test_what_is_read_may_be_copied():
    table, array = AddressTable(), np.arange(6.0)[::2]
    assert found(table, table.array(array), 3, ctypes.c_double) == [0.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.arange(6.0)[::2], "not contiguous"),
        (np.arange(3), "of int64, and written as float64"),
        (np.broadcast_to(1.0, (3,)), "read-only"),
    ],
)
def test_what_is_written_is_never_copied(array, why):
    table = AddressTable()
    table.array(array)
    with pytest.raises(ValueError, match=why):
        table.array(array, written=True)


def test_what_is_written_has_the_address_of_the_array_itself():
    table, array = AddressTable(), np.zeros(3)
    place = table.array(array, written=True)
    (ctypes.c_double * 3).from_address(int(table.values[place]))[1] = 5.0
    assert array.tolist() == [0.0, 5.0, 0.0]
