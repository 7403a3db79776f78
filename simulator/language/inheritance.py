"""What protocol entries inherit from one another by ``like``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ...agents.errors import InputError
from ...agents.suggestions import MOST_COMPARED, listed, suggestion
from .yaml_source import Keys

ENTRY = "must be a mapping with a kind, or with like"

MOST_SAID = 20
"""Mistakes of a scenario that are said one by one."""
MOST_LIKE = 100
"""Entries that one inherits from, one through the other."""


@dataclass
class Family:
    """Protocol entries after inheritance.

    Parameters
    ----------
    entries : dict of str to dict
        Complete raw entries, without ``like``.
    inherited : dict of Keys to Keys
        Where a part that an entry did not write itself was written.
    parents : dict of str to str
        What each entry is like.
    errors : list of InputError
        Why the ``like`` of some entries leads nowhere; they are left out.
    failed : dict of str to InputError
        The same by entry; those that are like one of them fail with it.
    depths : dict of str to int
        How many entries each one inherits from.
    """

    entries: dict[str, Any] = field(default_factory=dict)
    inherited: dict[Keys, Keys] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    errors: list[InputError] = field(default_factory=list)
    failed: dict[str, InputError] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)

    def ancestors(self, name: str) -> Iterator[str]:
        """The entries that an entry inherits from, nearest first."""
        while name in self.parents:
            name = self.parents[name]
            yield name


def inherit(protocols: Mapping[str, Any], wanted: Iterable[str] | None = None) -> Family:
    """Resolve ``like`` among protocol entries.

    A child's mappings are merged into its parent's field by field, ``null`` removes what the parent has, a mapping
    of another ``kind`` replaces the parent's, and labels are not inherited.

    Parameters
    ----------
    protocols : mapping
    wanted : iterable of str, optional
        Only these entries, and what they inherit from.
    """
    family = Family()
    for name in protocols if wanted is None else wanted:
        _complete(name, protocols, family)
    return family


def _complete(name: str, protocols: Mapping[str, Any], family: Family) -> None:
    """Complete an entry and all that it inherits from, each once."""
    chain: dict[str, None] = {}
    while name not in family.entries and name not in family.failed:
        try:
            parent = _parent(name, protocols, few=len(family.errors) < MOST_SAID)
            if parent in chain or parent == name:
                raise InputError(_cycle([*chain, name], str(parent)), field=("protocols", name, "like"))
        except InputError as error:
            family.failed[name] = error
            family.errors.append(error)
            break
        if parent is None:
            family.entries[name], family.depths[name] = protocols[name], 0
            break
        chain[name] = None
        name = parent
    for child in reversed(chain):
        _inherit_from(name, child, protocols[child], family)
        name = child


def _parent(name: str, protocols: Mapping[str, Any], *, few: bool) -> str | None:
    """What an entry is like; None if it stands for itself."""
    entry = protocols[name]
    if not isinstance(entry, Mapping) or "like" not in entry:
        return None
    parent = entry["like"]
    if isinstance(parent, str) and parent in protocols:
        return parent
    others = (other for other in protocols if other != name)
    known = list(islice(others, MOST_COMPARED)) if few else []
    raise InputError(
        f"unknown protocol{suggestion(parent, known)} admissible: {listed(known)}", field=("protocols", name, "like")
    )


def _cycle(chain: Sequence[str], parent: str) -> str:
    around = [*chain[chain.index(parent) :], parent]
    shown = around if len(around) <= MOST_SAID else [*around[:3], "...", *around[-3:]]
    return f"the inheritance {' -> '.join(shown)} is a cycle"


def _inherit_from(parent: str, name: str, entry: Mapping[str, Any], family: Family) -> None:
    """Complete an entry whose parent is complete, or has failed."""
    error, base = family.failed.get(parent), family.entries.get(parent)
    if error is None and not isinstance(base, Mapping):
        error = InputError(ENTRY, field=("protocols", parent))
    if error is None and family.depths[parent] >= MOST_LIKE:
        error = InputError(
            f"is like an entry that is like another one, and so on, more than {MOST_LIKE} times",
            field=("protocols", name, "like"),
        )
    if error is not None:
        family.errors += [] if parent in family.failed else [error]
        family.failed[name] = error
        return
    assert isinstance(base, Mapping)
    family.parents[name], family.depths[name] = parent, family.depths[parent] + 1
    above = {key: value for key, value in base.items() if key != "label"}
    own = {key: value for key, value in entry.items() if key != "like"}
    family.entries[name] = _merged(above, own, ("protocols", parent), ("protocols", name), family.inherited)


def _merged(above: Mapping[str, Any], own: Mapping[str, Any], source: Keys, target: Keys, inherited: dict) -> dict:
    merged = {}
    for key in [*above, *(key for key in own if key not in above)]:
        there, here = (*source, key), (*target, key)
        if key not in own:
            merged[key] = above[key]
            inherited[here] = inherited.get(there, there)
        elif own[key] is None and key in above:
            continue
        elif isinstance(own[key], Mapping) and isinstance(above.get(key), Mapping) and _same_kind(above[key], own[key]):
            merged[key] = _merged(above[key], own[key], there, here, inherited)
        else:
            merged[key] = own[key]
    return merged


def _same_kind(above: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    return "kind" not in own or own["kind"] == above.get("kind")
