"""Files in LIBSVM's format: a line has a label and ``index:value`` pairs, indices from 1 and ascending."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..input_files import MOST_STREAMED, read_lines, shown

LONGEST_LINE = 2**26
"""Characters of a line: some 2,000,000 features that are not 0."""
ROWS_AT_ONCE = 4096
"""Rows that are held as text and as numbers before they are packed."""


def read_libsvm(
    file: Path, dimension: int, *, rows: int | None = None, field: tuple[str | int, ...] = ("task", "path")
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Read (M, p) features and (M,) labels, -1 and +1, line by line: a part of a huge file needs only its memory.

    It stops after so many rows, if said so; what a line does not name is 0. Raises `InputError`, with the field of the
    scenario that names the file, if it cannot be read, has no row, or a line is not a label of -1 or +1 and finite
    values at ascending indices from 1 to p.
    """
    blocks, labels = [], []
    lines = itertools.islice(read_lines(file, field=field, most=MOST_STREAMED, longest=LONGEST_LINE), rows)
    while batch := list(itertools.islice(lines, ROWS_AT_ONCE)):
        block, signs = _parse(batch, dimension, file, field)
        blocks.append(block)
        labels.append(signs)
    if not blocks:
        raise InputError(f"{file}: is empty; lines of a label and index:value pairs are needed", field=field)
    return np.concatenate(blocks), np.concatenate(labels)


def _parse(
    lines: Iterable[tuple[int, str]], dimension: int, file: Path, field: tuple[str | int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    numbered = list(lines)
    features, labels = np.zeros((len(numbered), dimension)), np.empty(len(numbered))
    for row, (number, line) in enumerate(numbered):
        try:
            labels[row], indices, values = _cells(line)
        except (ValueError, OverflowError):
            raise InputError(
                f"{file}:{number}: {shown(line.strip())} is not a label of -1 or +1 and pairs like 3:0.5", field=field
            ) from None
        if len(indices) and (indices[0] < 1 or indices[-1] > dimension or (np.diff(indices) <= 0).any()):
            raise InputError(
                f"{file}:{number}: indices must ascend from 1 to at most {dimension}, the number of features",
                field=field,
            )
        if not np.isfinite(values).all():
            raise InputError(f"{file}:{number}: values must be finite numbers", field=field)
        features[row, indices - 1] = values
    return features, labels


def _cells(line: str) -> tuple[float, NDArray[np.int64], NDArray[np.float64]]:
    """Label, indices and values of a line; a ValueError if it has another form."""
    first, *pairs = line.split()
    label = float(first)
    if label not in (-1.0, 1.0):
        raise ValueError
    halves = " ".join(pairs).replace(":", " ").split()
    if len(halves) != 2 * len(pairs) or line.count(":") != len(pairs) or "_" in line:
        raise ValueError
    return (
        label,
        np.array([int(half) for half in halves[::2]], dtype=np.int64),
        np.array(halves[1::2], dtype=np.float64),
    )
