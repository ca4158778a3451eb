"""Words that no kernel and no argument may be called: a language or a call shim means something else by them."""

import keyword

# Words that a name must not be in any language's declaration or shim. Fortran itself reserves none.
_C_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
"""
_CPP_WORDS = """
    alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t char8_t class co_await co_return co_yield
    compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export false friend
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast
    requires static_assert static_cast template this thread_local throw true try typeid typename using virtual wchar_t
    xor xor_eq
"""
# What declarations, shims and baselines say themselves (bench/abi.py).
_OUR_WORDS = """
    base slot real struct numpy ceil log2 int32_t int64_t c_float c_double c_int32_t c_int64_t memcpy
"""
RESERVED = frozenset([*_C_WORDS.split(), *_CPP_WORDS.split(), *_OUR_WORDS.split(), *keyword.kwlist])


def free_name(name: str) -> str:
    """The name itself; raises ValueError when a language takes it for something else."""
    if name in RESERVED:
        raise ValueError(f"'{name}' is a word of C, C++, Python or the call shims; choose another name")
    return name
