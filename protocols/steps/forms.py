"""The compiled forms of an author's texts, and of the functions that they call."""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from ...agents.compilation.compiled import inlined
from . import arithmetic
from .assigning import put, put_at
from .gradient_forms import NOTING_GRADIENT
from .names import Names
from .rewriting import NOTING, PUT, PUT_AT, SLICE, rewriting_of
from .text import Text, outside, takes_record
from .word_form import Asked, Categories, Form, NoForm

STANDING: dict[str, Any] = {PUT: put, PUT_AT: put_at, SLICE: slice, **arithmetic.FORMS, "pow": arithmetic.power}
"""What names stand for that a rewriting has put into a text, or that a text has from Python."""
WORD = 63
"""Bits of a whole number beside its sign."""


class Forms:
    """Compiled functions by their Python.

    Parameters
    ----------
    names : Names
    categories : Categories

    Attributes
    ----------
    fields : set of str
        What the words that are called read of the record.
    literals : dict of str to value
        Fields whose values are part of the compiled form.
    """

    def __init__(self, names: Names, categories: Categories) -> None:
        self.names = names
        self._asked: Any = Asked(categories)
        self.fields: set[str] = set()
        self._numbers = {name for name in names.layout.agent if names.is_number(name)}
        self.literals = {
            name: value for name, value in names.parameters.items() if value is None or isinstance(value, bool | str)
        }
        self._made: dict[Any, Any] = {}
        self._within: list[Any] = []
        self._said: list[str] = []

    @property
    def key(self) -> str:
        """The hash of all that was compiled: the texts, and the categories that their words' forms have asked for."""
        said = [repr(sorted(self._asked.answers.items())), *sorted(self._said)]
        return hashlib.blake2s("\n".join(said).encode(), digest_size=12).hexdigest()

    def compiled(self, function: Callable[..., Any], *, noting: bool = False) -> Any:
        """A function's compiled form, whose parts are inlined.

        Parameters
        ----------
        function : callable
            A text, or what one calls.
        noting : bool
            Whether its `local_gradient` notes the loss for the recorder.
        """
        if (function, noting) in self._made:
            return self._made[function, noting]
        text = Text.of(function)
        if function in self._within:
            raise NoForm(f"{text.at(text.tree)}: {text.tree.name} calls itself; compiled steps have no recursion")
        check_compilable(text)
        self._within.append(function)
        own = {node.attr for what, node in text.mentions if what == "field"}
        rewriting = rewriting_of(
            text,
            frozenset(self._numbers & own if takes_record(function) else ()),
            tuple((name, value) for name, value in self.literals.items() if name in own),
            tuple(self.names.messages),
            noting,
        )
        known = outside(function, rewriting.names)
        space: dict[str, Any] = {"__name__": __name__, "__builtins__": builtins, **STANDING}
        for name in rewriting.names:
            if name in known or name == NOTING:
                space[name] = self._outer(name, known.get(name))
        exec(rewriting.code, space)
        exact = {"fastmath": False} if getattr(function, "as_written", False) else {}
        made = inlined(space[text.tree.name], boundscheck=True, **exact)
        self._said.append(f"{text.tree.name} {exact} {rewriting.dump}")
        self._made[function, noting] = made
        self._within.remove(function)
        return made

    def _outer(self, name: str, value: Any) -> Any:
        """What stands for something from outside a text."""
        form: Form | None = NOTING_GRADIENT if name == NOTING else getattr(value, "compiled_form", None)
        if form is not None:
            self._said.append(f"{name} is the word {getattr(value, '__qualname__', NOTING)}")
            self.fields.update(form.fields(self._asked))
            return self._word(form)
        if isinstance(value, FunctionType):
            return self.compiled(value)
        if not isinstance(value, ModuleType):
            self._said.append(f"{name} = {value!r}")
        return value

    def _word(self, form: Form) -> Any:
        if form not in self._made:
            self._made[form] = form.make(self._asked)
        return self._made[form]


GROWING = ast.Add | ast.Sub | ast.Mult | ast.Pow | ast.LShift
"""What makes large numbers of small ones."""
OF_CONSTANTS = ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
"""What an expression of constants alone is made of."""


def check_compilable(text: Text) -> None:
    """Refuse what numba takes, and makes something else of.

    That are whole numbers beyond 64 bits, which begin again from the least, and ``flat``, whose indices nobody checks.

    Raises
    ------
    NoForm
        With the line.
    """
    for node in ast.walk(text.tree):
        if _is_beyond(node):
            raise NoForm(f"{text.at(node)}: compiled steps have whole numbers of 64 bits alone")
        if isinstance(node, ast.Attribute) and node.attr == "flat":
            raise NoForm(f"{text.at(node)}: compiled steps have no .flat; ravel() has a form")


def _is_beyond(node: ast.AST) -> bool:
    """Whether it is a whole number beyond 64 bits, or arithmetic of some that Python does beforehand only up to 128."""
    parts = list(ast.walk(node))
    numbers: list[Any] = [one.value for one in parts if isinstance(one, ast.Constant)]
    if not all(isinstance(one, OF_CONSTANTS) for one in parts) or not all(type(one) is int for one in numbers):
        return False
    if not isinstance(node, ast.BinOp):
        return any(one.bit_length() > WORD for one in numbers)
    done: Any = compile(ast.fix_missing_locations(ast.Expression(node)), "", "eval").co_consts
    if len(done) > 1:
        return isinstance(node.op, GROWING)
    return isinstance(done[0], int) and done[0].bit_length() > WORD
