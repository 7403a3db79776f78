"""Names for what is not whole yet: hidden, beside what they will be renamed to, and used by nobody else."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path

STRAY = re.compile(r"\.(?P<name>.+)\.hushnet-[0-9a-f]{32}(\.old)?")
"""Names of what a killed process may leave behind."""


def scratch(path: Path) -> Path:
    """A fresh hidden name beside a path, which nobody can foresee and nobody else uses (`STRAY`)."""
    return path.with_name(f".{path.name}.hushnet-{uuid.uuid4().hex}")


def write_new(content: bytes, path: Path) -> None:
    """Write a file that is not there yet, and wait until its content is on the disk."""
    with path.open("xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
