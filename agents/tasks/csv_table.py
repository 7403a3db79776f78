"""A user's own CSV file: rows owned by agents, or dealt to them, with one label column.

The parts: `csv_reader` reads cells and says which line is wrong; this module turns columns into features, labels and
owners, and packs them into a task.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ..clipping import norms
from ..errors import InputError
from ..files import beside, parse_number
from ..losses import LOSSES, SmoothLossName
from ..packed import plain_name
from ..parameters import Positive
from ..tables import Table
from .base import Task
from .csv_reader import FIELD, Columns, read_columns
from .datasets import md5
from .extent import CELL_BYTES, Extent, Files, distinct, head_of, parsed
from .outline import Outline
from .registry import TASKS, TaskKind
from .splits import SplitParameters, hold_out, inverse_counts

Scaling = Literal["none", "standard", "unit_row", "max_abs"]


@final
@TASKS.register
class CsvTable(TaskKind):
    """A CSV file with a header line: a label, features, and a column or a rule that says which agent owns a row."""

    kind: Literal["csv"]
    draws_data: ClassVar[bool] = False
    path: str = Field(examples=["rows.csv"])
    """The file, relative to the scenario file's folder; compressed if its name ends in .bz2, .gz or .xz."""
    label: str = Field(examples=["label"])
    """Column of the label: two classes, or a number for a loss of real labels such as squared."""
    agent: str | None = None
    """Column that names each row's agent; either this or `split`."""
    split: SplitParameters | None = None
    """Rule that deals rows to agents; either this or `agent`."""
    features: list[str] | None = Field(default=None, min_length=1)
    """Feature columns; without it, all but label and agent."""
    categorical: list[str] = Field(default=[])
    """Feature columns that are one-hot encoded, one coordinate for each value in the file; all others are numbers."""
    scaling: Scaling = "none"
    """none; standard: columns to mean 0 and deviation 1; max_abs: columns to [-1, 1]; unit_row: rows to l2 norm 1."""
    intercept: bool = True
    """Append a coordinate of 1 (before rows are scaled, after columns are)."""
    test_share: float = Field(default=0.2, ge=0, lt=1)
    """Share of each agent's rows that is held out for testing."""
    loss: SmoothLossName = "logistic"
    """Loss of a score."""
    regularisation: Positive | Literal["1/m"] = "1/m"
    """lambda_i: one number for all agents, or 1 over the agent's number of training rows."""
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    """What separates cells."""

    @model_validator(mode="after")
    def _consistent(self) -> CsvTable:
        if (self.agent is None) == (self.split is None):
            raise ValueError("either agent (a column) or split (a rule) must be set, not both and not neither")
        for column in (self.label, self.agent):
            if column is not None and column in [*(self.features or []), *self.categorical]:
                raise ValueError(f"{column!r} cannot be a feature: it is the label or agent column")
        for columns in (self.features or [], self.categorical):
            twice = next((column for column, times in Counter(columns).items() if times > 1), None)
            if twice is not None:
                raise ValueError(f"names the column {twice!r} twice")
        stray = set(self.categorical) - set(self.features or self.categorical)
        if stray:
            raise ValueError(f"categorical {sorted(stray)} must be among features")
        if self.label == self.agent:
            raise ValueError(f"label and agent cannot both be {self.label!r}")
        return self

    @property
    def of_classes(self) -> bool:
        """True if labels are classes, False if they are numbers."""
        return LOSSES[self.loss].labels == "classes"

    def outline(self) -> Outline:
        """Return the outline of the task, which the parameters alone determine."""
        return Outline(
            self.kind,
            self.loss,
            "accuracy" if self.of_classes else "rmse",
            self.split.count if self.split is not None else None,
            tested=self.test_share > 0,
            bounded=("l1", "l2") if self.scaling == "unit_row" else (),
        )

    def extent(self, files: Files | None) -> Extent:
        """Estimate the size of the task, from the first megabyte of the file if it may be read."""
        agents = self.split.count if self.split is not None else 1
        if files is None:
            return Extent(agents, len(self.features or [""]), 0)
        head = head_of(beside(files.base, self.path), FIELD)
        names, *rows = parsed(head, self.delimiter) or [[]]
        if self.agent in names:
            agents = distinct(rows, names.index(self.agent))
        chosen = self.features or [name for name in names if name not in (self.label, self.agent)]
        coded = [distinct(rows, names.index(name)) for name in self.categorical if name in names]
        dimension = len(chosen) - len(coded) + sum(coded) + self.intercept
        each = len(names) * CELL_BYTES + sum(map(len, head.lines)) / max(len(head.lines), 1) + 3 * 8 * dimension
        return Extent(max(agents, 1), max(dimension, 1), each * head.count)

    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Read the file and make the task.

        Parameters
        ----------
        rng : numpy.random.Generator
            Deals rows and chooses test rows.
        data_dir : Path or None
            Not used.
        base : Path, optional
            Folder that `path` is relative to.

        Raises
        ------
        InputError
            If the file, a column or a cell is not admissible; the message has file, line, column and value.
        """
        columns = read_columns(beside(base, self.path), self.delimiter)
        labels, notes = self._labels(columns)
        owners, ids, unused = self._owners(columns, labels, rng)
        features, names = self._features(columns)
        dealt = owners >= 0
        features, labels, owners = features[dealt], labels[dealt], owners[dealt]
        held = hold_out(owners, len(ids), self.test_share, rng=rng)
        features, bounds, public = self._scale(features, ~held)
        counts = np.bincount(owners[~held], minlength=len(ids))
        given = self.regularisation
        return Task(
            name=Path(plain_name(columns.file)).stem,
            ids=ids,
            train=Table.from_owners(features[~held], labels[~held], owners[~held], len(ids)),
            test=Table.from_owners(features[held], labels[held], owners[held], len(ids)),
            loss=LOSSES[self.loss],
            regularisation=inverse_counts(counts) if given == "1/m" else np.full(len(ids), float(given)),
            metric="accuracy" if self.of_classes else "rmse",
            bounds=bounds,
            assumed_public=public,
            notes={
                "source": columns.file.name,
                "md5": md5(columns.file),
                **notes,
                "features": [*names, "intercept"] if self.intercept else names,
                "rows_left_out": unused,
                **({"warnings": doubts} if (doubts := self._doubts(columns)) else {}),
            },
        )

    def _labels(self, columns: Columns) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Labels and what they stand for: of two classes the lower number, or else the first in order, becomes -1.

        Where all labels are numbers, those that are equal are one class, however they are written.
        """
        if not self.of_classes:
            return columns.numbers(self.label, "label"), {}
        texts = columns.texts(self.label, "label")
        written = _ordered(set(texts))
        alike = _numbers(written) or {text: text for text in written}
        classes = {alike[text]: text for text in reversed(written)}  # each as its first is written
        if len(classes) != 2:
            names = list(reversed(classes.values()))
            shown = ", ".join(repr(name) for name in names[:4]) + (", ..." if len(names) > 4 else "")
            raise InputError(
                f"{columns.file}: column {self.label!r} has {len(names)} distinct values ({shown}); "
                f"the loss {self.loss} needs two classes",
                field=("task", "label"),
            )
        high, low = classes
        labels = np.where([alike[text] == high for text in texts], 1.0, -1.0)
        return labels, {"labels": {"-1": classes[low], "+1": classes[high]}}

    def _owners(
        self, columns: Columns, labels: NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], list[int] | list[str], int]:
        """(M,) owners (-1: left out), the agents' ids and the number of rows left out."""
        if self.split is not None:
            owners = self.split.owners(labels, self.of_classes, rng=rng)
            return owners, list(range(self.split.count)), int(np.sum(owners < 0))
        assert self.agent is not None, "the validator admits agent or split"
        texts = columns.texts(self.agent, "agent")
        written = _ordered(set(texts))
        alike = _alike(written)
        names = list(dict.fromkeys(alike.values()))
        position = {name: index for index, name in enumerate(names)}
        owners = np.array([position[alike[text]] for text in texts], dtype=np.int64)
        whole = all(_is_whole(name) for name in names)
        return owners, [int(name) for name in names] if whole else names, 0

    def _features(self, columns: Columns) -> tuple[NDArray[np.float64], list[str]]:
        """(M, p) features without intercept and their names."""
        taken = (self.label, self.agent)
        chosen = self.features or [name for name in columns.names if name not in taken]
        for name in self.categorical:
            columns.position(name, "categorical")
        if not chosen:
            raise InputError(f"{columns.file}:1: has no column left for features", field=("task", "features"))
        parts, names = [], []
        for name in chosen:
            if name not in self.categorical:
                parts.append(columns.numbers(name, "features")[:, None])
                names.append(name)
                continue
            texts = columns.texts(name, "categorical")
            values = _ordered(set(texts))
            parts.append((np.array(texts)[:, None] == np.array(values)[None, :]).astype(np.float64))
            names.extend(f"{name}={value}" for value in values)
        return np.concatenate(parts, axis=1), names

    def _doubts(self, columns: Columns) -> list[str]:
        """Sentences about columns that are read as they are asked to be, and are probably not meant so."""
        found, rows = [], len(columns.lines)
        for name in self.categorical:
            values = len(set(columns.texts(name, "categorical")))
            if values > 1 and values == rows:
                found.append(f"the categorical column {name!r} has another value in each of its {rows} rows")
        for name in self.features or columns.names:
            if name in (self.label, self.agent, *self.categorical):
                continue
            if INDEX.fullmatch(name) and [parse_number(cell) for cell in columns.texts(name, "features")] == list(
                range(rows)
            ):
                found.append(
                    f"the column {name!r} counts the rows, as an index that pandas writes; leave it out of features"
                )
        return found

    def _scale(
        self, features: NDArray[np.float64], train: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], dict[str, float], tuple[str, ...]]:
        """Scaled features, bounds that hold for every admissible row, and what is assumed public."""
        constant = np.ones((len(features), 1 if self.intercept else 0))
        if self.scaling == "unit_row":
            features = np.concatenate([features, constant], axis=1)
            lengths = norms(features)[:, None]
            features = features / np.where(lengths > 0, lengths, 1.0)
            return features, {"l1": float(np.sqrt(features.shape[1])), "l2": 1.0}, self._public()
        if self.scaling == "standard":
            # In units of their largest values neither sums nor squares overflow; powers of 2 change no digit.
            features = np.ldexp(features, -np.frexp(np.abs(features).max(axis=0, initial=0.0))[1])
            features = features - features[train].mean(axis=0)
            deviations = np.sqrt(np.mean(features[train] ** 2, axis=0))
            features = features / np.where(deviations > 0, deviations, 1.0)
        elif self.scaling == "max_abs":
            largest = np.abs(features[train]).max(axis=0)
            features = features / np.where(largest > 0, largest, 1.0)
        return np.concatenate([features, constant], axis=1), {}, self._public()

    def _public(self) -> tuple[str, ...]:
        inputs = []
        if self.scaling == "standard":
            inputs.append("mean and deviation of each feature column, from all agents' training rows")
        if self.scaling == "max_abs":
            inputs.append("largest absolute value of each feature column, from all agents' training rows")
        if self.categorical:
            inputs.append(f"values that occur in the categorical columns {', '.join(self.categorical)}")
        return tuple(inputs)


INDEX = re.compile(r"Unnamed: \d+|index|Index|level_0")
"""How pandas calls an index that it has written or read as a column."""


def _alike(written: list[str]) -> dict[str, str]:
    """Map each name to itself, or, if all are numbers, to the shortest of the names of an equal number."""
    numbers = _numbers(written)
    if numbers is None:
        return {name: name for name in written}
    shortest: dict[float, str] = {}
    for name in sorted(written, key=len):
        shortest.setdefault(numbers[name], name)
    return {name: shortest[numbers[name]] for name in written}


def _is_whole(name: str) -> bool:
    """True if an id is written as an integer >= 0 that fits into 64 bits."""
    return name.isascii() and name.isdecimal() and len(name) <= 18 and str(int(name)) == name


def _numbers(names: Iterable[str]) -> dict[str, Any] | None:
    """The finite numbers that all of some texts stand for; None where one is no such number."""
    found = {name: parse_number(name) for name in names}
    return found if all(map(math.isfinite, found.values())) else None


def _ordered(names: set[str]) -> list[str]:
    """Distinct values in ascending order: of the numbers if all are finite numbers, of the text otherwise."""
    numbers = _numbers(names)
    return sorted(names) if numbers is None else sorted(names, key=lambda name: (numbers[name], name))
