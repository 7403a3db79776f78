"""Transformations of a scenario before its validation: ``--set``, ``quick``, ``like``, sweeps and tuning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from math import prod
from typing import Any

from ...agents.errors import InputError
from ...agents.suggestions import require, suggestion
from .sweeps import Axis, expand
from .yaml_source import Keys, Source, read_text

SWEEPABLE = (
    "task",
    "topology",
    "clock",
    "compute",
    "network",
    "availability",
    "adversaries",
    "protocols",
    "stop",
    "record",
    "engine",
)
"""Parts of a scenario that a sweep may vary."""

USUAL_CLOCK = "poisson"

MAX_POINTS = 10_000
MAX_SETTINGS = 1_000_000
"""Settings that all points of a grid may make together."""
MOST_SET = 1_000
"""Fields that a point of a grid, a trial or a quick version sets."""


def override(source: Source, assignments: Sequence[str]) -> Source:
    """Apply ``path=value`` assignments of the command line, in order.

    Raises `InputError` if an assignment cannot be read, has no place in the scenario, or is of a field that the sweep
    sets.
    """
    assigned: dict[str, str] = {}
    for assignment in assignments:
        place = f"--set {assignment}"
        path, equals, text = assignment.partition("=")
        if not equals or not all(path.strip().split(".")):
            raise InputError(f"{place}: must look like network.loss=0.2")
        value = read_text(text, place, numbered=False).data if text.strip() else None
        source = _set(source, path.strip(), value, place, said=place)
        assigned |= dict.fromkeys(expand(path.strip()), place)
    for axis, path in _swept(source.data.get("sweep")):
        if path in assigned:
            raise InputError(
                f"{assigned[path]}: has no effect, for the sweep sets this field (sweep.{axis}); leave it out, give "
                f"sweep.{axis} other values, or take all sweeps away by --set sweep={{}}"
            )
    return source


def _swept(sweep: Any) -> Iterator[tuple[str, str]]:
    """The fields that a sweep sets, as far as it can be read, each after the name of its axis."""
    for axis, given in sweep.items() if isinstance(sweep, Mapping) else ():
        zipped = given.get("zip") if isinstance(given, Mapping) else None
        for path in zipped if isinstance(zipped, Mapping) else [axis]:
            with suppress(InputError):
                yield from ((axis, each) for each in expand(str(path)))


def quickened(source: Source) -> Source:
    """The quick version of a scenario: its ``quick`` assignments made, under a name of its own.

    Raises `InputError` if it has none, or one has no place in the scenario.
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
        if path.partition(".")[0] == "quick":
            raise InputError(f"{said}: must be a path outside of quick, such as network.loss")
        source = _set(source, path, value, place, said=said)
    name = source.data.get("scenario")
    if not isinstance(name, str):
        return source
    return source.with_value(("scenario",), f"{name}-quick", source.where(("scenario",)))


def _set(source: Source, path: str, value: Any, place: str, *, said: str) -> Source:
    """Set what a path stands for; ``said`` begins the sentence about one that has no place in the scenario."""
    try:
        paths = expand(path)
    except InputError as error:
        raise InputError(f"{said}: {error}") from error
    protocols = source.data.get("protocols")
    for each in paths:
        keys = _keys(each)
        if keys[0] == "protocols" and len(keys) > 2 and isinstance(protocols, Mapping):
            require(str(keys[1]), protocols, f"{said}: unknown protocol {keys[1]!r}", ())
        source = _with_value(source, keys, value, place)
    return source


def _with_value(source: Source, keys: Keys, value: Any, place: str) -> Source:
    """Set one part; a clock that is not written down is the usual one, of which a field may be set."""
    if keys[0] == "clock" and len(keys) > 1 and "clock" not in source.data:
        source = source.with_value(("clock", "kind"), USUAL_CLOCK, place)
    return source.with_value(keys, value, place)


def _keys(path: str) -> Keys:
    """Split a path at its dots into keys; the rest after ``sweep`` or ``tune.over`` is one key, dots and all."""
    for start in (("sweep",), ("tune", "over")):
        begun = ".".join(start) + "."
        if path.startswith(begun):
            return (*start, path.removeprefix(begun))
    return tuple(path.split("."))


def grid(source: Source, axes: Sequence[Axis]) -> Iterator[tuple[dict[str, Any], Source]]:
    """Every combination of a sweep's places, by the axes' names, with the scenario that has its values set.

    Raises `InputError` if a path may not be swept or there are too many combinations.
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
        near = suggestion(keys[0], SWEEPABLE)
        if keys[0] in (source.data.get("protocols") or {}):
            near = f"; did you mean 'protocols.{path}'?"
        raise InputError(
            f"cannot be swept{near} admissible are fields of {', '.join(SWEEPABLE)}, such as "
            "network.loss; several that move together need zip: {path: values}",
            field=field,
        )
    if keys[0] != "protocols":
        return
    known = source.data["protocols"]
    if len(keys) < 2:
        raise InputError("names no field of a protocol, such as protocols.KEY.label", field=field)
    require(keys[1], known, f"unknown protocol {keys[1]!r}", field)
    if len(keys) < 3:
        raise InputError(f"is a whole protocol; name a field of it, such as {path}.label", field=field)


def chosen(source: Source, choices: Mapping[str, Mapping[str, Any]], scaled: Mapping[str, Mapping[str, Any]]) -> Source:
    """The scenario with some protocols' fields set, by the protocol's key: those that were chosen are noted as tuned.

    Those that are `scaled` follow from an equal budget, which no data decided.
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
