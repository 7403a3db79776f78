"""What happens to a scenario before validation: old words, ``--set``, ``quick``, ``like``, sweeps and tuning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any

from ...agents.errors import InputError
from ...protocols.catalog import suggestion
from .spellings import respelled
from .sweeps import Axis, expand
from .yaml_source import Keys, Source, dotted, read_text, show

SWEEPABLE = ("task", "topology", "clock", "network", "availability", "protocols", "stop", "record", "engine")
"""Parts of a scenario that a sweep may vary."""

USUAL_CLOCK = "poisson"

ENTRY = "must be a mapping with a kind, or with like"

MAX_POINTS = 10_000


def modernised(source: Source) -> tuple[Source, list[str]]:
    """A scenario in today's words, and a hint for every old one: where it is, and what it is called now."""
    hints: list[str] = []

    def hint(keys: Keys, old: str, new: str) -> None:
        hints.append(sentence(source, keys, f"is called {new!r} now and read as that; write {new}", value=old))

    data = respelled(source.data, hint)
    return replace(source, data=data) if hints else source, hints


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
        if not equals or not all(path.strip().split(".")):
            raise InputError(f"{place}: must look like network.loss=0.2")
        value = read_text(text, place, numbered=False).data if text.strip() else None
        source = _set(source, path.strip(), value, place, said=place)
    return source


def quickened(source: Source) -> Source:
    """The quick version of a scenario: its ``quick`` assignments made, under a name of its own.

    Raises
    ------
    InputError
        If it has none, or one has no place in the scenario.
    """
    quick = source.data.get("quick")
    if not isinstance(quick, Mapping) or not quick:
        raise InputError(
            f"{source.where(())}: has no quick version (quick: in the scenario); "
            "shorten it with --set instead, such as --set stop.time=10 --seeds 2"
        )
    for path, value in quick.items():
        place = source.where(("quick", path), value=True)
        said = f"{source.where(('quick', path))}: quick.{path}"
        if not all(path.split(".")):
            raise InputError(f"{said}: must be a path, such as network.loss")
        source = _set(source, path, value, place, said=said)
    name = source.data.get("scenario")
    if not isinstance(name, str):
        return source
    return source.with_value(("scenario",), f"{name}-quick", source.where(("scenario",)))


def _set(source: Source, path: str, value: Any, place: str, *, said: str) -> Source:
    """Set what a path stands for; ``said`` begins the sentence about one that has no place in the scenario."""
    try:
        paths = expand(path)
    except ValueError as error:
        raise InputError(f"{said}: {error}") from error
    protocols = source.data.get("protocols")
    for each in paths:
        keys = _keys(each)
        if keys[0] == "protocols" and len(keys) > 2 and isinstance(protocols, Mapping) and keys[1] not in protocols:
            wrong = str(keys[1])
            raise InputError(
                f"{said}: unknown protocol {wrong!r}{suggestion(wrong, protocols)} admissible: {', '.join(protocols)}"
            )
        source = _with_value(source, keys, value, place)
    return source


def _with_value(source: Source, keys: Keys, value: Any, place: str) -> Source:
    """Set one part; a clock that is not written down is the usual one, of which a field may be set."""
    if keys[0] == "clock" and len(keys) > 1 and "clock" not in source.data:
        source = source.with_value(("clock", "kind"), USUAL_CLOCK, place)
    return source.with_value(keys, value, place)


def _keys(path: str) -> Keys:
    """Where a path leads; what follows ``sweep`` and ``tune.over`` is one key, dots and all."""
    for start in (("sweep",), ("tune", "over")):
        begun = ".".join(start) + "."
        if path.startswith(begun):
            return (*start, path.removeprefix(begun))
    return tuple(path.split("."))


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


def grid(source: Source, axes: Sequence[Axis]) -> Iterator[tuple[dict[str, Any], Source]]:
    """Every combination of a sweep's places, by the axes' names, with the scenario that has its values set.

    Raises
    ------
    InputError
        If a path may not be swept or there are too many combinations.
    """
    for axis in axes:
        for setting in axis.settings[0]:
            _check_swept(source, setting.path, setting.written[:-1])
    points = prod(len(axis.places) for axis in axes)
    if points > MAX_POINTS:
        raise InputError(f"has {points} combinations; at most {MAX_POINTS} are admissible", field=("sweep",))
    for ranks in product(*(range(len(axis.places)) for axis in axes)):
        point = source
        for axis, rank in zip(axes, ranks, strict=True):
            for setting in axis.settings[rank]:
                place = source.where(setting.written, value=True)
                point = _with_value(point, tuple(setting.path.split(".")), setting.value, place)
        yield {axis.name: axis.places[rank] for axis, rank in zip(axes, ranks, strict=True)}, point


def _check_swept(source: Source, path: str, field: Keys) -> None:
    keys = tuple(path.split("."))
    if keys[0] not in SWEEPABLE or not all(keys):
        raise InputError(
            f"cannot be swept{suggestion(keys[0], SWEEPABLE)} admissible are fields of {', '.join(SWEEPABLE)}, such as "
            "network.loss; several that move together need zip: {path: values}",
            field=field,
        )
    if keys[0] == "protocols" and (len(keys) < 3 or keys[1] not in source.data["protocols"]):
        known = source.data["protocols"]
        wrong = keys[1] if len(keys) > 1 else ""
        raise InputError(
            f"unknown protocol {wrong!r}{suggestion(wrong, known)} admissible: {', '.join(known)}", field=field
        )


def chosen(source: Source, choices: Mapping[str, Mapping[str, Any]]) -> Source:
    """The scenario with some protocols' tuned fields set, and noted as tuned.

    Parameters
    ----------
    source : Source
    choices : mapping of str to mapping
        Values by field, by the protocol's key.
    """
    for key, values in choices.items():
        for path, value in values.items():
            place = source.where(("tune", "over", f"{key}.{path}"))
            source = source.with_value(("protocols", key, *path.split(".")), value, place)
        before = source.value(("protocols", key, "tuned"))
        noted = [*(before if isinstance(before, list) else []), *values]
        source = source.with_value(("protocols", key, "tuned"), list(dict.fromkeys(noted)), source.where(("tune",)))
    return source


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
    # Where there is no scenario to point into, such as in `hushnet plot`, sentences begin with the field themselves.
    message = " ".join(message.split()).rstrip(".").removeprefix(f"{dotted(keys)}: ")
    if not keys or place.startswith(f"--set {dotted(keys)}="):
        return f"{place}: {message}"
    given = "" if value is ... else f" = {show(value)}"
    origin = "" if parent is None else f" (inherited from {parent})"
    return f"{place}: {dotted(keys)}{given}{origin}: {message}"
