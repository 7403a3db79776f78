"""The compiled forms of an author's texts, and of the functions that they call."""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from ...agents.compiled import inlined
from .names import Names
from .rewriting import NOTING, Rewritten
from .text import Text, outside, takes_record
from .word_forms import NOTING_GRADIENT, Categories, Form


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
        self.names, self.categories = names, categories
        self.fields: set[str] = set()
        self._numbers = {name for name in names.layout.agent if names.is_number(name)}
        self.literals = {
            name: value for name, value in names.parameters.items() if value is None or isinstance(value, bool | str)
        }
        self._made: dict[Any, Any] = {}
        self._said: list[str] = [repr(categories)]

    @property
    def key(self) -> str:
        """The hash of all that was compiled."""
        return hashlib.blake2s("\n".join(sorted(self._said)).encode(), digest_size=12).hexdigest()

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
        module = Rewritten(
            self._numbers if takes_record(function) else set(), self.literals, tuple(self.names.messages)
        ).function(text)
        if noting:
            _rename(module, "local_gradient", NOTING)
        known = outside(function)
        space: dict[str, Any] = {"__name__": __name__, "__builtins__": builtins}
        for name in sorted({node.id for node in ast.walk(module) if isinstance(node, ast.Name)} & {*known, NOTING}):
            space[name] = self._outer(name, known.get(name))
        exec(compile(module, text.file, "exec"), space)
        exact = {"fastmath": False} if getattr(function, "as_written", False) else {}
        made = inlined(space[text.tree.name], boundscheck=True, **exact)
        self._said.append(f"{text.tree.name} {exact} {ast.dump(module)}")
        self._made[function, noting] = made
        return made

    def _outer(self, name: str, value: Any) -> Any:
        """What stands for something from outside a text."""
        form: Form | None = NOTING_GRADIENT if name == NOTING else getattr(value, "compiled_form", None)
        if form is not None:
            self.fields.update(form.fields(self.categories))
            return self._word(form)
        if isinstance(value, FunctionType):
            return self.compiled(value)
        if not isinstance(value, ModuleType):
            self._said.append(f"{name} = {value!r}")
        return value

    def _word(self, form: Form) -> Any:
        if form not in self._made:
            self._made[form] = form.make(self.categories)
        return self._made[form]


def _rename(module: ast.Module, old: str, new: str) -> None:
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and node.id == old:
            node.id = new
