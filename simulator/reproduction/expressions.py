"""Arithmetic on named values and functions, as the claims of papers write it, and text with such expressions in it."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, UndefinedError
from jinja2.sandbox import SandboxedEnvironment

from ...agents.errors import InputError

_LANGUAGE = SandboxedEnvironment(undefined=StrictUndefined)


@cache
def _compiled(text: str) -> Callable[..., Any]:
    return _LANGUAGE.compile_expression(text.strip(), undefined_to_none=False)


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression of Jinja's language, in its sandbox.

    Parameters
    ----------
    text : str
        Numbers, text in quotes, lists, arithmetic, comparisons, names, items by ``[]`` and calls of named functions.
    names : mapping
        What names mean.

    Raises
    ------
    InputError
        If it is no such expression, or a name has no meaning.

    Examples
    --------
    >>> evaluate("2 * scale['low'] + 1", {"scale": {"low": 3}})
    7
    """
    try:
        value = _compiled(text)(**names)
        if isinstance(value, StrictUndefined):
            str(value)  # which says what it lacks
    except TemplateSyntaxError as error:
        raise InputError(f"{text!r} is no expression: {error.message}") from error
    except UndefinedError as error:
        raise InputError(f"{text!r}: {error.message}; known are {', '.join(sorted(names))}") from error
    return value


def filled(text: str, names: Mapping[str, Any]) -> str:
    """Return text with every ``{expression:format}`` replaced by its value; a format as Python's, by default ``g``.

    Examples
    --------
    >>> filled("{2 * x:.1f} of {who}", {"x": 1.0, "who": "all"})
    '2.0 of all'
    """
    parts = []
    for literal, field, spec, _ in string.Formatter().parse(text):
        parts.append(literal)
        if field is not None:
            value = evaluate(field, names)
            parts.append(value if isinstance(value, str) else format(value, spec or "g"))
    return "".join(parts)


def literals(text: str) -> tuple[str, int]:
    """Return what of a text is written and not computed, and how many expressions it has."""
    parsed = list(string.Formatter().parse(text))
    return "".join(literal for literal, *_ in parsed), sum(field is not None for _, field, *_ in parsed)
