"""Which protocols there are: shipped ones, installed plug-ins, a user's own file, classes handed to ``run()``."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from ..agents.errors import HushnetError, InputError
from ..agents.files import read_bytes
from .base import Protocol, ProtocolParameters

GROUP = "hushnet.protocols"
"""Entry point group of installed plug-ins: ``my_protocol = "my_package.module:MyProtocol"``."""

PROTOCOLS: dict[str, str] = {
    "collaborative_admm": ".collaborative_admm:CollaborativeAdmm",
    "consensus_admm": ".consensus_admm:ConsensusAdmm",
    "coordinate_descent": ".coordinate_descent:CoordinateDescent",
    "dual_averaging": ".dual_averaging:DualAveraging",
    "edge_consensus_admm": ".edge_consensus_admm:EdgeConsensusAdmm",
    "feature_sgd": ".feature_sgd:FeatureSgd",
    "feature_sharing": ".feature_sharing:FeatureSharing",
    "consensus": ".baselines:Consensus",
    "local": ".baselines:Local",
    "local_dp": ".local_dp:LocalDP",
    "model_propagation": ".model_propagation:ModelPropagation",
    "perturbed_admm": ".perturbed_admm:PerturbedAdmm",
    "push_sum_dual_averaging": ".push_sum_dual_averaging:PushSumDualAveraging",
    "solitary": ".baselines:Solitary",
    "stale_feature_sharing": ".stale_feature_sharing:StaleFeatureSharing",
}
"""Shipped protocols as ``module:Class``, imported when they are asked for."""

MOST_CODE = 2**24
"""Bytes of a file with a user's code."""

MOST_COMPARED = 200
"""Admissible words among which the nearest is looked for, and"""
MOST_LETTERS = 100
"""how much of a given word is looked at: a suggestion is a courtesy."""
MOST_LISTED = 50
"""Admissible words that a sentence names."""

_FILE = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*)")


def names(extra: Mapping[str, type[Protocol]] | None = None) -> list[str]:
    """Every name that a scenario may give as ``kind``, apart from files."""
    plugins = [point.name for point in importlib.metadata.entry_points(group=GROUP)]
    return list(dict.fromkeys([*PROTOCOLS, *plugins, *(extra or {})]))


def resolve(
    kind: str,
    *,
    trust_code: bool = False,
    base: Path | None = None,
    extra: Mapping[str, type[Protocol]] | None = None,
) -> type[Protocol]:
    """The class that a scenario means by ``kind``.

    Parameters
    ----------
    kind : str
        A name of `names`, or ``path/to/file.py:Class``.
    trust_code : bool
        Whether the user's own files may be run.
    base : Path, optional
        Folder that file names are relative to.
    extra : mapping of str to type, optional
        Classes that were handed over from Python; they win over everything else.

    Raises
    ------
    InputError
        If there is no such protocol, or its code may not or cannot be loaded.
    """
    if extra and kind in extra:
        return _checked(extra[kind], kind)
    if kind in PROTOCOLS:
        module, _, name = PROTOCOLS[kind].partition(":")
        return _checked(getattr(importlib.import_module(module, __package__), name), kind)
    if is_file(kind):
        return _checked(load_object(kind, trust_code=trust_code, base=base), kind)
    plugins = importlib.metadata.entry_points(group=GROUP, name=kind)
    for plugin in plugins:
        return _checked(_loaded(plugin), kind)
    known = names(extra)
    raise InputError(f"unknown protocol{suggestion(kind, known)} admissible: {listed(known)}, ./file.py:Class")


def describe() -> dict[str, str]:
    """One line about every protocol that is shipped or installed, by name: its parameters' or its own docstring's."""
    lines = {}
    for name in names():
        try:
            found = resolve(name)
            own = found.Parameters.__doc__ if found.Parameters is not ProtocolParameters else None
            lines[name] = inspect.cleandoc(own or found.__doc__ or "").partition("\n")[0]
        except HushnetError as error:
            lines[name] = f"(cannot be loaded: {error})"
    return lines


def is_file(spec: str) -> bool:
    """Whether a name means something in the user's own file, ``./mine.py:Mine``."""
    return _FILE.fullmatch(spec) is not None


def load_object(spec: str, *, trust_code: bool, base: Path | None = None) -> Any:
    """A class or function from the user's own file.

    Parameters
    ----------
    spec : str
        ``path/to/file.py:name``.
    trust_code : bool
        Without it the file is not run.
    base : Path, optional
        Folder that the path is relative to.

    Raises
    ------
    InputError
        If the file is not trusted, is missing or fails, or has no such name.
    """
    match = _FILE.fullmatch(spec)
    assert match is not None
    path, module = (base or Path()) / match["path"], load_module(spec, trust_code=trust_code, base=base)
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
    path = (base or Path()) / match["path"]
    if not trust_code:
        raise InputError(f"the code in {path} is run only with --trust-code")
    return _run_file(path)


def nearest(word: object, options: Iterable[str]) -> str | None:
    """The admissible word that was probably meant."""
    text, words = str(word)[:MOST_LETTERS], list(islice(options, MOST_COMPARED))
    begun = [option for option in words if len(text) >= 3 and option.startswith(text)]
    near = begun or difflib.get_close_matches(text, words, n=1, cutoff=0.6 if len(text) > 3 else 0.5)
    return near[0] if near else None


def suggestion(word: object, options: Iterable[str]) -> str:
    """Ends a clause with the nearest admissible word, if there is one near enough.

    Examples
    --------
    >>> suggestion("gama", ["kind", "gamma"])
    "; did you mean 'gamma'?"
    >>> suggestion("xyz", ["kind", "gamma"])
    ';'
    """
    near = nearest(word, options)
    return f"; did you mean {near!r}?" if near else ";"


def listed(words: Iterable[object]) -> str:
    """Admissible words for the end of a sentence; of very many only the first.

    Examples
    --------
    >>> listed(["kind", "gamma"]), listed([])
    ('kind, gamma', 'none')
    """
    known = [str(word) for word in words]
    more = f" and {len(known) - MOST_LISTED:,} more" if len(known) > MOST_LISTED else ""
    return f"{', '.join(known[:MOST_LISTED]) or 'none'}{more}"


def require(word: str, options: Iterable[str], wrong: str, field: tuple[str | int, ...]) -> None:
    """Raise an `InputError` about a field unless its word is one of the admissible ones."""
    known = list(options)
    if word not in known:
        raise InputError(f"{wrong}{suggestion(word, known)} admissible: {listed(known)}", field=field)


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
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise InputError(_failure(error, path)) from error
    return module


def _failure(error: BaseException, path: Path) -> str:
    """One sentence about what a user's file raised, with the line in that file."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    if line is None:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if Path(frame.filename) == path), None)
    what = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{path}:{line or 1} raises {type(error).__name__}: {' '.join(what.split())}"


def _loaded(plugin: importlib.metadata.EntryPoint) -> Any:
    try:
        return plugin.load()
    except Exception as error:
        raise InputError(
            f"the installed plug-in {plugin.value} raises {type(error).__name__}: {' '.join(str(error).split())}"
        ) from error


def _checked(found: Any, kind: str) -> type[Protocol]:
    if not (isinstance(found, type) and issubclass(found, Protocol)):
        raise InputError(f"{kind} is not a subclass of hushnet.protocols.base.Protocol")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise InputError(f"{kind} is abstract; it has yet to define {missing}")
    return found
