"""hushnet itself as a wheel, made from the files that run here: whoever reruns an experiment needs no index for it.

The same files give the same bytes: dates are fixed, names are sorted, and nothing of this machine goes in.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.metadata import distribution
from pathlib import Path

from ...agents.input_files import read_bytes
from ..storage.provenance import PACKAGE_FOLDERS

ROOT = "hushnet"
SUFFIXES = (".py", ".typed", ".yaml", ".ipynb", ".md", ".json", ".html", ".css", ".js", ".bib")
"""Endings of the files that belong to the package."""
TAG = "Wheel-Version: 1.0\nGenerator: hushnet\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel_files() -> tuple[str, dict[str, bytes]]:
    """The wheel's name, and the content of all its files by path."""
    here, info = Path(__file__).resolve().parents[2], distribution(ROOT)
    files = {
        f"{ROOT}/{path.relative_to(here).as_posix()}": read_bytes(path)
        for folder in PACKAGE_FOLDERS
        for path in sorted((here / folder).rglob("*"))
        if path.is_file() and path.suffix in SUFFIXES
    }
    about = f"{ROOT}-{info.version}.dist-info"
    files[f"{about}/METADATA"] = (info.read_text("METADATA") or info.read_text("PKG-INFO") or "").encode()
    files[f"{about}/WHEEL"] = TAG.encode()
    files[f"{about}/entry_points.txt"] = (info.read_text("entry_points.txt") or "").encode()
    record = "".join(f"{name},{_digest(content)},{len(content)}\n" for name, content in sorted(files.items()))
    files[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n".encode()
    return f"{ROOT}-{info.version}-py3-none-any.whl", files


def _digest(content: bytes) -> str:
    """As wheels write it: without padding, in the alphabet of addresses."""
    return f"sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()}"
