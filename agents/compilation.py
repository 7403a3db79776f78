"""Compiled functions: numba's, whose machine code is kept on disk.

numba finds stored code by a function and its file alone, and does not see that another file which it calls has changed.
So the folder is named by a hash of every file that compiled code is made from, and of the versions of Python and numba:
nothing in it is ever stale. It is set while our own functions are declared, so that other people's keep theirs.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cache, partial, update_wrapper
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree
from typing import Any, final

from numpy import ndarray

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PACKAGE = Path(__file__).resolve().parent.parent
SOURCES = (
    "agents/**/*.py",
    "protocols/steps/kernels.py",
    "simulator/network/*.py",
    "simulator/rules/*.py",
    "simulator/tables/*.py",
    *(f"simulator/engine/batched/{name}.py" for name in ("event_queue", "event_windows", "windows")),
    *(f"simulator/engine/batched/{name}.py" for name in ("lossless_rounds", "step_plan")),
)
"""Files of which compiled functions are made, and all of whose constants they read."""
FOLDER = "HUSHNET_CACHE_DIR"
"""Environment variable that names another folder."""
SILENT = "HUSHNET_COMPILES_SILENTLY"
"""Environment variable with which nothing is said of compiling; processes that a run starts inherit it."""
ASIDE: ContextVar[Callable[[], AbstractContextManager[None]]] = ContextVar("aside", default=nullcontext)
"""Within what is compiled: a run neither counts nor interrupts it (`hushnet.simulator.world.watchdog.Watchdog`)."""
KEPT_VERSIONS = 8
"""Versions whose code is kept; that of older ones is removed."""
REASSOCIATED = {"reassoc", "nsz", "contract", "arcp"}
"""What fast arithmetic may do: reorder sums. Infinities and NaN keep their meaning, for divergence must be seen."""
STATED: dict[str, Any] = {
    "fastmath": False,
    "error_model": "python",
    "boundscheck": False,
    "forceinline": False,
    "no_cfunc_wrapper": True,
    "_nrt": True,
}
"""How functions are compiled that do not say otherwise.

All is said, for numba takes what is not said from the caller for whose sake a function is compiled first.
"""
_PARTS: list[Callable[[], object]] = []
"""Declarations to numba, which is imported when something is compiled, that have not been made."""


@final
class Compiled:
    """A compiled function that Python calls: made for the types of its arguments when it first meets them.

    Each of these forms, which ``forms`` has by the types of arguments, is stored in a folder of its own: numba keeps
    all forms of a function side by side, and where processes store different ones at the same time, one can be found
    under the types of another. What the function calls has to be a `part` or of numba; options are as in `STATED`.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        update_wrapper(self, function)
        self._function, self._options = function, dict(options)
        self._met: dict[Any, Any] = {}
        self.forms: dict[Any, Any] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        kinds = tuple(
            [(one.dtype, one.ndim, one.flags.num) if type(one) is ndarray else type(one) for one in arguments]
        )
        form = self._met.get(kinds)
        if form is None:
            form = self._met[kinds] = self.form(arguments)
        try:
            return form(*arguments)
        except TypeError:  # tables have arrays of other types in them
            other = self.form(arguments)
            if other is form:
                raise
            self._met[kinds] = other
            return other(*arguments)

    def form(self, arguments: Sequence[Any]) -> Any:
        """Return the function compiled for the types of some arguments; finding the types takes longer than a call."""
        if not is_compiled():
            return self._function
        import numba

        declare_parts()
        types = tuple(map(numba.typeof, arguments))
        if types not in self.forms:
            folder, _ = store()
            own = None if folder is None else folder / hashlib.blake2b(str(types).encode(), digest_size=8).hexdigest()
            with ASIDE.get()(), _folder_of_code(own), _untraced(), _timed(), _alone(own):
                self.forms[types] = numba.njit(types, cache=own is not None, **self._options)(self._function)
        return self.forms[types]


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Declare a function that Python calls (`Compiled`); options as in `STATED`."""
    return partial(compiled, **options) if function is None else Compiled(function, {**STATED, **options})


def part(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Declare a function that is itself in Python, and compiled where compiled code calls it; options: `STATED`.

    One with fast arithmetic has to be inlined: of one that is called, each process takes the copy that it has compiled
    or loaded first, and copies may add up in different orders.
    """
    if function is None:
        return partial(part, **options)
    stated = {**STATED, "forceinline": True, "no_cpython_wrapper": True, **options}
    assert stated["forceinline"] or not stated["fastmath"], f"{function.__name__} has to be inlined"
    _declared(partial(_declare_part, function, stated))
    return function


def declare_parts() -> None:
    """Declare to numba what compiled code may call; numba calls it, by its entry point, before it first compiles."""
    while _PARTS:
        _PARTS.pop()()


def _declared(declare: Callable[[], object]) -> None:
    """Declare at once where numba is imported, and else before it first compiles."""
    _PARTS.append(declare)
    if "numba" in sys.modules:
        declare_parts()


def _declare_part(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    from numba.extending import register_jitable

    register_jitable(**options)(function)


def outside(function: Callable[[float, float], float]) -> Any:
    """Declare a function of two numbers that stays in Python where compiled code calls it; some 2 us a call."""
    _declared(partial(_declare_outside, function))
    return function


def _declare_outside(function: Callable[[float, float], float]) -> None:
    from numba import objmode
    from numba.extending import overload

    def call(first: Any, second: Any) -> Any:
        with objmode(found="float64"):
            found = function(first, second)
        return found  # noqa: RET504 - numba returns only from outside

    def implementation(first: Any, second: Any) -> Any:  # noqa: ARG001 - numba compares names of arguments
        return call

    overload(function)(implementation)


def is_compiled() -> bool:
    """True if functions are compiled: numba's setting DISABLE_JIT, which leaves them in Python, is off."""
    return not _config().DISABLE_JIT


@cache
def store() -> tuple[Path | None, str]:
    """The folder of this version's code, made where there is none; None, and why, if nothing can be kept."""
    base = _base()
    if base is None:
        return None, "there is no home folder"
    folder = base / _version()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for one in (base, folder):
            found = one.stat()
            if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
                return None, f"{one} belongs to another user or can be written by others"
            if not stat.S_ISDIR(found.st_mode) or not os.access(one, os.W_OK):
                return None, f"{one} cannot be written"
    except OSError as error:
        return None, f"{folder} cannot be made: {error.strerror}"
    _remove_old(base, folder)
    return folder, ""


def is_stored(name: str = "*") -> bool:
    """True if there is code of this version on disk, of functions of a ``module.name``, which may have asterisks."""
    folder, _ = store()
    return folder is not None and any(folder.rglob(f"{name}.nbi"))


def seconds_spent() -> float:
    """Seconds for which this process has been compiling, or loading what was compiled before, until now."""
    return _SPENT[0] + (0.0 if _SPENT[1] is None else time.perf_counter() - _SPENT[1])


def is_at_it() -> bool:
    """True while this process compiles, and has for more than loading takes."""
    return _SPENT[1] is not None and seconds_spent() > 1


def announce() -> None:
    """Say on stderr, once, that the engine is about to be compiled, if no code of this version is stored."""
    if os.environ.get(SILENT) or not is_compiled() or is_stored():
        return
    os.environ[SILENT] = "1"
    _, refusal = store()
    kept = f"the compiled code is not kept, for {refusal}" if refusal else "once"
    sys.stderr.write(f"compiling the engine, {kept}; this takes up to half a minute\n")


@contextmanager
def unannounced(*, quiet: bool) -> Iterator[None]:
    """Compile without a word, here and in processes that are started meanwhile, if ``quiet`` says so."""
    before = os.environ.get(SILENT)
    if quiet:
        os.environ[SILENT] = "1"
    try:
        yield
    finally:
        if quiet and before is None:
            os.environ.pop(SILENT, None)


def form_of(thing: object, name: str) -> Any:
    """The compiled form that an object has under the name of a method or property; None unless it vouches for it.

    Only an object of the very class that defines the form in its own body does. A subclass may have changed anything
    that the form was written for, and so has an object on which somebody has put another method.
    """
    return getattr(thing, name) if name in vars(type(thing)) and not is_patched(thing) else None


def is_patched(thing: object) -> bool:
    """True if a method of an object has been replaced on the object itself."""
    return any(callable(getattr(type(thing), key, None)) for key in getattr(thing, "__dict__", ()))


_SPENT: list[Any] = [0.0, None]
"""Seconds spent compiling, and since when it is being done now, or None."""


@contextmanager
def _timed() -> Iterator[None]:
    _SPENT[1] = time.perf_counter()
    try:
        yield
    finally:
        _SPENT[:] = seconds_spent(), None


@contextmanager
def _alone(folder: Path | None) -> Iterator[None]:
    """Have other processes that compile the same form wait, and load it then, where the system has locks."""
    with ExitStack() as opened:
        with suppress(OSError):
            if folder is not None and fcntl is not None:
                folder.mkdir(parents=True, exist_ok=True)
                fcntl.flock(opened.enter_context((folder / ".lock").open("a")), fcntl.LOCK_EX)
        yield


@contextmanager
def _untraced() -> Iterator[None]:
    """Let no debugger, nor whoever else traces Python, look at every line of a compiler."""
    before = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def _folder_of_code(folder: Path | None) -> Iterator[None]:
    """Have numba keep in this folder the code of functions that are declared meanwhile."""
    config = _config()
    before = config.CACHE_DIR
    config.CACHE_DIR = "" if folder is None else str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _config() -> Any:
    import numba

    return numba.config  # pyright: ignore[reportPrivateImportUsage]  # documented, and not in its __all__


def _base() -> Path | None:
    """``$HUSHNET_CACHE_DIR``, or as the XDG base directories say; None without a home."""
    if os.environ.get(FOLDER):
        return Path(os.environ[FOLDER]).absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError:
            return None
    return base / "hushnet" / "compiled"


def _version() -> str:
    """The hash of all that compiled code is made from; numba itself looks at the kind of processor."""
    said = hashlib.blake2b(f"{sys.version} {platform.machine()} {version('numba')}".encode(), digest_size=10)
    for pattern in SOURCES:
        for path in sorted(PACKAGE.glob(pattern)):
            said.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return said.hexdigest()


def _remove_old(base: Path, folder: Path) -> None:
    """Note that a version is used, and remove those that have not been for longest."""
    with suppress(OSError):
        os.utime(folder, (time.time(), time.time()))
        versions = sorted((one for one in base.iterdir() if one.is_dir()), key=lambda one: one.stat().st_mtime)
        for old in versions[:-KEPT_VERSIONS]:
            rmtree(old, ignore_errors=True)
