"""Check that compared runs share random numbers, task and code, with a description of what differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

SHARED = ("time_unit", "clock", "compute", "network", "availability", "adversaries", "topology", "stop")
"""Parts of a scenario that decide what a run met, whatever its protocol."""

PARTS = {
    "data": "the task's data (data fingerprints differ)",
    "run_seed": "random numbers (run seeds differ)",
    "data_seed": "random numbers of the data (data seeds differ)",
    "code": "the version of hushnet's code",
    "versions": "versions of the numeric libraries",
}
"""What a manifest says of that, in words."""

Pair = tuple[Mapping[str, Any], Mapping[str, Any]]
"""Manifests of our run and of the baseline's."""


def not_shared(pairs: Iterable[Pair]) -> list[str]:
    """List in words what the two sides of pairs do not share; empty for a comparison on common random numbers."""
    found: dict[str, list[str]] = {}
    for ours, theirs in pairs:
        for part, words in PARTS.items():
            if ours.get(part) != theirs.get(part):
                found.setdefault(words, []).extend(_versions(part, ours, theirs))
        for part in SHARED:
            if part == "network" and any((m.get("totals") or {}).get("messages") == 0 for m in (ours, theirs)):
                continue  # who sends nothing does not feel it, and is run once in a sweep of it
            if ours["scenario"].get(part) != theirs["scenario"].get(part):
                found.setdefault(f"the scenario's {part}", [])
    return [words + (f": {', '.join(dict.fromkeys(named))}" if named else "") for words, named in found.items()]


def _versions(part: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    if part == "code":
        return [f"{theirs.get(part)} against {ours.get(part)}"]
    if part != "versions":
        return []
    mine, other = ours.get(part) or {}, theirs.get(part) or {}
    names = sorted({*mine, *other})
    return [f"{name} {other.get(name)} against {mine.get(name)}" for name in names if mine.get(name) != other.get(name)]
