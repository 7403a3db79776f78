"""A folder with compiled code, shared by all processes of one user: read and written whole, and limited in size.

To load what is in it means to run it. So nothing is read that another user could have written: neither folder nor file
may belong to anybody else or be writable for others, and a file counts only with the hash of its content and its name.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

FOLDER = "HUSHNET_CACHE_DIR"
"""The variable that names another folder."""
MOST = 512 * 2**20
"""Bytes that a store may hold; then what has not been used for longest is removed."""
_KEPT = 0.8
"""The share of it that is left then."""
_HEAD = b"hushnet compiled code 1\n"
"""Format and version of a file: this, the hash of key and content, and the content."""
_HASH = 32
_BETWEEN = 64
"""A process looks at the store's size when it first writes, and again after so many files."""
_HOUR = 3600.0


class CodeStore:
    """Files of bytes by key.

    Parameters
    ----------
    folder : Path or None
        Made where there is none; without a folder, nothing is kept.

    Attributes
    ----------
    refusal : str
        Why nothing is kept, after "the compiled code is not kept, for ..."; empty where it is.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.refusal = "there is no home folder" if folder is None else _refusal(folder)
        self._written = 0

    def read(self, key: str) -> bytes | None:
        """The content of a file; None if there is none that can be trusted."""
        if self.refusal:
            return None
        try:
            flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            with open(os.open(self._path(key), flags), "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode) or _is_others(found) or found.st_size > MOST:
                    return None
                whole = file.read()
        except OSError:
            return None
        begin = len(_HEAD) + _HASH
        content = whole[begin:]
        if whole[:begin] != _HEAD + _hash_of(key, content):
            return None
        if time.time() - found.st_mtime > _HOUR:
            with suppress(OSError):
                os.utime(self._path(key))
        return content

    def write(self, key: str, content: bytes) -> None:
        """Keep the content of a file, if that is possible."""
        if self.refusal:
            return
        aside = self._path(f".{key}.{secrets.token_hex(8)}")
        try:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with open(descriptor, "wb") as file:
                    file.write(_HEAD + _hash_of(key, content) + content)
                os.replace(aside, self._path(key))
            except BaseException:
                aside.unlink(missing_ok=True)
                raise
        except OSError:
            return
        if self._written % _BETWEEN == 0:
            self.trim()
        self._written += 1

    def trim(self) -> None:
        """Remove what has not been used for longest, if the store is too large, and what was never finished."""
        assert self.folder is not None
        files, total, now = [], 0, time.time()
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if entry.name.startswith(".") and now - found.st_mtime > _HOUR:
                        os.unlink(entry.path)
                    elif stat.S_ISREG(found.st_mode):
                        files.append((found.st_mtime, found.st_size, entry.path))
                        total += found.st_size
        if total <= MOST:
            return
        for _, size, path in sorted(files):
            if total <= _KEPT * MOST:
                return
            with suppress(OSError):
                os.unlink(path)
                total -= size

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / name


def code_store() -> CodeStore:
    """The store that the environment names."""
    return _store_at(_folder())


@cache
def _store_at(folder: Path | None) -> CodeStore:
    return CodeStore(folder)


def _folder() -> Path | None:
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


def _refusal(folder: Path) -> str:
    """Make a folder where there is none; why it cannot be used, or ""."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.stat()
    except OSError as error:
        return f"{folder} cannot be made: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is no folder"
    return f"{folder} belongs to another user or can be written by others" if _is_others(found) else ""


def _is_others(found: os.stat_result) -> bool:
    """Whether somebody else may have written a file or folder."""
    return hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or bool(found.st_mode & 0o022))


def _hash_of(key: str, content: bytes) -> bytes:
    return hashlib.blake2b(key.encode() + b"\n" + content, digest_size=_HASH).digest()
