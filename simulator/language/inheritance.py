"""Inheritance between protocol entries by ``like``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ...agents.errors import InputError
from ...agents.suggestions import MOST_COMPARED, listed, suggestion

ENTRY = "must be a mapping with a kind, or with like"

MOST_SAID = 20
"""Mistakes of a scenario that are said one by one."""
MOST_LIKE = 100
"""Entries that one inherits from, one through the other."""


@dataclass
class Family:
    """Protocol entries after inheritance."""

    entries: dict[str, Any] = field(default_factory=dict)
    """Complete raw entries, without ``like``; those whose ``like`` leads nowhere are left out."""
    parents: dict[str, str] = field(default_factory=dict)
    """What each entry is like."""
    errors: list[InputError] = field(default_factory=list)
    """Why the ``like`` of some entries leads nowhere."""

    def ancestors(self, name: str) -> Iterator[str]:
        """The entries that an entry inherits from, nearest first."""
        while name in self.parents:
            name = self.parents[name]
            yield name


def inherit(protocols: Mapping[str, Any]) -> Family:
    """Resolve ``like`` among protocol entries.

    A child's mappings are merged into its parent's field by field, ``null`` removes what the parent has, a mapping
    of another ``kind`` replaces the parent's, and labels are not inherited.
    """
    family = Family()
    depths: dict[str, int] = {}
    failed: set[str] = set()

    def fail(name: str, why: str) -> None:
        failed.add(name)
        family.errors.append(InputError(why, field=("protocols", name, "like")))

    for name in protocols:
        chain: dict[str, None] = {}
        while name not in depths and name not in failed:
            entry = protocols[name]
            if not isinstance(entry, Mapping) or "like" not in entry:
                family.entries[name], depths[name] = entry, 0
                break
            chain[name], parent = None, entry["like"]
            if not isinstance(parent, str) or parent not in protocols:
                others = (other for other in protocols if other != name)
                known = list(islice(others, MOST_COMPARED)) if len(family.errors) < MOST_SAID else []
                fail(name, f"unknown protocol{suggestion(parent, known)} admissible: {listed(known)}")
            elif parent in chain:
                fail(name, _cycle(list(chain), parent))
            else:
                name = parent
        for child in reversed(chain):
            parent, name = name, child
            base = family.entries.get(parent)
            if child in failed or parent in failed or not isinstance(base, Mapping):
                failed.add(child)  # with what is said of its parent
            elif depths[parent] >= MOST_LIKE:
                fail(child, f"is like an entry that is like another one, and so on, more than {MOST_LIKE} times")
            else:
                above = {key: value for key, value in base.items() if key != "label"}
                own = {key: value for key, value in protocols[child].items() if key != "like"}
                family.parents[child], depths[child] = parent, depths[parent] + 1
                family.entries[child] = _merged(above, own)
    return family


def _cycle(chain: Sequence[str], parent: str) -> str:
    around = [*chain[chain.index(parent) :], parent]
    shown = around if len(around) <= MOST_SAID else [*around[:3], "...", *around[-3:]]
    return f"the inheritance {' -> '.join(shown)} is a cycle"


def _merged(above: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**above, **own}
    for key in above.keys() & own.keys():
        there, here = above[key], own[key]
        if here is None:
            del merged[key]
        elif isinstance(here, Mapping) and isinstance(there, Mapping) and here.get("kind") in (None, there.get("kind")):
            merged[key] = _merged(there, here)
    return merged
