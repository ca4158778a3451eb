"""How studies are shown: what they ask, what they would cost, how far they are."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from agent.harnesses import installed_harnesses
from bench.errors import ConfigError, UsageError
from bench.reports.terminal import console_for, plain_table
from bench.task import select
from bench.wording import did_you_mean
from cluster.study.jobs import jobs_of
from cluster.study.render import RenderedSetup, shared_with
from cluster.study.studies import Axis, Study, cells, read_study
from cluster.study.wall_time import wall_text
from cluster.study.wave import check_harness_resumes

PLAN_COLUMNS = ("setup", "kernels x slots", "inference + agent + judge", "wall time", "node-hours", "compares with")


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    console_for().print(plain_table(columns, rows))


def print_lines(lines: Iterator[str] | Sequence[str]) -> None:
    """Lines as they are, whatever brackets names in them have."""
    console = console_for()
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def listed(name: str) -> dict[str, Any]:
    """One line of the list of studies; a file that is wrong says so there and hides no other."""
    try:
        study = read_study(name)
    except ConfigError as error:
        return {"study": name, "setups": None, "kernels": None, "control": None, "question": f"cannot be read: {error}"}
    return {
        "study": name,
        "setups": len(cells(study)),
        "kernels": study.selector,
        "control": _control(study),
        "question": study.question,
    }


def _control(study: Study) -> str:
    if isinstance(study.control, str):
        return study.control
    return ", ".join(f"{axis}: {value}" for axis, value in study.control.items())


def described(study: Study, setups: Sequence[str]) -> dict[str, Any]:
    """What a study asks, as JSON-able values."""
    axes = {axis.plural: list(study.values(axis)) for axis in Axis} if study.models else {}
    return {
        "study": study.study,
        "question": study.question,
        "feeds": study.feeds or None,
        "experiment": study.experiment or None,
        "selector": study.selector,
        "kernels": [task.name for task in select(study.selector)],
        **axes,
        "repeats": study.repeats,
        "hardware": study.hardware or None,
        "control": _control(study),
        "settings": dict(study.settings),
        "setups": list(setups),
    }


def print_pairs(found: Mapping[str, Any]) -> None:
    print_lines([f"{name:<12} {_in_words(value)}" for name, value in found.items() if value not in (None, {}, [])])


def _in_words(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={one}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join("left to the layers" if one is None else str(one) for one in value)
    return str(value)


def plan_document(study: Study, rendered: Sequence[RenderedSetup], said: Sequence[str]) -> dict[str, Any]:
    """The plan as JSON-able values; `said` are its notes."""
    jobs = jobs_of(rendered)
    return {
        "study": study.study,
        "feeds": study.feeds or None,
        "control": _control(study),
        "setups": [_planned(setup) for setup in rendered],
        "problems": sum(len(setup.problems) for setup in rendered),
        "jobs": [[setup.name for setup in job.setups] for job in jobs],
        "node_hours": sum(job.node_hours for job in jobs),
        "accounts": [
            {"provider": provider, "key_env": key, "agents": agents, "setups": number}
            for (provider, key), (agents, number) in hosted_agents(rendered).items()
        ],
        "warnings": list(warnings(rendered)),
        "notes": list(said),
    }


def _planned(setup: RenderedSetup) -> dict[str, Any]:
    split = setup.split
    return {
        "setup": setup.name,
        "env": str(setup.env),
        "problems_file": str(setup.problems_file),
        "kernels": setup.kernels,
        "slots": setup.slots,
        "nodes": {"inference": split.inference, "agent": split.agents, "judge": split.judges, "total": split.total},
        "wall_s": setup.wall_s,
        "node_hours": setup.node_hours,
        "agents": setup.agents,
        "compares_with": setup.compares_with,
    }


def print_plan(study: Study, rendered: Sequence[RenderedSetup], said: Sequence[str], system: str | None = None) -> None:
    """One row a setup, the sums, and what an operator should know before submitting.

    `said` are the plan's notes, `system` the one that was named for it.
    """
    print_lines([f"{study.study}: {study.question}", *([f"feeds: {study.feeds}"] if study.feeds else [])])
    print_rows(PLAN_COLUMNS, [_plan_row(setup) for setup in rendered])
    jobs, problems = jobs_of(rendered), sum(len(setup.problems) for setup in rendered)
    shared = f" in {len(jobs)} job{'s' * (len(jobs) > 1)}" if len(jobs) < len(rendered) else ""
    hours = sum(job.node_hours for job in jobs)
    print_lines([f"{len(rendered)} setups{shared}, {problems} problems, at most {hours:.1f} node-hours"])
    for (provider, key), (agents, number) in hosted_agents(rendered).items():
        print_lines([f"{provider} ({key}) would see up to {agents} agents at once, from {number} setups"])
    print_lines([f"warning: {text}" for text in warnings(rendered)])
    print_lines([f"note: {text}" for text in said])
    named = f" --system {system}" if system else ""
    print_lines([f"to run it: kcourt study submit {study.study}{named}"])


def _plan_row(setup: RenderedSetup) -> tuple[str, ...]:
    split = setup.split
    return (
        setup.name,
        f"{setup.kernels} x {setup.slots}",
        f"{split.inference} + {split.agents} + {split.judges}",
        wall_text(setup.wall_s),
        f"{setup.node_hours:.1f}",
        setup.compares_with or "(control)",
    )


def hosted_agents(rendered: Sequence[RenderedSetup]) -> dict[tuple[str, str], tuple[int, int]]:
    """(provider, name of its key) → agents at once when all its setups run together, and how many setups those are."""
    agents: Counter[tuple[str, str]] = Counter()
    setups: Counter[tuple[str, str]] = Counter()
    for setup in rendered:
        settings = setup.settings
        if settings.inference_source == "service":
            account = (settings.inference_service_provider or "the service", settings.inference_service_key_env or "")
            agents[account] += setup.agents
            setups[account] += 1
    return {account: (agents[account], setups[account]) for account in agents}


def warnings(rendered: Sequence[RenderedSetup]) -> Iterator[str]:
    """What wants a decision before the study is submitted."""
    if providers := _training_providers(rendered):
        yield (
            f"{', '.join(providers)} trains on what agents send (INFERENCE_SERVICE_TIER=contributor); "
            "submitting wants --accept-training-tier"
        )


def _training_providers(rendered: Sequence[RenderedSetup]) -> list[str]:
    training = (setup.settings for setup in rendered if setup.settings.trains_on_traffic)
    return list(dict.fromkeys(settings.inference_service_provider or "the service" for settings in training))


def refuse_training_tier(rendered: Sequence[RenderedSetup]) -> None:
    """Raises UsageError when a setup's traffic would become training data."""
    if providers := _training_providers(rendered):
        raise UsageError(
            f"{', '.join(providers)} trains on what agents send (INFERENCE_SERVICE_TIER=contributor): every kernel and "
            "transcript; say --accept-training-tier if that is meant, or choose another tier"
        )


def refuse_unset_keys(rendered: Sequence[RenderedSetup], environ: Mapping[str, str]) -> None:
    """Raises ConfigError when a secret that a setup needs is not where jobs are submitted from."""
    for setup in rendered:
        for variable, what in setup.settings.needed_secrets.items():
            if not environ.get(variable):
                raise ConfigError(
                    f"setup '{setup.name}': {variable} is not set, and holds {what}; "
                    "export it in the shell that submits (it is written nowhere)"
                )


def refuse_unresumable(rendered: Sequence[RenderedSetup]) -> None:
    """Raises ConfigError when a setup has a budget of time and a harness that cannot use it up."""
    for setup in rendered:
        try:
            check_harness_resumes(setup.settings)
        except ConfigError as error:
            raise ConfigError(f"setup '{setup.name}': {error}") from error


def notes(rendered: Sequence[RenderedSetup]) -> Iterator[str]:
    """What the table does not say, each once; asked before the files are written."""
    for setup, other in shared_with(rendered).items():
        yield f"{setup} is also a setup of study '{other}', whose env and problems files are replaced"
    left_out = Counter(
        (setup.settings.language.value, setup.settings.agent_start.value, setup.left_out)
        for setup in rendered
        if setup.left_out
    )
    for (language, start, kernels), number in left_out.items():
        lacking = f"not written in {language}, or without start material {start}"
        yield f"{lacking}, left out of {number} setups: {', '.join(kernels)}"
    yield from dict.fromkeys(option.note for setup in rendered for option in setup.shape if option.note)
    installed = installed_harnesses()
    for name in sorted({setup.settings.harness for setup in rendered} - installed.keys()):
        yield f"no harness '{name}' is installed here, which the agents would need; {did_you_mean(name, installed)}"
