"""MovieLens-100K as in Bellet et al. 2018, section 5.2 and appendix D.2; see `ratings` for the choices made."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np

from ..errors import InputError
from ..input_files import beside, read_lines
from ..packed import plain_name
from .datasets import DATASETS, PATH, checksums, files_of
from .extent import Extent, Files, distinct, head_of
from .outline import Outline
from .ratings import RatingParameters, Ratings, rating_extent, rating_task
from .task import Task
from .task_registry import TASKS

ROW_BYTES = 300
"""A rating while it is read: its line, and the pair of user and item, of which there may be no second one."""


@final
@TASKS.register
class MovieLens(RatingParameters):
    """MovieLens-100K: each user is an agent who learns to rate films from common film features."""

    kind: Literal["movielens"]
    draws_data: ClassVar[bool] = False
    target: ClassVar[str] = "personal"
    published: ClassVar[bool] = True
    path: str | None = None
    """The file u.data or the folder that holds it; without it, ml-100k/u.data in the data directory."""

    def outline(self) -> Outline:
        """Return the outline of the task, which the parameters alone determine."""
        return Outline(self.kind, "squared", "rmse", profiles=True, bounded=self.bounded)

    def extent(self, files: Files | None) -> Extent:
        """Estimate the size of the task, from the first megabyte of the file if it may be read."""
        if files is None:
            return rating_extent(self, 1, 1, 1, 0)
        head = head_of(self._file(files.data_dir, files.base), PATH)
        rows = head.cells(str.split)
        return rating_extent(self, distinct(rows, 0), distinct(rows, 1), head.count, head.count * ROW_BYTES)

    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Read the ratings and make the task."""
        file = self._file(data_dir, base)
        ratings = read_ratings(file)
        summed = checksums({"u.data": file}, DATASETS["ml-100k"].files)
        notes = {"source": f"MovieLens-100K, {plain_name(file)}", **summed}
        return rating_task(self, ratings, name="MovieLens-100K", notes=notes, rng=rng)

    def _file(self, data_dir: Path | None, base: Path | None) -> Path:
        """The file that the task names, or the one in the folder that it names, or the data set's."""
        named = None if self.path is None else beside(base, self.path)
        return (
            named
            if named is not None and not named.is_dir()
            else files_of("ml-100k", self.path, data_dir, base)["u.data"]
        )


def read_ratings(file: Path) -> Ratings:
    """Read lines of user, item, rating and timestamp, separated by tabs or blanks.

    The format's own description says tabs, but the copy whose checksum `datasets` lists has blanks in its first line.
    Users and items are numbered in ascending order of their ids. Raises `InputError` if a line does not have four
    columns, an id is not a positive integer, a rating is not one of 1 to 5, or a user rates an item twice.
    """
    lines = [line for _, line in read_lines(file, field=PATH)]
    if not lines:
        raise InputError(f"{file}: is empty; it must hold lines of user, item, rating and timestamp", field=PATH)
    rows = np.empty((len(lines), 3), dtype=np.int64)
    seen: set[tuple[int, int]] = set()
    for index, line in enumerate(lines):
        user, item, rating = _rating(line, f"{file}:{index + 1}")
        if (user, item) in seen:
            raise InputError(f"{file}:{index + 1}: user {user} rates item {item} a second time", field=PATH)
        seen.add((user, item))
        rows[index] = user, item, rating
    user_ids, users = np.unique(rows[:, 0], return_inverse=True)
    item_ids, items = np.unique(rows[:, 1], return_inverse=True)
    return Ratings(users, items, rows[:, 2].astype(np.float64), user_ids.tolist(), len(item_ids))


def _rating(line: str, where: str) -> tuple[int, int, int]:
    """User, item and rating of a line, or an `InputError` that says what is wrong with it."""
    cells = line.split()
    if len(cells) != 4:
        raise InputError(f"{where}: has {len(cells)} columns; user, item, rating and timestamp are needed", field=PATH)
    for column, text in zip(("user", "item"), cells, strict=False):
        if not (text.isascii() and text.isdecimal() and len(text) <= 18 and int(text) > 0):
            raise InputError(f"{where}: {column} {text!r} must be a positive integer below 10^18", field=PATH)
    if cells[2] not in ("1", "2", "3", "4", "5"):
        raise InputError(f"{where}: rating {cells[2]!r} must be an integer from 1 to 5", field=PATH)
    return int(cells[0]), int(cells[1]), int(cells[2])
