"""A hash of a user's own code, so that runs of edited code are never taken for runs of what it was before."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CellType, CodeType, ModuleType
from typing import Any

from ...agents.input_files import read_bytes
from .files import json_text

OURS = __name__.split(".")[0]
SCALARS = (str, int, float)
STANDARD = Path(os.__file__).resolve().parent


Code = type | Callable[..., Any] | ModuleType
"""What a user hands over: classes, functions, and the files that pass on what others define."""


def source_hash(things: Iterable[Code]) -> str | None:
    """A hash of the code behind classes, functions and modules; None if all of it is this package's.

    What counts is the text of the module that a thing, or a base class of it, is defined in, and of all modules that
    those have imported and that belong to the user: of the same package, or not installed. Where there is no text, as
    in a notebook, the compiled functions of the thing itself count, but not what they call. Numbers and texts among a
    class's attributes, a function's defaults and what it has enclosed count as well, but no other objects there.
    """
    texts: set[bytes] = set()
    for family in map(_family, things):
        for module in _modules(family):
            own = [_contents(member) for member in family if _module_name(member) == module.__name__]
            code = _text(module) or _as_bytes([[name, _plain(code)] for found in own for name, code in found.codes])
            texts |= {code, _as_bytes([found.values for found in own])}
    return hashlib.blake2s(b"\0".join(sorted(texts)), digest_size=16).hexdigest() if texts else None


def source_files(things: Iterable[Code]) -> list[Path]:
    """The files of the user's own code behind classes, functions and modules, as far as they exist, sorted."""
    modules = (module for thing in things for module in _modules(_family(thing)))
    named = {Path(module.__file__ or "").resolve() for module in modules if getattr(module, "__file__", None)}
    return sorted(path for path in named if path.is_file())


def _family(thing: Code) -> tuple[Any, ...]:
    """A class and those that it inherits from, or a function or module by itself."""
    while isinstance(thing, partial):
        thing = thing.func
    return inspect.getmro(thing) if isinstance(thing, type) else (thing,)


def _modules(family: Iterable[Any]) -> Iterator[ModuleType]:
    """The user's modules that a family's members are defined in, and those imported there, directly or not."""
    waiting = [_module_name(member) for member in family]
    package = _top(waiting[0])
    seen: set[str | None] = set()
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name or "")
        if name not in seen and module is not None and _is_users(module, package):
            yield module
            waiting += [_module_name(value) for value in list(vars(module).values())]
        seen.add(name)


def _module_name(value: Any) -> str | None:
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return name if isinstance(name, str) else None


def _top(name: str | None) -> str:
    return (name or "").split(".")[0]


def _is_users(module: ModuleType, package: str) -> bool:
    top = _top(module.__name__)
    if top == OURS or (top in sys.stdlib_module_names and top != "__main__"):
        return False
    if top == package:
        return True
    file = Path(getattr(module, "__file__", None) or STANDARD).resolve()
    return not (file.is_relative_to(STANDARD) or {"site-packages", "dist-packages"} & set(file.parts))


def _text(module: ModuleType) -> bytes:
    """Content of a module's file; empty if it has none. One that cannot be read just now is an error."""
    file = getattr(module, "__file__", None)
    return read_bytes(Path(file)) if file and Path(file).is_file() else b""


@dataclass(frozen=True)
class _Contents:
    """Compiled functions, and numbers and texts, of a class or a function, each in the order of their names."""

    codes: list[tuple[str, CodeType]]
    values: list[list[Any]]


def _contents(thing: Any) -> _Contents:
    members = sorted(vars(thing).items()) if isinstance(thing, type) else [("", thing)]
    codes, values = [], []
    for name, member in members:
        for function in (getattr(member, part, None) for part in ("__func__", "fget", "py_func")):
            member = function or member
        if isinstance(code := getattr(member, "__code__", None), CodeType):
            codes.append((name, code))
            cells = [cell.cell_contents for cell in member.__closure__ or () if cell != CellType()]
            held = [*cells, *(member.__defaults__ or ()), *(member.__kwdefaults__ or {}).values()]
            values.append([name, [value for value in held if isinstance(value, SCALARS)]])
        elif isinstance(member, SCALARS) and not name.startswith("__"):
            values.append([name, member])
    return _Contents(codes, values)


def _plain(code: CodeType) -> list[Any]:
    """A function without file name, line numbers and addresses."""
    constants = [_plain(item) if isinstance(item, CodeType) else item for item in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]


def _as_bytes(value: Any) -> bytes:
    return json_text(value, indent=None).encode()
