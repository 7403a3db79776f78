"""Check of the size that a parquet file declares, before it is unpacked: a few bytes may stand for many."""

from __future__ import annotations

import psutil
import pyarrow.parquet as pq

from ...agents.errors import InputError, OutOfResources

CELL_BYTES = 8
"""Bytes that a cell takes at least, once it is read."""
ALWAYS_READ = 2**28
"""Bytes that any table may take."""
RATIO = 1000
"""Bytes in memory for a byte of the file, beyond which a larger table is none that an experiment has written."""


def check_declared(about: pq.FileMetaData, size: int) -> None:
    """Refuse a table, in a file of so many bytes, by the rows and columns that it declares.

    Raises `InputError` if they are far more than its bytes can hold of an experiment, and `OutOfResources` if they
    would not fit into the memory that is free now.
    """
    rows, needed = about.num_rows, about.num_rows * about.num_columns * CELL_BYTES
    if needed <= ALWAYS_READ:
        return
    declared = f"it declares {rows:,} rows of {about.num_columns} columns"
    if needed > RATIO * size:
        raise InputError(f"{declared} in {size:,} bytes")
    free = int(psutil.virtual_memory().available)
    if needed > free:
        raise OutOfResources(f"{declared}, which take {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free")
