"""What numba makes of functions: stored on disk where that is possible, and announced where compiling takes long."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba
from numba.core import config, event

from .compile_cache import StoredCode, StoredPart
from .parts import EntryCompiler, PartCompiler


def dispatcher(function: Callable[..., Any], options: dict[str, Any], *, stored: bool, part: bool = False) -> Any:
    """What compiles a function when it is called, or as a part of what calls it.

    Parameters
    ----------
    function : callable
        In Python.
    options : dict
        Of `numba.njit`, all of `hushnet.agents.compilation.compiled.STATED`.
    stored : bool
        Whether its code is looked for in the store first, and kept there.
    part : bool
        Whether compiled code alone calls it: nothing but compiled code can then.
    """
    if part:  # not the function of the entry: numba would take that for compiled within itself where it calls itself
        function = _copy_of(function)
    made: Any = numba.njit(**options, pipeline_class=PartCompiler if part else EntryCompiler)(function)
    if stored and not config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]  # else it is left in Python
        made._cache = StoredPart(made) if part else StoredCode(made)
    return made


def _copy_of(function: Callable[..., Any]) -> Callable[..., Any]:
    whole: Any = function
    made = FunctionType(whole.__code__, whole.__globals__, whole.__name__, whole.__defaults__, whole.__closure__)
    made.__kwdefaults__ = whole.__kwdefaults__
    return made


class _Compiling(event.Listener):
    """Watches for how long threads compile; what they compile may make them compile something else.

    Meanwhile nobody looks for cycles of objects that are no longer needed: there are so many objects, and so few of
    these, that looking takes a tenth of the time.
    """

    def __init__(self) -> None:
        self.spent: dict[int, float] = {}
        self.begun: dict[int, list[float]] = {}
        self._collecting = False

    def on_start(self, event: Any) -> None:
        """Something is about to be compiled."""
        if not self.begun:  # numba's own lock lets one thread compile at a time
            self._collecting = gc.isenabled()
            gc.disable()
        self.begun.setdefault(threading.get_ident(), []).append(time.thread_time())

    def on_end(self, event: Any) -> None:
        """It is."""
        thread = threading.get_ident()
        taken = time.thread_time() - self.begun[thread].pop()
        if not self.begun[thread]:
            del self.begun[thread]
            self.spent[thread] = self.spent.get(thread, 0.0) + taken
        if not self.begun and self._collecting:
            gc.enable()


_compiling = _Compiling()
event.register("numba:compile", _compiling)


def spent_compiling(thread: int) -> float:
    """Processor time, in seconds, that a thread has spent on compiling; what it compiles now counts when it is done."""
    return _compiling.spent.get(thread, 0.0)


def is_compiling(thread: int) -> bool:
    """Whether a thread is compiling something now."""
    return thread in _compiling.begun


def announce(function: Any, what: str) -> None:
    """Have stderr say what is compiled when a function is, and how long it took last time; not when it is stored.

    Parameters
    ----------
    function : compiled function
    what : str
        As in "compiling the batched engine".
    """
    cached = getattr(getattr(function, "compiled", function), "_cache", None)
    if isinstance(cached, StoredCode):
        cached.what = what
