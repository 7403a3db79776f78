"""What stderr says before something is compiled that takes long: each thing once, and nothing where that was asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SILENT = "HUSHNET_COMPILES_SILENTLY"
"""Environment variable with which nothing is said; processes that a run starts inherit it."""

_said: set[str] = set()


def say(what: str, details: str) -> None:
    """Say that something is compiled, unless it was said before: steps of one protocol with other noise are several.

    Parameters
    ----------
    what : str
        As in "compiling the batched engine"; empty to say nothing.
    details : str
        What follows it.
    """
    if what and what not in _said and not os.environ.get(SILENT):
        _said.add(what)
        sys.stderr.write(f"compiling {what}{details}\n")


@contextmanager
def unannounced(*, quiet: bool) -> Iterator[None]:
    """Compile without a word, here and in processes that are started meanwhile, if ``quiet`` says so."""
    before = os.environ.get(SILENT)
    if quiet:
        os.environ[SILENT] = "1"
    try:
        yield
    finally:
        if quiet and before is None:
            os.environ.pop(SILENT, None)
