"""Docstrings of the fields of a class, read from its source when they are asked for."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from functools import cache

_CLASS = re.compile(r"^class (\w+)\b.*\n(?:(?!    (?:@|def |async ))(?:[ \t)].*)?\n)*", re.MULTILINE)
"""A class up to its first method: taking methods apart would take longer than all else."""


def field_docstrings(kind: type) -> dict[str, str]:
    """The docstrings of a class's annotated fields, by name; those of its bases where it does not say otherwise."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if vars(base).get("__annotations__") and not base.__module__.startswith("pydantic."):
            found.update(_own_docstrings(base))
    return found


@cache
def _own_docstrings(kind: type) -> dict[str, str]:
    body = _body_of(kind)
    return _fields_in(body) if body is not None else {}


def _body_of(kind: type) -> ast.ClassDef | None:
    if "." in kind.__qualname__:
        try:
            tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind)))
        except (OSError, TypeError, SyntaxError):
            return None
    else:
        # `inspect` would take the whole file apart for each of its classes.
        block = _classes_of(kind.__module__).get(kind.__name__)
        tree = ast.parse(block) if block else ast.Module([], [])
    found = tree.body[0] if tree.body else None
    return found if isinstance(found, ast.ClassDef) else None


@cache
def _classes_of(module: str) -> dict[str, str]:
    """The text of every class of a module, by name."""
    blocks: dict[str, str] = {}
    for block in _CLASS.finditer(_source_of(module)):
        blocks.setdefault(block[1], block[0])
    return blocks


def _source_of(module: str) -> str:
    """Empty where there is none."""
    # Asked of the module itself: `inspect` would look through all modules that are imported.
    loader = getattr(sys.modules.get(module), "__loader__", None)
    read = getattr(loader, "get_source", None)
    try:
        return (read(module) or "") + "\n" if read is not None else ""
    except ImportError:
        return ""


def _fields_in(body: ast.ClassDef) -> dict[str, str]:
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            value = text.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[field.target.id] = inspect.cleandoc(value.value)
    return found
