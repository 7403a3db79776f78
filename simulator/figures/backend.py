"""Matplotlib, imported whatever another program's environment asks of it: figures are drawn to files alone."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

BACKEND = "MPLBACKEND"
"""Environment variable by which other programs choose how matplotlib shows windows."""


def import_matplotlib() -> None:
    """Import matplotlib whatever backend the environment names: files need none, and nonsense there ends an import."""
    if "matplotlib" in sys.modules:
        return
    asked = os.environ.pop(BACKEND, None)
    try:
        import matplotlib
    finally:
        if asked is not None:
            os.environ[BACKEND] = asked
    if asked:
        with suppress(ValueError):  # no backend of matplotlib's
            matplotlib.rcParams["backend"] = asked  # as matplotlib does itself, for the user's own windows
