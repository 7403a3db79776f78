"""Check, without drawing, that a scenario's figures are up to date: drawn from the same runs, in the same way.

The file ``drawn.json`` beside the figures lists what each was made from, and the checksums of its files. It is no
result: without it, or where anything differs, figures are drawn again.
"""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...agents.errors import InputError
from ..analysis.results import Collection
from ..storage.files import file_checksum, json_text, put_file, read_json, writing
from ..storage.provenance import code_version
from ..storage.run_folder import read_manifest

FILE = "drawn.json"
PASSING = ("timings", "commit")
"""What manifests say of how a run came about; the rest is the same every time, wherever the same code runs."""


def made_of(folder: Path, collection: Collection) -> str:
    """A hash of all that decides figures: runs with their checksums, the index, this code and what draws."""
    digest = hashlib.blake2s(json_text([code_version(), version("matplotlib"), version("numpy")]).encode())
    digest.update(json_text(read_json(folder / "index.json")).encode())
    for run in dict.fromkeys(run.partition("#")[0] for run in collection.runs):
        manifest, checksums = read_manifest(folder / run)
        kept = {name: value for name, value in manifest.items() if name not in PASSING}
        digest.update(json_text([run, kept, checksums], indent=None).encode())
    return digest.hexdigest()


def drawn_already(folder: Path, collection: Collection) -> list[Path] | None:
    """The files of all figures, if they are what drawing them would give; None if they are not known to be."""
    figures = folder / "figures"
    try:
        kept: dict[str, Any] = read_json(figures / FILE)
        files = {figures / Path(name).name: expected for name, expected in kept["files"].items()}
        if kept["made_of"] != made_of(folder, collection):
            return None
        alike = all(path.is_file() and file_checksum(path) == expected for path, expected in files.items())
    except (InputError, OSError, KeyError, TypeError, AttributeError):
        return None
    return list(files) if alike else None


def keep_drawn(folder: Path, collection: Collection, files: list[Path]) -> None:
    """Remember that figures were drawn."""
    figures = folder / "figures"
    kept = {"made_of": made_of(folder, collection), "files": {path.name: file_checksum(path) for path in files}}
    with writing(figures):
        put_file(json_text(kept, sort_keys=False).encode(), figures / FILE, within=folder)
