"""From an author's text to one that compiles: what ``me.x`` and ``me.x = v`` mean there."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from ..kernel import SAID as SAID_COLUMN
from .text import ME, Text, is_of_me

SAID = "ports_"
"""The field that notes what is said: the kernel's ports."""
NOTING = "noting_gradient"
"""What stands for `local_gradient` where it is computed at the model that the step finds."""


class Rewritten(ast.NodeTransformer):
    """A function's body over arrays: blocks are written in place, those of width 1 are numbers.

    Parameters
    ----------
    numbers : set of str
        Blocks of agents of width 1.
    literals : mapping of str to value
        Fields whose values are part of the compiled form: texts and switches.
    messages : sequence of str
        Names of what is sent, in the order of the ports.
    """

    def __init__(self, numbers: set[str], literals: Mapping[str, Any], messages: Sequence[str]) -> None:
        self.numbers, self.literals, self.messages = numbers, literals, messages

    def function(self, text: Text) -> ast.Module:
        """The whole function, without decorators and annotations."""
        tree = ast.parse(ast.unparse(text.tree)).body[0]
        assert isinstance(tree, ast.FunctionDef)
        _copy_places(text.tree, tree)
        tree.decorator_list, tree.returns = [], None
        for argument in tree.args.args:
            argument.annotation = None
        body: list[ast.stmt] = []
        for statement in tree.body:
            made = self.visit(statement)
            body += made if isinstance(made, list) else [made]
        tree.body = body
        return ast.fix_missing_locations(ast.Module([tree], []))

    def _target(self, target: ast.Attribute) -> ast.expr:
        place = ast.Constant(0) if target.attr in self.numbers else ast.Slice()
        field = ast.Attribute(ast.Name(ME, ast.Load()), target.attr, ast.Load())
        return ast.copy_location(ast.Subscript(field, place, ast.Store()), target)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """``me.x = v`` writes into the block; into the message, it is sent as well."""
        assigned = {one.attr for one in node.targets if is_of_me(one)}  # type: ignore[attr-defined]
        node.value = self.visit(node.value)
        node.targets = [self._target(one) if is_of_me(one) else self.visit(one) for one in node.targets]  # type: ignore[arg-type]
        ports = [port for port, name in enumerate(self.messages) if name in assigned]
        noted = [ast.parse(f"{ME}.{SAID}[{port}, {SAID_COLUMN}] = 1").body[0] for port in ports]
        for one in noted:
            for part in ast.walk(one):
                ast.copy_location(part, node)
        return [node, *noted]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """An annotation says nothing to the compiler."""
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """``me.x += v`` writes into the block."""
        if not is_of_me(node.target):
            return self.generic_visit(node)
        assert isinstance(node.target, ast.Attribute)
        found = ast.copy_location(ast.Attribute(node.target.value, node.target.attr, ast.Load()), node.target)
        value = ast.copy_location(ast.BinOp(self.visit(found), node.op, self.visit(node.value)), node)
        return ast.copy_location(ast.Assign([self._target(node.target)], value), node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """A field that is read."""
        if not is_of_me(node):
            return self.generic_visit(node)
        if node.attr in self.literals:
            return ast.copy_location(ast.Constant(self.literals[node.attr]), node)
        if node.attr in self.numbers:
            return ast.copy_location(ast.Subscript(node, ast.Constant(0), ast.Load()), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        """What is known of texts and switches is decided here, so that only one branch is compiled."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq) and _number_and_text(node):
            return ast.copy_location(ast.Constant(isinstance(node.ops[0], ast.NotEq)), node)
        if len(node.ops) == 1 and all(isinstance(one, ast.Constant) for one in (node.left, *node.comparators)):
            left, right = node.left.value, node.comparators[0].value  # type: ignore[attr-defined]
            same = left is right if isinstance(node.ops[0], ast.Is | ast.IsNot) else left == right
            meanings = {ast.Eq: same, ast.Is: same, ast.NotEq: not same, ast.IsNot: not same}
            decided = meanings.get(type(node.ops[0]))  # type: ignore[call-overload]
            if decided is not None:
                return ast.copy_location(ast.Constant(decided), node)
        return node

    def visit_If(self, node: ast.If) -> Any:
        """A branch that is never taken is left out."""
        node.test = self.visit(node.test)
        node.body, node.orelse = self._all(node.body), self._all(node.orelse)
        if isinstance(node.test, ast.Constant):
            taken = node.body if node.test.value else node.orelse
            return taken or ast.copy_location(ast.Pass(), node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Likewise."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    def _all(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            one = self.visit(statement)
            made += one if isinstance(one, list) else [one]
        return made


def _number_and_text(node: ast.Compare) -> bool:
    """Whether a field that is no text is compared with a text, as where a parameter is a number or a word."""
    sides = (node.left, *node.comparators)
    return any(is_of_me(one) for one in sides) and any(
        isinstance(one, ast.Constant) and isinstance(one.value, str) for one in sides
    )


def _copy_places(source: ast.AST, copy: ast.AST) -> None:
    """Give a copy of a tree the line numbers of what it is a copy of."""
    for old, new in zip(ast.walk(source), ast.walk(copy), strict=True):
        if hasattr(old, "lineno"):
            ast.copy_location(new, old)


def notes_found_model(text: Text) -> bool:
    """Whether the first thing that a text does with its model is `local_gradient` of it, before it changes it."""
    first = _first_gradient(text.tree)
    if first is None:
        return False
    assignments = (one for one in ast.walk(text.tree) if isinstance(one, ast.Assign | ast.AugAssign))
    around = next(one for one in assignments if _holds(one, first))
    own = {id(node) for node in ast.walk(around)}
    for node in ast.walk(text.tree):
        changes = _is_model(node) and not isinstance(node.ctx, ast.Load)  # type: ignore[attr-defined]
        part = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
        passed = isinstance(node, ast.Call) and any(_is_model(one) for one in node.args)
        if (changes or part or passed) and id(node) not in own and node.lineno <= first.lineno:  # type: ignore[attr-defined]
            return False
    return True


def _holds(statement: ast.AST, node: ast.AST) -> bool:
    return any(one is node for one in ast.walk(statement))


def _first_gradient(tree: ast.FunctionDef) -> ast.Call | None:
    """The one call of ``local_gradient(me, me.model)``; None in loops, or if there are several."""
    loops = [one for one in ast.walk(tree) if isinstance(one, ast.For | ast.While | ast.comprehension)]
    inside = {id(node) for loop in loops for node in ast.walk(loop)}
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "local_gradient"
    ]
    if len(found) != 1 or id(found[0]) in inside or len(found[0].args) != 2 or not _is_model(found[0].args[1]):
        return None
    assigned = any(isinstance(one, ast.Assign | ast.AugAssign) and _holds(one, found[0]) for one in ast.walk(tree))
    return found[0] if assigned else None


def _is_model(node: ast.AST) -> bool:
    return is_of_me(node) and node.attr == "model"  # type: ignore[attr-defined]
