"""Copies of an experiment's inputs, kept beside its results: the scenario, custom code, and files that it names.

The folder ``results/<scenario>/origin`` has ``scenario.yaml`` as it was written, or with the changes of ``--set``,
``--seeds`` and ``--quick`` where there were some; ``resolved.json`` with all defaults; and, at the places where the
scenario looks for them, Python files and all files that any field names by its path. Files outside the scenario's
folder, published data sets and large files are not copied: ``left-out.json`` lists each with the reason, its path and
its checksum.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...agents.errors import InputError
from ...agents.input_files import beside, read_bytes
from ...protocols.user_files import is_file, path_of
from ..language.checking import nets_of
from ..language.yaml_source import MAX_BYTES, read_file
from ..storage.documents import LeftOut, read_document
from ..storage.files import checksum, file_checksum, json_text, own_bytes, put_folder, writing, yaml_text
from ..storage.provenance import files_of, named_paths, published_paths
from ..storage.user_code import source_files
from .plan import Experiment

FOLDER = "origin"
LEFT_OUT = "left-out.json"
OWN = ("scenario.yaml", "resolved.json", LEFT_OUT)
MOST_KEPT = 2**26
"""Bytes of the data files of one experiment that are copied."""
OUTSIDE = "lies outside the scenario's folder"
PUBLISHED = "is a published data set"


def keep_sources(experiment: Experiment) -> None:
    """Write what an experiment is made from, as a whole or not at all."""
    loaded, folder = experiment.loaded, experiment.folder / FOLDER
    contents, left_out = _kept(experiment)
    contents["scenario.yaml"] = _written(loaded.source.name, loaded.source.data).encode()
    contents["resolved.json"] = json_text(loaded.scenario.resolved()).encode()
    contents[LEFT_OUT] = json_text({"files": left_out}).encode()
    expected = {name: checksum(content) for name, content in contents.items()}

    def fill(fresh: Path) -> None:
        for name, content in contents.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    if origin_checksums(folder) != expected:
        with writing(folder):
            put_folder(folder, fill, lambda there: origin_checksums(there) == expected)


def kept_files(folder: Path) -> dict[str, bytes]:
    """All files of an origin by their place in it, sorted; none behind a link, be it the folder itself."""
    if folder.is_symlink():
        return {}
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): own_bytes(path) for path in paths}


def left_out(folder: Path) -> list[dict[str, Any]]:
    """Files that were not copied to an origin: ``path`` as in the scenario, ``why``, ``at`` and ``sha256`` of each."""
    path = folder / LEFT_OUT
    return read_document(LeftOut, path)["files"] if path.exists() else []


def left_out_contents(folder: Path) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
    """Files of the experiment's own that were not copied to an origin, and entries of `left_out` that have none.

    Those are by their normal path from the scenario's folder, which may begin with ``..``; these are published data
    sets, folders of too many files, and what the scenario names by its whole path. Raises `InputError` if a file is not
    there any more, or is another file now.
    """
    contents: dict[str, bytes] = {}
    absent: list[dict[str, Any]] = []
    for entry in left_out(folder):
        path, place = entry["path"], Path(entry["at"])
        named_whole = path.startswith("~") or Path(path).is_absolute()
        files = None if named_whole or entry["why"] == PUBLISHED else files_of(_where(entry), place.parent)
        if files is None:
            absent.append(entry)
            continue
        for name, file in files.items():
            contents[os.path.normpath(path + name.removeprefix(str(place)))] = read_bytes(file)
    return contents, absent


def brought(folder: Path, value: Any) -> Any:
    """A scenario's fields, with what an origin has no copy of at the place where it was read.

    Raises `InputError` if it is not there any more, or is another file now.
    """
    places = {entry["path"]: entry for entry in left_out(folder)}

    def moved(item: Any, key: str = "") -> Any:
        if isinstance(item, Mapping):
            return {name: moved(part, name) for name, part in item.items()}
        if isinstance(item, list):
            return [moved(part, key) for part in item]
        code = path_of(item) if isinstance(item, str) else None
        if code is not None and code in places:
            return _where(places[code]) + item[len(code) :]
        return _where(places[item]) if key == "path" and isinstance(item, str) and item in places else item

    return moved(value)


def _where(entry: Mapping[str, Any]) -> str:
    """Return the path of a file that was not copied, if it is still the one that was read; else raise `InputError`."""
    place, said = Path(entry["at"]), f"{entry['path']}, which the scenario names, {entry['why']}, so no copy was kept"
    if not place.exists():
        raise InputError(f"{said}; it is not at {place} any more: bring it back there")
    if entry.get("sha256") and place.is_file() and file_checksum(place, links=True) != entry["sha256"]:
        raise InputError(
            f"{said}; {place} has changed since: bring back the one that was read (SHA-256 {entry['sha256']})"
        )
    return str(place)


def origin_checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of `kept_files`."""
    return {name: checksum(content) for name, content in kept_files(folder).items()}


def _written(name: str, data: Any) -> str:
    """The scenario's text, if that is what was run, else as YAML with what was changed."""
    path = Path(name)
    try:
        if path.is_file() and read_file(path).data == data:
            return read_bytes(path, most=MAX_BYTES).decode()
    except InputError:
        pass  # a file of this name is none of ours
    return yaml_text(json.loads(json_text(data, sort_keys=False)))  # a mapping from Python may have NumPy's numbers


def _kept(experiment: Experiment) -> tuple[dict[str, bytes], list[dict[str, Any]]]:
    """Contents of the files to copy, by their place beside the scenario, and what is said of those left out."""
    loaded = experiment.loaded
    base = loaded.base.resolve()
    contents: dict[str, bytes] = {}
    left_out: dict[str, dict[str, Any]] = {}
    for spelled, file in _code(experiment).items():
        place = _place(os.path.relpath(file, base))
        if place is None:
            left_out[spelled] = _entry(spelled, file, OUTSIDE)
        else:
            contents[place] = read_bytes(file)
    room = MOST_KEPT
    scenarios = [point.scenario.resolved() for point in loaded.points]
    published = {path for resolved in scenarios for path in published_paths(resolved)}
    for path in sorted({path for resolved in scenarios for path in _named(resolved)}):
        files = files_of(path, base)
        size = sum(file.stat().st_size for file in (files or {}).values())
        why = (
            PUBLISHED if path in published
            else OUTSIDE if _place(path) is None
            else "is a folder of too many files, or of the scenario itself" if files is None
            else f"is larger than what is copied ({MOST_KEPT:,} bytes of all files)" if size > room
            else None
        )  # fmt: skip
        if why is not None:
            left_out[path] = _entry(path, beside(base, path), why)
            continue
        room -= size
        contents |= {str(_place(spelled)): read_bytes(file) for spelled, file in (files or {}).items()}
    return contents, [left_out[path] for path in sorted(left_out)]


def _named(resolved: Mapping[str, Any]) -> Iterator[str]:
    for key in resolved.get("protocols") or {}:
        yield from named_paths(dict(resolved), key)


def _place(path: str) -> str | None:
    """Path of a file's copy beside the scenario, by the file's name; None if it has no place there."""
    place = Path(os.path.normpath(path))
    inside = not (place.is_absolute() or place.parts[:1] in ((), ("..",), ("~",))) and not path.startswith("~")
    return place.as_posix() if inside and place.as_posix() not in OWN else None


def _entry(path: str, place: Path, why: str) -> dict[str, Any]:
    """Entry of ``left-out.json`` for a file that is not copied."""
    entry: dict[str, Any] = {"path": path, "at": str(place.resolve()), "why": why}
    if place.is_file() and why != PUBLISHED:
        entry |= {"sha256": file_checksum(place, links=True), "bytes": place.stat().st_size}
    return entry


def _code(experiment: Experiment) -> dict[str, Path]:
    """The files of the user's own code by their paths, as the scenario gives them, or from its folder."""
    loaded = experiment.loaded
    scenarios = [point.scenario for point in loaded.points]
    code = loaded.code
    kinds = dict.fromkeys(protocol.kind for scenario in scenarios for protocol in scenario.protocols.values())
    metrics = dict.fromkeys(name for scenario in scenarios for name in scenario.record.metrics or [])
    own = [code.metric(name) for name in metrics if is_file(name)]
    nets = dict.fromkeys(net for scenario in scenarios for net in nets_of(scenario))
    named = code.files([*kinds, *metrics, *nets])
    files = source_files([*map(code.protocol, kinds), *own, *experiment.metrics.values(), *named])
    spelled = {beside(loaded.base, path).resolve(): path for path in map(path_of, [*kinds, *metrics, *nets]) if path}
    return {spelled.get(file, os.path.relpath(file, loaded.base.resolve())): file for file in files}
