"""What happens to a scenario before validation: old words, ``--set``, ``quick``, ``like``, sweeps and tuning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from math import prod
from typing import Any

from ...agents.errors import InputError
from ...agents.suggestions import MOST_COMPARED, listed, suggestion
from .spellings import respelled
from .sweeps import Axis, expand
from .yaml_source import Keys, Source, dotted, read_text, show

SWEEPABLE = ("task", "topology", "clock", "network", "availability", "protocols", "stop", "record", "engine")
"""Parts of a scenario that a sweep may vary."""

USUAL_CLOCK = "poisson"

ENTRY = "must be a mapping with a kind, or with like"

MAX_POINTS = 10_000
MAX_SETTINGS = 1_000_000
"""Settings that all points of a grid may make together."""
MOST_LIKE = 100
"""Entries that one inherits from, one through the other."""
MOST_SAID = 20
"""Mistakes of a scenario that are said one by one."""
MOST_SET = 1_000
"""Fields that a point of a grid, a trial or a quick version sets."""
LONGEST = 2_000
"""Characters of a sentence."""


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
    if len(quick) > MOST_SET:
        where = source.where(("quick",))
        raise InputError(f"{where}: quick: has {len(quick):,} entries; at most {MOST_SET:,} are admissible")
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
                f"{said}: unknown protocol {wrong!r}{suggestion(wrong, protocols)} admissible: {listed(protocols)}"
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
    settings = sum(len(axis.settings[0]) for axis in axes)
    if settings > MOST_SET or points * settings > MAX_SETTINGS:
        raise InputError(
            f"sets {settings:,} fields at each of {points:,} points; at most {MOST_SET:,}, and "
            f"{MAX_SETTINGS:,} in all, are admissible",
            field=("sweep",),
        )
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
            f"unknown protocol {wrong!r}{suggestion(wrong, known)} admissible: {listed(known)}", field=field
        )


def chosen(source: Source, choices: Mapping[str, Mapping[str, Any]], scaled: Mapping[str, Mapping[str, Any]]) -> Source:
    """The scenario with some protocols' tuned fields set, and noted as tuned.

    Parameters
    ----------
    source : Source
    choices : mapping of str to mapping
        Values by field, by the protocol's key.
    scaled : mapping of str to mapping
        The same for what no data decided: fields that follow from an equal budget.
    """
    for key, values in scaled.items():
        for path, value in values.items():
            source = source.with_value(("protocols", key, *path.split(".")), value, source.where(("tune", "budget")))
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
    given = "" if value is ... else f" = {show(value)}"
    origin = "" if parent is None else f" (inherited from {parent})"
    named = "" if not keys or place.startswith(f"--set {dotted(keys)}=") else f"{_cut(dotted(keys))}{given}{origin}: "
    text = f"{place}: {named}{message}"
    return _cut(text, LONGEST)


def _cut(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
