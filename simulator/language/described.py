"""Descriptions of a scenario's fields: type, unit, default, range and meaning, for the shell and the documentation."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ...agents.docstrings import field_docstrings
from ...protocols import catalog
from .admissible import kinds_of, models, words
from .scenario import Scenario

UNITS = {
    "Interval": "time units",
    "Delay": "time units",
    "Instant": "time units",
    "Rate": "per time unit",
    "Duration": "seconds, or with a unit such as 30 s",
}
"""What numbers of a kind (`hushnet.agents.parameters`) are counted in, by the name that annotations give it."""

SECTIONS = {
    "task": ("task",),
    "model": ("task", "model"),
    "split": ("task", "split"),
    "topology": ("topology",),
    "changes": ("topology", "changes"),
    "clock": ("clock",),
    "compute": ("compute",),
    "latency": ("network", "latency"),
    "loss": ("network", "loss"),
    "availability": ("availability",),
    "attack": ("adversaries", "attack"),
}
"""Fields that choose a kind, by the names of their lists."""


@dataclass(frozen=True)
class Described:
    """A field of a scenario, or of a part of it."""

    name: str
    """As in the file."""
    type: str
    """What it admits, in words."""
    unit: str
    """What a number is counted in; empty where it is counted in nothing, or its meaning says it."""
    default: str | None
    """As in the file; "by default ..." where the meaning says it; None where the field must be given."""
    range: str
    """As an interval, such as ``(0, 1]``; empty where everything is admissible."""
    meaning: str
    """Its docstring."""
    example: str | None = None
    """A value, as in the file; fields that must be given have one."""


def described(model: type[BaseModel]) -> list[Described]:
    """The fields of a part of a scenario, a class of parameters, in their order."""
    texts = field_docstrings(model)
    return [
        Described(
            info.alias or name,
            words(info) or "any value",
            _unit(model, name),
            _default(info),
            _range(info),
            info.description or texts.get(name, ""),
            shown(info.examples[0]) if info.examples else None,
        )
        for name, info in model.model_fields.items()
    ]


def kinds_in(section: str) -> dict[str, type[BaseModel]]:
    """The classes of parameters that a list of `SECTIONS` chooses from, by ``kind``.

    Raises `KeyError` if there is no such list.
    """
    parts: list[type[BaseModel]] = [Scenario]
    for name in SECTIONS[section]:
        parts = [part for held in parts if name in held.model_fields for part in models(held.model_fields[name])]
    return {kind: model for model in parts for kind in kinds_of(model)}


def protocols() -> dict[str, type[BaseModel]]:
    """Parameters of shipped and installed protocols, by ``kind``."""
    return {name: protocol.Parameters for name, protocol in catalog.loadable().items()}


def summary(thing: object) -> str:
    """The first line of a docstring."""
    return inspect.cleandoc(getattr(thing, "__doc__", None) or "").partition("\n")[0]


def _unit(model: type[BaseModel], name: str) -> str:
    for base in model.__mro__:
        written = vars(base).get("__annotations__", {}).get(name)
        if written is not None:
            found = [UNITS[word] for word in re.findall(r"\w+", str(written)) if word in UNITS]
            return found[0] if found else ""
    return ""


def unit_of(path: str, scenario: Mapping[str, Any]) -> str:
    """Return the unit of the numbers of a field, such as ``network.latency.mean``; empty without one, or such a field.

    Kinds of the resolved scenario's parts decide which fields there are.
    """
    model, given, unit = Scenario, scenario, ""
    for name in path.split("."):
        given = given.get(name) if isinstance(given, Mapping) else None
        if model is None:
            model = _model_of(None, given)  # an entry of a mapping, such as a protocol by its key
            continue
        field = next((own for own, info in model.model_fields.items() if name in (own, info.alias)), None)
        if field is None:
            return ""
        unit, model = _unit(model, field), _model_of(model.model_fields[field], given)
    own = [name for name in (() if model is None else model.model_fields) if name != "kind"]
    if model is not None and len(own) == 1:  # a bare number stands for it
        unit = _unit(model, own[0])
    return unit if "," not in unit else ""


def _model_of(annotation: Any, given: Any) -> type[BaseModel] | None:
    """The class of parameters of a part of a scenario, by its kind if there are several; of a protocol by its key."""
    kind = given.get("kind") if isinstance(given, Mapping) else None
    if annotation is None:
        return catalog.resolve(kind).Parameters if kind in catalog.names() else None
    found = models(annotation)
    return next(iter([model for model in found if kind in kinds_of(model)] or found), None)


def _default(info: FieldInfo) -> str | None:
    if info.is_required():
        return None
    value = info.default if info.default is not PydanticUndefined else info.get_default(call_default_factory=True)
    return shown(value)


def shown(value: Any) -> str:
    """A value as a scenario would give it."""
    if isinstance(value, BaseModel):
        given = {k: v for k, v in value.model_dump(by_alias=True).items() if v is not None}
        return shown(given) if given else "{}"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {shown(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(shown, value)) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _range(info: FieldInfo) -> str:
    """The bounds of a number; those of one of several types stand in their own words."""
    low, high, opened, closed = -math.inf, math.inf, True, True
    for metadata in _metadata(info):
        for name in ("ge", "gt"):
            bound = getattr(metadata, name, None)
            if bound is not None:
                low, opened = bound, name == "gt"
        for name in ("le", "lt"):
            bound = getattr(metadata, name, None)
            if bound is not None:
                high, closed = bound, name == "lt"
    if math.isinf(low) and math.isinf(high):
        return ""
    ends = [f"{end:,}" if isinstance(end, int) else f"{end:g}" for end in (low, high)]
    return f"{'(' if opened else '['}{ends[0]}, {ends[1]}{')' if closed else ']'}"


def _metadata(info: FieldInfo) -> list[Any]:
    """Metadata with the bounds of a field itself, or of the only one of its alternatives that has bounds."""
    if any(hasattr(part, name) for part in info.metadata for name in ("ge", "gt", "le", "lt")):
        return list(info.metadata)
    parts = getattr(info.annotation, "__args__", ())
    bounded = []
    for part in parts:
        inner = [
            piece
            for given in getattr(part, "__metadata__", ())
            for piece in (given.metadata if isinstance(given, FieldInfo) else [given])
        ]
        if any(hasattr(piece, name) for piece in inner for name in ("ge", "gt", "le", "lt")):
            bounded.append(inner)
    return bounded[0] if len(bounded) == 1 else []
