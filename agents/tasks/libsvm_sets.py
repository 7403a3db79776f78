"""Published two-class data sets in LIBSVM's format: a9a, gisette and epsilon.

They are read from a data directory; nothing is downloaded. Liu, Johansson and Shi (2022) deal the rows of epsilon to
agents; Hu et al. (2019) give the columns of a9a and gisette to parties.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar, Literal, Self, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ..clipping import norms
from ..errors import InputError
from ..losses import ClassLossName
from ..parameters import Size
from .datasets import DATASETS, PATH, checksums, files_of
from .extent import Extent, Files, head_of
from .libsvm import read_libsvm
from .outline import Outline
from .partition import ByColumns, ByRows, Partition, check_split, partitioned, split_outline, split_size
from .task import Task
from .task_registry import TASKS, TaskKind

BLOCK = 4096
"""Rows whose norms are computed at once; a copy of all of them may not fit in memory."""
PRINTED = 1e-5
"""What six printed digits may add to a norm, relative to it."""


class LibsvmSet(TaskKind):
    """Common to all of these data sets."""

    dataset: ClassVar[str]
    dimension: ClassVar[int]
    bounds: ClassVar[dict[str, float]]
    draws_data: ClassVar[bool] = False
    published: ClassVar[bool] = True

    path: str | None = None
    """Folder of the training and the test file, compressed (.bz2, .gz, .xz) or not; by default the data set's folder in
    the data directory."""
    rows: Size | None = None
    """Read only so many training rows, from the first on."""
    test_rows: Size | None = None
    """Read only so many test rows."""
    loss: ClassLossName = "logistic"
    """Loss of a score."""
    split: Partition = Field(default_factory=ByRows)
    """Rows to agents, or columns to parties."""

    @model_validator(mode="after")
    def _dealt(self) -> Self:
        check_split(self.split, self.rows, self.dimension)
        return self

    def outline(self) -> Outline:
        """Return the outline of the task, which the parameters alone determine."""
        return split_outline(self.dataset, self.loss, self.split)

    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Read both files and make the task; no training row is longer than the data set's."""
        known = DATASETS[self.dataset]
        files = files_of(self.dataset, self.path, data_dir, base)
        train, test = (
            read_libsvm(file, self.dimension, rows=limit)
            for file, limit in zip(files.values(), (self.rows, self.test_rows), strict=True)
        )
        self._check_bounds(train[0], next(iter(files.values())))
        notes = {
            "source": f"{known.title}, {' and '.join(files)}",
            "rows": [len(train[1]), len(test[1])],
            **checksums(files, known.files),
        }
        return partitioned(
            train, test, self.split, name=known.title, loss=self.loss, bounds=self.bounds, notes=notes, rng=rng
        )

    def extent(self, files: Files | None) -> Extent:
        """Estimate the size of the task, from the lines of the files if they may be read, else from a lower bound."""
        agents, dimension = split_size(self.split, self.dimension)
        rows = 1.0 if isinstance(self.split, ByColumns) else float(agents)
        if files is not None:
            there = files_of(self.dataset, self.path, files.data_dir, files.base).values()
            limits = zip(there, (self.rows, self.test_rows), strict=True)
            rows = sum(min(head_of(file, PATH).count, limit or math.inf) for file, limit in limits)
        return Extent(agents, dimension, 2 * 8 * rows * (self.dimension + 1), known=True)

    def _check_bounds(self, features: NDArray[np.float64], file: Path) -> None:
        """Refuse rows beyond the bounds, which sensitivities are proved from."""
        for begin in range(0, len(features), BLOCK):
            block = features[begin : begin + BLOCK]
            for norm in ("l1", "l2"):
                lengths = norms(block, norm)
                longest, bound = int(lengths.argmax()), self.bounds[norm]
                if lengths[longest] > bound * (1 + PRINTED):
                    raise InputError(
                        f"{file}: row {begin + longest + 1} has {norm} norm {lengths[longest]:.6g}, above {bound:.6g}, "
                        f"which no row of {DATASETS[self.dataset].title} is; take the published file",
                        field=PATH,
                    )


@final
@TASKS.register
class A9a(LibsvmSet):
    """LIBSVM a9a: 32,561 + 16,281 people, 123 binary features of 14 attributes, their income as label."""

    dataset: ClassVar[str] = "a9a"
    dimension: ClassVar[int] = 123
    bounds: ClassVar[dict[str, float]] = {"l1": 14.0, "l2": math.sqrt(14.0)}

    kind: Literal["a9a"]
    split: Partition = Field(default_factory=ByRows)
    """Rows to agents, or columns to parties (66 and 57 in Hu et al. 2019)."""


@final
@TASKS.register
class Gisette(LibsvmSet):
    """LIBSVM gisette (scaled): 6,000 + 1,000 digits, four or nine, by 5,000 features in [-1, 1]."""

    dataset: ClassVar[str] = "gisette"
    dimension: ClassVar[int] = 5000
    bounds: ClassVar[dict[str, float]] = {"l1": 5000.0, "l2": math.sqrt(5000.0)}

    kind: Literal["gisette"]
    split: Partition = Field(default_factory=ByRows)
    """Rows to agents, or columns to parties (2000, 2000 and 1000 in Hu et al. 2019)."""


@final
@TASKS.register
class Epsilon(LibsvmSet):
    """LIBSVM epsilon (normalised): 400,000 + 100,000 rows of 2,000 features and norm 1; 16 kB a row in memory."""

    dataset: ClassVar[str] = "epsilon"
    dimension: ClassVar[int] = 2000
    bounds: ClassVar[dict[str, float]] = {"l1": math.sqrt(2000.0), "l2": 1.0}

    kind: Literal["epsilon"]
    loss: ClassLossName = "hinge"
    """Loss of a score."""
    split: Partition = Field(default_factory=ByRows)
    """Rows to agents (20 in Liu et al. 2022), or columns to parties."""
