"""Values that a field of a scenario allows, read off the pydantic models and put in words."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ...agents.durations import Timed
from ...agents.kinds import Bare, KindOf, NameOf
from ...agents.suggestions import nearest
from .yaml_source import Keys, has

MOST_WEIGHED = 50
"""Fields of a mapping that say what it was meant to be."""

_WORDS = {
    Timed: "a duration such as 80 ms",
    float: "a number",
    int: "a whole number",
    str: "text",
    bool: "true or false",
}
_PLURALS = {
    "a number": "numbers",
    "a whole number": "whole numbers",
    f"a number or {_WORDS[Timed]}": "numbers or durations such as 80 ms",
}


def at(annotation: Any, data: Any, keys: Keys) -> Any:
    """The type that is expected at some keys inside data that should be of a given type; None if unknown."""
    for key in keys:
        annotation = _inside(annotation, data, key)
        data = data[key] if has(data, key) else None
    return annotation


def members(annotation: Any) -> list[Any]:
    """The alternatives of a type: unions and annotations taken apart, None left out."""
    if isinstance(annotation, FieldInfo):
        return _annotated(annotation.annotation, annotation.metadata)
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        return _annotated(inner, metadata)
    if get_origin(annotation) in (Union, types.UnionType):
        return [member for part in get_args(annotation) for member in members(part)]
    return [] if annotation in (None, type(None)) else [annotation]


def _annotated(inner: Any, metadata: Sequence[Any]) -> list[Any]:
    """The alternatives of a type with annotations, which may be those of a registry."""
    bare = next((part for part in metadata if isinstance(part, Bare)), None)
    numbers = [] if bare is None else [float]
    timed = [Timed] if any(isinstance(part, Timed) for part in metadata) or (bare and bare.timed) else []
    for part in metadata:
        if isinstance(part, NameOf | KindOf):
            return [*numbers, *timed, *part.members()]
    return [*numbers, *members(inner), *timed]


def models(annotation: Any) -> list[type[BaseModel]]:
    """The models among a type's alternatives."""
    return [member for member in members(annotation) if isinstance(member, type) and issubclass(member, BaseModel)]


def kinds(annotation: Any) -> list[str]:
    """Every ``kind`` that the models among a type's alternatives go by."""
    return tags(annotation, "kind")


def tags(annotation: Any, name: str) -> list[str]:
    """Every literal value of the field that tells the models among a type's alternatives apart."""
    return [tag for model in models(annotation) for tag in _literals_of(model, name)]


def kinds_of(model: type[BaseModel]) -> tuple[str, ...]:
    """The literal values of a model's field ``kind``."""
    return _literals_of(model, "kind")


def _literals_of(model: type[BaseModel], name: str) -> tuple[str, ...]:
    annotation = model.model_fields[name].annotation if name in model.model_fields else None
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def fields(annotation: Any, data: Any) -> list[str]:
    """Fields that a mapping of this type may have, given what it has."""
    model = _model(annotation, data)
    return [] if model is None else [info.alias or name for name, info in model.model_fields.items()]


def literals(annotation: Any) -> list[Any]:
    """The literal values among a type's alternatives."""
    return [value for member in members(annotation) if get_origin(member) is Literal for value in get_args(member)]


def words(annotation: Any) -> str:
    """Return the values that a type allows, in words; empty if there are none for it.

    >>> words(float | list[int] | None)
    'a number or a list of whole numbers'
    """
    parts = list(dict.fromkeys(_parts(annotation)))
    return " or ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _parts(annotation: Any) -> Iterator[str]:
    named = kinds(annotation)
    for member in members(annotation):
        origin = get_origin(member) or member
        if origin in _WORDS:
            yield _WORDS[origin]
        elif origin is Literal:
            yield from (str(value) for value in get_args(member))
        elif origin is list:
            inner = words(get_args(member)[0]) if get_args(member) else ""
            yield f"a list of {_PLURALS[inner]}" if inner in _PLURALS else "a list"
        elif isinstance(origin, type) and issubclass(origin, BaseModel):
            listed = f"kind {', '.join(named)}" if kinds_of(origin) else f"the fields {', '.join(fields(member, {}))}"
            yield f"a mapping with {listed}"
        elif isinstance(origin, type) and issubclass(origin, Mapping | dict):
            yield "a mapping"


def _inside(annotation: Any, data: Any, key: str | int) -> Any:
    model = _model(annotation, data)
    if model is not None and isinstance(key, str):
        named = {info.alias or name: info for name, info in model.model_fields.items()}
        return named.get(key)
    wanted = list if isinstance(key, int) else dict
    for member in members(annotation):
        if get_origin(member) is wanted and get_args(member):
            return get_args(member)[-1]
    return None


def _model(annotation: Any, data: Any) -> type[BaseModel] | None:
    """The model that a mapping was meant for: the one of its kind, else the one that knows most of its fields.

    A field that is only spelt alike counts half.
    """
    candidates = models(annotation)
    if not candidates or not isinstance(data, Mapping):
        return None
    for model in candidates:
        if any(data.get(name) in _literals_of(model, name) for name in ("kind", "by")):
            return model
    return candidates[0] if len(candidates) == 1 else max(candidates, key=lambda model: _known(model, data))


def _known(model: type[BaseModel], data: Mapping[str, Any]) -> float:
    names = [info.alias or name for name, info in model.model_fields.items()]
    return sum(1.0 if key in names else 0.5 * (nearest(key, names) is not None) for key in islice(data, MOST_WEIGHED))
