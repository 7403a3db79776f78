"""What a command does with files below a folder: every operation numbered, so that one can fail or be the last."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("operations.c")
KINDS = ("open to write", "write", "rename", "sync", "make", "remove", "lock", "open to read", "read", "stat")
CHANGING = KINDS[:7]
"""Kinds of operations that leave something behind."""
SINGLE, EVER = 1, 2**62
MOST, PLANS = 512, 16

WHO = ("own", "parent", "worker", "all")
"""The process that makes the operation, the one that was started, one that it started, or all of them."""
HOW = ("before", "halfway", "after")


class _Plan(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_long if name == "at" else ctypes.c_int) for name in ("at", "who", "how", "signal", "lot")
    ]


class _Control(ctypes.Structure):
    """As in ``operations.c``."""

    _fields_ = [
        ("armed", ctypes.c_int),
        ("kinds", ctypes.c_uint),
        ("root", ctypes.c_char * 512),
        ("count", ctypes.c_long),
        ("fail_from", ctypes.c_long),
        ("fail_until", ctypes.c_long),
        ("error", ctypes.c_int),
        ("plans", ctypes.c_int),
        ("next", ctypes.c_int),
        ("struck", ctypes.c_int),
        ("plan", _Plan * PLANS),
        ("parent", ctypes.c_int),
        ("processes", ctypes.c_int),
        ("hands", ctypes.c_int),
        ("process", ctypes.c_int * MOST),
        ("hand", ctypes.c_int * MOST),
        ("by_kind", ctypes.c_long * len(KINDS)),
        ("failed", ctypes.c_char * 600),
    ]


class Operations:
    """The block of memory that all processes of a campaign share.

    Parameters
    ----------
    folder : Path
        For the library and the block.
    """

    def __init__(self, folder: Path) -> None:
        self.path, self.library = folder / "operations", folder / "operations.so"
        build = ["cc", "-O1", "-shared", "-fPIC", "-o", self.library, SOURCE, "-ldl", "-lpthread"]
        subprocess.run(build, check=True)
        self.path.write_bytes(bytes(ctypes.sizeof(_Control)))
        with self.path.open("r+b") as stream:
            self._memory = mmap.mmap(stream.fileno(), 0)
        self._control = _Control.from_buffer(self._memory)

    @staticmethod
    def possible() -> bool:
        """Whether there is a compiler, and a system on which a library can come first."""
        return os.uname().sysname == "Linux" and shutil.which("cc") is not None

    @property
    def environment(self) -> dict[str, str]:
        """What processes that are to be watched have to be started with."""
        return {"LD_PRELOAD": str(self.library), "CAMPAIGN_OPERATIONS": str(self.path)}

    def watch(self, root: Path, kinds: tuple[str, ...] = CHANGING) -> None:
        """Count operations below a folder from now on; nothing fails, and nobody is killed."""
        control = self._control
        ctypes.memset(ctypes.byref(control), 0, ctypes.sizeof(_Control))
        control.root = f"{root}/".encode()
        control.kinds = sum(1 << KINDS.index(kind) for kind in kinds)
        control.armed = 1

    def fail(self, first: int, error: int, *, ever: bool = False) -> None:
        """Have the operation of this number fail, and perhaps all that follow; error 0 is a write of one half."""
        self._control.fail_until = EVER if ever else first + 1
        self._control.error, self._control.fail_from = error, first

    def kill(self, at: int, who: str, how: str, signal: int, lot: int = 0) -> None:
        """Have somebody killed at the operation of this number; numbers ascend."""
        control = self._control
        control.plan[control.plans] = _Plan(at, WHO.index(who), HOW.index(how), signal, lot)
        control.plans += 1

    def rest(self) -> None:
        """Let all be again as if nobody watched; what was counted stays."""
        self._control.armed = 0

    @property
    def count(self) -> int:
        """Operations so far."""
        return self._control.count

    @property
    def by_kind(self) -> dict[str, int]:
        """The same by kind."""
        return dict(zip(KINDS, self._control.by_kind, strict=True))

    @property
    def failed(self) -> str:
        """What failed first: the kind, and the path where it has one."""
        return self._control.failed.decode(errors="replace")

    @property
    def kills(self) -> int:
        """Times that somebody was killed."""
        return self._control.struck

    @property
    def processes(self) -> list[int]:
        """All processes since `watch`."""
        return [pid for pid in self._control.process[: min(self._control.processes, MOST)] if pid]


def name_of(error: int) -> str:
    """``ENOSPC`` for 28."""
    return errno.errorcode.get(error, "a write of one half")
