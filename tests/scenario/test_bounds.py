"""Every number of a scenario has bounds: what `check` calls valid neither overflows nor fills the memory."""

from __future__ import annotations

import types
from typing import Annotated, Any, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from hushnet.protocols import catalog
from hushnet.simulator.language.scenario import Scenario
from pydantic import BaseModel
from pydantic.fields import FieldInfo

FREE = {("TargetParameters", "level"), ("Figure", "at"), ("Together", "labels"), ("Figure", "seed")}
"""Numbers that nothing is computed from: they are compared, or printed."""


def numbers(annotation: Any, metadata: tuple[Any, ...], seen: set[type]):
    """Every number within a type: its own type and the bounds that stand around it."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        parts = [part for item in more for part in (item.metadata if isinstance(item, FieldInfo) else [item])]
        yield from numbers(inner, (*metadata, *parts), seen)
    elif get_origin(annotation) in (Union, types.UnionType, list, tuple, dict):
        inside = metadata if get_origin(annotation) in (Union, types.UnionType) else ()
        for part in get_args(annotation):
            yield from numbers(part, inside, seen)
    elif annotation in (int, float):
        yield metadata
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in seen:
        yield from unbounded(annotation, seen)


def unbounded(model: type[BaseModel], seen: set[type]):
    seen.add(model)
    for name, info in model.model_fields.items():
        for found in numbers(info.annotation, tuple(info.metadata), seen):
            if isinstance(found, tuple) and found and isinstance(found[0], str):
                yield found
            elif (model.__name__, name) not in FREE:
                low = any(isinstance(part, Ge | Gt) for part in found)
                high = any(isinstance(part, Le | Lt) for part in found)
                if not (low and high):
                    yield (model.__name__, name)


def test_every_number_of_a_scenario_is_bounded_on_both_sides():
    seen: set[type] = set()
    found = list(unbounded(Scenario, seen))
    for name in catalog.names():
        found += unbounded(catalog.resolve(name).Parameters, seen)
    assert not found
