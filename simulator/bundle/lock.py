"""The exact versions of everything that hushnet needs, as pip reads them."""

from __future__ import annotations

import importlib.metadata
import platform

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "hushnet"


def lock_file(*libraries: str) -> str:
    """``name==version`` of every installed distribution that hushnet needs, directly or not, without hushnet itself.

    Those that an extra installs are needed if runs have used a library of its name.
    """
    pins = "".join(f"{name}=={version}\n" for name, version in sorted(needed(*libraries).items()))
    return f"# Python {platform.python_version()}\n{pins}"


def needed(*extras: str) -> dict[str, str]:
    """Installed versions by canonical name, with those of some of hushnet's extras; markers are of this machine."""
    found: dict[str, str] = {}
    waiting: list[tuple[str, frozenset[str]]] = [(ROOT, frozenset(extras))]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, asked = node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # not installed, so it was not used either
        if name != ROOT:
            found[name] = distribution.version
        for text in distribution.requires or []:
            wanted = Requirement(text)
            if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in asked | {""}):
                waiting.append((canonicalize_name(wanted.name), frozenset(wanted.extras)))
    return found
