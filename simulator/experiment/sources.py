"""What an experiment was made from, kept beside its results: the scenario, the user's code, and files that it names.

In ``results/<scenario>/origin``: ``scenario.yaml`` as it was written, or with the changes of ``--set``, ``--seeds`` and
``--quick`` where there were some; ``resolved.json`` with all defaults; and, at the places where the scenario looks for
them, Python files and files with traces. Data sets are not copied. What lies outside the scenario's folder is named in
``left-out.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...agents.errors import InputError
from ..language.spellings import respelled
from ..language.yaml_source import read_file
from ..metrics import recordable
from ..storage.files import checksum, json_text, put_folder, writing, yaml_text
from ..storage.provenance import named_files
from ..storage.user_code import source_files

if TYPE_CHECKING:
    from .plan import Experiment

FOLDER = "origin"


def keep_sources(experiment: Experiment) -> None:
    """Write what an experiment is made from, as a whole or not at all.

    Parameters
    ----------
    experiment : Experiment

    Raises
    ------
    OutOfResources, InputError
        If it cannot be written.
    """
    loaded, folder = experiment.loaded, experiment.folder / FOLDER
    files, outside = _files(experiment)
    contents = {name: path.read_bytes() for name, path in files.items()}
    contents["scenario.yaml"] = _written(loaded.source.name, loaded.source.data).encode()
    contents["resolved.json"] = json_text(loaded.scenario.resolved()).encode()
    contents["left-out.json"] = json_text({"files": outside}).encode()
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
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def origin_checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of `kept_files`."""
    return {name: checksum(content) for name, content in kept_files(folder).items()}


def _written(name: str, data: Any) -> str:
    """The scenario's text, if that is what was run, else as YAML with what was changed."""
    path = Path(name)
    try:
        if path.is_file() and respelled(read_file(path).data) == data:
            return path.read_text(encoding="utf-8")
    except InputError:
        pass  # a file of this name is none of ours
    return yaml_text(json.loads(json_text(data, sort_keys=False)))  # a mapping from Python may have NumPy's numbers


def _files(experiment: Experiment) -> tuple[dict[str, Path], list[str]]:
    """Files to copy by their place beside the scenario, and those that have none there."""
    loaded = experiment.loaded
    scenarios = [point.scenario for point in loaded.points]
    code, base = loaded.code, loaded.base.resolve()
    kinds = dict.fromkeys(protocol.kind for scenario in scenarios for protocol in scenario.protocols.values())
    metrics = dict.fromkeys(name for scenario in scenarios for name in scenario.record.metrics or [])
    own = [code.metric(name) for name in metrics if name not in recordable()]
    named = code.files([*kinds, *metrics])
    paths = source_files([*map(code.protocol, kinds), *own, *experiment.metrics.values(), *named])
    for scenario in scenarios:
        resolved = scenario.resolved()
        paths += [base / name for key in scenario.protocols for name in named_files(resolved, key, base)]
    found = {path.resolve() for path in paths}
    inside = {path.relative_to(base).as_posix(): path for path in found if path.is_relative_to(base)}
    return inside, sorted(str(path) for path in found if not path.is_relative_to(base))
