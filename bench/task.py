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

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from bench import yaml_lines
from bench.errors import TaskError, UsageError
from bench.evaluation import EvaluationTool
from bench.expressions import Expression
from bench.judge.schemas import GPU_LANGUAGES, SUFFIXES, Language, Preset
from bench.reserved import free_name
from bench.wording import FieldFault, did_you_mean, first_fault
from bench.yaml_lines import YamlFault


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
    SPIKED = "spiked"
    BELOW = "below"
    SKEWED = "skewed"
    ROW_POINTERS = "row_pointers"
    LONG_ROWS = "long_rows"


# Where each row of a sparse matrix begins; they are drawn in NumPy alone.
POINTER_FAMILIES = frozenset({Family.ROW_POINTERS, Family.LONG_ROWS})
INTEGER_FAMILIES = frozenset({Family.BELOW, Family.SKEWED, *POINTER_FAMILIES})
ARRAY_ROLES = frozenset({Role.INPUT, Role.OUTPUT, Role.INOUT, Role.INDEX})
DRAWN_ROLES = frozenset({Role.INPUT, Role.INOUT, Role.INDEX, Role.SCALAR})
DType = Literal["float16", "bfloat16", "float32", "float64", "int32", "int64"]
# Only kernels for GPUs alone have arrays of them: no language for CPUs has both.
SMALL_FLOATS = frozenset({"float16", "bfloat16"})
# Slots of the page through which a runner is called (bench/native/control.h).
MAX_ARGUMENTS = 32
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$"), AfterValidator(free_name)]


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
        if self.dtype in SMALL_FLOATS and self.role is Role.SCALAR:
            raise ValueError(f"a scalar is passed by value, in float32 or wider and not in {self.dtype}")
        if self.dtype == "bfloat16" and Family.NEAR_CONSTANT in self.values:
            raise ValueError("values of family 'near_constant' are all 1 in bfloat16; leave the family out")
        if (self.bound is not None) != any(family in INTEGER_FAMILIES for family in self.values):
            raise ValueError(
                "'bound' goes with the integer families (below, skewed, row_pointers, long_rows) and only them"
            )
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


# A control is called <kind>_<anything>: honest and fast ones must be solved, wrong ones must not.
CONTROL_KINDS = ("honest", "fast", "wrong")
# Preset → size argument → its value.
PresetSizes = dict[Preset, dict[str, Annotated[int, Field(ge=1)]]]
# What a kernel's own magnitude is, unless its manifest says it in words of its own.
MAGNITUDE = "the sum of the magnitudes that were added up (at least |expected|)"


class ToolAdapter(_Closed):
    """What a kernel tells an evaluation tool: more sizes to look at. Whether the tool runs is the judge's to say."""

    sizes: tuple[dict[str, Annotated[int, Field(ge=1)]], ...] = ()


class GpuTrack(_Closed):
    """What a kernel is on a GPU: plain sources to be faster than, and the widths of a wave (lanes) to be right at.

    `sizes` holds the presets that differ from those of the CPU track.
    """

    baselines: Annotated[tuple[str, ...], Field(min_length=1)] = ("baseline.hip",)
    sizes: PresetSizes = {}
    waves: Annotated[tuple[Literal[32, 64], ...], Field(min_length=1)] = (32, 64)


class Manifest(_Closed):
    """The content of `task.yaml`. `mutants` says why a kind of mutant does not apply; `magnitude` is words.

    A kernel that is written for GPUs alone has no `baselines`, which are those of the CPU track.
    Once validated, `languages` has all that kernels with a GPU track take, where the text lists hip alone.
    `multiples` are what timed sizes are multiples of, where whole rows of memory matter more than odd ones.
    `intermediates` is the coarsest type that a right kernel may keep values in on its way to the outputs.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$"), AfterValidator(free_name)]
    suite: str
    summary: str
    arguments: Annotated[dict[Identifier, Argument], Field(max_length=MAX_ARGUMENTS)]
    sizes: PresetSizes
    edge: dict[str, tuple[Annotated[int, Field(ge=1)], ...]] = {}
    multiples: dict[str, Annotated[int, Field(ge=1)]] = {}
    traffic: Formula
    flops: Formula
    reduction: Formula = Expression(1)
    tolerance: Annotated[float, Field(gt=0)] = 4.0
    magnitude: str = MAGNITUDE
    intermediates: Literal["float16", "bfloat16", "float32"] | None = None
    languages: Annotated[tuple[Language, ...], Field(min_length=1)]
    baselines: tuple[str, ...] = ("baseline.c",)
    gpu: GpuTrack | None = None
    tags: tuple[str, ...] = ()
    mutants: dict[str, str] = {}
    tools: dict[EvaluationTool, ToolAdapter] = {}
    platform: Platform = Platform()

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        sizes = frozenset(name for name, argument in self.arguments.items() if argument.role is Role.SIZE)
        if not any(argument.is_output for argument in self.arguments.values()):
            raise FieldFault("arguments", "a kernel has at least one output or inout argument")
        missing = [preset for preset in Preset if preset not in self.sizes]
        if missing:
            raise FieldFault("sizes", f"lacks the presets {', '.join(missing)}")
        for field, values in self._named_sizes():
            if set(values) != sizes:
                raise FieldFault(field, f"names {sorted(values)}, the size arguments are {sorted(sizes)}")
        for tool, adapter in self.tools.items():
            for odd in (values for values in adapter.sizes if set(values) != sizes):
                raise FieldFault(f"tools.{tool}", f"names {sorted(odd)}, the size arguments are {sorted(sizes)}")
        for field, names in (("edge", self.edge), ("multiples", self.multiples)):
            for name in names:
                if name not in sizes:
                    raise FieldFault(f"{field}.{name}", f"is no size; the size arguments are {sorted(sizes)}")
        for field, formula in self._formulas():
            if unknown := set(formula.names) - sizes:
                raise FieldFault(field, f"uses {sorted(unknown)}, the size arguments are {sorted(sizes)}")
        for values in (dict.fromkeys(sizes, 1), *(values for _, values in self._named_sizes())):
            self._evaluate(values)
        return self

    @field_validator("name")
    @classmethod
    def _is_no_other_language(cls, name: str) -> str:
        if Language.of(f"{name}{Language.PYTHON.suffix}") is not Language.PYTHON:
            raise ValueError("ends in _triton, so its file in Python would be taken for Triton; choose another name")
        return name

    @field_validator("languages")
    @classmethod
    def _hip_stands_for_the_others(cls, languages: tuple[Language, ...]) -> tuple[Language, ...]:
        """A kernel with a GPU track takes every language of GPUs: none of them needs a file of the kernel's own."""
        implied = GPU_LANGUAGES if Language.HIP in languages else ()
        return tuple(dict.fromkeys((*languages, *(language for language in Language if language in implied))))

    def _named_sizes(self) -> Iterable[tuple[str, dict[str, int]]]:
        """Field → sizes of one preset, of both tracks."""
        yield from ((f"sizes.{preset}", values) for preset, values in self.sizes.items())
        if self.gpu:
            yield from ((f"gpu.sizes.{preset}", values) for preset, values in self.gpu.sizes.items())

    @model_validator(mode="after")
    def _has_a_gpu_track(self) -> Self:
        alone = ", ".join(sorted(GPU_LANGUAGES.intersection(self.languages)))
        if alone and Language.HIP not in self.languages:
            raise FieldFault("languages", f"{alone} needs no mention beside hip, which stands for it; list hip")
        if (Language.HIP in self.languages) != (self.gpu is not None):
            raise FieldFault("gpu", "'gpu' and the language hip go together; give both, or neither")
        return self

    @model_validator(mode="after")
    def _has_baselines_for_cpus(self) -> Self:
        if bool(self.baselines) == GPU_LANGUAGES.issuperset(self.languages):
            said = "a kernel in a language of CPUs has at least one; one in hip alone has none: write 'baselines: []'"
            raise FieldFault("baselines", said)
        return self

    @model_validator(mode="after")
    def _small_floats_are_for_gpus(self) -> Self:
        others = [language for language in self.languages if language not in GPU_LANGUAGES]
        for name, argument in self.arguments.items():
            if argument.dtype in SMALL_FLOATS and others:
                said = f"is for GPUs alone; take {', '.join(others)} out of 'languages', or take float32"
                raise FieldFault(f"arguments.{name}.dtype", f"{argument.dtype} {said}")
        return self

    @model_validator(mode="after")
    def _names_differ_in_fortran(self) -> Self:
        """Fortran ignores case, and gives a subroutine and its arguments one scope."""
        if Language.FORTRAN not in self.languages:
            return self
        taken: dict[str, str] = {}
        for name in (self.name, *self.arguments):
            if (other := taken.setdefault(name.lower(), name)) is not name:
                raise FieldFault(
                    f"arguments.{name}",
                    f"'{other}' and '{name}' are one name in Fortran, which ignores case; rename one of them, "
                    "or take fortran out of 'languages'",
                )
        return self

    def _evaluate(self, sizes: "Sizes") -> None:
        """Every formula has a value, and every array an element, from sizes of 1 (which fuzzing draws) on."""
        for field, formula in self._formulas():
            try:
                value = formula(sizes)
            except (ArithmeticError, ValueError) as error:
                raise FieldFault(field, f"has no value at {dict(sizes)}: {error}") from error
            if ".shape." in field and value < 1:
                raise FieldFault(field, f"is {value} at {dict(sizes)}; an array has at least one element")

    def _formulas(self) -> Iterable[tuple[str, Expression]]:
        """Field → formula, for all of them."""
        yield from (("traffic", self.traffic), ("flops", self.flops), ("reduction", self.reduction))
        for name, argument in self.arguments.items():
            yield from ((f"arguments.{name}.shape.{i}", formula) for i, formula in enumerate(argument.shape))
            if argument.bound:
                yield f"arguments.{name}.bound", argument.bound


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
        """Plain sources for a CPU; none where the kernel is written for GPUs alone."""
        return [self.folder / name for name in self.manifest.baselines]

    @property
    def gpu_baselines(self) -> list[Path]:
        """Plain sources for a GPU; none where the kernel has no GPU track."""
        return [self.folder / name for name in self.manifest.gpu.baselines] if self.manifest.gpu else []

    @property
    def defining_baselines(self) -> list[Path]:
        """What a grade's numbers refer to, at least one: the baselines for CPUs, or for GPUs where it has no others."""
        return self.baselines or self.gpu_baselines

    def lacks(self, language: Language) -> str:
        """Why the kernel is not graded in a language; an empty text when it is."""
        known = self.manifest.languages
        if language in known:
            return ""
        only = "; it is a kernel for GPUs alone" if GPU_LANGUAGES.issuperset(known) else ""
        return f"{self.name} is written in {', '.join(known)}, not in {language}{only}"

    @cached_property
    def gpu_track(self) -> "Task":
        """The kernel as a grade on a GPU sees it: baselines, sizes, files and hash are those of its GPU track.

        Raises:
            UsageError: it has no GPU track.
        """
        gpu = self.manifest.gpu
        if gpu is None:
            raise UsageError(
                f"{self.name} has no GPU track; take a kernel of the language hip, or give this one a baseline.hip, "
                "and 'gpu' and hip in its manifest"
            )
        changes = {"baselines": gpu.baselines, "sizes": self.manifest.sizes | gpu.sizes}
        return Task(self.manifest.model_copy(update=changes), self.folder)

    @property
    def torch_reference(self) -> Path | None:
        """The kernel in PyTorch, a function of its name and arguments that writes into its outputs, if there is one."""
        path = self.folder / "torch_reference.py"
        return path if path.is_file() else None

    @property
    def triton_baseline(self) -> Path | None:
        """A plain source in Triton, which agents may start from, if there is one."""
        path = self.folder / "baseline_triton.py"
        return path if path.is_file() else None

    def controls(self, kind: str) -> list[Path]:
        """Control submissions of one of CONTROL_KINDS (never staged to an agent)."""
        found = sorted((self.folder / "controls").glob(f"{kind}_*"))
        return [path for path in found if path.suffix in SUFFIXES.values()]

    @cached_property
    def files(self) -> dict[str, bytes]:
        """What defines a grade of this kernel, by role: manifest, reference and the defining baselines."""
        named = {"manifest": self.folder / "task.yaml", "reference": self.reference}
        named |= {f"baseline:{path.name}": path for path in self.defining_baselines}
        return {role: path.read_bytes() for role, path in named.items()}

    @property
    def has_magnitude(self) -> bool:
        """Whether errors are compared with a magnitude that the kernel defines, not with |expected|."""
        own = rb"^def magnitude\(|\b%s_magnitude\(" % self.name.encode()
        return any(re.search(own, content, re.MULTILINE) for content in self.files.values())

    @cached_property
    def hash(self) -> str:
        """sha256 (hex) over manifest, reference and baselines: the `task_hash` of spec and database."""
        digest = hashlib.sha256()
        for role, content in sorted(self.files.items()):
            digest.update(f"{role}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()


def load_task(folder: Path, on_gpu: bool = False) -> Task:
    """Read and validate the kernel in `folder`, or its GPU track.

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
        document = yaml_lines.parse(text)
        manifest = Manifest.model_validate(document.value)
    except YamlFault as error:
        raise TaskError(f"{path}:{error.line}: {error}") from error
    except ValidationError as error:
        fault = first_fault(error, Manifest)
        raise TaskError(f"{path}:{document.line(fault.keys)}: {fault}") from error
    if manifest.name != folder.name:
        line = document.line(["name"])
        raise TaskError(f"{path}:{line}: name: '{manifest.name}' must be the folder's name, '{folder.name}'")
    task = Task(manifest, folder)
    for keys, baselines in ((["baselines"], task.baselines), (["gpu", "baselines"], task.gpu_baselines)):
        for baseline in baselines:
            try:
                Language.of(baseline)
            except ValueError as error:
                where = f"{path}:{document.line(keys)}: {'.'.join(keys)}"
                raise TaskError(f"{where}: {baseline.name}: {error}") from error
    if on_gpu:
        if not manifest.gpu:
            raise TaskError(f"{path}:1: gpu: is missing, and a grade on a GPU is of that track; give the kernel one")
        task = task.gpu_track
    # Baselines of the other track are not among the texts of a grade, of which this may be all that was kept.
    for needed in [task.reference, *task.defining_baselines]:
        if not needed.is_file():
            raise TaskError(f"{path}:1: the kernel lacks {needed.name}; put it beside the manifest")
    return task


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
        raise UsageError(_unknown(name, folders))
    return _registered(folders[name])


def _unknown(name: str, folders: Mapping[str, Path]) -> str:
    return f"unknown kernel '{name[:80]}'; {did_you_mean(name, sorted(folders))}"


@lru_cache(maxsize=512)
def _registered(folder: Path) -> Task:
    """A kernel of the corpus, whose folder lies in its suite's; read once."""
    task, suite = load_task(folder), folder.parent.name
    if task.manifest.suite != suite:
        path = folder / "task.yaml"
        line = yaml_lines.parse(path.read_text(encoding="utf-8")).line(["suite"])
        raise TaskError(f"{path}:{line}: suite: '{task.manifest.suite}' must be the folder's name, '{suite}'")
    return task


def select(selector: str, root: Path | None = None) -> list[Task]:
    """Kernels of a selector: `all`, a suite, a name, a tag, or a comma list of these; order kept, no repeats.

    Raises:
        UsageError: a part is nothing that there is, or no kernel is left to work on.
        TaskError: a tag or a manifest is wrong (file, line).
    """
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
            chosen = _tagged(tag, folders)
        elif part in _suites(folders):
            chosen = sorted(name for name, folder in folders.items() if folder.parent.name == part)
        else:
            known = ["all", *folders, *_suites(folders), *(path.stem for path in root.glob("tags/*.txt"))]
            hint = did_you_mean(part, known, "`kcourt task list` shows what there is")
            raise UsageError(f"'{part}' is no kernel, suite or tag; {hint}")
        names |= dict.fromkeys(chosen)
    if not names:
        raise UsageError(f"'{selector}' selects no kernel of {root}; {_no_selection(folders)}")
    return [find_task(name, root) for name in names]


def _no_selection(folders: Mapping[str, Path]) -> str:
    if folders:
        return "`kcourt task list` shows what there is"
    return "no <suite>/<kernel>/task.yaml lies there; write one, or change or unset KCOURT_TASKS_DIR"


def _suites(folders: Mapping[str, Path]) -> set[str]:
    return {folder.parent.name for folder in folders.values()}


def _tagged(path: Path, folders: Mapping[str, Path]) -> list[str]:
    """Kernels of a tag file: one a line, `#` starts a comment; raises TaskError for one that does not exist."""
    names = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if name := line.split("#")[0].strip():
            if name not in folders:
                raise TaskError(f"{path}:{number}: {_unknown(name, folders)}")
            names.append(name)
    return names
