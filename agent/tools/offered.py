"""Which tools a client has: those that its submission mode and language allow, as a treatment switches them."""

from collections.abc import Iterable
from enum import StrEnum

from bench.judge.schemas import Language, ProfileTool, SubmissionMode, not_profiled


class Tool(StrEnum):
    """A tool by the name that a client announces."""

    SCORE = "score"
    SUBMIT = "submit"
    PROFILE = "profile"
    SEARCH = "search"
    SYNTAX_CHECK = "syntax_check"


# What clients have unless a treatment says otherwise.
USUAL = (Tool.SCORE, Tool.SUBMIT, Tool.SYNTAX_CHECK)
# Languages whose compiler agents have beside them.
CHECKED = (Language.C, Language.CPP, Language.FORTRAN, Language.PYTHON)
_PREVIEWS = frozenset({Tool.SCORE, Tool.PROFILE})


def why_forbidden(tool: Tool, mode: SubmissionMode, language: Language) -> str:
    """Why a judge would refuse this tool to such a setup; an empty text when it would not."""
    if tool in _PREVIEWS and mode is SubmissionMode.BLIND:
        return "submission mode blind shows nothing before the submit"
    if tool is Tool.SYNTAX_CHECK and language not in CHECKED:
        by_isa = not not_profiled(language, ProfileTool.ISA)
        advice = "use the profile tool, with isa" if by_isa else "preview it with the score tool"
        return f"no compiler of an agent reads {language}; {advice}"
    return not_profiled(language) if tool is Tool.PROFILE else ""


def offered(
    mode: SubmissionMode, language: Language, on: Iterable[Tool] = (), off: Iterable[Tool] = ()
) -> tuple[Tool, ...]:
    """The tools that a client must announce before its first token, in the order of `Tool`."""
    wanted = {*USUAL, *on} - {*off}
    return tuple(tool for tool in Tool if tool in wanted and not why_forbidden(tool, mode, language))
