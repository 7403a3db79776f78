"""What happens to a scenario between reading and validation: ``--set``, ``like`` and the points of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

from ..agents.errors import InputError
from ..protocols.catalog import suggestion
from .yaml_source import Keys, Source, dotted, read_text, show

SWEEPABLE = ("task", "topology", "clock", "network", "availability", "protocols", "stop")
"""Parts of a scenario that a sweep may vary."""

ENTRY = "must be a mapping with a kind, or with like"

MAX_POINTS = 10_000


def override(source: Source, assignments: Sequence[str]) -> Source:
    """Apply ``path=value`` assignments of the command line, in order.

    Raises
    ------
    InputError
        If an assignment cannot be read or has no place in the scenario.
    """
    for assignment in assignments:
        place = f"--set {assignment}"
        path, equals, text = assignment.partition("=")
        keys = tuple(path.strip().split("."))
        if not equals or not all(keys):
            raise InputError(f"{place}: must look like network.loss=0.2")
        value = read_text(text, place, numbered=False).data if text.strip() else None
        protocols = source.data.get("protocols")
        if keys[0] == "protocols" and len(keys) > 2 and isinstance(protocols, Mapping) and keys[1] not in protocols:
            raise InputError(
                f"{place}: unknown protocol {keys[1]!r}{suggestion(keys[1], protocols)} "
                f"admissible: {', '.join(protocols)}"
            )
        source = source.with_value(keys, value, place)
    return source


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
        Entries whose ``like`` leads nowhere; they are left out.
    """

    entries: dict[str, Any] = field(default_factory=dict)
    inherited: dict[Keys, Keys] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    errors: list[InputError] = field(default_factory=list)

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
    for name in protocols:
        try:
            family.entries[name] = _complete(name, protocols, (), family)
        except InputError as error:
            family.errors.append(error)
    return family


def _complete(name: str, protocols: Mapping[str, Any], seen: tuple[str, ...], family: Family) -> Any:
    entry = protocols[name]
    if not isinstance(entry, Mapping) or "like" not in entry:
        return entry
    parent, where = entry["like"], ("protocols", name, "like")
    if not isinstance(parent, str) or parent not in protocols:
        others = [other for other in protocols if other != name]
        raise InputError(f"unknown protocol{suggestion(parent, others)} admissible: {', '.join(others)}", field=where)
    chain = (*seen, name)
    if parent in chain:
        cycle = " -> ".join([*chain[chain.index(parent) :], parent])
        raise InputError(f"the inheritance {cycle} is a cycle", field=where)
    base = _complete(parent, protocols, chain, family)
    if not isinstance(base, Mapping):
        raise InputError(ENTRY, field=("protocols", parent))
    family.parents[name] = parent
    above = {key: value for key, value in base.items() if key != "label"}
    own = {key: value for key, value in entry.items() if key != "like"}
    return _merged(above, own, ("protocols", parent), ("protocols", name), family.inherited)


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


def grid(source: Source, axes: Mapping[str, Sequence[Any]]) -> Iterator[tuple[dict[str, Any], Source]]:
    """Every combination of a sweep's values, with the scenario that has them set.

    Raises
    ------
    InputError
        If a path may not be swept or there are too many combinations.
    """
    for path in axes:
        if path.partition(".")[0] not in SWEEPABLE or not all(path.split(".")):
            raise InputError(
                f"cannot be swept{suggestion(path.partition('.')[0], SWEEPABLE)} admissible are fields of "
                f"{', '.join(SWEEPABLE)}, such as network.loss",
                field=("sweep", path),
            )
        keys = tuple(path.split("."))
        if keys[0] == "protocols" and (len(keys) < 3 or keys[1] not in source.data["protocols"]):
            known = source.data["protocols"]
            wrong = keys[1] if len(keys) > 1 else ""
            raise InputError(
                f"unknown protocol {wrong!r}{suggestion(wrong, known)} admissible: {', '.join(known)}",
                field=("sweep", path),
            )
    points = prod(len(values) for values in axes.values())
    if points > MAX_POINTS:
        raise InputError(f"has {points} combinations; at most {MAX_POINTS} are admissible", field=("sweep",))
    for ranks in product(*(range(len(values)) for values in axes.values())):
        values = {path: axes[path][rank] for path, rank in zip(axes, ranks, strict=True)}
        point = source
        for (path, value), rank in zip(values.items(), ranks, strict=True):
            place = source.where(("sweep", path, rank), value=True)
            point = point.with_value(tuple(path.split(".")), value, place)
        yield values, point


def locate(error: InputError, source: Source) -> str:
    """An error's sentence with the place, path and value of its field.

    Parameters
    ----------
    error : InputError
        With a ``field``; without one its message already says everything.
    source : Source
    """
    if not error.field:
        return str(error)
    value = source.value(error.field)
    return sentence(source, error.field, str(error), value=... if isinstance(value, Mapping | list) else value)


def sentence(
    source: Source, keys: Keys, message: str, *, value: Any = ..., parent: str | None = None, place: str | None = None
) -> str:
    """``file:line: path = value: message``; a ``--set`` already names path and value.

    Parameters
    ----------
    source : Source
    keys : Keys
    message : str
    value : any
        Shown unless it is ``...``.
    parent : str, optional
        The entry that the part was inherited from.
    place : str, optional
        By default where the source has the part.
    """
    place = place or source.where(keys, value=value is not ...)
    message = " ".join(message.split()).rstrip(".")
    if not keys or place.startswith(f"--set {dotted(keys)}="):
        return f"{place}: {message}"
    given = "" if value is ... else f" = {show(value)}"
    origin = "" if parent is None else f" (inherited from {parent})"
    return f"{place}: {dotted(keys)}{given}{origin}: {message}"
