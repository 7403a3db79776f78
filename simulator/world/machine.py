"""Memory that this machine leaves to a process, and a limit of one thread on numerical libraries."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil
from threadpoolctl import ThreadpoolController

from ...agents.errors import HushnetError
from ...agents.files import read_bytes

SHARE = 0.9
"""Share of the machine's memory that may be planned with, or be held by a run that has no other limit."""

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""What a container may hold at most, by either version of control groups."""


def total_memory() -> int:
    """Bytes of this machine, or of the container that this process is in."""
    total = int(psutil.virtual_memory().total)
    for path in _LIMITS:
        try:
            total = min(total, int(read_bytes(path)))
        except (HushnetError, ValueError):  # none, or "max"
            continue
    return total


def available_memory() -> int:
    """Bytes that could be had without moving others out of memory."""
    return min(int(psutil.virtual_memory().available), total_memory())


def used_memory() -> int:
    """Bytes that this process holds in memory: its resident set, with the libraries and data that runs share."""
    return int(psutil.Process().memory_info().rss)


def one_thread() -> AbstractContextManager[Any]:
    """Have libraries of linear algebra use one thread within a block: runs share a machine, and order decides bits."""
    return _libraries(len(sys.modules)).limit(limits=1)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """These libraries, looked for anew only where more modules have been imported since: looking takes long."""
    del modules
    return ThreadpoolController()


def size(count: float) -> str:
    """A number of bytes in words."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count:,.0f} bytes"
