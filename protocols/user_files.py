"""A user's own Python files, which a scenario names as ``./mine.py:Mine``: run only where they are trusted."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from ..agents.errors import INTERRUPTED, InputError, words_of
from ..agents.input_files import beside, read_bytes
from ..agents.suggestions import listed, suggestion

MOST_CODE = 2**24
"""Bytes of a file with a user's code."""

_FILE = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*)")


def is_file(spec: str) -> bool:
    """True if a name refers to a class in a user's file, such as ``./mine.py:Mine``."""
    return _FILE.fullmatch(spec) is not None


def path_of(spec: str) -> str | None:
    """The path of the user's own file in such a name; None if it is none."""
    match = _FILE.fullmatch(spec)
    return match and match["path"]


def load_object(spec: str, *, trust_code: bool, base: Path | None = None) -> Any:
    """A class or function from the user's own file, by ``path/to/file.py:name``, relative to `base`.

    Raises `InputError` if the file is not trusted, without which it is not run, is missing or fails, or has no such
    name.
    """
    match = _FILE.fullmatch(spec)
    assert match is not None
    path, module = beside(base, match["path"]), load_module(spec, trust_code=trust_code, base=base)
    if not hasattr(module, match["name"]):
        public = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        raise InputError(
            f"{path} has no {match['name']}{suggestion(match['name'], public)} admissible: {listed(public)}"
        )
    return getattr(module, match["name"])


def load_module(spec: str, *, trust_code: bool, base: Path | None = None) -> ModuleType:
    """The module of the user's own file that a name such as ``./mine.py:Mine`` begins with; see `load_object`."""
    match = _FILE.fullmatch(spec)
    assert match is not None
    path = beside(base, match["path"])
    if not trust_code:
        raise InputError(f"the code in {path} is run only with --trust-code")
    return _run_file(path)


def _run_file(path: Path) -> ModuleType:
    """Import a file under a name that its place and content determine, so that a second look gives the same class."""
    content = read_bytes(path, what="as Python code", most=MOST_CODE)
    digest = hashlib.blake2s(str(path.resolve()).encode() + b"\0" + content, digest_size=8).hexdigest()
    name = f"hushnet_plugin_{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, INTERRUPTED):
            raise
        raise InputError(_failure(error, path)) from error
    return module


def _failure(error: BaseException, path: Path) -> str:
    """One sentence about what a user's file raised, with the line in that file."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    if line is None:
        own, frames = path.resolve(), traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if Path(frame.filename).resolve() == own), None)
    what = error.msg if isinstance(error, SyntaxError) else words_of(error)
    return f"{path}:{line or 1} raises {type(error).__name__}: {what}"
