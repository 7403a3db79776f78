"""Selection of a folder's runs to show, by the user's conditions on them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...agents.durations import alike
from ...agents.errors import InputError
from ...agents.suggestions import listed, require
from ..analysis.results import no_run
from ..storage.dataset import Entry
from ..storage.store import Store

MOST = 2
"""Runs side by side."""
SEPARATOR = re.compile(r",(?![^{\[]*[}\]])")
"""A comma that is in no brackets: those are part of a swept path or value."""


def chosen(results: Path, wanted: Sequence[str] = ()) -> list[Entry]:
    """The runs of ``results/<scenario>`` to show; raises `InputError` if there is no such run, or too many.

    One text is wanted for each run: a protocol's key or label, then ``seed=1`` and swept values such as
    ``network.latency.mean=3`` or ``task.samples=[10, 40]``, with commas between them; or the run's id. What is left out
    is as it is first. By default the first two protocols that send messages are shown.
    """
    entries = Store(results).entries()
    if not entries:
        raise no_run(results)
    if len(wanted) > MOST:
        raise InputError(f"--run is given {len(wanted)} times; admissible: at most {MOST} runs side by side")
    if wanted:
        return [_one(entries, text) for text in wanted]
    first = entries[0].manifest
    alike = [e for e in entries if e.manifest["seed"] == first["seed"] and e.grid == entries[0].grid]
    return [e for e in alike if (e.manifest.get("totals") or {}).get("messages")][:MOST] or alike[:1]


def _one(entries: Sequence[Entry], text: str) -> Entry:
    parts = [part for part in SEPARATOR.split(text) if part.strip()]
    who = ",".join(part for part in parts if "=" not in part).strip()  # a label may have commas
    left, time_unit = _named(entries, who) if who else list(entries), entries[0].manifest["scenario"].get("time_unit")
    for part in parts:
        name, sign, value = part.strip().partition("=")
        if not sign:
            continue
        known = sorted({"seed", *(path for entry in entries for path in entry.grid)})
        require(name, known, f"--run {text}: nothing is called {name!r}")
        values = list(dict.fromkeys(_shown(_value(entry, name)) for entry in entries))
        left = [entry for entry in left if alike(_value(entry, name), value, time_unit)]
        if not left:
            raise InputError(f"--run {text}: no such run has {name} = {value}; there are {listed(values)}")
    if not parts:
        raise InputError(f"--run {text}: names no run; give a protocol, or protocol,seed=0")
    return left[0]


def _named(entries: Sequence[Entry], name: str) -> list[Entry]:
    found = [e for e in entries if name in (e.manifest["protocol"], e.manifest.get("label"), e.run)]
    if not found:
        known = dict.fromkeys(str(entry.manifest["protocol"]) for entry in entries)
        require(name, known, f"there is no protocol or run {name!r}")
    return found


def _value(entry: Entry, name: str) -> Any:
    return entry.manifest["seed"] if name == "seed" else entry.grid.get(name)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
