"""Explanations of names in a scenario: ``hushnet explain task.adult``, ``explain cd``, ``explain record``."""

from __future__ import annotations

import inspect
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping

from pydantic import BaseModel

from ...agents.errors import InputError
from ...agents.input_files import read_bytes
from ...agents.suggestions import listed, nearest
from ...protocols import catalog
from ...protocols.base import ProtocolParameters
from ..language.admissible import models
from ..language.described import SECTIONS, Described, described, kinds_in
from ..language.figure_parameters import FIGURE_KINDS, Figure
from ..language.loading import shipped
from ..language.scenario import Scenario
from ..metrics import METRICS
from .listing import line_of

WIDTH = 80
"""Characters of a line."""


def parts() -> dict[str, type[BaseModel]]:
    """Everything with fields, by its full name, such as ``task.adult``, ``record`` or ``protocol.local``."""
    found: dict[str, type[BaseModel]] = {"scenario": Scenario}
    for name, info in Scenario.model_fields.items():
        key, held = info.alias or name, models(info)
        if len(held) == 1 and key not in SECTIONS:
            found[key] = held[0]
    for section in SECTIONS:
        found.update({f"{section}.{kind}": model for kind, model in kinds_in(section).items()})
    return found


def topics() -> dict[str, Callable[[], str]]:
    """Everything that can be explained, by its full name, such as ``task.adult`` or ``metric.accuracy``."""
    found: dict[str, Callable[[], str]] = {
        name: lambda name=name, model=model: _part(name, model) for name, model in parts().items()
    }
    for name in catalog.names():
        found[f"protocol.{name}"] = lambda name=name: _protocol(name)
    for name in METRICS:
        found[f"metric.{name}"] = lambda name=name: _metric(name)
    for name in FIGURE_KINDS:
        found[f"figure.{name}"] = lambda name=name: _page(f"figure.{name}", FIGURE_KINDS[name].about, described(Figure))
    return found


def _inner(known: Mapping[str, type[BaseModel]]) -> dict[str, type[BaseModel]]:
    """Parts of parts with fields of their own, such as ``record.messages``."""
    fields = ((name, key, info) for name, model in known.items() for key, info in model.model_fields.items())
    held = ((f"{name}.{info.alias or key}", models(info)) for name, key, info in fields)
    return {name: below[0] for name, below in held if len(below) == 1}


def _field(asked: str) -> str | None:
    """Return the explanation of one field, such as ``task.csv.features`` or ``time_unit``; None if no part has it."""
    part, _, name = asked.rpartition(".") if "." in asked else ("scenario", "", asked)
    known = {
        **parts(),
        **_inner(parts()),
        **{f"protocol.{kind}": catalog.resolve(kind).Parameters for kind in catalog.names()},
    }
    found = [part] if part in known else matches(part, known)
    if not found and part in SECTIONS:
        found = [each for each in known if each.startswith(f"{part}.") and name in known[each].model_fields][:1]
    if len(found) != 1:
        return None
    lines = [line for field in described(known[found[0]]) if field.name == name for line in _lines(field)]
    return "\n".join([f"{found[0]}.{name}", "", *lines]) if lines else None


def explain(asked: str) -> str:
    """Return the explanation of a name of `topics`, or of a field behind one (``task.csv.features``), as text.

    Of either, the last part may be enough (``adult``), its beginning, or the first letters of its words (``cd`` for
    ``coordinate_descent``). Raises `InputError` if nothing, or more than one thing, is called that.
    """
    known = topics()
    found = [asked] if asked in known else matches(asked, known)
    if len(found) == 1:
        return known[found[0]]().replace("``", "`")  # docstrings mark code as pages do
    field = _field(".".join(SECTIONS.get(asked, (asked,))))
    if field is not None:
        return field
    if found:
        raise InputError(f"{asked} may be {listed(found)}; give one of them")
    near = nearest(asked, dict.fromkeys([*(name.rpartition(".")[2] for name in known), *known]))
    hint = f"; did you mean {near!r}?" if near else ";"
    raise InputError(f"nothing is called {asked!r}{hint} `hushnet list` names everything")


def matches(asked: str, known: Iterable[str]) -> list[str]:
    """The names that a short form may stand for, by the first rule that finds any."""
    known = list(known)
    section, _, short = asked.rpartition(".")
    inside = [name for name in known if not section or name.rpartition(".")[0] in (section, section.removesuffix("s"))]
    rules: list[Callable[[str], bool]] = [
        lambda name: name == short,
        lambda name: "".join(word[0] for word in name.split("_") if word) == short,
        lambda name: name.startswith(short),
    ]
    for fits in rules:
        found = [name for name in inside if fits(name.rpartition(".")[2])]
        if found:
            return found
    return []


def _part(name: str, model: type[BaseModel]) -> str:
    return _page(name, inspect.cleandoc(model.__doc__ or ""), described(model))


def _protocol(name: str) -> str:
    kind = catalog.resolve(name)
    parameters = kind.Parameters
    about = sys.modules[kind.__module__].__doc__ or ""
    own = parameters.__doc__ if parameters is not ProtocolParameters else kind.__doc__
    lines = [inspect.cleandoc(own or "").partition("\n")[0], "", inspect.cleandoc(about)]
    used = [
        scenario for scenario, path in shipped().items() if re.search(rf"\bkind: {name}\b", read_bytes(path).decode())
    ]
    if used:
        lines += ["", textwrap.fill(f"Shipped scenarios that run it: {', '.join(used)}", WIDTH)]
    return _page(f"protocol.{name}", "\n".join(lines), described(parameters))


def _metric(name: str) -> str:
    metric = METRICS[name]
    facts = {
        "asked for as": f"record.metrics: [{name}]{f', or [{metric.group}] with others' if metric.group else ''}",
        "statistics": ", ".join(metric.statistics),
        "shown where none is asked for": metric.default,
        "range": _interval(metric.low, metric.high),
        "measured on": f"{metric.rows} rows" if metric.rows else "",
    }
    about = inspect.cleandoc(getattr(metric.compute, "__doc__", None) or "")
    said = [f"  {what}: {fact}" for what, fact in facts.items() if fact]
    return "\n".join([f"metric.{name}: {line_of(metric)}", *([about] if about else []), "", *said])


def _interval(low: float, high: float) -> str:
    return "" if math.isinf(low) and math.isinf(high) else f"{low:g} to {high:g}"


def _page(name: str, about: str, fields: list[Described]) -> str:
    return "\n".join([name, "", about, "", "fields:", *(line for field in fields for line in _lines(field))])


def _lines(field: Described) -> list[str]:
    given = "needed" if field.default is None else f"default {field.default}"
    range_ = f" in {field.range}" if field.range else ""
    head = f"{field.type}{range_}{f' ({field.unit})' if field.unit else ''}; {given}"
    body = [head, *([" ".join(field.meaning.split())] if field.meaning else [])]
    lines = [line for text in body for line in textwrap.wrap(text, WIDTH - 6)]
    return [f"  {field.name}", *(f"      {line}" for line in lines)]
