"""Turns what pydantic says about a scenario into one sentence per mistake, with file, line, path and value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any

from pydantic import ValidationError

from ...protocols.catalog import nearest, suggestion
from . import admissible
from .drafts import Family, sentence
from .yaml_source import Keys, Source, has

_MISMATCHES = {
    "bool_type",
    "dict_type",
    "float_type",
    "int_from_float",
    "int_type",
    "is_instance_of",
    "list_type",
    "literal_error",
    "mapping_type",
    "model_attributes_type",
    "model_type",
    "string_type",
    "tuple_type",
}
"""Errors that say only that a value is of another type."""

_LIMITS = {
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "multiple_of": "must be a multiple of {multiple_of:g}",
    "finite_number": "must be a finite number",
    "string_too_short": "must have at least {min_length} character(s)",
    "string_too_long": "must have at most {max_length} character(s)",
    "string_pattern_mismatch": "must match {pattern}",
    "too_short": "must have at least {min_length} entries, not {actual_length}",
    "too_long": "must have at most {max_length} entries, not {actual_length}",
    "value_error": "{error}",
}


MISSING = "is missing"


@dataclass(frozen=True)
class Mistake:
    """One mistake, by where it is in the data.

    Parameters
    ----------
    keys : Keys
    message : str
    value : any
        The offending value where showing it helps, else ``...``.
    meant : str, optional
        The field that an unknown one seems to be; that it is missing goes without saying.
    """

    keys: Keys
    message: str
    value: Any = ...
    meant: str | None = None


@dataclass(frozen=True)
class _Finding:
    """One of pydantic's errors, by its place in the data rather than in the type."""

    type: str
    keys: Keys
    context: Mapping[str, Any]
    text: str
    at_union: bool


def mistakes(error: ValidationError, model: Any, data: Any, prefix: Keys = ()) -> list[Mistake]:
    """What is wrong with some data, in the order in which pydantic met it.

    Parameters
    ----------
    error : ValidationError
    model : type
        What the data were validated as.
    data : any
        The data as they were written.
    prefix : Keys
        Where the data stand in the scenario.
    """
    findings = [_finding(detail, data) for detail in error.errors(include_url=False)]
    found: list[Mistake] = []
    for finding in findings:
        mismatch = finding.at_union and finding.type in _MISMATCHES
        if mismatch and any(_closer(other, finding) for other in findings):
            continue
        mistake = _mistake(finding, model, data)
        mistake = replace(mistake, keys=(*prefix, *mistake.keys))
        if mistake not in found:
            found.append(mistake)
    misspelt = {(*mistake.keys[:-1], mistake.meant) for mistake in found if mistake.meant}
    return [mistake for mistake in found if mistake.message != MISSING or mistake.keys not in misspelt]


def sentences(found: Sequence[Mistake], source: Source, family: Family) -> list[str]:
    """One sentence per mistake; a mistake that was inherited is told once, where it was written."""
    told = {(mistake.keys, mistake.message) for mistake in found}
    lines = []
    for mistake in found:
        origin = _origin(mistake.keys, family)
        if (origin is not None and (origin, mistake.message) in told) or _told_above(mistake, source, family, told):
            continue
        parent = None if origin is None else str(origin[1])
        place = None if origin is None else source.where((*mistake.keys[:2], "like"))
        lines.append(sentence(source, mistake.keys, mistake.message, value=mistake.value, parent=parent, place=place))
    return list(dict.fromkeys(lines))


def _told_above(mistake: Mistake, source: Source, family: Family, told: set[tuple[Keys, str]]) -> bool:
    """Whether an entry repeats a mistake of one that it is like, without having written a value of its own there."""
    keys = mistake.keys
    if keys[:1] != ("protocols",) or len(keys) < 2 or not isinstance(source.value(keys), Mapping | EllipsisType):
        return False
    above = family.ancestors(str(keys[1]))
    return any((("protocols", name, *keys[2:]), mistake.message) in told for name in above)


def _origin(keys: Keys, family: Family) -> Keys | None:
    for length in range(len(keys), 2, -1):
        if keys[:length] in family.inherited:
            return (*family.inherited[keys[:length]], *keys[length:])
    return None


def _finding(detail: Any, data: Any) -> _Finding:
    """Drop the parts of pydantic's location that name a union's branch and not a place in the data."""
    keys: list[str | int] = []
    here, at_union = data, False
    for position, part in enumerate(detail["loc"], start=1):
        at_union = not has(here, part)
        if not at_union:
            keys.append(part)
            here = here[part]
        elif position == len(detail["loc"]) and detail["type"] == "missing":
            keys.append(part)
    for part in getattr(detail.get("ctx", {}).get("error"), "field", ()):
        # A rule about several fields names the one to change.
        if not has(here, part):
            break
        keys.append(part)
        here = here[part]
    return _Finding(detail["type"], tuple(keys), detail.get("ctx", {}), detail["msg"], at_union)


def _closer(other: _Finding, mismatch: _Finding) -> bool:
    """Whether another error is about the branch of the union that the user meant."""
    same = other.keys[: len(mismatch.keys)] == mismatch.keys
    return same and not (other.at_union and other.type in _MISMATCHES and other.keys == mismatch.keys)


def _mistake(finding: _Finding, model: Any, data: Any) -> Mistake:
    keys, context = finding.keys, finding.context
    value = data
    for key in keys if finding.type != "missing" else keys[:-1]:
        value = value[key]
    if finding.type == "missing":
        return Mistake(keys, MISSING)
    if finding.type == "extra_forbidden":
        around: Any = data
        for key in keys[:-1]:
            around = around[key]
        known = admissible.fields(admissible.at(model, data, keys[:-1]), around)
        return unknown_field(keys, known)
    annotation = admissible.at(model, data, keys)
    if finding.type == "union_tag_not_found":
        name = _tag_name(context)
        known = admissible.tags(annotation, name)
        return without_kind(keys, value, f"is missing; admissible: {', '.join(known)}", (name,))
    if finding.type == "union_tag_invalid":
        name = _tag_name(context)
        wrong = _one_of(f"unknown {name}", value[name], admissible.tags(annotation, name))
        return Mistake((*keys, name), wrong, value[name])
    shown = ... if isinstance(value, Mapping) else value
    if finding.type in _MISMATCHES:
        options = admissible.literals(annotation)
        if len(options) > 1 and not admissible.models(annotation) and isinstance(value, str):
            return Mistake(keys, _one_of("is not admissible", value, options), value)
        text = admissible.words(annotation)
        return Mistake(keys, f"must be {text}" if text else _fallback(finding), value if _small(value) else ...)
    template = _LIMITS.get(finding.type)
    message = template.format(**context) if template else _fallback(finding)
    return Mistake(keys, message, shown if _small(value) else ...)


def unknown_field(keys: Keys, known: Sequence[str]) -> Mistake:
    """A field that is not admissible where it stands."""
    return Mistake(keys, _one_of(f"unknown field {keys[-1]!r}", keys[-1], known), meant=nearest(keys[-1], known))


def without_kind(keys: Keys, given: Mapping[str, Any], message: str, names: Sequence[str] = ("kind",)) -> Mistake:
    """A mapping without a kind: one of its fields may be a misspelt one."""
    for field in given:
        if nearest(field, names):
            return unknown_field((*keys, field), names)
    return Mistake((*keys, names[0]), message)


def _tag_name(context: Mapping[str, Any]) -> str:
    """The field that tells the models of a union apart, ``kind`` or ``by``."""
    return str(context["discriminator"]).strip("'")


def _small(value: Any) -> bool:
    return not isinstance(value, Mapping | list) or (isinstance(value, list) and len(value) <= 4)


def _one_of(start: str, given: Any, known: Sequence[Any]) -> str:
    return f"{start}{suggestion(given, [str(word) for word in known])} admissible: {', '.join(map(str, known))}"


def _fallback(finding: _Finding) -> str:
    return finding.text.replace("Input should be", "must be")
