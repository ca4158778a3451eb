"""Writes docs/reference/ from the code, and the tables of docs/trust.md; with `--check` it only names what is stale."""

import ast
import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import meanings
from pages import table, write
from pydantic import BaseModel
from rows import trust_page

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
NOTE = "<!-- Written by `make docs` from the code; edit the code instead. -->\n"


def code(value: object) -> str:
    return f"`{value}`" if value not in (None, "") else ""


def explained(table_name: str, name: object) -> Any:
    """What a table of docs/meanings.py says of a name; ends the program where it says nothing."""
    if name not in (said := getattr(meanings, table_name)):
        raise SystemExit(f"docs/meanings.py: {table_name} does not explain {name!r}; add a line for it there")
    return said[name]


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


def environment_rows() -> list[tuple[str, str, str]]:
    """Every variable that the code asks for."""
    read = re.compile(r"environ(?:\.get\(|\[)\"([A-Z_]+)\"")
    sources = [path for package in ("bench", "agent", "cluster") for path in (ROOT / package).rglob("*.py")]
    names = {name for path in sources for name in read.findall(path.read_text(encoding="utf-8"))}
    ours = sorted(names - {"PATH", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"})
    return [(code(name), *explained("ENVIRONMENT", name)) for name in ours]


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
    rows = [(code(int(member)), code(member.name.lower()), explained("EXIT_MEANINGS", member)) for member in ExitCode]
    how = "`kcourt` and a job end with one of these. With `--json`, an error's name is its `code`."
    return f"# Exit codes\n\n{how}\n\n{table(['Code', 'Name', 'Meaning'], rows)}"


# The judge over HTTP


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
    return [(code(f"{method.upper()} {path}"), " ".join(said["description"].split())) for method, path, said in found]


def meanings_table(table_name: str, names: Iterable[str]) -> str:
    return table(["Field", "Meaning"], [(code(name), explained(table_name, name)) for name in names])


CURL = """\
curl http://127.0.0.1:8800/score -d '{"kernel": "axpy", "source_file": "axpy.c"}'   # at an open judge
curl http://127.0.0.1:8800/score -H "Authorization: Bearer $TOKEN" -d @request.json   # at a job's judge"""


def http_page() -> str:
    request, answer = schemas.ProfileRequest.model_fields, schemas.Answer.model_fields
    profile, search = schemas.ProfileAnswer.model_fields, schemas.SearchAnswer.model_fields
    types = {name: (kind, default) for name, kind, default, _ in field_rows(schemas.ProfileRequest)}
    fields = [(code(name), *types[code(name)], explained("FIELDS", name)) for name in request]
    parts = [
        "# The judge over HTTP",
        "A judge is used through its router. `GET /docs` shows the same as OpenAPI. "
        "A submission that does not build or is wrong is 200: it was graded.",
        f"```text\n{CURL}\n```",
        "## Routes",
        table(["Route", "What it does"], route_rows()),
        "## Request",
        "Body of `/score`, `/submit` and, with `tool`, `/profile`: one strict JSON object (no NaN, no Infinity). An "
        "unknown field is an error. Exactly one of `source`, `source_file` and `library`.",
        table(["Field", "Type", "Default", "Meaning"], fields),
        "Headers, all optional but the token:",
        table(["Header", "Meaning"], [(code(name), meaning) for name, meaning in meanings.HEADERS.items()]),
        "## Answer",
        meanings_table("ANSWERS", answer),
        "Of `/profile`, which is not recorded (keys and `respond-async` mean nothing to it):",
        meanings_table("PROFILE", profile),
        "Of `/search`, whose body is `query` alone (500 characters at most), and which is not recorded either:",
        meanings_table("SEARCH", search),
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


def reference() -> dict[Path, str]:
    """Every page of the reference; ends the program where one lies there that nothing writes."""
    if old := [path.name for path in FOLDER.glob("*.md") if path.stem not in PAGES]:
        raise SystemExit(f"docs/reference: nothing writes {', '.join(old)} any more; remove it")
    return {FOLDER / f"{name}.md": NOTE + make() for name, make in PAGES.items()}


if __name__ == "__main__":
    sys.exit(write(sys.argv[1:], reference() | trust_page()))
