"""The text of a step: what of ``me`` it uses, what is wrong with it, and the form in which it can be compiled."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import textwrap
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from ...agents.authors import place
from ...agents.errors import InputError
from .names import Names

ME = "me"
"""What the record is called in every text."""


class TextError(InputError):
    """A text that says something which no step can do; one sentence, with its line."""


@dataclass(frozen=True, eq=False)
class Text:
    """The source of one function, read and walked once; whoever changes its tree changes a copy.

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
        return _read(function)

    def at(self, node: ast.AST | int) -> str:
        """A line as errors name it."""
        line = node if isinstance(node, int) else getattr(node, "lineno", self.tree.lineno)
        return place(self.file, line)

    @cached_property
    def mentions(self) -> tuple[tuple[str, Any], ...]:
        """What of its surroundings it mentions, in order: ``field``, ``part``, ``name`` or ``global``, and the node."""
        found = _Mentions()
        for statement in self.tree.body:
            found.visit(statement)
        return tuple(found.found)

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables that it names, its own ones and others."""
        return frozenset(node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name))

    @cached_property
    def own_names(self) -> frozenset[str]:
        """The variables that it gives a value somewhere, and what stands in annotations, which nobody looks up."""
        code, found = self.function.__code__, set[str]()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                found.add(node.id)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.alias):
                found.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
                found.add(node.name or "")
            written = getattr(node, "annotation", None)
            found.update(one.id for one in ast.walk(written) if isinstance(one, ast.Name)) if written else None
        return frozenset(found).union(code.co_varnames, code.co_freevars)

    @cached_property
    def calls(self) -> tuple[tuple[str, bool], ...]:
        """Every variable where it is named, and whether it is called there, and at most once in a step."""
        loops = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
        nodes = list(ast.walk(self.tree))
        repeated = [one for one in nodes[1:] if isinstance(one, (*loops, ast.FunctionDef))]
        often = {id(node) for one in repeated for node in ast.walk(one)}
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        names = (node for node in nodes if isinstance(node, ast.Name))
        return tuple((node.id, id(node) in called and id(node) not in often) for node in names)


@lru_cache(maxsize=1024)
def _read(function: Callable[..., Any]) -> Text:
    name = getattr(function, "__name__", repr(function))
    try:
        source = textwrap.dedent(inspect.getsource(function))
        (tree,) = ast.parse(source).body
    except (OSError, TypeError, SyntaxError, ValueError):
        raise TextError(f"{name}: its source cannot be read, and a step is a function in a file") from None
    if not isinstance(tree, ast.FunctionDef):
        raise TextError(f"{name} is written in one line with something else; a step is a function of its own")
    ast.increment_lineno(tree, function.__code__.co_firstlineno - tree.lineno + _decorators(tree))
    return Text(function, inspect.getsourcefile(function) or "?", tree)


def _decorators(tree: ast.FunctionDef) -> int:
    """How many lines a function's decorators take: they come first in its source and in its first line number."""
    return tree.lineno - min([tree.lineno, *(one.lineno for one in tree.decorator_list)])


def is_of_me(node: ast.AST) -> bool:
    """Whether a node is ``me.something``."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == ME


class _Mentions(ast.NodeVisitor):
    """Collects what a text mentions, see `Text.mentions`."""

    def __init__(self) -> None:
        self.found: list[tuple[str, Any]] = []

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """A field that is read or assigned."""
        if is_of_me(node):
            self.found.append(("field", node))
        else:
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """What is changed is read first."""
        field: Any = node.target
        if is_of_me(field):
            self.found.append(("field", ast.copy_location(ast.Attribute(field.value, field.attr, ast.Load()), field)))
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """A part that is read or assigned."""
        inner: ast.AST = node
        while isinstance(inner, ast.Subscript):
            inner = inner.value
        if not isinstance(node.ctx, ast.Load) and is_of_me(inner):
            self.found.append(("part", inner))
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """A variable of the text, or something from its surroundings."""
        self.found.append(("name", node))

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        """A step has no variables outside itself."""
        self.found.append(("global", node))

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        """A step has no variables of a function around it."""
        self.visit_Global(node)


ARGUMENTS = {
    "step": ("me",),
    "request": ("me", "partner"),
    "respond": ("me", "partner", "heard"),
    "complete": ("me", "partner", "heard"),
}
"""What each text is called with."""


def check_arguments(name: str, function: Callable[..., Any]) -> None:
    """Refuse a text that cannot be called with what texts of its name are called with.

    Raises
    ------
    TextError
        With the line where the text begins.
    """
    taken = inspect.signature(function)
    try:
        taken.bind(*ARGUMENTS[name])
    except TypeError:
        text = Text.of(function)
        wanted = f"{name}({', '.join(ARGUMENTS[name])})"
        raise TextError(f"{text.at(text.tree)}: takes {taken}; admissible: {wanted}") from None


def used_fields(text: Text, names: Names) -> set[str]:
    """The fields of ``me`` that a text names, looked at word by word.

    Raises
    ------
    TextError
        If it names something that a record does not have, or changes what nobody may.
    """
    used, known = set[str](), outside(text.function, text.names)
    for what, node in text.mentions:
        if what == "name":
            if node.id in known:
                _check_name(text, node, known[node.id])
            elif node.id not in text.own_names and not hasattr(builtins, node.id):
                raise TextError(f"{text.at(node)}: {node.id!r} is not defined")
        elif what == "global":
            raise TextError(f"{text.at(node)}: a step cannot change {', '.join(node.names)}, which is outside it")
        elif what == "part":
            if node.attr in names.all:
                _check_written(text, node, names)
        else:
            _check_field(text, node, names)
            used.add(node.attr)
    return used


def _check_field(text: Text, node: ast.Attribute, names: Names) -> None:
    if node.attr not in names.all:
        raise TextError(f"{text.at(node)}: an agent has no {node.attr!r}; it has {', '.join(names.all)}")
    if isinstance(node.ctx, ast.Load) and node.attr in names.messages:
        raise TextError(f"{text.at(node)}: me.{node.attr} is assigned as a whole, and never read")
    if not isinstance(node.ctx, ast.Load):
        _check_written(text, node, names)


def _check_written(text: Text, node: ast.Attribute, names: Names) -> None:
    if node.attr not in names.writable:
        raise TextError(
            f"{text.at(node)}: me.{node.attr} is not for a step to change; it may assign "
            f"{', '.join(sorted(names.writable))}"
        )


def _check_name(text: Text, node: ast.Name, value: Any) -> None:
    if (isinstance(node.ctx, ast.Load) and isinstance(value, list | dict | set | bytearray)) or _is_array(value):
        raise TextError(
            f"{text.at(node)}: {node.id!r} is {type(value).__name__} outside the step, which others may "
            "change; give it by constants()"
        )


def _is_array(value: Any) -> bool:
    return (hasattr(value, "__array_interface__") and not hasattr(value, "dtype")) or type(value).__name__ == "ndarray"


def outside(function: Callable[..., Any], names: Iterable[str]) -> dict[str, Any]:
    """What a function knows from outside under some of these names; never remembered, for it may change."""
    inner = frozenset(function.__code__.co_varnames)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    known: dict[str, Any] = {}
    for name in names:
        if name in cells:
            known[name] = cells[name].cell_contents
        elif name in function.__globals__ and name not in inner:
            known[name] = function.__globals__[name]
    return known


def helpers(text: Text) -> list[types.FunctionType]:
    """The author's own functions that a text calls."""
    known = outside(text.function, text.names)
    found = (known[name] for name in sorted(known) if isinstance(known[name], types.FunctionType))
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
    text, total = Text.of(function), 0.0
    known = outside(function, text.names)
    for name, once in text.calls:
        value = known.get(name)
        if not isinstance(value, types.FunctionType):
            continue
        if hasattr(value, "compiled_form"):
            draws = 1.0 if value.__name__ in DRAWING else 0.0
        else:
            draws = most_draws(value, (*within, function))
        if draws:
            total += draws if once else math.inf
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
