"""UCI Adult as Zhang, Khalili and Liu (2018, section 5) prepare it: who earns more than 50,000 dollars a year.

Their five steps, and how we read them: rows with a missing value are left out; each categorical attribute becomes one
column per category, *counting the categories of incomplete rows* (``Never-worked`` becomes a column of zeros, without
which there would not be 105 columns); numeric columns are divided by their largest value; rows longer than 1 are
divided by their l2 norm; labels are +1 for more than 50,000 dollars and -1 otherwise. This gives 45,222 rows; the
paper's 45,223 counts the comment line of ``adult.test``.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ..errors import FieldError, InputError
from ..input_files import parse_number, read_lines
from ..losses import LOSSES, ClassLossName
from ..parameters import NotNegative, Size
from ..tables import Table
from .datasets import DATASETS, PATH, checksums, files_of
from .extent import CELL_BYTES, Extent, Files, distinct, head_of, parsed
from .outline import Outline
from .splits import Dealt, SplitParameters, hold_out, inverse_counts, split_notes
from .task import Task
from .task_registry import TASKS, TaskKind

ATTRIBUTES = 14
NUMERIC = (0, 2, 4, 10, 11, 12)
"""Age, final weight, years of education, capital gain, capital loss, hours per week; the others are categorical."""
MISSING = "?"
LABELS = {"<=50K": -1.0, ">50K": 1.0}


class Rows(NamedTuple):
    """The text of the data set."""

    cells: list[list[str]]
    """(M,) rows of 14 attributes."""
    labels: NDArray[np.float64]
    """(M,) in {-1, +1}."""


@final
@TASKS.register
class Adult(TaskKind):
    """UCI Adult: agents share a census and learn together to tell large incomes from small ones."""

    kind: Literal["adult"]
    draws_data: ClassVar[bool] = False
    published: ClassVar[bool] = True
    agents: Size = 5
    """Number of agents that the rows are dealt to."""
    split: SplitParameters | None = None
    """Rule that deals rows, in place of `agents` and `size_ratio`."""
    size_ratio: float = Field(default=1.0, ge=1, le=1e6)
    """Rows of the last agent over rows of the first, with sizes in arithmetic progression; 1 deals evenly."""
    shuffle: int = Field(default=0, ge=0, lt=2**64)
    """Seed of the permutation that rows are dealt in; a part of the task, so that all runs have the same agents."""
    test_share: float = Field(default=0.0, ge=0, lt=1)
    """Share of each agent's rows that is held out for testing; the paper measures on training rows alone."""
    loss: ClassLossName = "logistic"
    """Loss of a score."""
    regularisation: NotNegative | Literal["1/m"] = "1/m"
    """lambda_i: one number for all agents, or 1 over the agent's number of training rows."""
    path: str | None = None
    """The folder that holds adult.data and adult.test; without it, adult in the data directory."""

    @model_validator(mode="after")
    def _dealt_once(self) -> Adult:
        stated = self.model_fields_set & {"agents", "size_ratio"}
        if self.split is not None and stated:
            raise FieldError(f"is a rule in place of {' and '.join(sorted(stated))}; give one of them", "split")
        return self

    @property
    def _count(self) -> int:
        return self.agents if self.split is None else self.split.count

    def outline(self) -> Outline:
        """Return the outline of the task, which the parameters alone determine."""
        regularised = self.regularisation == "1/m" or self.regularisation > 0
        tested = self.test_share > 0
        return Outline(
            self.kind, self.loss, agents=self._count, regularised=regularised, tested=tested, bounded=("l2",)
        )

    def extent(self, files: Files | None) -> Extent:
        """Estimate the size of the task, from the first megabyte of each file if the files may be read."""
        if files is None:
            return Extent(self._count, 1, 0)
        heads = [head_of(file, PATH) for file in files_of("adult", self.path, files.data_dir, files.base).values()]
        rows = [row for head in heads for row in parsed(head, ",")]
        categories = [distinct(rows, column) for column in range(ATTRIBUTES) if column not in NUMERIC]
        dimension = len(NUMERIC) + sum(categories)
        each = (ATTRIBUTES + 1) * CELL_BYTES + 2 * 8 * dimension
        return Extent(self._count, dimension, each * sum(head.count for head in heads))

    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Read both files and make the task."""
        files = files_of("adult", self.path, data_dir, base)
        features, labels = prepared(read_rows(list(files.values())))
        order = np.random.default_rng(self.shuffle).permutation(len(labels))
        features, labels, agents = features[order], labels[order], self._count
        if self.split is None:
            owners = np.repeat(np.arange(agents), self._sizes(len(labels)))
        else:
            owners = self.split.owners(Dealt(features, labels, classes=True), rng=rng)
            dealt = owners >= 0
            features, labels, owners = features[dealt], labels[dealt], owners[dealt]
        held = hold_out(owners, agents, self.test_share, rng=rng)
        counts = np.bincount(owners[~held], minlength=agents)
        given, train = self.regularisation, Table.from_owners(features[~held], labels[~held], owners[~held], agents)
        return Task(
            name="UCI Adult",
            ids=list(range(agents)),
            train=train,
            test=Table.from_owners(features[held], labels[held], owners[held], agents),
            loss=LOSSES[self.loss],
            regularisation=inverse_counts(counts) if given == "1/m" else np.full(agents, float(given)),
            metric="accuracy",
            bounds={"l2": 1.0},
            assumed_public=("the largest value of each numeric column and the categories that occur",),
            notes={
                "source": "UCI Adult, adult.data and adult.test",
                **checksums(files, DATASETS["adult"].files),
                "split": split_notes(train, 2),
            },
        )

    def _sizes(self, count: int) -> NDArray[np.int64]:
        """(n,) rows of each agent; where they cannot be equal, the first agents have one more."""
        if count < self.agents:
            raise InputError(f"{self.agents} must be at most the number of rows, {count}", field=("task", "agents"))
        if self.size_ratio == 1:
            return count // self.agents + (np.arange(self.agents) < count % self.agents)
        shares = np.cumsum(np.linspace(1.0, self.size_ratio, self.agents))
        return np.diff(np.rint(shares / shares[-1] * count).astype(np.int64), prepend=0)


def read_rows(files: list[Path]) -> Rows:
    """Rows of 14 attributes and a label, separated by commas.

    A line that begins with ``|`` is a comment, and a label may end in a dot, as in ``adult.test``. Raises `InputError`
    if a line does not have 15 cells, a label is unknown or a number is not one.
    """
    cells, labels = [], []
    for file in files:
        for number, line in read_lines(file, field=PATH):
            if line.strip() and not line.startswith("|"):
                row, label = _row(line, f"{file}:{number}")
                cells.append(row)
                labels.append(label)
    return Rows(cells, np.array(labels))


def _row(line: str, where: str) -> tuple[list[str], float]:
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != ATTRIBUTES + 1:
        raise InputError(f"{where}: has {len(cells)} cells; 14 attributes and a label are needed", field=PATH)
    label = cells.pop().removesuffix(".")
    if label not in LABELS:
        raise InputError(f"{where}: label {label!r} must be one of {', '.join(LABELS)}", field=PATH)
    for column in NUMERIC:
        if cells[column] != MISSING and not 0 <= parse_number(cells[column]) < np.inf:
            raise InputError(f"{where}: column {column + 1} has {cells[column]!r}, not a number >= 0", field=PATH)
    return cells, LABELS[label]


def prepared(rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(M', p) features and (M',) labels of the complete rows; see the module's docstring.

    Raises `InputError` if there is no complete row.
    """
    complete = np.array([MISSING not in row for row in rows.cells], dtype=bool)
    if not complete.any():
        raise InputError("there is no row without a missing value", field=PATH)
    columns = []
    for attribute, texts in enumerate(zip(*rows.cells, strict=True)):
        everything = np.array(texts)
        kept = everything[complete]
        if attribute in NUMERIC:
            values = kept.astype(np.float64)
            columns.append(values / max(values.max(), np.finfo(np.float64).tiny))
        else:
            columns.extend((kept == level).astype(np.float64) for level in np.unique(everything) if level != MISSING)
    features = np.column_stack(columns)
    features /= np.maximum(1.0, np.linalg.norm(features, axis=1))[:, None]
    return features, rows.labels[complete]
