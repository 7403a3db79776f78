"""Where numba looks for the code of a function before it compiles it: in a store that all processes share.

A file's key is what its code depends on: the function's stamp, its signature, the machine, and the versions of all that
took part. So nothing in a store is ever stale, and several versions of a function lie side by side.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import pickle
import platform
import secrets
import sys
import time
from contextlib import suppress
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core import config
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from .announcements import say
from .code_store import CodeStore, code_store
from .parts import loaded_part
from .stamps import Unstamped, stamp_of

FORMAT = "2"
"""Format of what is stored of a function; another one for what this one does not read."""
_SWITCHES = (
    "BOUNDSCHECK",
    "CPU_NAME",
    "CPU_FEATURES",
    "DEBUGINFO_DEFAULT",
    "DEBUG_NRT",
    "ENABLE_AVX",
    "EXTEND_VARIABLE_LIFETIMES",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "LOOP_VECTORIZE",
    "NRT_STATS",
    "OPT",
    "SLP_VECTORIZE",
    "USING_SVML",
)
"""What of numba's configuration changes the code that it makes."""


class StoredCode(_Cache):
    """The stored code of one function, by signature.

    Parameters
    ----------
    made : numba dispatcher

    Attributes
    ----------
    what : str
        What is said on stderr to be compiled when it is; empty to say nothing.
    hits, misses : int
        How often code was found, and how often it had to be made.
    """

    def __init__(self, made: Any) -> None:
        self._made, self._stamp, self._enabled = made, "", True
        self._begun: dict[Any, float] = {}
        self.what, self.hits, self.misses = "", 0, 0

    form = "entry"
    rebuild = staticmethod(CompileResult._rebuild)

    @property
    def cache_path(self) -> str | None:
        """The folder of the store."""
        folder = code_store().folder
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for a signature; None if it has to be compiled, which is announced then."""
        target_context.refresh()
        key = self.key(sig, target_context.codegen())
        content = code_store().read(key) if key else None
        if content is not None:
            try:
                found = self.rebuild(target_context, *pickle.loads(content))
            except Exception:  # whatever does not load is compiled
                found = None
            if found is not None:
                self.hits += 1
                return found
        self.misses += 1
        self._say(code_store())
        self._begun[sig] = time.thread_time()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for a signature, and how long it took to make, if that is possible."""
        begun, store = self._begun.pop(sig, None), code_store()
        if begun is not None and self.what:
            store.write(self._name, repr(time.thread_time() - begun).encode())
        key = self.key(sig, data.codegen)
        lifted = any(not one.can_cache for one in data.lifted)
        if key and not store.refusal and not lifted and not data.library.has_dynamic_globals:
            with suppress(Exception):  # whatever cannot be pickled
                store.write(key, dumps(data._reduce()))

    def key(self, sig: Any, codegen: Any) -> str | None:
        """The key of the code for a signature; None if something is not known that the code depends on."""
        if not self._enabled:
            return None
        try:
            self._stamp = self._stamp or stamp_of(self._made)
            return _hash(self.form, self._stamp, _text_of(sig), *_surroundings(codegen))
        except Unstamped:
            return None

    @property
    def _name(self) -> str:
        """The key of how long the function took to compile when it last was, whatever it was then."""
        return _hash("seconds", self._made.__module__, self._made.__qualname__, self.what)

    def _say(self, store: CodeStore) -> None:
        if not self.what:
            return
        measured = store.read(self._name)
        known = (
            f"it took {max(float(measured), 1.0):.0f} s of processor time before"
            if measured
            else "this takes up to a minute"
        )
        kept = f"; the compiled code is not kept, for {store.refusal}" if store.refusal else ", once"
        say(self.what, f"{kept}; {known}")

    def enable(self) -> None:
        """Use the store."""
        self._enabled = True

    def disable(self) -> None:
        """Do not use the store."""
        self._enabled = False

    def flush(self) -> None:
        """Look anew at what the function is made from; nothing in a store is stale."""
        self._stamp = ""


class StoredPart(StoredCode):
    """The stored code of a part of other functions."""

    form = "part"
    rebuild = staticmethod(loaded_part)


def _text_of(kind: Any) -> str:
    """A signature, or a type in it, the same in every process.

    Raises
    ------
    Unstamped
        If a type has no such text.
    """
    if isinstance(kind, tuple | list):
        return f"({', '.join(map(_text_of, kind))})"
    if hasattr(kind, "return_type"):
        return f"{_text_of(kind.args)} -> {_text_of(kind.return_type)}"
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        owner = getattr(kind, "instance_class", tuple)
        return f"{owner.__module__}.{owner.__qualname__} {getattr(kind, 'fields', '')} {_text_of(tuple(parts))}"
    text = str(kind)
    if " at 0x" in text:
        raise Unstamped(text)
    return f"{type(kind).__name__} {text}"


def _surroundings(codegen: Any) -> list[str]:
    """All that code depends on beside the function."""
    switches = [repr(getattr(config, name, None)) for name in _SWITCHES]
    versions = [numba.__version__, llvmlite.__version__, np.__version__, sys.version, platform.machine()]
    return [FORMAT, *map(repr, codegen.magic_tuple()), *versions, *switches]


def _hash(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=20).hexdigest()


def _number_anew() -> None:
    """Give functions other numbers than any other process does.

    numba counts functions, and their numbers are in the names of symbols and of what they keep. Code of one function
    from one process must not meet another of the same name and number from another.
    """
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60) + 1)


_number_anew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_number_anew)
