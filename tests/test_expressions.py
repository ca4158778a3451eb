"""A manifest's arithmetic: equals Python's, and nothing else gets in."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.expressions import Expression

SIZES = {"n": 12, "rows": 7, "k": 1}
BINARY = ["+", "-", "*", "/", "//", "%"]


def joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(parts, st.sampled_from(BINARY), parts).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        parts.map(lambda inner: f"-{inner}"),
        st.tuples(st.sampled_from(["min", "max"]), parts, parts).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        parts.map(lambda inner: f"ceil({inner})"),
    )


NUMBERS = st.one_of(st.integers(0, 10**6).map(str), st.sampled_from(["0.5", "1e3", *SIZES]))
ARITHMETIC = st.recursive(NUMBERS, joined, max_leaves=12)


def by_python(text: str) -> Any:
    return eval(text, {"__builtins__": {}, "min": min, "max": max, "ceil": math.ceil}, dict(SIZES))


@given(ARITHMETIC)
def test_arithmetic_equals_pythons(text: str) -> None:
    try:
        expected = by_python(text)
    except ArithmeticError as error:
        with pytest.raises(type(error)):
            Expression(text)(SIZES)
    else:
        assert Expression(text)(SIZES) == expected


def test_it_knows_its_names() -> None:
    assert Expression("2 * rows * min(cols, n) + 1").names == {"rows", "cols", "n"}
    assert Expression(7)({}) == 7
    assert Expression("log2(n)")({"n": 8}) == 3


@pytest.mark.parametrize(
    "text",
    [
        *("n.real", "n[0]", "f(n)", "__import__('os')", "eval('1')", "min.__class__", "(lambda: 1)()"),
        *("[i for i in n]", "{n}", "(n, n)", "'n'", "b'n'", "True", "None", "1j", "f'{n}'"),
        *("n ** n", "n << 2", "~n", "+n", "not n", "n and n", "n < 2", "n if n else 1", "n := 2", "*n", "..."),
        *("min(n)", "min()", "max(*n)", "min(n, key=n)", "ceil(n, 2)", "log2()"),
        *("", "2 *", "n;n", "import os", "n n", "\0"),
    ],
)
def test_everything_else_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"may use only numbers|is not an expression|null bytes"):
        Expression(text)
