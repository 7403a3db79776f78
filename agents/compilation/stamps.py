"""What a compiled function is made from, as one hash: its code and options, its constants, and all that it calls."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from enum import Enum
from types import CodeType, EllipsisType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import types

from .deferred import Deferred

_PLAIN = bool | int | float | complex | str | bytes | EllipsisType | np.generic | np.dtype | Enum | None


_LIBRARIES = {"numpy", "numba", "llvmlite", "scipy"}


class Unstamped(Exception):
    """Something in a function is of a kind of which nobody knows whether it has changed; the message names it."""


def stamp_of(made: Any) -> str:
    """The hash of everything that a function is compiled from, the same in every process.

    A function whose words change, its docstring, comments, lines or neighbours in its file, keeps its stamp.

    Parameters
    ----------
    made : numba dispatcher

    Raises
    ------
    Unstamped
        If it depends on something that cannot be taken into the hash.
    """
    stamp = _Stamp()
    stamp.function(made)
    return stamp.digest.hexdigest()


class _Stamp:
    """The hash so far, and the functions that are in it."""

    def __init__(self) -> None:
        self.digest = hashlib.blake2b(digest_size=20)
        self.seen: dict[int, Any] = {}

    def say(self, *texts: str) -> None:
        """Take texts into the hash, so that no others give the same."""
        for text in texts:
            self.digest.update(f"{len(text)}:{text}".encode())

    def function(self, made: Any) -> None:
        """Take a function in, compiled or in Python."""
        made = made.made if isinstance(made, Deferred) else made
        function = _python_of(made)
        if id(function) in self.seen:
            self.say("again", function.__qualname__)
            return
        self.seen[id(function)] = function
        # What is loaded from a cache looks for its module by name.
        self.say("function", str(function.__module__), function.__qualname__)
        for option, value in sorted(getattr(made, "targetoptions", {}).items()):
            self.say(option, repr(sorted(value) if isinstance(value, set) else value))
        self.values(enumerate(function.__defaults__ or ()), ())
        code = function.__code__
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self.values(((name, cell.cell_contents) for name, cell in sorted(cells.items())), _names_in(code))
        self.code(code, function)

    def code(self, code: CodeType, function: Any) -> None:
        """Take code in, and what it reads of its module."""
        self.say("code", code.co_code.hex(), code.co_exceptiontable.hex(), repr(code.co_freevars))
        self.say(str(code.co_argcount), str(code.co_kwonlyargcount), str(code.co_flags))
        constants = list(code.co_consts)
        if code is function.__code__ and constants and constants[0] == function.__doc__:
            del constants[0]
        for constant in constants:
            if isinstance(constant, CodeType):
                self.code(constant, function)
            else:
                self.value("constant", constant, ())
        for name in code.co_names:
            self.say(name)
            if name in function.__globals__:
                self.value(name, function.__globals__[name], code.co_names)

    def values(self, named: Iterable[tuple[object, Any]], names: Iterable[str]) -> None:
        """Take several values in, by name."""
        for name, value in named:
            self.value(str(name), value, names)

    def value(self, name: str, value: Any, names: Iterable[str]) -> None:
        """Take in what a function knows under a name; of modules, what it may read by one of ``names``."""
        value = value.made if isinstance(value, Deferred) else value
        made = getattr(value, "compiled", value)
        self.say(name, type(value).__name__)
        if isinstance(value, ModuleType):
            self.say(value.__name__)
            if not _has_version(value.__name__):
                self.values(((one, getattr(value, one)) for one in names if hasattr(value, one)), names)
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self.say(str(value.dtype), repr(value.shape), value.tobytes().hex())
        elif isinstance(value, tuple):
            self.say(*getattr(value, "_fields", ()))
            self.values(enumerate(value), names)
        elif isinstance(value, frozenset):
            self.say(*sorted(map(repr, value)))
        elif isinstance(value, _PLAIN):
            self.say(repr(value))
        elif isinstance(value, types.Type) and " at 0x" not in str(value):
            self.say(str(value))
        elif isinstance(value, type) or (hasattr(value, "__name__") and _has_version(value.__module__)):
            self.named(value)
        elif _python_of(made) is not None:
            self.function(made)
        else:
            raise Unstamped(f"{name} is a {type(value).__name__}")

    def named(self, value: Any) -> None:
        """Take in a class, or a function of a library, of which its name and the library's version say all."""
        module = str(value.__module__)
        version = getattr(sys.modules.get(module.partition(".")[0]), "__version__", "")
        self.say(module, str(version), getattr(value, "__qualname__", value.__name__), *getattr(value, "_fields", ()))
        if isinstance(value, type) and issubclass(value, Enum):
            self.say(*(f"{member.name}={member.value!r}" for member in value))


def _python_of(made: Any) -> Any:
    """The function that something is compiled from, or that writes the code of an intrinsic; None of anything else."""
    for name in ("py_func", "_defn", "_pyfunc"):
        function = getattr(made, name, None)
        if isinstance(function, FunctionType):
            return function
    return made if isinstance(made, FunctionType) else None


def _names_in(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names_in(one) for one in code.co_consts if isinstance(one, CodeType)))


def _has_version(module: str | None) -> bool:
    """Whether a module is of Python or of a library whose version says what is in it."""
    library = (module or "").partition(".")[0]
    return library in _LIBRARIES or library in sys.stdlib_module_names
