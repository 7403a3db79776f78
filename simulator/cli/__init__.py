"""The shell: ``hushnet run``, ``compare``, ``report``, ``reproduce`` and the other commands.

Only typer and the standard library are imported with it, so that ``hushnet --help`` is quick.
"""

from __future__ import annotations

from . import making, reading, asking  # isort: skip (the order of their help)
from .application import app
from .entry import UNFORESEEN, main, script

__all__ = ["UNFORESEEN", "app", "asking", "main", "making", "reading", "script"]
