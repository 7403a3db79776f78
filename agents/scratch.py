"""Names for what is not whole yet: hidden, beside what they will be renamed to, and used by nobody else."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

STRAY = re.compile(r"\.(?P<name>.+)\.hushnet-[0-9a-f]{32}(\.old)?")
"""Names of what a killed process may leave behind."""


def scratch(path: Path) -> Path:
    """A fresh hidden name beside a path, which nobody can foresee and nobody else uses (`STRAY`)."""
    return path.with_name(f".{path.name}.hushnet-{uuid.uuid4().hex}")
