"""Writes docs/reference/ from the code; with `--check` it only names the pages that are stale."""

import ast
import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import Mock

import httpx
from pydantic import BaseModel

from agent.config import AgentConfig
from bench import cli
from bench.config import JudgeConfig
from bench.errors import ExitCode
from bench.judge import routes, schemas
from bench.judge.metrics import Metrics
from bench.judge.search.config import KEY_VARIABLE, SearchConfig, SearchModel
from cluster.study.settings import reference_rows

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
Key, Meaning = TypeVar("Key"), TypeVar("Meaning")
NOTE = "<!-- Written by `make docs` from the code; edit the code instead. -->\n"

EXIT_MEANINGS = {
    ExitCode.OK: "It worked. A grade was made, whatever its outcome.",
    ExitCode.FAILED: "It did not work; the message says why.",
    ExitCode.USAGE: "The command line, or a file that it names, is wrong.",
    ExitCode.JUDGE_FAULT: "The judge failed at its own work. No submission is to blame.",
    ExitCode.CONFIGURATION: "A setting is wrong: the message names the file and the key.",
    ExitCode.NEVER_READY: "A service of the job never became ready.",
    ExitCode.SERVICE_LOST: "A service was lost and could not be replaced; the job was torn down.",
    ExitCode.STALLED: "No episode and no grade ended for too long; the job was torn down.",
    ExitCode.DEGRADED: "A rank, an engine or an agent node was lost; the rest finished and was merged.",
    ExitCode.MERGE_FAILED: "A database is damaged or the merge failed. The grades in the shards are safe.",
    ExitCode.WALL_CLOCK: "The allocation's time ran out; what there was is merged.",
    ExitCode.CANCELLED: "The operator stopped it.",
}


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; bars and line ends in cells are made harmless."""
    lines = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in [list(head), *rows]]
    body = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([body[0], "|" + "---|" * len(lines[0]), *body[1:]]) + "\n"


def code(value: object) -> str:
    return f"`{value}`" if value not in (None, "") else ""


def explained(meanings: Mapping[Key, Meaning], table_name: str, name: Key) -> Meaning:
    """What a table of this file says of a name; ends the program where it says nothing."""
    if name not in meanings:
        raise SystemExit(f"docs/generate.py: {table_name} does not explain {name!r}; add a line for it there")
    return meanings[name]


# Commands


def leaves(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below one, groups included, by its path."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from leaves(below, f"{path} {name}")


def every_command() -> Iterator[tuple[str, Any]]:
    for name, entry in cli.commands().items():
        if entry.dist is None or entry.dist.name == "kernelcourt":
            yield from leaves(cli.load_command(name), f"kcourt {name}")


def help_text(text: str) -> str:
    """A command's help as Markdown; a block that is not to be wrapped (`\\b`) and the example become code."""
    blocks = []
    for block in (text or "").replace("\f", "").split("\n\n"):
        first, _, rest = block.partition("\n")
        example = re.match(r"Examples?:\s*(kcourt .*)", block, flags=re.DOTALL)
        if first.strip() == "\b":
            blocks.append(f"```text\n{rest}\n```")
        else:
            blocks.append(f"Example:\n\n```text\n{example[1]}\n```" if example else block)
    return "\n\n".join(blocks)


def shown_name(parameter: Any) -> str:
    """An argument's name in capitals, an option's spellings."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return ", ".join([*parameter.opts, *parameter.secondary_opts])


def default_text(parameter: Any) -> str:
    value = parameter.default() if callable(parameter.default) else parameter.default
    if parameter.required:
        return "required"
    return "" if value is None or value is False or value == () else code(getattr(value, "value", value))


def usage(path: str, command: Any) -> str:
    below = ["COMMAND ..."] if hasattr(command, "commands") else []
    arguments = [
        shown_name(parameter) if parameter.required else f"[{shown_name(parameter)}]"
        for parameter in command.params
        if parameter.param_type_name == "argument"
    ]
    return " ".join([path, "[OPTIONS]", *arguments, *below])


def command_section(path: str, command: Any) -> str:
    parts = [f"## {path}", f"```text\n{usage(path, command)}\n```"]
    parts += [help_text(command.help), help_text(command.epilog)]
    rows = [
        (code(shown_name(parameter)), default_text(parameter), parameter.help or "")
        for parameter in command.params
        if parameter.name != "help"
    ]
    if rows:
        parts.append(table(["Argument or option", "Default", "Meaning"], rows))
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def cli_page() -> str:
    listing = table(
        ["Command", "What it does"],
        [(code(f"kcourt {name}"), cli.summary(entry)) for name, entry in cli.commands().items()],
    )
    sections = "\n".join(command_section(*found) for found in every_command())
    return f"# Commands\n\n{listing}\n{sections}"


# Models


def type_text(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """A JSON schema's type in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        target = definitions[name]
        return " or ".join(code(word) for word in target["enum"]) if "enum" in target else name
    if "anyOf" in schema:
        return " or ".join(type_text(choice, definitions) for choice in schema["anyOf"])
    if schema.get("format") == "path":
        return "path"
    limits = [f"{sign} {schema[key]}" for key, sign in (("minimum", ">="), ("maximum", "<=")) if key in schema]
    word = str(schema.get("type", "any"))
    if word == "array" and "items" in schema:
        word = f"list of {type_text(schema['items'], definitions)}"
    return f"{word} ({', '.join(limits)})" if limits else word


def field_rows(model: type[BaseModel]) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and meaning of each field of a model."""
    schema = model.model_json_schema()
    needed = set(schema.get("required", ()))
    for name, field in schema["properties"].items():
        default = "required" if name in needed else default_of(field)
        yield code(name), type_text(field, schema.get("$defs", {})), default, field.get("description", "")


def default_of(field: dict[str, Any]) -> str:
    """A field's default; that of an object with keys of its own is told where those are."""
    value = field.get("default")
    return "its own" if isinstance(value, dict) and value else code(json.dumps(value).strip('"'))


def fields_table(model: type[BaseModel]) -> str:
    return table(["Key", "Type", "Default", "Meaning"], field_rows(model))


def config_page(title: str, model: type[BaseModel], how: str) -> str:
    return f"# {title}\n\n{how}\n\n{fields_table(model)}"


def judge_page() -> str:
    how = "One JSON file configures one judge rank: `kcourt serve --config FILE`. Unknown keys are errors."
    page = config_page("Judge configuration", JudgeConfig, how)
    search = f"## SearchConfig\n\nThe provider's key is in no file: the variable `{KEY_VARIABLE}` holds it."
    model = "## SearchModel\n\nThe model that sums up what a search finds."
    return f"{page}\n{search}\n\n{fields_table(SearchConfig)}\n{model}\n\n{fields_table(SearchModel)}"


def agent_page() -> str:
    how = "One JSON file configures the agent driver of one node: `kcourt agent run --config agent.json`."
    return config_page("Agent configuration", AgentConfig, how)


ENVIRONMENT = {
    "KCOURT_SANDBOX": (
        "unset",
        "`limits` or `user`: the sandbox goes no further, whatever this machine offers.",
    ),
    "KCOURT_TASKS_DIR": ("`tasks/` of the checkout", "The corpus."),
    "KCOURT_EXPERIMENTS_DIR": (
        "`experiments/` of the checkout",
        "Studies, layers, treatments, and what is rendered from them.",
    ),
    "KCOURT_SCRATCH": ("`.scratch`", "Where Slurm's own output goes, in `logs/`; pinned when a setup is rendered."),
    "KCOURT_SYSTEM": (
        "by `SLURM_CLUSTER_NAME`, else `local`",
        "The [system](../studies.md#your-cluster) that jobs go to; `--system` wins.",
    ),
    "KCOURT_SYSTEMS_FILE": ("unset", "A site file: systems and facts that win over the package's."),
    "SLURM_CLUSTER_NAME": ("set by Slurm", "Finds the system where none is named."),
    "SLURM_GPUS_PER_NODE": (
        "set by Slurm",
        "GPUs of each node that a job asked for; unset: SLURM_GPUS_ON_NODE counts.",
    ),
    "SLURM_GPUS_ON_NODE": ("set by Slurm", "GPUs that a job has on its first node."),
    "SLURM_JOB_ID": (
        "set by Slurm",
        "The job that `kcourt cluster run` belongs to; names its run directory.",
    ),
    "SLURM_STEP_ID": ("set by Slurm", "The step that writes a record: signals go to it by this number."),
    "SLURM_JOB_NODELIST": ("set by Slurm", "The job's nodes, in the order that roles are dealt."),
    "KCOURT_CACHE": ("`~/.cache/kernelcourt`", "What is built once: helpers, call shims, denominators, by content."),
    "KCOURT_TMPDIR": ("the system's", "Where each grade gets its private folder."),
    "KCOURT_TOOLS": ("set for agents", "`tools.json` of the attempt whose tools `kcourt tool` calls."),
    "KCOURT_LEASE_DIR": ("the system's temporary folder", "Locks that keep the judges of a machine off one core."),
    "EDF_PATH": (
        "`~/.edf`",
        "Folders of registered EDFs, separated by colons: `kcourt doctor --setup` looks there first, as the Container "
        "Engine does.",
    ),
    "RUN_ROOT": (
        "`.scratch/runs`",
        "`kcourt grade` keeps its grades under `adhoc/` in there. A relative path starts at the checkout when the "
        "command is called inside it, else at the current folder.",
    ),
}


def environment_rows() -> list[tuple[str, str, str]]:
    """Every variable that the code asks for."""
    read = re.compile(r"environ(?:\.get\(|\[)\"([A-Z_]+)\"")
    sources = [path for package in ("bench", "agent", "cluster") for path in (ROOT / package).rglob("*.py")]
    names = {name for path in sources for name in read.findall(path.read_text(encoding="utf-8"))}
    ours = sorted(names - {"PATH", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"})
    return [(code(name), *explained(ENVIRONMENT, "ENVIRONMENT", name)) for name in ours]


def settings_page() -> str:
    rows = reference_rows()
    how = (
        "A setup's env file holds one `KEY=value` a line. It is parsed, never sourced. An unknown key is an "
        "error that names the nearest known one. Keys of the roles `setup` and `treatment` may differ between the "
        "setups of a job. `kcourt settings explain KEY --setup SETUP` says where a value comes from."
    )
    parts = [f"# Settings of a job\n\n{how}\n"]
    for role in dict.fromkeys(row.role for row in rows):
        cells = [
            (
                code(row.key),
                f"{row.type} ({row.unit})" if row.unit else row.type,
                default_cell(row.default),
                row.meaning,
            )
            for row in rows
            if row.role == role
        ]
        parts.append(f"## {role}\n\n{table(['Key', 'Type', 'Default', 'Meaning'], cells)}")
    parts.append(f"## Environment variables\n\n{table(['Variable', 'Default', 'Meaning'], environment_rows())}")
    return "\n".join(parts)


def default_cell(default: str) -> str:
    return default if default == "required" else code(default)


def exit_page() -> str:
    rows = [
        (code(int(member)), code(member.name.lower()), explained(EXIT_MEANINGS, "EXIT_MEANINGS", member))
        for member in ExitCode
    ]
    how = "`kcourt` and a job end with one of these. With `--json`, an error's name is its `code`."
    return f"# Exit codes\n\n{how}\n\n{table(['Code', 'Name', 'Meaning'], rows)}"


# The judge over HTTP

FIELDS = {
    "kernel": "Name of the kernel.",
    "language": "Language of the submission; left out: by the file's suffix, else the setup's.",
    "rank": "The judge that is addressed; another one answers 421. An open judge does not need it.",
    "source": "The submission's text.",
    "source_file": "Path of `<kernel><suffix>` in the shared folder.",
    "library": "Path of a built `<kernel>.so` in the shared folder; only where the input mode takes it.",
    "workspace_bytes": "Size of a scratch buffer.",
    "tool": "`/profile` only: the [profiler](../profiling.md) that is to run.",
}
HEADERS = {
    "Authorization": "`Bearer <token>`: the episode's own. An open judge does not need it.",
    schemas.Header.IDEMPOTENCY: "A request that is repeated with its key is graded once. Another body under it: 400.",
    schemas.Header.ATTEMPT: "Which attempt of the episode asks.",
    schemas.Header.TOKENS: "Tokens that the episode has used so far.",
    schemas.Header.HOME_RANK: "On failover, the rank that was lost.",
    schemas.Header.REQUEST_ID: "Comes back with the answer, and stands in the logs.",
    "Prefer": (
        "`respond-async, wait=30`: 202 when the grade is not made after 30 s (without `wait`: at once), and its answer "
        "under `/grades/{id}`, the `Location`. `/grades` itself takes `wait` alone."
    ),
    schemas.Header.KIND: "Driver only: `promoted` or `harvested`.",
    schemas.Header.OF_GRADE: "Driver only: the grade that is promoted.",
    schemas.Header.EPISODE: "Driver only: the episode that is spoken for.",
}
ANSWERS = {
    "grade_id": "UUID, made before work starts.",
    "kernel": "As asked.",
    "rank": "The judge that graded.",
    "outcome": "See [outcomes](../concepts.md#outcomes).",
    "score": "The protocol's S; null unless solved.",
    "interval": "90 % interval of the raw ratio; null unless solved.",
    "faster": "Whether the lower end of the interval exceeds 1; null unless solved.",
    "suspect": "A reason to look at this grade before it counts, or null.",
    "protocol": "How it was timed.",
    "detail": "On `/score`: property, output, index, got, expected, bound, log. On `/submit`: property, build log.",
}


PROFILE = {
    "kernel": "As asked.",
    "rank": "The judge that profiled.",
    "tool": "As asked.",
    "outcome": "See [outcomes](../concepts.md#outcomes); of one checked call.",
    "report": "The counts as text: functions, and lines of the submission. Empty unless solved.",
    "counters": "The same for a program: unit, total, calls, preset, sizes, functions, lines; null unless solved.",
    "detail": "Property, message or output, and log, as on `/score`.",
}


SEARCH = {
    "query": "As asked.",
    "answer": "What the job's model makes of the sources, named by their numbers in brackets; null without one.",
    "model": "The model that summed up.",
    "note": "Why nothing is summed up.",
    "sources": (
        "By number, from 1: title, url, text (an excerpt), and `unread`: why the page was not read and text is the "
        "provider's own."
    ),
}


def error_rows() -> list[tuple[str, str]]:
    """Statuses and the code words that a judge or a router answers with them, read from their source."""
    words: dict[int, set[str]] = {}
    for path in Path(routes.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="Refused"), args=parts) | ast.Tuple(elts=parts):
                    match parts:
                        case [ast.Constant(value=int() as status), ast.Constant(value=str() as word), *_]:
                            words.setdefault(status, set()).add(word)
    return [(code(status), ", ".join(map(code, sorted(words[status])))) for status in sorted(words)]


def route_rows() -> list[tuple[str, str]]:
    """Method with path, and what it does, from the application's own OpenAPI document."""
    app: Any = routes.create_app(Mock(), Metrics(lambda: 0), None)
    transport = httpx.ASGITransport(app)

    async def document() -> Any:
        async with httpx.AsyncClient(transport=transport, base_url="http://judge") as client:
            return (await client.get("/openapi.json")).json()

    paths = asyncio.run(document())["paths"]
    found = [(method, path, said) for path, methods in paths.items() for method, said in methods.items()]
    return [(code(f"{method.upper()} {path}"), said["description"]) for method, path, said in found]


def http_page() -> str:
    request, answer = schemas.ProfileRequest.model_fields, schemas.Answer.model_fields
    profile, search = schemas.ProfileAnswer.model_fields, schemas.SearchAnswer.model_fields
    types = {name: (kind, default) for name, kind, default, _ in field_rows(schemas.ProfileRequest)}
    fields = [(code(name), *types[code(name)], explained(FIELDS, "FIELDS", name)) for name in request]
    parts = [
        "# The judge over HTTP",
        "A judge is used through its router. `GET /docs` shows the same as OpenAPI. "
        "A submission that does not build or is wrong is 200: it was graded.",
        "## Routes",
        table(["Route", "What it does"], route_rows()),
        "## Request",
        "Body of `/score`, `/submit` and, with `tool`, `/profile`: one strict JSON object (no NaN, no Infinity). An "
        "unknown field is an error. Exactly one of `source`, `source_file` and `library`.",
        table(["Field", "Type", "Default", "Meaning"], fields),
        "Headers, all optional but the token:",
        table(["Header", "Meaning"], [(code(name), meaning) for name, meaning in HEADERS.items()]),
        "## Answer",
        table(["Field", "Meaning"], [(code(name), explained(ANSWERS, "ANSWERS", name)) for name in answer]),
        "Of `/profile`, which is not recorded (keys and `respond-async` mean nothing to it):",
        table(["Field", "Meaning"], [(code(name), explained(PROFILE, "PROFILE", name)) for name in profile]),
        "Of `/search`, whose body is `query` alone (500 characters at most), and which is not recorded either:",
        table(["Field", "Meaning"], [(code(name), explained(SEARCH, "SEARCH", name)) for name in search]),
        "## Errors",
        '`{"error": {"code": ..., "message": ..., "request_id": ...}}`; the message says what to do. '
        "502, 503 and 429 pass: send the same request again with the same key, but not after `rank_lost` or "
        "`not_provisioned`. 499 stands in the logs alone: the client left, the grade went on and is stored.",
        table(["Status", "Codes"], error_rows()),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "cli": cli_page,
    "settings": settings_page,
    "judge-config": judge_page,
    "agent-config": agent_page,
    "http": http_page,
    "exit-codes": exit_page,
}


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` compare them; 1 when one is stale, 2 on another argument."""
    if unknown := set(arguments) - {"--check"}:
        sys.stderr.write(f"unknown: {', '.join(sorted(unknown))}; say --check, or nothing to write the pages\n")
        return 2
    checking = "--check" in arguments
    stale = [path.name for path in FOLDER.glob("*.md") if path.stem not in PAGES]
    if stale and not checking:
        sys.stderr.write(f"nothing writes {', '.join(stale)} any more: remove it\n")
    for name, make in PAGES.items():
        path, text = FOLDER / f"{name}.md", NOTE + make()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.name)
        if not checking:
            path.write_text(text, encoding="utf-8")
    advice = "; run `make docs`" if stale and checking else ""
    sys.stdout.write(f"{'stale' if checking else 'written'}: {', '.join(stale) or 'none'}{advice}\n")
    return int(bool(stale) and checking)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
