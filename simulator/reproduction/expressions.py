"""Arithmetic on named values and functions, as the claims of papers write it, and text with such expressions in it."""

from __future__ import annotations

import ast
import operator
import string
from collections.abc import Callable, Mapping
from typing import Any

from ...agents.errors import InputError

OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression.

    Parameters
    ----------
    text : str
        Numbers, text in quotes, lists, arithmetic, one comparison, names, items by ``[]`` and calls of named functions.
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
        return _value(ast.parse(text.strip(), mode="eval").body, names)
    except SyntaxError as error:
        raise InputError(f"{text!r} is no expression: {error.msg}") from error


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


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.List(elts=items):
            return [_value(item, names) for item in items]
        case ast.Subscript(value=whole, slice=key):
            return _value(whole, names)[_value(key, names)]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATIONS:
            return OPERATIONS[type(op)](_value(left, names), _value(right, names))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATIONS:
            return OPERATIONS[type(op)](_value(operand, names))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATIONS:
            return OPERATIONS[type(op)](_value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id=name), args=given, keywords=keywords) if callable(names.get(name)):
            named = {str(word.arg): _value(word.value, names) for word in keywords}
            return names[name](*(_value(item, names) for item in given), **named)
    raise InputError(f"{ast.unparse(node)!r} has no meaning here; known are {', '.join(sorted(names))}")
