"""Whether anybody still waits for results, and which run a worker was at when it died."""

from __future__ import annotations

import faulthandler
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...agents.errors import Interruption
from ...agents.scratch import scratch
from ..storage.files import writing
from ..world.world import World

CHECK_INTERVAL = 1.0
"""Seconds between two looks at whether anybody still waits for the result."""


class Abandoned(Interruption):
    """Nobody waits for this run any more; no failure of its own, so that nothing catches it by the way."""


class Heartbeat:
    """A hidden folder in the store that is there as long as somebody waits for results, and has a mark per open run.

    A worker that dies leaves the mark of the run that it was at: this is how the guilty one of a batch is found, also
    where nobody but the file system has seen which it was.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._looked = time.perf_counter()

    @classmethod
    @contextmanager
    def begun(cls, root: Path) -> Iterator[Heartbeat]:
        """Make the folder, and remove it at the end; one that a killed process left is a stray for `Store.sweep`."""
        folder = scratch(root / "under-way")
        with writing(root):
            folder.mkdir(parents=True)
        try:
            yield cls(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def visible(self) -> bool:
        """Whether the folder can be seen from here."""
        return self.folder.is_dir()

    def deaths(self, name: str) -> int:
        """How many workers have died at a run."""
        mark = self.folder / name
        return mark.stat().st_size if mark.exists() else 0

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Be at a run: only a process that is killed inside leaves the mark there, and what it said of that."""
        mark, words = self.folder / name, self.words(name)
        with mark.open("ab") as stream:
            stream.write(b"+")
        enabled = faulthandler.is_enabled()
        with words.open("wb") as stream:
            faulthandler.enable(stream)
            try:
                yield
            finally:
                faulthandler.disable()
                if enabled:
                    faulthandler.enable()
                mark.unlink(missing_ok=True)
                words.unlink(missing_ok=True)

    def words(self, name: str) -> Path:
        """Where a worker that dies at a run writes where it was, if it can."""
        return self.folder / f"{name}.said"

    def check_alive(self, _: World) -> None:
        """Give up if nobody waits any more; for the record instants of a run."""
        if time.perf_counter() - self._looked > CHECK_INTERVAL:
            self._looked = time.perf_counter()
            if not self.visible():
                raise Abandoned
