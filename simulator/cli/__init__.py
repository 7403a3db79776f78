"""The shell: ``hushnet run``, ``compare``, ``report``, ``reproduce`` and the other commands.

Only typer and the standard library are imported with it, so that ``hushnet --help`` is quick.

::

    application.py  the application, and what its commands have in common
    making.py       run, check, audit, reproduce
    reading.py      plot, report, compare, bundle, view
    asking.py       list, explain, schema, data, new
    streams.py      output that takes what is said, in any encoding
    entry.py        the entry: exit codes, and one sentence for every error
"""

from __future__ import annotations

from . import making, reading, asking  # isort: skip (the order of their help)
from .application import app
from .entry import UNFORESEEN, main, script

__all__ = ["UNFORESEEN", "app", "asking", "main", "making", "reading", "script"]
