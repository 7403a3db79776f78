"""Rewriting makes of an author's text one that compiles: what ``me.x`` and ``me.x = v`` mean there."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from ..kernel import SAID as SAID_COLUMN
from .text import ME, Text, is_of_me, outside

SAID = "ports_"
"""The field that notes what is said: the kernel's ports."""
GRADIENT = "local_gradient"
NOTING = "noting_gradient"
"""What stands for `local_gradient` where it is computed at the model that the step finds."""
PUT, PUT_AT, SLICE, KEPT = "hushnet_put", "hushnet_put_at", "hushnet_slice", "hushnet_kept_"
"""What stands for assignments to blocks (`hushnet.protocols.steps.assigning`), and for a value with several targets."""

OPERATORS: dict[type[ast.operator], str] = {
    ast.FloorDiv: "hushnet_divided",
    ast.Mod: "hushnet_remainder",
    ast.Pow: "hushnet_power",
}
INVERSE = "hushnet_inverse_power"
"""What stands for operators that whole numbers have another meaning for (`hushnet.protocols.steps.arithmetic`)."""

UNPACKED = "there are more or fewer values than targets"


@dataclass(frozen=True)
class Rewriting:
    """A text that compiles.

    Parameters
    ----------
    code : code
        Of a module that defines the function.
    dump : str
        All that it says, the same for every place that it may be written at.
    names : tuple of str
        The variables that it names, its own ones and others, in order.
    """

    code: CodeType
    dump: str
    names: tuple[str, ...]


@lru_cache(maxsize=1024)
def rewriting_of(
    text: Text, numbers: frozenset[str], literals: tuple[tuple[str, Any], ...], messages: tuple[str, ...], noting: bool
) -> Rewriting:
    """The rewriting of a text, made once; arguments as of `Rewritten`.

    Parameters
    ----------
    literals : tuple of (str, str or bool or None)
        In order.
    noting : bool
        Whether its `local_gradient` notes the loss for the recorder.
    """
    module = Rewritten(numbers, dict(literals), messages).function(text)
    if noting:
        _rename(module, GRADIENT, NOTING)
    names = tuple(sorted({node.id for node in ast.walk(module) if isinstance(node, ast.Name)}))
    return Rewriting(compile(module, text.file, "exec"), ast.dump(module), names)


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

    def __init__(self, numbers: frozenset[str], literals: Mapping[str, Any], messages: Sequence[str]) -> None:
        self.numbers, self.literals, self.messages = numbers, literals, messages
        self._kept = 0

    def function(self, text: Text) -> ast.Module:
        """The whole function, without decorators and annotations."""
        tree = ast.parse(ast.unparse(text.tree)).body[0]
        assert isinstance(tree, ast.FunctionDef)
        _copy_places(text.tree, tree)
        tree.decorator_list, tree.returns = [], None
        for argument in tree.args.args:
            argument.annotation = None
        tree.body = self._all(tree.body)
        return ast.fix_missing_locations(ast.Module([tree], []))

    def _assigned(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> ast.stmt:
        """The assignment of a value to one target."""
        made: ast.stmt = ast.Assign([target], value)
        if is_of_me(target):
            assert isinstance(target, ast.Attribute)
            field = ast.Attribute(ast.Name(ME, ast.Load()), target.attr, ast.Load())
            if target.attr in self.numbers:
                made = ast.Assign([ast.Subscript(field, ast.Constant(0), ast.Store())], value)
            else:
                made = _called(PUT, field, value)
        elif isinstance(target, ast.Subscript) and is_of_me(target.value):
            made = _called(PUT_AT, self.visit(_read(target.value)), _Slices().visit(self.visit(target.slice)), value)
        else:
            made = ast.Assign([self.visit(target)], value)
        return _placed(made, node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """``me.x = v`` writes into the block; into the message, it is sent as well."""
        if any(_unpacks(one) for one in node.targets):
            return self._unpacked(node)
        value, first = self.visit(node.value), []
        if len(node.targets) > 1:
            name = self._new_name()
            first = [_placed(ast.Assign([ast.Name(name, ast.Store())], value), node)]
            value = ast.Name(name, ast.Load())
        assigned = {one.attr for one in node.targets if is_of_me(one)}  # type: ignore[attr-defined]
        ports = [port for port, name in enumerate(self.messages) if name in assigned]
        cached_losses = [ast.parse(f"{ME}.{SAID}[{port}, {SAID_COLUMN}] = 1").body[0] for port in ports]
        return [
            *first,
            *(self._assigned(one, value, node) for one in node.targets),
            *(_placed(one, node) for one in cached_losses),
        ]

    def _new_name(self) -> str:
        self._kept += 1
        return f"{KEPT}{self._kept}"

    def _unpacked(self, node: ast.Assign) -> list[ast.stmt]:
        """``a, me.x = v`` is ``v`` kept, and one assignment for each target."""
        name = self._new_name()
        kept = ast.Name(name, ast.Load())
        made: list[ast.stmt] = [ast.Assign([ast.Name(name, ast.Store())], node.value)]
        for target in node.targets:
            if not _unpacks(target):
                made.append(ast.Assign([target], kept))
                continue
            parts: list[ast.expr] = target.elts  # type: ignore[attr-defined]
            made += ast.parse(f"if len({name}) != {len(parts)}:\n    raise ValueError({UNPACKED!r})").body
            for k, part in enumerate(parts):
                made.append(ast.Assign([part], ast.Subscript(kept, ast.Constant(k), ast.Load())))
        return self._all([_placed(one, node) for one in made])

    def visit_For(self, node: ast.For) -> Any:
        """A loop over what is assigned to ``me.x`` keeps it first."""
        if is_of_me(node.target) or _unpacks(node.target):
            name = self._new_name()
            node.body.insert(0, _placed(ast.Assign([node.target], ast.Name(name, ast.Load())), node))
            node.target = _placed(ast.Name(name, ast.Store()), node)
        node.target, node.iter = self.visit(node.target), self.visit(node.iter)
        node.body, node.orelse = self._all(node.body), self._all(node.orelse)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """An annotation says nothing to the compiler."""
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """``me.x += v`` writes into the block."""
        target = node.target
        row = isinstance(target, ast.Subscript) and is_of_me(target.value) and isinstance(target.slice, ast.Name)
        if not is_of_me(target) and not row:
            return self.generic_visit(node)
        value = _placed(ast.BinOp(self.visit(_read(target)), node.op, self.visit(node.value)), node)
        return self._assigned(target, value, node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """A field that is read."""
        if not is_of_me(node):
            return self.generic_visit(node)
        if node.attr in self.literals:
            return ast.copy_location(ast.Constant(self.literals[node.attr]), node)
        if node.attr in self.numbers:
            return ast.copy_location(ast.Subscript(node, ast.Constant(0), ast.Load()), node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Operators by which compiled whole numbers come to something else than Python's."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        name, right = OPERATORS.get(type(node.op)), node.right
        if name is None or (isinstance(right, ast.Constant) and (right.value != 0 or isinstance(node.op, ast.Pow))):
            return node
        if isinstance(node.op, ast.Pow) and isinstance(right, ast.UnaryOp) and isinstance(right.operand, ast.Constant):
            if type(right.operand.value) is not int:
                return node
            name = INVERSE
        return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [node.left, right], []), node)

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
        """A value that is never taken is left out."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    def _all(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements, up to the one after which nothing is reached: what is not there is not compiled."""
        made: list[ast.stmt] = []
        for statement in body:
            one = self.visit(statement)
            made += one if isinstance(one, list) else [one]
            if made and isinstance(made[-1], ast.Return | ast.Raise):
                break
        return made


def _called(name: str, *arguments: ast.expr) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Name(name, ast.Load()), list(arguments), []))


def _unpacks(target: ast.expr) -> bool:
    """Whether it is several targets, of which one is a field of ``me`` or a part of one."""
    several = isinstance(target, ast.Tuple | ast.List) and not any(isinstance(one, ast.Starred) for one in target.elts)
    return several and any(is_of_me(one) for one in ast.walk(target))


def _read(target: ast.expr) -> Any:
    """What an assignment changes, as it is read."""
    copy = ast.parse(ast.unparse(target), mode="eval").body
    for part in ast.walk(copy):
        ast.copy_location(part, target)
    return copy


class _Slices(ast.NodeTransformer):
    """Turns ``begin:end`` into what can be passed on."""

    def visit_Slice(self, node: ast.Slice) -> ast.expr:
        """A slice."""
        parts = [one or ast.Constant(None) for one in (node.lower, node.upper)]
        return _placed(ast.Call(ast.Name(SLICE, ast.Load()), parts + ([node.step] if node.step else []), []), node)


def _placed(made: Any, node: ast.AST) -> Any:
    """Give what was made for a node its line."""
    for part in ast.walk(made):
        if not hasattr(part, "lineno"):
            ast.copy_location(part, node)
    return made


def _rename(module: ast.Module, old: str, new: str) -> None:
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and node.id == old:
            node.id = new


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
    """Whether a text computes its one `local_gradient` at the model that its step finds, unchanged.

    Said only where the text shows it: before, nothing names the model and only words are given ``me``; beside the
    gradient itself the model is given to words and read by arithmetic.
    """
    around = _assigning_gradient(text)
    if around is None:
        return False
    own = {id(node) for node in ast.walk(around.value)}
    for parent in ast.walk(text.tree):
        for node in ast.iter_child_nodes(parent):
            if id(node) not in own and not _comes_before(node, around):
                continue
            told = isinstance(parent, ast.Call) and node is not parent.func and _word(text, parent.func) is not None
            if isinstance(node, ast.Name) and node.id == ME and not (told or is_of_me(parent)):
                return False
            if _is_model(node) and not (id(node) in own and (told or isinstance(parent, ast.BinOp))):
                return False
    return True


def _assigning_gradient(text: Text) -> ast.Assign | ast.AugAssign | None:
    """The statement that assigns from the one ``local_gradient(me, me.model)``; None in loops, or if not alone."""
    loops = [one for one in ast.walk(text.tree) if isinstance(one, ast.For | ast.While | ast.comprehension)]
    repeated = {id(node) for loop in loops for node in ast.walk(loop)}
    calls = [node for node in ast.walk(text.tree) if isinstance(node, ast.Call) and _word(text, node.func) == GRADIENT]
    if len(calls) != 1 or id(calls[0]) in repeated or len(calls[0].args) != 2 or not _is_model(calls[0].args[1]):
        return None
    assigning = (one for one in ast.walk(text.tree) if isinstance(one, ast.Assign | ast.AugAssign))
    return next((one for one in assigning if any(node is calls[0] for node in ast.walk(one.value))), None)


def _word(text: Text, called: ast.expr) -> str | None:
    """The name of the word that is called; None if it is something else."""
    value = outside(text.function, (called.id,)).get(called.id) if isinstance(called, ast.Name) else None
    return getattr(value, "__name__", None) if hasattr(value, "compiled_form") else None


def _comes_before(node: ast.AST, statement: ast.stmt) -> bool:
    return hasattr(node, "lineno") and (node.lineno, node.col_offset) < (statement.lineno, statement.col_offset)  # type: ignore[attr-defined]


def _is_model(node: ast.AST) -> bool:
    return is_of_me(node) and node.attr == "model"  # type: ignore[attr-defined]
