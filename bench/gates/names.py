"""Rejects a Triton module that names what no kernel needs (`imports.yaml`).

Its process is sealed only once it is loaded and has compiled, and the modules that it imports hold all others. A text
can hide what it names: behind this gate are the walls of the sandbox, the judge's clock, and the look at every output.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn, Self

from bench.gates.imports import rejected, top_modules, triton_rules
from bench.judge.schemas import Language


def check(source: str) -> None:
    """Look at every name of a module that parses, and at what it asks its modules for.

    Raises:
        Rejected: (`policy`) one of them is not on the list; the message names it.
    """
    tree = ast.parse(source)
    bound = {name: dotted for node in ast.walk(tree) for name, dotted in _bound(node)}
    _Reader(bound).visit(tree)


@dataclass(frozen=True)
class Rules:
    """Names that may be asked of the modules `own` (`listed` matches them), and names that nothing may be asked for."""

    own: frozenset[str]
    listed: re.Pattern[str]
    holders: frozenset[str]
    builtins: frozenset[str]
    attributes: frozenset[str]
    dunder: frozenset[str]
    foreign: frozenset[str]

    @classmethod
    @lru_cache(maxsize=1)
    def read(cls) -> Self:
        rules = triton_rules()
        names = [name for line in rules["names"] for name in line.split()]
        known = top_modules(Language.TRITON)
        patterns = "|".join(re.escape(name).replace(r"\*", "[^.]+") for name in names)
        sets = {key: frozenset(rules[key].split()) for key in ("builtins", "attributes", "dunder")}
        return cls(
            own=frozenset(rules["modules"].split()),
            # What follows a listed name is asked of what that stands for.
            listed=re.compile(rf"(?:{patterns})(?:\..*)?"),
            holders=frozenset(holder for name in names for holder in _above(name)),
            foreign=sys.stdlib_module_names - known,
            **sets,
        )

    def admits(self, dotted: str) -> bool:
        """Whether a module may be asked for that: its own name, and the names of what is asked for."""
        root, *parts = dotted.split(".")
        if root in self.own and not self.listed.fullmatch(dotted):
            return False
        return all(self.admits_attribute(part) and part.strip("_") not in self.foreign for part in parts)

    def admits_attribute(self, name: str) -> bool:
        """Whether any object may be asked for that."""
        return name not in self.attributes and (not re.fullmatch("__.*__", name) or name in self.dunder)


def _above(dotted: str) -> Iterator[str]:
    """The modules that a name lies in."""
    while dotted := dotted.rpartition(".")[0]:
        yield dotted


def _bound(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that an import binds, and what each stands for."""
    match node:
        case ast.Import():
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        case ast.ImportFrom():
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


class _Reader(ast.NodeVisitor):
    """`bound` are the names that stand for modules, or for what is in them."""

    def __init__(self, bound: dict[str, str]) -> None:
        self._bound, self._rules = bound, Rules.read()

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._imports(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for _, dotted in _bound(node):
            self._imports(dotted, node)

    def _imports(self, dotted: str, node: ast.stmt) -> None:
        if dotted not in self._rules.holders and not self._rules.admits(dotted):
            _refuse(dotted, node)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in self._rules.builtins or not self._rules.admits(self._bound.get(node.id, "")):
            _refuse(node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if dotted := self._dotted(node):
            if not self._rules.admits(dotted):
                _refuse(dotted, node)
        elif self._rules.admits_attribute(node.attr):
            self.visit(node.value)
        else:
            _refuse(node.attr, node)

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(func=ast.Name("getattr" | "hasattr"), args=[value, ast.Constant(str(name)), *others]):
                for part in (ast.copy_location(ast.Attribute(value, name), node), *others):
                    self.visit(part)
            case _:
                self.generic_visit(node)

    def _dotted(self, node: ast.expr) -> str:
        """What it is called from a module on; empty when it begins with none."""
        match node:
            case ast.Name(name):
                return self._bound.get(name, "")
            case ast.Attribute(value, name):
                return f"{before}.{name}" if (before := self._dotted(value)) else ""
        return ""


def _refuse(name: str, node: ast.expr | ast.stmt) -> NoReturn:
    raise rejected(f"line {node.lineno} names '{name}', which no kernel needs; launch kernels of Triton, and return")
