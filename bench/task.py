"""A kernel's manifest as a typed, validated Task, and the registry that finds tasks by selector."""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from bench.errors import TaskError, UsageError
from bench.expressions import Expression
from bench.judge.schemas import Language, Preset


class Role(StrEnum):
    """What an argument is for; the order of arguments is the kernel's signature."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"
    INDEX = "index"
    SIZE = "size"
    SCALAR = "scalar"


class Family(StrEnum):
    """How values are drawn; `bench/inputs.py` says each distribution exactly."""

    UNIFORM = "uniform"
    POSITIVE = "positive"
    NORMAL = "normal"
    WIDE = "wide"
    NEAR_CONSTANT = "near_constant"
    FEW = "few"
    BELOW = "below"
    SKEWED = "skewed"
    ROW_POINTERS = "row_pointers"


INTEGER_FAMILIES = frozenset({Family.BELOW, Family.SKEWED, Family.ROW_POINTERS})
ARRAY_ROLES = frozenset({Role.INPUT, Role.OUTPUT, Role.INOUT, Role.INDEX})
DRAWN_ROLES = frozenset({Role.INPUT, Role.INOUT, Role.INDEX, Role.SCALAR})
DType = Literal["float32", "float64", "int32", "int64"]
# Slots of the page through which a runner is called (bench/native/control.h).
MAX_ARGUMENTS = 32
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$")]


def _expression(value: object) -> Expression:
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"an expression is a number or text such as '2 * n', not {value!r}")
    return Expression(value)


Formula = Annotated[Expression, BeforeValidator(_expression)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Argument(_Closed):
    """One argument of a kernel.

    `shape` holds one expression a dimension; `values` lists the families that inputs are drawn from, the
    first being the one that timed inputs use; `bound` is the exclusive upper bound of integer families.
    """

    role: Role
    dtype: DType | None = None
    shape: tuple[Formula, ...] = ()
    values: tuple[Family, ...] = ()
    bound: Formula | None = None

    @model_validator(mode="after")
    def _fits_its_role(self) -> Self:
        if self.role is Role.SIZE:
            if self.dtype or self.shape or self.values:
                raise ValueError("a size has no dtype, shape or values: it is an int64 named under 'sizes'")
            return self
        if self.dtype is None:
            raise ValueError(f"an argument of role {self.role} needs a dtype")
        if (self.role in ARRAY_ROLES) != bool(self.shape):
            raise ValueError("arrays have a shape, scalars have none")
        if (self.role in DRAWN_ROLES) != bool(self.values):
            raise ValueError("inputs, indices and scalars list their value families; outputs and sizes do not")
        for family in self.values:
            if (family in INTEGER_FAMILIES) != self.dtype.startswith("int"):
                raise ValueError(f"values of family '{family}' do not fit dtype {self.dtype}")
        if (self.bound is not None) != any(family in INTEGER_FAMILIES for family in self.values):
            raise ValueError("'bound' goes with the integer families (below, skewed, row_pointers) and only them")
        return self

    @property
    def is_array(self) -> bool:
        return self.role in ARRAY_ROLES

    @property
    def is_output(self) -> bool:
        return self.role in (Role.OUTPUT, Role.INOUT)


class Platform(_Closed):
    """Where a kernel can run; a skipped kernel stays in the counts."""

    status: Literal["active", "skipped"] = "active"
    arch: tuple[str, ...] = ()
    skip_reason: str | None = None


class Manifest(_Closed):
    """The content of `task.yaml`."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
    suite: str
    summary: str
    arguments: Annotated[dict[Identifier, Argument], Field(max_length=MAX_ARGUMENTS)]
    sizes: dict[Preset, dict[str, Annotated[int, Field(ge=1)]]]
    edge: dict[str, tuple[Annotated[int, Field(ge=1)], ...]] = {}
    traffic: Formula
    flops: Formula
    reduction: Formula = Expression(1)
    tolerance: Annotated[float, Field(gt=0)] = 4.0
    languages: tuple[Language, ...]
    baselines: Annotated[tuple[str, ...], Field(min_length=1)] = ("baseline.c",)
    tags: tuple[str, ...] = ()
    mutants: dict[str, str] = {}
    platform: Platform = Platform()

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        sizes = frozenset(name for name, argument in self.arguments.items() if argument.role is Role.SIZE)
        if not any(argument.is_output for argument in self.arguments.values()):
            raise ValueError("a kernel has at least one output or inout argument")
        missing = [preset for preset in Preset if preset not in self.sizes]
        if missing:
            raise ValueError(f"'sizes' lacks the presets {', '.join(missing)}")
        for preset, values in self.sizes.items():
            if set(values) != sizes:
                raise ValueError(f"sizes.{preset} names {sorted(values)}, the size arguments are {sorted(sizes)}")
        if unknown := set(self.edge) - sizes:
            raise ValueError(f"'edge' names {sorted(unknown)}, the size arguments are {sorted(sizes)}")
        for label, formula in self._formulas():
            if unknown := set(formula.names) - sizes:
                raise ValueError(f"{label} uses {sorted(unknown)}, the size arguments are {sorted(sizes)}")
        for values in (dict.fromkeys(sizes, 1), *self.sizes.values()):
            self._evaluate(values)
        return self

    @model_validator(mode="after")
    def _names_differ_in_fortran(self) -> Self:
        """Fortran ignores case, and gives a subroutine and its arguments one scope."""
        if Language.FORTRAN not in self.languages:
            return self
        taken: dict[str, str] = {}
        for name in (self.name, *self.arguments):
            if (other := taken.setdefault(name.lower(), name)) is not name:
                raise ValueError(
                    f"'{other}' and '{name}' are one name in Fortran, which ignores case; rename one of them, "
                    "or take fortran out of 'languages'"
                )
        return self

    def _evaluate(self, sizes: "Sizes") -> None:
        """Every formula has a value, and every array an element, from sizes of 1 (which fuzzing draws) on."""
        for label, formula in self._formulas():
            try:
                value = formula(sizes)
            except (ArithmeticError, ValueError) as error:
                raise ValueError(f"{label} has no value at {dict(sizes)}: {error}") from error
            if label.startswith("shape") and value < 1:
                raise ValueError(f"{label} is {value} at {dict(sizes)}; an array has at least one element")

    def _formulas(self) -> Iterable[tuple[str, Expression]]:
        yield from (("traffic", self.traffic), ("flops", self.flops), ("reduction", self.reduction))
        for name, argument in self.arguments.items():
            yield from ((f"shape of '{name}'", formula) for formula in argument.shape)
            if argument.bound:
                yield f"bound of '{name}'", argument.bound


Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Task:
    """One kernel: its manifest and the folder that it came from."""

    manifest: Manifest
    folder: Path

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def arguments(self) -> dict[str, Argument]:
        return self.manifest.arguments

    @property
    def arrays(self) -> dict[str, Argument]:
        return {name: argument for name, argument in self.arguments.items() if argument.is_array}

    @property
    def outputs(self) -> dict[str, Argument]:
        return {name: argument for name, argument in self.arguments.items() if argument.is_output}

    def shape(self, name: str, sizes: Sizes) -> tuple[int, ...]:
        """Shape of one array at the given sizes."""
        return tuple(int(formula(sizes)) for formula in self.arguments[name].shape)

    def size(self, preset: Preset) -> dict[str, int]:
        return dict(self.manifest.sizes[preset])

    @property
    def reference(self) -> Path:
        return self.folder / "reference.py"

    @property
    def baselines(self) -> list[Path]:
        return [self.folder / name for name in self.manifest.baselines]

    def controls(self, kind: str) -> list[Path]:
        """Control submissions of one kind: `honest`, `fast` or `wrong` (never staged to an agent)."""
        return sorted((self.folder / "controls").glob(f"{kind}_*"))

    @cached_property
    def files(self) -> dict[str, bytes]:
        """What defines a grade of this kernel, by role: manifest, reference and baselines."""
        named = {"manifest": self.folder / "task.yaml", "reference": self.reference}
        named |= {f"baseline:{path.name}": path for path in self.baselines}
        return {role: path.read_bytes() for role, path in named.items()}

    @cached_property
    def hash(self) -> str:
        """sha256 (hex) over manifest, reference and baselines: the `task_hash` of spec and database."""
        digest = hashlib.sha256()
        for role, content in sorted(self.files.items()):
            digest.update(f"{role}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()


def load_task(folder: Path) -> Task:
    """Read and validate the kernel in `folder`.

    Raises:
        TaskError: naming file, line and field of the first fault.
    """
    path = folder / "task.yaml"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TaskError(f"{path}: cannot be read ({error.strerror}); a kernel's folder holds a task.yaml") from error
    except UnicodeDecodeError as error:
        raise TaskError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        manifest = Manifest.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise TaskError(f"{path}:{line}: not valid YAML: {getattr(error, 'problem', error)}") from error
    except ValidationError as error:
        raise TaskError(_explain(path, node, error)) from error
    if manifest.name != folder.name:
        line = _line(node, ["name"])
        raise TaskError(f"{path}:{line}: name: '{manifest.name}' must be the folder's name, '{folder.name}'")
    task = Task(manifest, folder)
    for needed in [task.reference, *task.baselines]:
        if not needed.is_file():
            raise TaskError(f"{path}:1: the kernel lacks {needed.name}; put it beside the manifest")
    return task


def _explain(path: Path, node: yaml.Node | None, error: ValidationError) -> str:
    """First fault of a manifest as `file:line: field: what is wrong`."""
    fault = error.errors(include_url=False)[0]
    where = [str(part) for part in fault["loc"]]
    message = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        model = Argument if len(where) == 3 and where[0] == "arguments" else Manifest
        message = f"unknown key; known keys are {', '.join(model.model_fields)}"
    return f"{path}:{_line(node, where)}: {'.'.join(where) or 'manifest'}: {message}"


def _line(node: yaml.Node | None, where: list[str]) -> int:
    """Line (from 1) of the deepest part of `where` that the YAML document has."""
    line = 1
    for part in where:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == part), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and part.isdigit() and int(part) < len(node.value):
            node = node.value[int(part)]
            line = node.start_mark.line + 1
        else:
            break
    return line


def tasks_root() -> Path:
    """The corpus: `KCOURT_TASKS_DIR`, else `tasks/` of the checkout that this package lies in."""
    if override := os.environ.get("KCOURT_TASKS_DIR"):
        return Path(override)
    return Path(__file__).resolve().parent.parent / "tasks"


@lru_cache(maxsize=16)
def _folders(root: Path) -> dict[str, Path]:
    """Kernel name → folder; raises TaskError when a name is taken twice."""
    found: dict[str, Path] = {}
    for manifest in sorted(root.glob("*/*/task.yaml")):
        folder = manifest.parent
        if folder.name in found:
            raise TaskError(f"{manifest}:1: the name '{folder.name}' is taken by {found[folder.name]}; rename one")
        found[folder.name] = folder
    return found


def find_task(name: str, root: Path | None = None) -> Task:
    """The kernel of that name.

    Raises:
        UsageError: no such kernel; the message names the nearest.
    """
    folders = _folders(root or tasks_root())
    if name not in folders:
        raise UsageError(f"unknown kernel '{name}'; known kernels: {', '.join(sorted(folders)) or 'none'}")
    return _load_cached(folders[name])


@lru_cache(maxsize=512)
def _load_cached(folder: Path) -> Task:
    return load_task(folder)


def select(selector: str, root: Path | None = None) -> list[Task]:
    """Kernels of a selector: `all`, a suite, a name, a tag, or a comma list of these; order kept, no repeats."""
    root = root or tasks_root()
    folders = _folders(root)
    names: dict[str, None] = {}
    for part in filter(None, re.split(r"[,\s]+", selector)):
        tag = root / "tags" / f"{part}.txt"
        if part == "all":
            chosen = sorted(folders)
        elif part in folders:
            chosen = [part]
        elif tag.is_file():
            chosen = read_tag(tag)
        elif (root / part).is_dir() and part != "tags":
            chosen = sorted(name for name, folder in folders.items() if folder.parent.name == part)
        else:
            raise UsageError(f"'{part}' is no kernel, suite or tag; `kcourt task list` shows what there is")
        names |= dict.fromkeys(chosen)
    return [find_task(name, root) for name in names]


def read_tag(path: Path) -> list[str]:
    """Kernel names of a tag file: one a line, `#` starts a comment."""
    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]
