"""What the agents of one setup are given: prompt, tools, skills, files; refused when it promises what does not hold."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.budget import Budget, budget_of
from agent.prompts.given import BRIEF, PROMPT, Brief, Skill, read_brief
from agent.prompts.promises import Enforced, broken
from agent.prompts.render import Facts, SectionFault, render, sections_of, shipped_sections, template_of
from agent.seal import SKILL_PAGES
from agent.tools.offered import Tool, offered, why_forbidden
from bench.errors import ConfigError
from bench.judge.contract import contract
from bench.judge.schemas import Device, Problem
from bench.start import Start, start_material
from bench.task import find_task
from bench.wording import did_you_mean
from cluster.study.settings import JobSettings
from cluster.study.treatments import Treatment, read_treatment, text_of


@dataclass(frozen=True)
class Piece:
    """A text that agents read: its file (None: shipped with the package), and whether Jinja fills it."""

    path: Path | None
    text: str
    template: bool


@dataclass(frozen=True)
class Told:
    """What the agents of one problem are told, as a whole and by section (no empty ones), and their tools."""

    prompt: str
    sections: dict[str, str]
    tools: tuple[Tool, ...]


def tools_of(settings: JobSettings) -> tuple[Tool, ...]:
    """The tools that a setup's clients announce.

    Raises:
        ConfigError: a tool is unknown, or is switched on where the judge refuses it.
    """
    mode, language = settings.agent_submission_mode, settings.language
    on, off = _named(settings, "AGENT_TOOLS_ON"), _named(settings, "AGENT_TOOLS_OFF")
    for tool in on:
        if why := why_forbidden(tool, mode, language):
            raise ConfigError(f"AGENT_TOOLS_ON: {_switched_on(settings, tool, why)}")
    return offered(mode, language, on, off)


def _switched_on(settings: JobSettings, tool: Tool, why: str) -> str:
    change = "leave it off, or this setup out of the study"
    return f"setup '{settings.setup}' has the tool '{tool}' on, and {why}; {change}"


def _named(settings: JobSettings, key: str) -> tuple[Tool, ...]:
    words = [word for word in str(settings.values[key]).split(",") if word]
    for word in words:
        if word not in list(Tool):
            raise ConfigError(f"setup '{settings.setup}': {key}: no tool '{word}'; {did_you_mean(word, Tool)}")
    return tuple(map(Tool, words))


def launch_material(settings: JobSettings, treatment: Treatment) -> dict[str, bytes]:
    """Path → content of all that the agents of a setup are given beside their kernels, as a launch keeps it."""
    brief = _brief(settings, treatment).model_dump_json(indent=2) + "\n"
    return {
        PROMPT: template_of(_sections(treatment)).encode(),
        BRIEF: brief.encode(),
        **treatment.material(),
    }


def check_treatment(settings: JobSettings, treatment: Treatment, problem: Problem) -> None:
    """Hold every text of a treatment, filled for one problem, against what the setup enforces.

    Raises:
        ConfigError: the setup's keys are not the treatment's, or a text promises what does not hold or is no
            template; its file and line are named.
    """
    _check_keys(settings, treatment)
    enforced, facts = enforced_for(settings, problem), _facts(settings, _brief(settings, treatment), problem)
    for piece in _pieces(treatment):
        where = piece.path or "the shipped prompt"
        try:
            text = render(piece.text, facts) if piece.template else piece.text
        except SectionFault as error:
            raise ConfigError(f"{where}:{error.line}: {error}") from error
        if found := broken(text, enforced):
            line = piece.text[: max(0, piece.text.find(found.phrase))].count("\n") + 1
            raise ConfigError(
                f"{where}:{line}: '{found.phrase}' promises what setup '{settings.setup}' does not keep: "
                f"{found.broken}; take it out, or put it where it holds (for sections: {{% if ... %}})"
            )


def enforced_for(settings: JobSettings, problem: Problem) -> Enforced:
    """What holds for the agents of one problem."""
    return Enforced(
        mode=settings.agent_submission_mode,
        tools=tools_of(settings),
        budget=_budget(settings, problem),
        build=str(contract_of(settings, problem)["build"]),
    )


def contract_of(settings: JobSettings, problem: Problem) -> dict[str, object]:
    """What the judge's `/task/<kernel>` answers to the agents of a problem."""
    task, device = find_task(problem.kernel), Device(settings.device)
    return contract(task, problem.language, settings.preset, device, settings.hardware)


def told(material: Mapping[str, bytes], settings: JobSettings, problem: Problem) -> Told:
    """What the agents of a problem are told by launch material; raises SectionFault."""
    brief, template = Brief.model_validate_json(material[BRIEF]), material[PROMPT].decode()
    facts = _facts(settings, brief, problem)
    sections = {name: render(text, facts) for name, text in sections_of(template).items()}
    return Told(render(template, facts), {name: text for name, text in sections.items() if text.strip()}, brief.tools)


def given_to(env: Path, settings: JobSettings, problems: Sequence[Problem]) -> dict[str, bytes]:
    """The launch material of an env file: what a snapshot keeps beside it, else made from the treatment now.

    Raises:
        ConfigError: there is no such treatment, a file of it is wrong, or a prompt promises what does not hold.
    """
    kept = kept_beside(env)
    if kept.is_dir():
        material = {str(path.relative_to(kept)): path.read_bytes() for path in kept.rglob("*") if path.is_file()}
        for problem in problems:
            _check_kept(settings, kept, material, problem)
        return material
    treatment = read_treatment(settings.treatment)
    for problem in problems:
        check_treatment(settings, treatment, problem)
    return launch_material(settings, treatment)


def kept_beside(env: Path) -> Path:
    """Folder of the launch material that a snapshot keeps: `<name>.env` has `<name>.launch/`."""
    return env.with_name(f"{env.name.removesuffix('.env')}.launch")


def _check_keys(settings: JobSettings, treatment: Treatment) -> None:
    """The name of a treatment is on every row, so a setup must have what it gives, and its judge must allow it."""
    for key, value in treatment.env.items():
        if (has := str(settings.values[key])) != value:
            raise ConfigError(
                f"setup '{settings.setup}': treatment '{treatment.name}' gives {key}={value}, the setup has '{has}'; "
                f"set {key}={value}, or name the treatment that it is"
            )
    for tool, switch in treatment.tools.items():
        if switch.on and (why := why_forbidden(tool, settings.agent_submission_mode, settings.language)):
            raise ConfigError(f"{switch.where}: {_switched_on(settings, tool, why)}")


def _check_kept(settings: JobSettings, kept: Path, material: Mapping[str, bytes], problem: Problem) -> None:
    """Hold what a snapshot keeps against what the job enforces: settings may have been given at the launch."""
    brief = read_brief(kept)
    if brief.tools != tools_of(settings):
        raise ConfigError(f"{kept / BRIEF}: was made for the tools {', '.join(brief.tools)}; plan the study again")
    try:
        text = render(material[PROMPT].decode(), _facts(settings, brief, problem))
    except SectionFault as error:
        raise ConfigError(f"{kept / PROMPT}:{error.line}: {error}") from error
    if found := broken(text, enforced_for(settings, problem)):
        raise ConfigError(f"{kept / PROMPT}: promises '{found.phrase}', and {found.broken}; plan the study again")


def _sections(treatment: Treatment) -> dict[str, str]:
    return {**shipped_sections()} | {name: section.text for name, section in treatment.sections.items()}


def _pieces(treatment: Treatment) -> Iterator[Piece]:
    """A treatment's own texts come first: the shipped sections show its hints again."""
    yield from (Piece(section.path, section.text, template=True) for section in treatment.sections.values())
    yield from (Piece(hint.path, hint.text, template=False) for hint in treatment.hints)
    for skill in treatment.skills.values():
        yield from (Piece(page, text_of(page), template=False) for page in sorted(skill.folder.rglob("*.md")))
    for name, text in shipped_sections().items():
        if name not in treatment.sections:
            yield Piece(None, text, template=True)


def _brief(settings: JobSettings, treatment: Treatment) -> Brief:
    return Brief(
        tools=tools_of(settings),
        hints=tuple(hint.text for hint in treatment.hints),
        skills=tuple(Skill(name=name, trigger=skill.trigger) for name, skill in treatment.skills.items()),
        files=tuple(treatment.files),
    )


def _budget(settings: JobSettings, problem: Problem) -> Budget:
    return budget_of(problem.budget, settings.budget)


def _facts(settings: JobSettings, brief: Brief, problem: Problem) -> Facts:
    return Facts(
        text=problem.text,
        contract=contract_of(settings, problem),
        start=tuple(start_material(find_task(problem.kernel), Start(problem.start))),
        mode=settings.agent_submission_mode,
        budget=_budget(settings, problem),
        brief=brief,
        given=Path("/shared"),
        skills=SKILL_PAGES,
    )
