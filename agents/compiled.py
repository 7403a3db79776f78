"""Compiled functions: cached on disk where that is possible, and announced where compiling takes long.

A compiled form of something stands for its Python. `form_of` is the one place that decides whether it may.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from types import CodeType, ModuleType
from typing import Any, final

import numba
import numpy as np
from numba import types
from numba.core import cgutils, config, event
from numba.core.ccallback import CFunc
from numba.experimental.function_type import FunctionModel
from numba.extending import NativeValue, register_model, typeof_impl, unbox

REASSOCIATED = {"reassoc", "nsz", "contract", "arcp"}
"""What fast arithmetic may do: reorder sums. Infinities and NaN keep their meaning, for divergence must be seen."""


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile with numba, cached on disk; without a writable place for the cache, compile in every process."""
    if function is None:
        return lambda wrapped: compiled(wrapped, **options)
    return _cached(numba.njit, function, **options)


@final
class Callback:
    """A function compiled for one signature that other compiled functions take as an argument.

    Exceptions that it raises reach whoever calls those functions. With `numba.cfunc` they would be printed and
    forgotten, and the caller would go on with a result that nobody computed.

    Parameters
    ----------
    signature : numba.core.typing.Signature
    function : callable
        In Python.
    **options
        Of `numba.njit`; indices are checked unless ``boundscheck=False`` says that they need not be.
    """

    def __init__(self, signature: Any, function: Callable[..., Any], **options: Any) -> None:
        options = {"boundscheck": True, **options}
        self.signature = signature
        self.compiled = _cached(numba.njit, function, **options)
        self.address = 0
        if config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]  # numba then leaves it in Python
            return
        self.compiled.compile(signature)
        made = self.compiled.overloads[signature.args]
        self.address = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
        """Of the function in numba's own calling convention, which passes exceptions on; a C function cannot."""

    @property
    def __name__(self) -> str:
        """Of the function."""
        return self.compiled.__name__

    @property
    def py_func(self) -> Callable[..., Any]:
        """The function in Python."""
        return getattr(self.compiled, "py_func", self.compiled)

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function from Python."""
        return self.compiled(*arguments)


class CallbackType(types.FunctionType):
    """What numba takes a `Callback` for: all of a signature are of one type, so that callers are compiled once."""


register_model(CallbackType)(FunctionModel)


@typeof_impl.register(Callback)
def _type_of_callback(callback: Callback, _: Any) -> CallbackType:
    return _callback_type(callback.signature)


@cache
def _callback_type(signature: Any) -> CallbackType:
    """Made once, for making it takes longer than everything else that entering a compiled window does."""
    return CallbackType(signature)


@unbox(CallbackType)
def _unbox_callback(kind: CallbackType, thing: Any, context: Any) -> NativeValue:
    """Hand over the address as that of a function of numba's own; there is none of a C function."""
    made = cgutils.create_struct_proxy(kind)(context.context, context.builder)
    address = context.pyapi.object_getattr_string(thing, "address")
    made.jit_addr = context.pyapi.long_as_voidptr(address)
    context.pyapi.decref(address)
    return NativeValue(made._getvalue())


def compiled_callback(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Callback]:
    """Compile for one signature, as a function that other compiled functions take as an argument."""
    return lambda function: Callback(signature, function, **options)


@cache
def as_callback(function: Any, signature: Any) -> Callback:
    """A `Callback` of what may be a C function of numba's: compiled anew, for its exceptions would be lost.

    Raises
    ------
    ValueError
        If it is neither, or has another signature.
    """
    pointer: Any = function if isinstance(function, CFunc) else None
    if pointer is not None and pointer._sig == signature:
        return Callback(signature, pointer._pyfunc, **pointer._compiler.targetoptions)
    if isinstance(function, Callback) and function.signature == signature:
        return function
    name = getattr(function, "__name__", repr(function))
    raise ValueError(
        f"{name} is no compiled step; make it with hushnet.agents.compiled.compiled_callback and the signature that "
        "its kind has in hushnet.protocols.kernel"
    )


def form_of(thing: object, name: str) -> Any:
    """The compiled form that an object has under a name; None unless it vouches for it.

    Only an object of the very class that defines the form in its own body does. A subclass may have changed anything
    that the form was written for, and so has an object on which somebody has put another method.

    Parameters
    ----------
    thing : object
    name : str
        Of a method or property.
    """
    return getattr(thing, name) if name in vars(type(thing)) and not is_patched(thing) else None


def is_patched(thing: object) -> bool:
    """Whether somebody has put another method on an object."""
    return any(callable(getattr(type(thing), key, None)) for key in getattr(thing, "__dict__", ()))


class _Compiling(event.Listener):
    """Watches for how long threads compile; what they compile may make them compile something else."""

    def __init__(self) -> None:
        self.spent: dict[int, float] = {}
        self.begun: dict[int, list[float]] = {}

    def on_start(self, event: Any) -> None:
        """Something is about to be compiled."""
        self.begun.setdefault(threading.get_ident(), []).append(time.thread_time())

    def on_end(self, event: Any) -> None:
        """It is."""
        thread = threading.get_ident()
        taken = time.thread_time() - self.begun[thread].pop()
        if not self.begun[thread]:
            del self.begun[thread]
            self.spent[thread] = self.spent.get(thread, 0.0) + taken


_compiling = _Compiling()
event.register("numba:compile", _compiling)


def spent_compiling(thread: int) -> float:
    """Processor time, in seconds, that a thread has spent on compiling; what it compiles now counts when it is done."""
    return _compiling.spent.get(thread, 0.0)


def is_compiling(thread: int) -> bool:
    """Whether a thread is compiling something now."""
    return thread in _compiling.begun


def announce(function: Any, what: str) -> None:
    """Say on stderr that something is about to be compiled, unless it is compiled or cached already."""
    if getattr(function, "overloads", True):  # a function that numba was told to leave in Python has none
        return
    file = _cache_file(function)
    if file is not None and file._load_index():
        return
    sys.stderr.write(f"compiling {what}, once; this takes half a minute\n")


def _cached(decorator: Callable[..., Any], function: Callable[..., Any], **options: Any) -> Any:
    try:
        made = decorator(cache=True, **options)(function)
    except RuntimeError:
        return decorator(cache=False, **options)(function)
    file = _cache_file(made)
    if file is not None:
        # numba itself looks at a function's own file only, and at every change of it.
        file._source_stamp = Stamp(made)
    return made


def _cache_file(made: Any) -> Any:
    """numba's index of what it has cached of a function; None without a cache."""
    return getattr(getattr(made, "_cache", None), "_cache_file", None)


class Stamp:
    """What a cached function was compiled from: its code, and that of everything it calls; made when it is asked for.

    A function whose words change, its docstring, comments or neighbours in its file, is not compiled anew.

    Parameters
    ----------
    made : numba dispatcher
    """

    def __init__(self, made: Any) -> None:
        self._made = made

    @cached_property
    def text(self) -> str:
        """The hash of everything that the function is compiled from."""
        digest = hashlib.blake2s()
        _digest(self._made, digest, set())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        """Whether another stamp, or the text of one, says the same."""
        return str(other) == self.text

    def __hash__(self) -> int:
        """Of the text."""
        return hash(self.text)

    def __str__(self) -> str:
        """The text."""
        return self.text

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """What a cache keeps is the text."""
        return str, (self.text,)


def _digest(made: Any, digest: Any, seen: set[Any]) -> None:
    """Take a function's options, code, constants and all that it calls into a hash."""
    function = _python_of(made)
    if function in seen:
        return
    seen.add(function)
    # What is loaded from a cache looks for its module by name.
    digest.update(function.__module__.encode())
    for option, value in sorted(getattr(made, "targetoptions", {}).items()):
        digest.update(f"{option}={sorted(value) if isinstance(value, set) else value!r}".encode())
    pending = [function.__code__]
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name, cell in sorted(cells.items()):
        _digest_value(name, cell.cell_contents, (), digest, seen)
    while pending:
        code = pending.pop()
        digest.update(code.co_code)
        inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        pending += inner
        plain = [constant for constant in code.co_consts if not isinstance(constant, CodeType)]
        # The first constant is the docstring, if there is one.
        digest.update(repr(plain[1:] if plain and plain[0] == function.__doc__ else plain).encode())
        for name in code.co_names:
            digest.update(name.encode())
            if name in function.__globals__:
                _digest_value(name, function.__globals__[name], code.co_names, digest, seen)


def _python_of(made: Any) -> Any:
    """The function that something is compiled from, or that writes the code of an intrinsic; None of anything else."""
    return getattr(made, "py_func", None) or getattr(made, "_defn", None)


def _digest_value(name: str, value: Any, names: Sequence[str], digest: Any, seen: set[Any]) -> None:
    """Take what a compiled function knows under a name into a hash."""
    made = getattr(value, "compiled", value)
    if _python_of(made) is not None:
        _digest(made, digest, seen)
    elif isinstance(value, ModuleType):
        own = value.__name__.partition(".")[0] == __name__.partition(".")[0]
        for attribute in names if own else ():
            if hasattr(value, attribute):
                _digest_value(attribute, getattr(value, attribute), (), digest, seen)
    elif isinstance(value, np.ndarray):
        digest.update(name.encode() + value.tobytes())
    elif isinstance(value, bool | int | float | complex | str | bytes | tuple | np.generic | None):
        digest.update(f"{name}={value!r}".encode())
