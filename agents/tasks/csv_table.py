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
from ..input_files import beside, parse_number
from ..losses import LOSSES, LossName
from ..models import LinearModel
from ..packed import plain_name
from ..parameters import Positive
from ..tables import Table
from .csv_reader import FIELD, Columns, comma_number, day_of, numbered, read_columns
from .datasets import md5
from .extent import CELL_BYTES, Extent, Files, distinct, head_of, parsed
from .outline import Outline
from .splits import Dealt, SplitParameters, hold_out, inverse_counts, split_notes
from .task import Task
from .task_registry import TASKS, TaskKind

Scaling = Literal["none", "standard", "unit_row", "max_abs"]
MOST_CLASSES = 1000
"""More distinct labels are taken for numbers."""
MOST_COLUMNS = 10
"""Wrong columns that one error names."""


@final
@TASKS.register
class CsvTable(TaskKind):
    """A CSV file: a label, features, and a column or a rule that says which agent owns a row."""

    kind: Literal["csv"]
    draws_data: ClassVar[bool] = False
    target: ClassVar[str] = "as the file has it"
    path: str = Field(examples=["rows.csv"])
    """The file, relative to the scenario file's folder; compressed if its name ends in .bz2, .gz or .xz."""
    label: str = Field(examples=["label"])
    """Column of the label: two classes, more for models with a score for each, or a number for a loss of real labels
    such as squared."""
    agent: str | None = None
    """Column that names each row's agent; either this or `split`."""
    split: SplitParameters | None = None
    """Rule that deals rows to agents; either this or `agent`."""
    features: list[str] | None = Field(default=None, min_length=1)
    """Feature columns; without it, all but label and agent."""
    categorical: list[str] = Field(default=[])
    """Feature columns that are one-hot encoded, one coordinate for each value in the file; all others are numbers."""
    drop: list[str] = Field(default=[])
    """Columns that are left out, such as names and numbers of rows."""
    missing: Literal["drop", "median", "indicator"] | None = None
    """What becomes of cells without a value (empty, NA, ?, ...): drop leaves their rows out; median takes the median of
    the column, or among categories one of its own; indicator takes that, and adds a coordinate that says so."""
    dates: list[str] = Field(default=[])
    """Feature columns with dates, such as 2026-11-28 or 28.11.2026, counted in days."""
    decimal: Literal[".", ","] = "."
    """What numbers have before their fraction."""
    scaling: Scaling = "none"
    """none; standard: columns to mean 0 and deviation 1; max_abs: columns to [-1, 1]; unit_row: rows to l2 norm 1."""
    intercept: bool = True
    """Append a coordinate of 1 (before rows are scaled, after columns are)."""
    test_share: float = Field(default=0.2, ge=0, lt=1)
    """Share of each agent's rows that is held out for testing."""
    loss: LossName = "logistic"
    """Loss of a score."""
    regularisation: Positive | Literal["1/m"] = "1/m"
    """lambda_i: one number for all agents, or 1 over the agent's number of training rows."""
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    """What separates cells."""
    header: bool = True
    """Whether the first line names the columns; else they are called "1", "2", "3", ..."""

    @model_validator(mode="after")
    def _consistent(self) -> CsvTable:
        if (self.agent is None) == (self.split is None):
            raise ValueError("either agent (a column) or split (a rule) must be set, not both and not neither")
        for column in (self.label, self.agent):
            if column is not None and column in [*(self.features or []), *self.categorical]:
                raise ValueError(f"{column!r} cannot be a feature: it is the label or agent column")
        for columns in (self.features or [], self.categorical, self.drop, self.dates):
            twice = next((column for column, times in Counter(columns).items() if times > 1), None)
            if twice is not None:
                raise ValueError(f"names the column {twice!r} twice")
        for name, columns in (("categorical", self.categorical), ("dates", self.dates)):
            stray = set(columns) - set(self.features or columns)
            if stray:
                raise ValueError(f"{name} {sorted(stray)} must be among features")
        for column in self.drop:
            if column in (self.label, self.agent, *(self.features or []), *self.categorical, *self.dates):
                raise ValueError(f"{column!r} is asked for by another field, and cannot be dropped")
        both = set(self.categorical) & set(self.dates)
        if both:
            raise ValueError(f"{sorted(both)} cannot be both categorical and dates")
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
        rows = parsed(head, self.delimiter) or [[]]
        names = rows.pop(0) if self.header else numbered(len(rows[0]))
        if self.agent in names:
            agents = distinct(rows, names.index(self.agent))
        chosen = self._chosen(names)
        coded = [distinct(rows, names.index(name)) for name in self.categorical if name in names]
        dimension = len(chosen) - len(coded) + sum(coded) + self.intercept
        each = len(names) * CELL_BYTES + sum(map(len, head.lines)) / max(len(head.lines), 1) + 3 * 8 * dimension
        classes = distinct(rows, names.index(self.label)) if self.label in names and self.of_classes else 2
        return Extent(max(agents, 1), max(dimension, 1), each * head.count, classes=max(classes, 2))

    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Read the file and make the task."""
        everything = read_columns(beside(base, self.path), self.delimiter, header=self.header)
        rows, columns = len(everything.lines), self._with_values(everything)
        labels, notes = self._labels(columns)
        if self.agent is not None:
            columns.position(self.agent, "agent")
        features, names = self._features(columns)
        owners, ids, unused = self._owners(columns, Dealt(features, labels, self.of_classes, names), rng)
        dealt = owners >= 0
        features, labels, owners = features[dealt], labels[dealt], owners[dealt]
        unused += rows - len(columns.lines)
        held = hold_out(owners, len(ids), self.test_share, rng=rng)
        features, bounds, public = self._scale(features, ~held)
        counts = np.bincount(owners[~held], minlength=len(ids))
        given, classes = self.regularisation, len(notes.get("labels", ())) or 2
        train = Table.from_owners(features[~held], labels[~held], owners[~held], len(ids))
        return Task(
            name=Path(plain_name(columns.file)).stem,
            ids=ids,
            train=train,
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
                "split": split_notes(train, classes if self.of_classes else 0),
                **({"warnings": doubts} if (doubts := self._doubts(columns)) else {}),
            },
            classes=classes,
        )

    def _labels(self, columns: Columns) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Labels and what they stand for: of two classes the lower number, or else the first in order, becomes -1.

        More classes are numbered from 0 in that order. Where all labels are numbers, those that are equal are one
        class, however they are written.
        """
        if not self.of_classes:
            return columns.numbers(self.label, "label", self._number), {}
        texts = columns.texts(self.label, "label")
        written = _ordered(set(texts))
        alike = _numbers(written) or {text: text for text in written}
        classes = {alike[text]: text for text in reversed(written)}  # each as its first is written
        most = 2 if isinstance(self.model, LinearModel) else MOST_CLASSES
        if not 2 <= len(classes) <= most:
            names = list(reversed(classes.values()))
            shown = ", ".join(repr(name) for name in names[:4]) + (", ..." if len(names) > 4 else "")
            needed = "two classes" if most == 2 else f"from 2 to {most:,} classes"
            hint = "; set task.model to {kind: softmax} for more" if len(classes) > 2 and most == 2 else ""
            raise InputError(
                f"{columns.file}: column {self.label!r} has {len(names)} distinct values ({shown}); "
                f"the loss {self.loss} needs {needed}{hint}",
                field=("task", "label"),
            )
        if len(classes) > 2:
            numbers = {key: number for number, key in enumerate(reversed(classes))}
            labels = np.array([numbers[alike[text]] for text in texts], dtype=np.float64)
            return labels, {"labels": {str(number): classes[key] for key, number in numbers.items()}}
        high, low = classes
        labels = np.where([alike[text] == high for text in texts], 1.0, -1.0)
        return labels, {"labels": {"-1": classes[low], "+1": classes[high]}}

    def _owners(
        self, columns: Columns, rows: Dealt, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], list[int] | list[str], int]:
        """(M,) owners (-1: left out), the agents' ids and the number of rows left out."""
        if self.split is not None:
            owners = self.split.owners(rows, rng=rng)
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
        """(M, p) features without intercept and their names; one error for all columns that are wrong."""
        chosen = self._chosen(columns.names)
        for field in ("categorical", "drop", "dates"):
            for name in getattr(self, field):
                columns.position(name, field)
        if not chosen:
            raise InputError(f"{columns.file}:1: has no column left for features", field=("task", "features"))
        parts, names, wrong = [], [], []
        for name in chosen:
            try:
                part, own = self._coded(columns, name) if name in self.categorical else self._measured(columns, name)
            except InputError as error:
                wrong.append(error)
                continue
            parts.append(part)
            names.extend(own)
        if wrong:
            raise InputError("\n".join(map(str, wrong[:MOST_COLUMNS])), field=wrong[0].field)
        return np.concatenate(parts, axis=1), names

    def _chosen(self, names: list[str]) -> list[str]:
        return self.features or [name for name in names if name not in (self.label, self.agent, *self.drop)]

    def _number(self, cell: str) -> float:
        return parse_number(cell) if self.decimal == "." else comma_number(cell)

    def _with_values(self, columns: Columns) -> Columns:
        """The rows that are taken: with ``missing: drop``, those with a value in every column that is asked for."""
        if self.missing != "drop":
            return columns
        asked = [self.label, *([self.agent] if self.agent else []), *self._chosen(columns.names)]
        there = ~np.any([columns.missing(name, "missing") for name in asked], axis=0)
        if not there.any():
            raise InputError(f"{columns.file}: no row has a value in every column", field=("task", "missing"))
        return columns.kept(there)

    def _coded(self, columns: Columns, name: str) -> tuple[NDArray[np.float64], list[str]]:
        """(M, k) a coordinate for each value of a categorical column, and their names."""
        if self.missing in ("median", "indicator"):
            rank, none = columns.position(name, "categorical"), columns.missing(name, "categorical")
            texts = ["missing" if gone else cell for cell, gone in zip(columns.cells[rank], none, strict=True)]
        else:
            texts = columns.texts(name, "categorical")
        values = _ordered(set(texts))
        coded = (np.array(texts)[:, None] == np.array(values)[None, :]).astype(np.float64)
        return coded, [f"{name}={value}" for value in values]

    def _measured(self, columns: Columns, name: str) -> tuple[NDArray[np.float64], list[str]]:
        """(M, 1) a column of numbers or dates; with an indicator (M, 2) if values are missing."""
        parse = day_of if name in self.dates else self._number
        gone = columns.missing(name, "features") if self.missing in ("median", "indicator") else np.zeros(0, dtype=bool)
        if not gone.any():
            return columns.numbers(name, "features", parse)[:, None], [name]
        if gone.all():
            raise InputError(
                f"{columns.file}: column {name!r} has no value at all; leave it out by task.drop",
                field=("task", "drop"),
            )
        values = np.empty(len(gone))
        values[~gone] = columns.kept(~gone).numbers(name, "features", parse)
        values[gone] = np.median(values[~gone])
        if self.missing == "median":
            return values[:, None], [name]
        return np.stack([values, gone.astype(np.float64)], axis=1), [name, f"{name} is missing"]

    def _doubts(self, columns: Columns) -> list[str]:
        """Sentences about columns that are read as they are asked to be, and are probably not meant so."""
        found, rows = [], len(columns.lines)
        for name in self.categorical:
            values = len(set(columns.cells[columns.position(name, "categorical")]))
            if values > 1 and values == rows:
                found.append(f"the categorical column {name!r} has another value in each of its {rows} rows")
        for name in self._chosen(columns.names):
            if name in self.categorical:
                continue
            if INDEX.fullmatch(name) and [
                parse_number(cell) for cell in columns.cells[columns.position(name, "features")]
            ] == list(range(rows)):
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
            own = features[train]
            features = features - np.where(np.ptp(own, axis=0) > 0, own.mean(axis=0), own[0])  # whose mean is rounded
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
        if self.missing in ("median", "indicator"):
            inputs.append("medians of columns with missing values, from all agents' rows, and which columns have some")
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


def _numbers(names: Iterable[str]) -> dict[str, float] | None:
    """The finite numbers that all of some texts stand for, whole ones exactly; None where one is no such number."""
    found = {name: parse_number(name) for name in names}
    finite = all(map(math.isfinite, found.values()))
    return {name: int(name) if name.isdecimal() else found[name] for name in found} if finite else None


def _ordered(names: set[str]) -> list[str]:
    """Distinct values in ascending order: of the numbers if all are finite numbers, of the text otherwise."""
    numbers = _numbers(names)
    return sorted(names) if numbers is None else sorted(names, key=lambda name: (numbers[name], name))
