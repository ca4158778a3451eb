"""Evaluates a manifest's arithmetic (`2 * rows * cols`) over named integers, by an allow-list."""

import ast
import math
import operator
from collections.abc import Callable, Mapping

Number = int | float

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_CALLS: dict[str, Callable[..., Number]] = {"min": min, "max": max, "ceil": math.ceil, "log2": math.log2}
_OPERANDS = {"min": range(2, 100), "max": range(2, 100), "ceil": (1,), "log2": (1,)}


class Expression:
    """A parsed expression: + - * / // %, parentheses, numbers, names, min, max, ceil, log2."""

    def __init__(self, text: str | int | float) -> None:
        self.text = str(text)
        try:
            self._root = ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            raise ValueError(f"'{self.text}' is not an expression: {error.msg}") from error
        self.names = frozenset(_names(self._root, self.text))

    def __call__(self, values: Mapping[str, int]) -> Number:
        return _evaluate(self._root, values)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


def _names(node: ast.expr, text: str) -> set[str]:
    """Names used by an expression; raises ValueError on anything outside the allow-list."""
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float()):
            return set()
        case ast.Name():
            return {node.id}
        case ast.BinOp() if type(node.op) in _BINARY:
            return _names(node.left, text) | _names(node.right, text)
        case ast.UnaryOp(op=ast.USub()):
            return _names(node.operand, text)
        case ast.Call(func=ast.Name(id=name), keywords=[]) if len(node.args) in _OPERANDS.get(name, ()):
            return set().union(*(_names(argument, text) for argument in node.args))
    known = ", ".join(_CALLS)
    raise ValueError(
        f"'{text}' may use only numbers, size names, + - * / // % and {known}; found {ast.unparse(node)[:60]}"
    )


def _evaluate(node: ast.expr, values: Mapping[str, int]) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return values[name]
        case ast.BinOp():
            return _BINARY[type(node.op)](_evaluate(node.left, values), _evaluate(node.right, values))
        case ast.UnaryOp():
            return -_evaluate(node.operand, values)
        case ast.Call(func=ast.Name(id=name)):
            return _CALLS[name](*(_evaluate(argument, values) for argument in node.args))
    raise AssertionError("the parser admits nothing else")
