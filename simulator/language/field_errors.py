"""Turns what pydantic says about a scenario into one sentence per error, with file, line, path and value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from ...agents.suggestions import listed, nearest, suggestion
from . import admissible
from .inheritance import MOST_SAID, Family
from .yaml_source import Keys, Source, dotted, has, show

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
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "finite_number": "must be a finite number",
    "string_too_short": "must have at least {min_length} character(s)",
    "string_too_long": "must have at most {max_length} character(s)",
    "string_pattern_mismatch": "must match {pattern}",
    "too_short": "must have at least {min_length} entries, not {actual_length}",
    "too_long": "must have at most {max_length} entries, not {actual_length}",
    "value_error": "{error}",
}


MISSING = "is missing"
LONGEST = 2_000
"""Characters of a sentence."""


@dataclass(frozen=True)
class ScenarioError:
    """One error, by where it is in the data."""

    keys: Keys
    message: str | Callable[[], str]
    """What makes the message: only so many errors are said, and a suggestion takes its time."""
    value: Any = ...
    """The offending value where showing it helps, else ``...``."""
    type: str = ""
    """What the same errors at different places have in common; by default the message."""

    @property
    def identity(self) -> tuple[Keys, str]:
        """Mistakes that are the same have the same one."""
        return self.keys, self.type or str(self.message)


@dataclass(frozen=True)
class _Finding:
    """One of pydantic's errors, by its place in the data rather than in the type."""

    type: str
    keys: Keys
    context: Mapping[str, Any]
    text: str
    at_union: bool


def field_errors(error: ValidationError, model: Any, data: Any, prefix: Keys = ()) -> list[ScenarioError]:
    """Return the errors of data that were refused as a model, in the order in which pydantic met them.

    The data are as they were written, below the keys of the prefix in the scenario.
    """
    findings = [_finding(detail, data) for detail in error.errors(include_url=False, include_input=False)]
    reported, meant = _reported(findings), _meant(findings, model, data)
    found: dict[tuple[Keys, str], ScenarioError] = {}
    for finding in findings:
        if _is_mismatch(finding) and finding.keys in reported:
            continue
        if finding.type == "missing" and finding.keys[-1] in meant[finding.keys[:-1]]:
            continue  # an unknown field is a misspelt one, of which that says enough
        one = _field_error(finding, model, data, prefix)
        found.setdefault(one.identity, one)
    return list(found.values())


def sentence(
    source: Source, keys: Keys, message: str, *, value: Any = ..., parent: str | None = None, place: str | None = None
) -> str:
    """``file:line: path = value: message``; a ``--set`` already names path and value, and ``...`` is no value.

    The place is where the source has the part, unless another is given; `parent` is the entry that it was inherited
    from.
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


def sentences(found: Sequence[ScenarioError], source: Source, family: Family) -> list[str]:
    """One sentence for each of the first errors; one that was inherited is reported once, where it was written."""
    reported = {error.identity for error in found}
    lines: dict[str, None] = {}
    more: set[tuple[Keys, str]] = set()
    for error in found:
        if _reported_above(error, source, family, reported):
            continue
        if len(lines) >= MOST_SAID:
            more.add(error.identity)
            continue
        parent = _origin(error.keys, source, family)
        place = None if parent is None else source.where((*error.keys[:2], "like"))
        message = error.message if isinstance(error.message, str) else error.message()
        lines[sentence(source, error.keys, message, value=error.value, parent=parent, place=place)] = None
    return [*lines, *([f"{source.name}: and {len(more):,} more"] if more else [])]


def _reported_above(error: ScenarioError, source: Source, family: Family, reported: set[tuple[Keys, str]]) -> bool:
    """True if an entry only repeats an error of an entry that it inherits from, and has no value of its own there."""
    keys = error.keys
    if keys[:1] != ("protocols",) or len(keys) < 2 or not isinstance(source.value(keys), Mapping | EllipsisType):
        return False
    above = family.ancestors(str(keys[1]))
    return any((("protocols", name, *keys[2:]), error.identity[1]) in reported for name in above)


def _origin(keys: Keys, source: Source, family: Family) -> str | None:
    """The entry that another one inherited a part from, or the nearest part around it; None if it is its own."""
    if keys[:1] != ("protocols",) or len(keys) < 3:
        return None
    complete = Source("", {"protocols": family.entries})
    name = str(keys[1])
    part = next((keys[2:length] for length in range(len(keys), 2, -1) if complete.value(keys[:length]) is not ...), ())
    writers = (name, *family.ancestors(name))
    first = next((one for one in writers if part and source.value(("protocols", one, *part)) is not ...), name)
    return None if first == name else first


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


def _is_mismatch(finding: _Finding) -> bool:
    """True if an error says only that a value fits no branch of a union."""
    return finding.at_union and finding.type in _MISMATCHES


def _reported(findings: Sequence[_Finding]) -> set[Keys]:
    """Keys at or below which an error concerns the branch of a union that the user meant."""
    reported: set[Keys] = set()
    for finding in findings:
        reported.update(finding.keys[:length] for length in range(len(finding.keys) + (not _is_mismatch(finding))))
    return reported


def _meant(findings: Sequence[_Finding], model: Any, data: Any) -> Mapping[Keys, set[str | None]]:
    """Known fields that unknown ones resemble most, by the keys of the first few mappings that also lack a field."""
    unknown: dict[Keys, list[str | int]] = {}
    meant: dict[Keys, set[str | None]] = defaultdict(set)
    for finding in findings:
        if finding.type == "extra_forbidden":
            unknown.setdefault(finding.keys[:-1], []).append(finding.keys[-1])
    for keys in dict.fromkeys(finding.keys[:-1] for finding in findings if finding.type == "missing"):
        if keys in unknown and len(meant) < MOST_SAID:
            known = admissible.fields(admissible.at(model, data, keys), _at(data, keys))
            meant[keys] = {nearest(field, known) for field in unknown[keys][:MOST_SAID]}
    return meant


def _at(data: Any, keys: Keys) -> Any:
    for key in keys:
        data = data[key]
    return data


def _field_error(finding: _Finding, model: Any, data: Any, prefix: Keys) -> ScenarioError:
    keys, context = finding.keys, finding.context
    where = (*prefix, *keys)
    if finding.type == "missing":
        return ScenarioError(where, lambda: _missing(admissible.at(model, data, keys)), type=MISSING)
    value = _at(data, keys)
    if finding.type == "extra_forbidden":
        above = keys[:-1]
        return unknown_field(where, lambda: admissible.fields(admissible.at(model, data, above), _at(data, above)))
    if finding.type in ("union_tag_not_found", "union_tag_invalid"):
        name = str(context["discriminator"]).strip("'")  # ``kind`` or ``by``
        known = lambda: admissible.tags(admissible.at(model, data, keys), name)  # noqa: E731
        if finding.type == "union_tag_not_found":
            return without_kind(where, value, lambda: f"is missing; admissible: {listed(known())}", (name,))
        return ScenarioError(
            (*where, name), lambda: _one_of(f"unknown {name}", value[name], known()), value[name], finding.type
        )
    shown = (
        value if _small(value) and (finding.type in _MISMATCHES or not isinstance(value, Mapping | BaseModel)) else ...
    )
    if finding.type in _MISMATCHES:
        return ScenarioError(
            where, lambda: _of_another_type(finding, admissible.at(model, data, keys), value), shown, "type"
        )
    template, bounds = _LIMITS.get(finding.type), {key: _bound(value) for key, value in context.items()}
    return ScenarioError(where, template.format(**bounds) if template else _fallback(finding), shown)


def _missing(annotation: Any) -> str:
    text = admissible.words(annotation)
    if text == "text" and isinstance(annotation, FieldInfo) and annotation.description:
        what = annotation.description.partition(". ")[0]
        return f"{MISSING}; {what[0].lower()}{what[1:]}"
    return f"{MISSING}; must be {text}" if text else MISSING


def _of_another_type(finding: _Finding, annotation: Any, value: Any) -> str:
    options = admissible.literals(annotation)
    if len(options) > 1 and not admissible.models(annotation) and isinstance(value, str):
        return _one_of("is not admissible", value, options)
    text = admissible.words(annotation)
    return f"must be {text}" if text else _fallback(finding)


def unknown_field(keys: Keys, known: Callable[[], Sequence[str]]) -> ScenarioError:
    """A field that is not admissible where it stands."""
    return ScenarioError(
        keys, lambda: _one_of(f"unknown field {show(keys[-1])}", keys[-1], known()), type="unknown field"
    )


def without_kind(
    keys: Keys, given: Mapping[str, Any], message: Callable[[], str], names: Sequence[str] = ("kind",)
) -> ScenarioError:
    """A mapping without a kind: one of its fields may be a misspelt one."""
    for field in given:
        if nearest(field, names):
            return unknown_field((*keys, field), lambda: names)
    return ScenarioError((*keys, names[0]), message, type="without kind")


def _bound(value: Any) -> Any:
    """A bound as people write it."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    return f"{value:g}" if float(f"{value:g}") == value else str(value)


def _small(value: Any) -> bool:
    return not isinstance(value, Mapping | list) or (isinstance(value, list) and len(value) <= 4)


def _one_of(start: str, given: Any, known: Sequence[Any]) -> str:
    return f"{start}{suggestion(given, [str(word) for word in known])} admissible: {listed(known)}"


def _fallback(finding: _Finding) -> str:
    return finding.text.replace("Input should be", "must be")
