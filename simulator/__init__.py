"""Simulator of agents on a network: event loop, clocks, topology, scenarios, recording, results and the shell.

From Python: ``run(scenario) -> Result`` and ``load(results) -> DataFrame``. They are imported when they are first used,
so that ``hushnet --help`` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import Result, load, run

__all__ = ["Result", "load", "run"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
