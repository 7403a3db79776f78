"""UCI's optical digits, which come with hushnet: 1,797 images of 8 by 8 grey values, ten classes.

The rows are those of the original's test file, written by 13 people, as scikit-learn ships them; their licence, CC BY
4.0, lies beside them. Test rows are drawn from all rows and dealt evenly, so that every agent is judged on all classes.

References
----------
Alpaydin and Kaynak 1998, "Optical recognition of handwritten digits", UCI Machine Learning Repository.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ..input_files import read_lines
from .extent import Extent, Files
from .images import ImageTask
from .outline import Outline
from .partition import partitioned
from .splits import Even, SplitParameters
from .task import Task
from .task_registry import TASKS

FILE = Path(__file__).with_name("digits.csv.xz")
ROWS, PIXELS, CLASSES, DARKEST = 1797, 64, 10, 16.0


@final
@TASKS.register
class Digits(ImageTask):
    """UCI's optical digits, shipped here: 1,797 images of 64 pixels in [0, 1], ten classes."""

    kind: Literal["digits"]
    split: SplitParameters = Field(default_factory=lambda: Even(kind="even", agents=20))
    """Rule that deals training rows to agents."""
    test_share: float = Field(default=0.2, gt=0, lt=1)
    """Share of all rows that is held out for testing, and dealt evenly."""

    def outline(self) -> Outline:
        """Return the outline of the task, which the parameters alone determine."""
        return Outline(self.kind, "logistic", agents=self.split.count, bounded=("l1", "l2"))

    def extent(self, files: Files | None) -> Extent:
        """Return the size of the task."""
        features = PIXELS + self.intercept
        return Extent(self.split.count, features, 3 * 8 * ROWS * features, classes=CLASSES, known=True)

    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Read the shipped rows, and deal them to agents."""
        features, labels = read_digits()
        if self.intercept:
            features = np.append(features, np.ones((ROWS, 1)), axis=1)
        tested = np.zeros(ROWS, dtype=bool)
        tested[rng.permutation(ROWS)[: max(1, round(self.test_share * ROWS))]] = True
        longest = PIXELS + self.intercept
        return partitioned(
            (features[~tested], labels[~tested]),
            (features[tested], labels[tested]),
            self.split,
            name="UCI optical digits",
            loss="logistic",
            bounds={"l1": float(longest), "l2": math.sqrt(longest)},
            notes={"source": "UCI optical digits (optdigits.tes), CC BY 4.0", "rows_for_testing": int(tested.sum())},
            rng=rng,
            classes=CLASSES,
        )


def read_digits() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(1797, 64) grey values in [0, 1], row of pixels by row, and (1797,) digits."""
    cells = np.array([line.split(",") for _, line in read_lines(FILE)], dtype=np.float64)
    return cells[:, :PIXELS] / DARKEST, cells[:, PIXELS]
