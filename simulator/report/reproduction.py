"""Instructions to reproduce the numbers: the scenario as one file, the command, versions, seeds and run ids."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...agents.errors import InputError
from ..analysis.results import Collection
from ..language.yaml_source import MAX_BYTES
from ..storage.files import no_links, own_bytes, read_json, yaml_text

Row = tuple[str, str]


def scenario(collection: Collection, folder: Path) -> tuple[str, dict[str, Any]]:
    """The scenario as it was written, and with all defaults.

    Without the folder's ``origin`` it is that of the first run, without a sweep.
    """
    written, resolved = folder / "origin" / "scenario.yaml", folder / "origin" / "resolved.json"
    no_links(written.parent, folder)
    if written.exists() and resolved.exists():
        try:
            return own_bytes(written, most=MAX_BYTES).decode(), read_json(resolved)
        except UnicodeDecodeError as error:
            raise InputError(f"{written}: is damaged ({error}); run the scenario again") from error
    first = collection.manifests[0]["scenario"]
    return yaml_text(first), first


def commands(collection: Collection, name: str) -> list[str]:
    """The commands that run the experiment again and write this page again."""
    protocols = [each for m in collection.manifests for each in (m["scenario"].get("protocols") or {}).values()]
    kinds = [str(protocol.get("kind", "")) for protocol in protocols]
    trust = " --trust-code" if any(kind.startswith("./") or ".py:" in kind for kind in kinds) else ""
    file, folder = shlex.quote(f"{name}.yaml"), shlex.quote(f"results/{name}")
    commit = _several(manifest.get("commit") for manifest in collection.manifests)
    install = "pip install './hushnet[report]'  # a clone of hushnet's repository" + (f" at {commit}" if commit else "")
    return [install, f"hushnet run {file}{trust}", f"hushnet report {folder}"]


def versions(collection: Collection) -> list[Row]:
    """Code, libraries and seeds; several where the runs differ."""
    manifests = collection.manifests
    rows = [("hushnet", _several(m.get("code") for m in manifests))]
    rows.append(("commit", _several(m.get("commit") for m in manifests)))
    names = dict.fromkeys(name for m in manifests for name in m.get("versions") or {})
    rows += [(name, _several((m.get("versions") or {}).get(name) for m in manifests)) for name in names]
    rows.append(("seeds", ", ".join(dict.fromkeys(str(m.get("seed")) for m in manifests))))
    rows.append(("data", _several(m.get("data") for m in manifests)))
    return [(name, text) for name, text in rows if text]


def _several(values: Iterable[Any]) -> str:
    known = list(dict.fromkeys(str(value) for value in values if value))
    return ", ".join(known[:3]) + (f" and {len(known) - 3} more" if len(known) > 3 else "")
