"""Ownership of results folders: hushnet writes, sweeps and replaces only in folders of its own.

A folder is hushnet's if it is new, empty, or has the marker ``.hushnet.json``. Folders without a marker, as
``cp -r results/mine/* there`` makes them, are adopted if they hold what only hushnet writes: runs with valid manifests,
and no name of hushnet's that somebody else has taken. Anything else is refused before anything is written.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path

from ...agents.errors import InputError
from ...agents.input_files import open_regular
from ...agents.scratch import STRAY, scratch, write_new
from . import run_folder
from .files import json_text, read_json, sync, writing

MARKER = ".hushnet.json"
KIND = "results of hushnet; only hushnet writes and removes files here"
MOST_NAMED = 3


def claim(root: Path) -> str:
    """Make sure that ``results/<scenario>``, made if it is missing, is hushnet's own, and mark it; returns its token.

    That stays the same as long as the folder does. Raises `InputError` if somebody else's files stand there, some of
    which the sentence names, and `OutOfResources` if it cannot be written.
    """
    if root.exists() and not root.is_dir():
        raise InputError(f"{root}: cannot be written (it is not a folder); choose another place")
    _check_marker(root)
    taken = _foreign(root)
    if token(root) is None and not taken and not _is_empty(root) and not _has_runs(root):
        taken = sorted(path.name for path in root.iterdir())
    if taken:
        more = f" and {len(taken) - MOST_NAMED} more" if len(taken) > MOST_NAMED else ""
        raise InputError(
            f"{root}: is not a results folder of hushnet, which would replace files there: "
            f"{', '.join(taken[:MOST_NAMED])}{more} {'stand' if len(taken) > 1 else 'stands'} in it; "
            "give --out a folder that is new or empty"
        )
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        if token(root) is None:
            _mark(root)
    _check_marker(root)
    return str(token(root))


def token(root: Path) -> str | None:
    """Return the token of a claimed folder; None if nobody has claimed it."""
    path = root / MARKER
    if path.is_symlink() or not path.is_file():
        return None
    try:
        found = read_json(path)
        return str(found["token"]) if found["folder"] == KIND else None
    except (InputError, KeyError):
        return None


def check_still(root: Path, expected: str) -> None:
    """Refuse to write, by an `InputError`, where the folder that was claimed was moved, removed or replaced since."""
    _check_marker(root)
    if token(root) != expected:
        raise InputError(
            f"{root}: was moved, removed or replaced while runs were written there; what was complete is where the "
            "folder is now, so run the same command again with --out and its new name"
        )


def _check_marker(root: Path) -> None:
    """Refuse a folder whose marker is there and says nothing: it is torn, or somebody else's."""
    if _there(root / MARKER) and token(root) is None:
        raise InputError(f"{root / MARKER}: is damaged; remove it to have the folder's runs adopted again")


def _mark(root: Path) -> None:
    """Write the marker, whole or not at all, unless another process has done it in the meantime."""
    fresh = scratch(root / MARKER)
    try:
        write_new(json_text({"folder": KIND, "token": uuid.uuid4().hex}).encode(), fresh)
        try:
            os.link(fresh, root / MARKER)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            fresh.replace(root / MARKER)
        sync(root)
    finally:
        fresh.unlink(missing_ok=True)


def _is_empty(root: Path) -> bool:
    """True if a folder has nothing but files of a process that was killed before it could mark the folder."""
    return not root.exists() or all(STRAY.fullmatch(path.name) for path in root.iterdir())


def _has_runs(root: Path) -> bool:
    """True if some folder in it is a complete run, with every byte as it was written."""
    return any(run_folder.state(path.parent) == "complete" for path in sorted(root.glob("*/manifest.json")))


def _foreign(root: Path) -> list[str]:
    """Names that hushnet uses and that something stands under which is not hushnet's, sorted."""
    return sorted(name for name, ours in OURS.items() if _there(root / name) and not ours(root / name))


def _there(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _is_index(path: Path) -> bool:
    """True if a file is, or was before it was damaged, an index as `Store.write_index` leaves it."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        found = read_json(path)
    except InputError:
        return token(path.parent) is not None  # damaged, in a folder of our own: the next experiment writes it anew
    return {"scenario", "runs", "labels", "figures"} <= set(found)


def _holds(*names: str) -> Callable[[Path], bool]:
    """Return a test that a folder is empty or has at least one of the files that hushnet always puts there."""

    def ours(path: Path) -> bool:
        if path.is_symlink() or not path.is_dir():
            return False
        return not any(path.iterdir()) or any((path / name).is_file() for name in names)

    return ours


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_lock(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with open_regular(path, links=False) as stream:
        content = stream.read(200)
    return not content or content.startswith(b"process ")


OURS: dict[str, Callable[[Path], bool]] = {
    "index.json": _is_index,
    "dataset": _holds("dataset.json"),
    "origin": _holds("resolved.json"),
    "failures": _is_folder,
    "graphs": _is_folder,
    ".cache": _is_folder,
    ".lock": _is_lock,
}
"""What hushnet replaces or removes as a whole, and how its own is told from somebody else's. Of the last folders only
files that bear its names are removed."""
