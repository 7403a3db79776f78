"""Names of a package that are imported when they are asked for, as they need libraries that not every command does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to tuple of str
        Its modules, each with the names that are taken from it.
    """
    modules = {name: module for module, names in homes.items() for name in names}

    def attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name], package), name)

    return attribute
