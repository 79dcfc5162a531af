"""Finds code whose outcome depends on the order in which a set is iterated.

That order differs from one process to the next, so a simulation with the same seed would not
replay. A set may be asked for membership, compared, counted and sorted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_SET_TYPES = ("set", "frozenset", "Set", "AbstractSet", "MutableSet")
_SET_OPERATORS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Sub)
_SET_METHODS = (
    "difference",
    "intersection",
    "symmetric_difference",
    "union",
)
_ORDER_SENSITIVE = ("dict", "enumerate", "iter", "list", "map", "next", "tuple", "zip")
_ORDER_SENSITIVE_METHODS = ("extend", "fromkeys", "join", "update")
_ORDER_BLIND = ("all", "any", "frozenset", "len", "max", "min", "set", "sorted", "sum")


def set_iterations(source: str) -> list[int]:
    """Lines on which a set is iterated in a way that shows its order."""
    tree = ast.parse(source)
    lines: set[int] = set()
    for scope in ast.walk(tree):
        if isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            names = set(_names_of_sets(scope))
            lines.update(_lines(scope, names))
    return sorted(lines)


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a scope without those of the functions in it."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield child
        yield from _own_nodes(child)


def _names_of_sets(scope: ast.AST) -> Iterator[str]:
    """Names that are bound to a set in a scope, as far as assignments and annotations tell."""
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = [*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs]
        yield from (a.arg for a in arguments if _is_set_annotation(a.annotation))
    for node in _own_nodes(scope):
        match node:
            case ast.Assign(targets=targets, value=value) if _is_set(value, set()):
                yield from (t.id for t in targets if isinstance(t, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                if _is_set_annotation(annotation):
                    yield name


def _is_set_annotation(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return isinstance(annotation, ast.Name) and annotation.id in _SET_TYPES


def _is_set(expression: ast.expr, names: set[str]) -> bool:
    match expression:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Name(id=name):
            return name in names
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in _SET_METHODS
        case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _SET_OPERATORS):
            return any(_is_set(side, names) or _is_view(side) for side in (left, right))
        case ast.IfExp(body=body, orelse=other):
            return _is_set(body, names) or _is_set(other, names)
    return False


def _is_view(expression: ast.expr) -> bool:
    """A view of a dictionary's keys: combined with anything it becomes a set."""
    match expression:
        case ast.Call(func=ast.Attribute(attr="keys" | "items")):
            return True
    return False


def _lines(scope: ast.AST, names: set[str]) -> Iterator[int]:
    harmless = {
        id(argument)
        for node in _own_nodes(scope)
        if isinstance(node, ast.Call) and _is_order_blind(node)
        for argument in node.args
    }
    for node in _own_nodes(scope):
        iterated: list[ast.expr] = []
        match node:
            case ast.For() | ast.AsyncFor():
                iterated = [node.iter]
            case ast.ListComp() | ast.DictComp():
                iterated = [g.iter for g in node.generators]
            case ast.GeneratorExp() if id(node) not in harmless:
                iterated = [g.iter for g in node.generators]
            case ast.Call() if _is_order_sensitive(node):
                iterated = list(node.args)
            case ast.Starred():
                iterated = [node.value]
        yield from (e.lineno for e in iterated if _is_set(e, names))


def _is_order_blind(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in _ORDER_BLIND


def _is_order_sensitive(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id=name):
            return name in _ORDER_SENSITIVE
        case ast.Attribute(attr=method):
            return method in _ORDER_SENSITIVE_METHODS
    return False
