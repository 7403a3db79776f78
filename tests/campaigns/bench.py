"""What campaigns share whose commands are processes of their own: a server, its operations, undisturbed results."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

from . import small
from .forked import Server
from .operations import CHANGING, Operations


class Bench:
    """A folder with a server whose processes are watched."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR", "/tmp"), prefix="hushnet-campaign-"))
        self.operations = Operations(self.folder)
        warm = small.arguments(small.write(self.folder, "own"), self.results("own"))
        self.server = Server(self.folder / "server", warm, self.operations.environment)
        assert self.server.warmed.code == 0, self.server.warmed.said
        self._known: dict[str, tuple[dict[str, bytes], int, float]] = {}

    def results(self, name: str) -> Path:
        """Where undisturbed results are."""
        return self.folder / f"undisturbed-{name}"

    def undisturbed(self, name: str) -> dict[str, bytes]:
        """Content of a scenario's folder in which nobody was killed, and nothing has failed."""
        return self._made(name)[0]

    def length(self, name: str) -> tuple[int, float]:
        """Operations that change something, and seconds, that this takes."""
        return self._made(name)[1:]

    def _made(self, name: str) -> tuple[dict[str, bytes], int, float]:
        if name not in self._known:
            out = self.results(name)
            shutil.rmtree(out, ignore_errors=True)
            self.operations.watch(self.folder, CHANGING)
            began = time.monotonic()
            ended = self.server.run(small.arguments(small.write(self.folder, name), out))
            assert ended.code == 0, ended.said
            self.operations.rest()
            self._known[name] = small.content(out), self.operations.count, time.monotonic() - began
        return self._known[name]

    def close(self) -> None:
        """End the server, and remove everything."""
        self.server.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def bench() -> Bench:
    """The one of this process, made when it is first asked for."""
    return Bench()


def close() -> None:
    """End it, if there is one."""
    if bench.cache_info().currsize:
        bench().close()
        bench.cache_clear()
