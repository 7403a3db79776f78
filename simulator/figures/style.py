"""The style of a figure: its own, above the scenario's; what an index says about it is read as it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...agents.errors import InputError
from ..analysis.results import Collection
from ..language.field_errors import field_errors, sentences
from ..language.figure_style import FigureStyle
from ..language.inheritance import Family
from ..language.yaml_source import Source, read_file, read_text
from .numbers import Spec, swept


def read_style(given: str) -> FigureStyle:
    """A style of the command line: a YAML file, or a mapping such as ``{width: two columns, font_size: 9}``.

    Raises `InputError`: one sentence per error, with file and line where there is a file.
    """
    inline = given.lstrip().startswith("{")
    source = read_text(given, "--style", numbered=False) if inline else read_file(Path(given))
    return _checked(source)


def from_options(style: str | None, *, width: str | None, formats: list[str] | None) -> FigureStyle:
    """Return the style that the options of ``hushnet plot`` ask for; a single option overrides ``--style``."""
    chosen = FigureStyle() if style is None else read_style(style)
    for option, field, value in (("--width", "width", _number(width)), ("--format", "formats", formats)):
        if value is not None:
            chosen = _checked(Source(option, {field: value})).over(chosen)
    return chosen


def from_mapping(given: Mapping[str, Any] | None) -> FigureStyle | None:
    """A style of Python's."""
    return None if given is None else _checked(Source("style", given))


def _number(width: str | None) -> str | float | None:
    try:
        return width if width is None else float(width)
    except ValueError:
        return width


def style_of(collection: Collection, spec: Spec) -> FigureStyle:
    """A figure's own style above that of its scenario.

    Raises `InputError` if the index has a style that is none, or it names what was not swept.
    """
    where = str(collection.root / "index.json") if collection.root is not None else "figures"
    scenario, own = (
        _checked(Source(where, given or {})) for given in (collection.index.get("style"), spec.get("style"))
    )
    return own.over(scenario)


def styled(collection: Collection, spec: Spec) -> Collection:
    """The runs with the figure's own style in place of the scenario's."""
    style = style_of(collection, spec)
    for field in ("labels", "units"):
        for name in getattr(style, field) or {}:
            swept(collection, name, field=f"style.{field}", others=())
    return replace(collection, index={**collection.index, "style": style.model_dump(exclude_none=True)})


def _checked(source: Source) -> FigureStyle:
    data: Any = source.data
    if isinstance(data, FigureStyle):
        return data
    if not isinstance(data, Mapping):
        raise InputError(
            f"{source.where(())}: must be a mapping with fields of a style, such as {{width: two columns}}"
        )
    try:
        return FigureStyle.model_validate({key: value for key, value in data.items() if value is not None})
    except ValidationError as error:
        raise InputError("\n".join(sentences(field_errors(error, FigureStyle, data), source, Family()))) from error
