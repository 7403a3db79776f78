"""Provenance of a run's numbers: its scenario and seed, our code, a user's code, the data and the numeric libraries."""

from __future__ import annotations

import hashlib
import importlib.metadata
import subprocess
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...agents.graph import Graph
from ...agents.input_files import beside, paths_named, read_bytes
from ...agents.models import ModelKind
from ...agents.tasks.task_registry import is_published
from .files import Frame, file_checksum, json_text

NUMERIC_LIBRARIES = ("numpy", "scipy", "numba", "simpy", "networkx", "pandas", "dp-accounting")
PACKAGE_FOLDERS = ("agents", "protocols", "scenarios", "simulator")
PRESENTATION = ("title", "description", "figures", "style", "seeds", "sweep", "tune", "target", "quick", "limits")
"""Scenario fields that choose which runs there are, how they are shown and what they may take, and change no run."""

MOST_FILES = 1000
"""Files of a folder that are looked at one by one."""


def run_id(
    resolved: dict[str, Any],
    protocol: str,
    seed: Any,
    *,
    code_version: str,
    plugin_source: str | None,
    data_fingerprint: str,
    libraries: dict[str, str],
    form: str,
) -> str:
    """Name of a run, 16 hexadecimal digits: a hash of everything that decides its numbers.

    The resolved scenario has all defaults filled in and the grid point's values set. What is in `PRESENTATION` does not
    count, nor do labels and the other protocols, but for the one whose objective is measured; so adding one keeps
    finished runs. The seed is all that fixes draws: with separate data and run seeds, both. The plug-in's source is a
    hash of protocols and metrics from outside the package, the fingerprint one of data, graph and all files that the
    scenario names, and the form the one in which it asks for steps, see `hushnet.simulator.world.step_form`.
    """
    scenario = _deciding(resolved, protocol)
    identity = [scenario, protocol, seed, code_version, plugin_source, data_fingerprint, libraries, form]
    return hashlib.blake2s(json_text(identity, indent=None).encode(), digest_size=8).hexdigest()


def named_files(resolved: dict[str, Any], protocol: str, base: Path) -> dict[str, str]:
    """SHA-256 of all files that a run reads by a path, as the scenario gives it.

    A file's place in a folder stands behind it. A field of the name ``path`` says where a file, or a folder of files,
    is, whichever kind of thing has it. What is not there is left out, and so are folders of more than `MOST_FILES`
    files and published data sets, which may be huge and whose tasks sum them. Raises `InputError` if one is too large
    to be read by whatever reads it.
    """
    return {
        spelled: _content_hash(file, *_version_of(file))
        for path in named_paths(resolved, protocol)
        if path not in published_paths(resolved)
        for spelled, file in (files_of(path, base) or {}).items()
    }


def named_paths(resolved: dict[str, Any], protocol: str) -> list[str]:
    """The paths that a run's scenario gives, sorted, each once; arguments are those of `named_files`."""
    return sorted(set(paths_named(_deciding(resolved, protocol))))


def published_paths(resolved: dict[str, Any]) -> set[str]:
    """The paths of a published data set among those that a scenario gives."""
    task = resolved.get("task") or {}
    return set(paths_named(task)) if is_published(task.get("kind")) else set()


def files_of(path: str, base: Path) -> dict[str, Path] | None:
    """The files that a path of a scenario means, by how the scenario would spell each; None if they are too many.

    A folder means all files in it, but for one that the scenario lies in: that is none of data.
    """
    place = beside(base, path)
    if place.is_file():
        return {path: place}
    if not place.is_dir():
        return {}
    if base.resolve().is_relative_to(place.resolve()):
        return None
    found = list(islice((file for file in place.rglob("*") if file.is_file()), MOST_FILES + 1))
    if len(found) > MOST_FILES:
        return None
    return {f"{path}/{file.relative_to(place).as_posix()}": file for file in sorted(found)}


def _version_of(file: Path) -> tuple[int, int]:
    about = file.stat()
    return about.st_mtime_ns, about.st_size


@lru_cache(maxsize=256)
def _content_hash(file: Path, _changed: int, _size: int) -> str:
    """The checksum of a file as it was at a time: many runs read the same one."""
    return file_checksum(file, links=True)


def numerics() -> str:
    """16 hexadecimal digits that stand for the code and the numeric libraries that compute here."""
    return hashlib.blake2s(json_text([code_version(), libraries()], indent=None).encode(), digest_size=8).hexdigest()


def edges(graph: Graph) -> Frame:
    """A graph's edges, each once: ``tail``, ``head`` (positions of agents), ``weight``.

    Of an undirected graph tail < head; of a directed one messages go from tail to head.
    """
    once = graph.opened if graph.directed else graph.tails < graph.heads
    return pd.DataFrame({"tail": graph.tails[once], "head": graph.heads[once], "weight": graph.weights[once]})


def edges_hash(table: Frame) -> str:
    """32 hexadecimal digits that stand for just these `edges`."""
    digest = hashlib.blake2s(digest_size=16)
    for column, kind in (("tail", np.int64), ("head", np.int64), ("weight", np.float64)):
        digest.update(np.ascontiguousarray(table[column].to_numpy(kind)).data)
    return digest.hexdigest()


def _deciding(resolved: dict[str, Any], protocol: str) -> dict[str, Any]:
    """The part of a scenario that decides the numbers of a protocol's runs."""
    scenario = {key: value for key, value in resolved.items() if key not in PRESENTATION}
    protocols = scenario.get("protocols")
    if isinstance(protocols, dict):
        measured_by = (scenario.get("record") or {}).get("objective_of")
        deciding = {key: protocols[key] for key in (protocol, measured_by) if isinstance(protocols.get(key), dict)}
        scenario["protocols"] = {
            key: {field: value for field, value in fields.items() if field != "label"}
            for key, fields in deciding.items()
        }
    return scenario


@cache
def code_version() -> str:
    """Package version and a hash of the package's Python sources, so that uncommitted changes count."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.blake2s(digest_size=8)
    for path in sorted(path for folder in PACKAGE_FOLDERS for path in (root / folder).rglob("*.py")):
        content = read_bytes(path)
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return f"{_version('hushnet')}+{digest.hexdigest()}"


@cache
def commit() -> str | None:
    """Git commit of the checkout that the package runs from, for the manifest; None outside one."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "rev-parse", "--verify", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def libraries(model: ModelKind | None = None) -> dict[str, str]:
    """Versions of the libraries that numbers depend on, a model's too, from their metadata without importing them."""
    return {name: _version(name) for name in (*NUMERIC_LIBRARIES, *(model.libraries if model else ()))}


@cache
def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
