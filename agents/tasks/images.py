"""Images with labels from files: idx files, as of MNIST, and JSON files of LEAF, whose writers are the agents.

They are read from a data directory; nothing is downloaded. Grey values are features in [0, 1], row of pixels by
row.

References
----------
LeCun, Bottou, Bengio and Haffner 1998, "Gradient-based learning applied to document recognition" (idx files).
Caldas et al. 2018, "LEAF: a benchmark for federated settings" (FEMNIST).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ..errors import FieldError, InputError
from ..input_files import open_text
from ..losses import LOSSES
from ..models import LinearModel, ModelParameters, Softmax
from ..parameters import Size
from ..tables import Table
from .datasets import DATASETS, PATH, checksums, files_of, folder_of
from .extent import Extent, Files
from .outline import Outline
from .partition import partitioned
from .splits import Even, SplitParameters, inverse_counts, split_notes
from .task import Task
from .task_registry import TASKS, TaskKind

SIDE, WHITE = 28, 255.0
"""Pixels of a side of an image of MNIST, for estimates; the largest value of a byte."""
Precision = Literal["float64", "float32"]


class ImageTask(TaskKind):
    """Common to tasks of images of more than two classes."""

    draws_data: ClassVar[bool] = False
    intercept: bool = True
    """Append a coordinate of 1."""
    model: ModelParameters = Field(default_factory=lambda: Softmax(kind="softmax"))
    """What agents learn; more than two classes are not for the linear model."""

    @model_validator(mode="after")
    def _of_many_classes(self) -> ImageTask:
        if isinstance(self.model, LinearModel):
            raise FieldError("tells two classes, and there are more; use {kind: softmax} or perceptron", "model")
        return self


class ImageFiles(ImageTask):
    """Common to tasks of images that are read from a folder."""

    published: ClassVar[bool] = True
    dataset: ClassVar[str]
    path: str | None = None
    """Folder of the files; by default the data set's folder in the data directory."""
    classes: Annotated[int, Field(ge=3, le=10**4)]
    """Number of classes K; labels are 0 to K - 1."""
    precision: Precision = "float32"
    """How pixels are kept; models and arithmetic are in float64 either way."""

    def features(self, images: NDArray[Any]) -> NDArray[Any]:
        """(M, pixels) features in [0, 1], with the intercept's, of (M, ...) values."""
        rows = images.reshape(len(images), -1).astype(self.precision)
        return np.append(rows, np.ones((len(rows), 1), dtype=rows.dtype), axis=1) if self.intercept else rows

    def check_labels(self, labels: NDArray[np.float64], file: Path) -> NDArray[np.float64]:
        """Return labels that are classes, or raise an `InputError`."""
        wrong = np.flatnonzero((labels < 0) | (labels >= self.classes) | (labels != np.floor(labels)))
        if len(wrong):
            raise InputError(
                f"{file}: label {labels[wrong[0]]:g} of image {wrong[0] + 1} must be from 0 to {self.classes - 1}; "
                "set task.classes to the number of classes",
                field=PATH,
            )
        return labels

    def bounds(self, features: int) -> dict[str, float]:
        """Bounds on the norms of rows of values in [0, 1]."""
        return {"l1": float(features), "l2": math.sqrt(features)}


@final
@TASKS.register
class Mnist(ImageFiles):
    """MNIST, or other images in its idx files (Fashion-MNIST, EMNIST): 60,000 + 10,000 of 28 by 28 pixels."""

    kind: Literal["mnist"]
    dataset: ClassVar[str] = "mnist"
    classes: Annotated[int, Field(ge=3, le=10**4)] = 10
    """Number of classes K; labels are 0 to K - 1."""
    rows: Size | None = None
    """Keep only so many training images, from the first on."""
    test_rows: Size | None = None
    """Keep only so many test images."""
    split: SplitParameters = Field(default_factory=lambda: Even(kind="even", agents=20))
    """Rule that deals training images to agents; test images are dealt evenly."""

    def outline(self) -> Outline:
        """Return the outline of the task, which the parameters alone determine."""
        return Outline(self.kind, "logistic", agents=self.split.count, bounded=("l1", "l2"))

    def extent(self, files: Files | None) -> Extent:
        """Estimate the size of the task, as of MNIST's files."""
        features, rows = SIDE**2 + self.intercept, (self.rows or 60_000) + (self.test_rows or 10_000)
        size = 3 * np.dtype(self.precision).itemsize
        return Extent(self.split.count, features, size * rows * features, classes=self.classes)

    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Read the four files, and deal images to agents."""
        known, files = DATASETS[self.dataset], files_of(self.dataset, self.path, data_dir, base)
        (one, first), (two, second), (three, third), (four, fourth) = files.items()
        train = self._part(first, second, self.rows)
        test = self._part(third, fourth, self.test_rows)
        if train[0].shape[1] != test[0].shape[1]:
            raise InputError(f"{third}: has images of another size than {first.name}", field=PATH)
        return partitioned(
            train,
            test,
            self.split,
            name=known.title,
            loss="logistic",
            bounds=self.bounds(train[0].shape[1]),
            notes={
                "source": f"{known.title}, {', '.join((one, two, three, four))}",
                "rows": [len(train[1]), len(test[1])],
                **checksums(files, known.files),
            },
            rng=rng,
            classes=self.classes,
        )

    def _part(self, images: Path, labels: Path, rows: int | None) -> tuple[NDArray[Any], NDArray[np.float64]]:
        pixels, classes = read_idx(images), read_idx(labels)
        if pixels.ndim < 2 or classes.ndim != 1 or len(pixels) != len(classes) or not len(classes):
            raise InputError(
                f"{images}: has the shape {pixels.shape}, and {labels.name} {classes.shape}; as many images as labels "
                "are needed, at least one",
                field=PATH,
            )
        features = self.features(pixels[:rows])
        features[:, : features.shape[1] - self.intercept] /= WHITE
        return features, self.check_labels(classes[:rows].astype(np.float64), labels)


@final
@TASKS.register
class Femnist(ImageFiles):
    """FEMNIST of LEAF: each writer of letters and digits is an agent, with images for training and for testing."""

    kind: Literal["femnist"]
    dataset: ClassVar[str] = "femnist"
    classes: Annotated[int, Field(ge=3, le=10**4)] = 62
    """Number of classes K; labels are 0 to K - 1."""
    agents: Size = 50
    """Number of writers, from the first of the first file on."""
    split: SplitParameters | None = None
    """Rule that deals the writers' training images anew, and test images evenly; by default each keeps its own."""

    def outline(self) -> Outline:
        """Return the outline of the task; agents are named by their writers, unless images are dealt anew."""
        return Outline(self.kind, "logistic", agents=self.split and self.split.count, bounded=("l1", "l2"))

    def extent(self, files: Files | None) -> Extent:
        """Estimate the size of the task, by LEAF's mean of 227 images of a writer."""
        features = SIDE**2 + self.intercept
        agents = self.agents if self.split is None else self.split.count
        return Extent(agents, features, 10.0 * 8 * 227 * self.agents * features, classes=self.classes)

    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Read the folders ``train`` and ``test``; there must be as many writers as agents."""
        folder = folder_of(self.dataset, self.path, data_dir, base)
        train = self._part(folder / "train", self.agents)
        if len(train) < self.agents:
            raise InputError(
                f"{self.agents} must be at most the number of writers in {folder / 'train'}, {len(train)}",
                field=("task", "agents"),
            )
        test = self._part(folder / "test", None)
        width = next(iter(train.values()))[0].shape[1]
        nothing = np.empty((0, width), dtype=self.precision), np.empty(0)
        parts = [[train[name] for name in train], [test.get(name, nothing) for name in train]]
        if any(features.shape[1] != width for part in parts for features, _ in part):
            raise InputError(f"{folder}: has images of several sizes; all must have as many values", field=PATH)
        rows = [(np.concatenate([x for x, _ in part]), np.concatenate([y for _, y in part])) for part in parts]
        title = DATASETS[self.dataset].title
        if self.split is not None:
            return partitioned(
                rows[0],
                rows[1],
                self.split,
                name=title,
                loss="logistic",
                bounds=self.bounds(width),
                notes={"source": title},
                rng=rng,
                classes=self.classes,
            )
        train_table, test_table = (
            Table(*both, np.concatenate([[0], np.cumsum([len(labels) for _, labels in part])]).astype(np.int64))
            for both, part in zip(rows, parts, strict=True)
        )
        return Task(
            name=title,
            ids=list(train),
            train=train_table,
            test=test_table,
            loss=LOSSES["logistic"],
            regularisation=inverse_counts(train_table.counts),
            metric="accuracy",
            bounds=self.bounds(width),
            notes={"source": title, "split": split_notes(train_table, self.classes)},
            classes=self.classes,
        )

    def _part(self, folder: Path, most: int | None) -> dict[str, tuple[NDArray[Any], NDArray[np.float64]]]:
        """Features and labels of writers, from a folder's files in the order of their names, until there are enough."""
        found: dict[str, tuple[NDArray[Any], NDArray[np.float64]]] = {}
        files = sorted(folder.glob("*.json*")) if folder.is_dir() else []
        if not files:
            raise InputError(f"{folder}: has no files *.json; {DATASETS[self.dataset].hint}", field=PATH)
        for file in files:
            for writer, (images, labels) in read_leaf(file).items():
                if len(found) == most:
                    return found
                if writer not in found:
                    found[writer] = self.features(images), self.check_labels(labels, file)
        return found


def read_idx(file: Path) -> NDArray[np.uint8]:
    """Bytes of an idx file, in the shape that it names.

    Raises `InputError` if it is none, of other numbers than bytes, or has more or fewer of them than it says.
    """
    with open_text(file, field=PATH, what="as an idx file") as (stream, _):
        content = stream.read()
    if content[:3] != b"\0\0\x08" or len(content) < 4 + 4 * content[3]:
        raise InputError(f"{file}: is no idx file of unsigned bytes, which begins with 0, 0, 8", field=PATH)
    shape = np.frombuffer(content, ">u4", content[3], 4).astype(int).tolist()
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * content[3])
    if len(values) != math.prod(shape):
        raise InputError(f"{file}: has {len(values)} values, and says that it has {math.prod(shape)}", field=PATH)
    return values.reshape(shape)


def read_leaf(file: Path) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """(m, pixels) values in [0, 1] and (m,) labels of each user of a file of LEAF.

    Raises `InputError` if it is none, or has other values.
    """
    with open_text(file, field=PATH, what="as a file of LEAF") as (stream, _):
        content = stream.read()
    try:
        data = json.loads(content)
        users = {str(name): data["user_data"][name] for name in data["users"]}
        found = {
            name: (np.array(one["x"], dtype=np.float64), np.array(one["y"], dtype=np.float64))
            for name, one in users.items()
        }
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{file}: is no file of LEAF, {{users: [name, ...], user_data: {{name: {{x: [[value, ...], ...], "
            "y: [label, ...]}}}",
            field=PATH,
        ) from None
    for name, (images, labels) in found.items():
        if images.ndim != 2 or labels.shape != images.shape[:1]:
            raise InputError(f"{file}: user {name!r} has other numbers of labels than of images", field=PATH)
        if not ((images >= 0) & (images <= 1)).all():
            raise InputError(f"{file}: user {name!r} has values that are not from 0 to 1", field=PATH)
    return found
