"""Completion of words in a shell; ``hushnet --install-completion`` sets it up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ..language.loading import shipped
from .explain import topics
from .listing import LISTS


def _papers() -> list[str]:
    from ..reproduction.papers import papers  # with all that figures need, which no other word waits for

    return [name for paper in papers() for name in (paper.name, *(figure.name for figure in paper.figures))]


KNOWN: dict[str, Callable[[], Iterable[str]]] = {
    "scenarios": shipped,
    "lists": lambda: LISTS,
    "topics": topics,
    "papers": _papers,
}


def names(of: str, beginning: str) -> list[str]:
    """Names of a key of `KNOWN` that begin so; where a scenario is asked for, also those of files."""
    found = [name for name in KNOWN[of]() if name.startswith(beginning)]
    return found + _files(beginning) if of == "scenarios" else found


def _files(beginning: str) -> list[str]:
    """YAML files, and folders that may hold some."""
    folder, _, _ = beginning.rpartition("/")
    there = sorted(Path(f"{folder}/" if folder or beginning.startswith("/") else ".").glob("*"))
    words = [f"{path}/" if path.is_dir() else str(path) for path in there if path.suffix in ("", ".yaml", ".yml")]
    return [word for word in words if word.startswith(beginning) and (word.endswith("/") or "." in word)]
