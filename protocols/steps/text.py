"""The text of a step: what of ``me`` it uses, what is wrong with it, and the form in which it can be compiled."""

from __future__ import annotations

import ast
import inspect
import linecache
import math
import textwrap
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...agents.errors import InputError
from .names import Names

ME = "me"
"""What the record is called in every text."""


class TextError(InputError):
    """A text that says something which no step can do; one sentence, with its line."""


@dataclass(frozen=True)
class Text:
    """The source of one function.

    Parameters
    ----------
    function : callable
    file : str
    tree : ast.FunctionDef
        With the line numbers of the file.
    """

    function: Callable[..., Any]
    file: str
    tree: ast.FunctionDef

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Text:
        """Read a function.

        Raises
        ------
        TextError
            If its source is not there, or it is no plain function.
        """
        name = getattr(function, "__name__", repr(function))
        try:
            source = textwrap.dedent(inspect.getsource(function))
            (tree,) = ast.parse(source).body
        except (OSError, TypeError, SyntaxError, ValueError):
            raise TextError(f"{name}: its source cannot be read, and a step is a function in a file") from None
        if not isinstance(tree, ast.FunctionDef):
            raise TextError(f"{name} is written in one line with something else; a step is a function of its own")
        ast.increment_lineno(tree, function.__code__.co_firstlineno - tree.lineno + _decorators(tree))
        return cls(function, inspect.getsourcefile(function) or "?", tree)

    def at(self, node: ast.AST | int) -> str:
        """A line as errors name it."""
        line = node if isinstance(node, int) else getattr(node, "lineno", self.tree.lineno)
        return place(self.file, line)


def _decorators(tree: ast.FunctionDef) -> int:
    """How many lines a function's decorators take: they come first in its source and in its first line number."""
    return tree.lineno - min([tree.lineno, *(one.lineno for one in tree.decorator_list)])


def place(file: str, line: int) -> str:
    """A file, a line and what is written there."""
    written = linecache.getline(file, line).strip()
    return f"{Path(file).name}:{line}" + (f", `{written}`" if written else "")


def is_of_me(node: ast.AST) -> bool:
    """Whether a node is ``me.something``."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == ME


class Checked(ast.NodeVisitor):
    """What a text uses of its record, looked at word by word.

    Parameters
    ----------
    text : Text
    names : Names

    Attributes
    ----------
    used : set of str
        Fields of ``me`` that it names.

    Raises
    ------
    TextError
        If it names something that a record does not have, or changes what nobody may.
    """

    def __init__(self, text: Text, names: Names) -> None:
        self.text, self.names, self.used = text, names, set[str]()
        for statement in text.tree.body:
            self.visit(statement)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """A field that is read or assigned."""
        if not is_of_me(node):
            self.generic_visit(node)
            return
        if node.attr not in self.names.all:
            raise TextError(f"{self.text.at(node)}: an agent has no {node.attr!r}; it has {', '.join(self.names.all)}")
        self.used.add(node.attr)
        if isinstance(node.ctx, ast.Load) and node.attr in self.names.messages:
            raise TextError(f"{self.text.at(node)}: me.{node.attr} is assigned as a whole, and never read")
        if not isinstance(node.ctx, ast.Load):
            self._may_write(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """A part that is read or assigned."""
        inner: ast.AST = node
        while isinstance(inner, ast.Subscript):
            inner = inner.value
        if not isinstance(node.ctx, ast.Load) and is_of_me(inner):
            assert isinstance(inner, ast.Attribute)
            if inner.attr in self.names.all:
                self._may_write(inner)
        self.generic_visit(node)

    def _may_write(self, node: ast.Attribute) -> None:
        if node.attr not in self.names.writable:
            raise TextError(
                f"{self.text.at(node)}: me.{node.attr} is not for a step to change; it may assign "
                f"{', '.join(sorted(self.names.writable))}"
            )

    def visit_Name(self, node: ast.Name) -> None:
        """A variable of the text, or something from its surroundings."""
        value = outside(self.text.function).get(node.id)
        if (isinstance(node.ctx, ast.Load) and isinstance(value, list | dict | set | bytearray)) or _is_array(value):
            raise TextError(
                f"{self.text.at(node)}: {node.id!r} is {type(value).__name__} outside the step, which others may "
                "change; give it by constants()"
            )

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        """A step has no variables outside itself."""
        raise TextError(f"{self.text.at(node)}: a step cannot change {', '.join(node.names)}, which is outside it")

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        """Likewise."""
        self.visit_Global(node)


def _is_array(value: Any) -> bool:
    return (hasattr(value, "__array_interface__") and not hasattr(value, "dtype")) or type(value).__name__ == "ndarray"


def outside(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function knows from outside, by name."""
    inner = dict.fromkeys(function.__code__.co_varnames)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    known = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
    return {name: value for name, value in known.items() if name not in inner}


def helpers(text: Text) -> list[types.FunctionType]:
    """The author's own functions that a text calls."""
    called = {node.id for node in ast.walk(text.tree) if isinstance(node, ast.Name)}
    known = outside(text.function)
    found = (known[name] for name in sorted(called) if isinstance(known.get(name), types.FunctionType))
    return [one for one in found if not hasattr(one, "compiled_form")]


DRAWING = ("perturbed", "perturbed_minimiser")
"""Words that draw the noise of the step's release."""


def most_draws(function: Callable[..., Any], within: tuple[Any, ...] = ()) -> float:
    """How often a step draws noise at most (`DRAWING`), as far as its text and its helpers tell: a number, or infinity.

    Parameters
    ----------
    function : callable
        The text.
    within : tuple of callable
        What it is called by, for helpers that call one another.
    """
    if function in within:
        return math.inf
    tree, known = Text.of(function).tree, outside(function)
    loops = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
    repeated = [node for node in ast.walk(tree) if isinstance(node, loops)]
    repeated += [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node is not tree]
    often = {id(node) for one in repeated for node in ast.walk(one)}
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    total = 0.0
    for node in ast.walk(tree):
        value = known.get(node.id) if isinstance(node, ast.Name) else None
        if not isinstance(value, types.FunctionType):
            continue
        if hasattr(value, "compiled_form"):
            draws = 1.0 if value.__name__ in DRAWING else 0.0
        else:
            draws = most_draws(value, (*within, function))
        if draws:
            total += draws if id(node) in called and id(node) not in often else math.inf
    return total


def takes_record(function: Callable[..., Any]) -> bool:
    """Whether a function is told ``me``."""
    return function.__code__.co_varnames[:1] == (ME,) and function.__code__.co_argcount > 0


def texts_of(function: Callable[..., Any]) -> list[Text]:
    """A text and those of all its helpers."""
    found: dict[Any, Text] = {}
    pending = [function]
    while pending:
        one = pending.pop()
        if one not in found:
            found[one] = Text.of(one)
            pending += helpers(found[one])
    return list(found.values())
