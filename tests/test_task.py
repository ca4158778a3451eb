"""Manifests, selectors, tags: a mistake is named with file, line and field; hashes follow what defines a grade."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernels import TWICE, TWICE_FILES, write_kernel

from bench.errors import TaskError, UsageError
from bench.judge.schemas import Language, Preset
from bench.task import Role, find_task, load_task, select

Change = Callable[[dict[str, Any]], object]


def changed(change: Change) -> dict[str, Any]:
    manifest = copy.deepcopy(TWICE)
    change(manifest)
    return manifest


def argument(name: str, **fields: Any) -> Change:
    return lambda manifest: manifest["arguments"].setdefault(name, {}).update(fields)


def top(**fields: Any) -> Change:
    return lambda manifest: manifest.update(fields)


def gpu_sizes(**presets: dict[str, int]) -> Change:
    return top(languages=["c", "hip"], gpu={"sizes": presets})


def many_arguments(manifest: dict[str, Any]) -> None:
    manifest["arguments"] |= {f"a{i}": {"role": "scalar", "dtype": "float32", "values": ["few"]} for i in range(30)}


MISTAKES: dict[str, tuple[Change, str, str]] = {
    # mistake: (what is changed, the field that the message names, what it says)
    "unknown key": (top(colour="red"), "colour", "unknown key; known: name, suite, summary"),
    "unknown argument key": (argument("x", stride=2), "arguments.x.stride", "unknown key; known: role, dtype"),
    "misspelt key": (lambda m: m.update(trafic=m.pop("traffic")), "trafic", "unknown key; did you mean 'traffic'?"),
    "misspelt argument key": (argument("x", vales=["few"]), "arguments.x.vales", "unknown key; did you mean 'values'?"),
    "wrong role": (argument("x", role="inputs"), "arguments.x.role", "'input', 'output', 'inout', 'index', 'size'"),
    "no role": (lambda m: m["arguments"]["x"].pop("role"), "arguments.x.role", "Field required"),
    "no outputs": (lambda m: m["arguments"].pop("out"), "arguments", "at least one output or inout"),
    "missing preset": (lambda m: m["sizes"].pop("XL"), "sizes", "lacks the presets XL"),
    "unknown preset": (lambda m: m["sizes"].update(XS={"n": 1}), "sizes.XS", "'S', 'M', 'L' or 'XL'"),
    "size of zero": (lambda m: m["sizes"]["S"].update(n=0), "sizes.S.n", "greater than or equal to 1"),
    "size as text": (lambda m: m["sizes"]["S"].update(n="many"), "sizes.S.n", "valid integer"),
    "preset without a size": (lambda m: m["sizes"].update(S={"m": 4}), "sizes.S", "names ['m'], the size arguments"),
    "unknown size in multiples": (top(multiples={"m": 8}), "multiples.m", "is no size; the size arguments are ['n']"),
    "unknown size in edge": (top(edge={"n": [1], "m": [1]}), "edge.m", "is no size; the size arguments are ['n']"),
    "unknown size in shape": (argument("x", shape=["m"]), "arguments.x.shape.0", "uses ['m'], the size arguments"),
    "unknown size in traffic": (top(traffic="8 * m"), "traffic", "uses ['m'], the size arguments"),
    "unknown size in reduction": (top(reduction="log2(m)"), "reduction", "uses ['m']"),
    "call in flops": (top(flops="exec('1')"), "flops", "may use only numbers, size names"),
    "boolean flops": (top(flops=True), "flops", "an expression is a number or text"),
    "unfinished shape": (argument("out", shape=["2 *"]), "arguments.out.shape.0", "is not an expression"),
    "empty array": (argument("out", shape=["n - 1"]), "arguments.out.shape.0", "is 0 at {'n': 1}"),
    "division by zero": (top(reduction="n / (n - 1)"), "reduction", "has no value at {'n': 1}"),
    "float family on integers": (argument("x", dtype="int32"), "arguments.x", "'uniform' do not fit dtype int32"),
    "integer family on floats": (argument("x", values=["below"]), "arguments.x", "'below' do not fit dtype float32"),
    "unknown family": (argument("x", values=["gauss"]), "arguments.x.values.0", "'uniform', 'positive'"),
    "bound on floats": (argument("x", bound="n"), "arguments.x", "'bound' goes with the integer families"),
    "below without bound": (argument("x", dtype="int32", values=["below"]), "arguments.x", "'bound' goes with"),
    "input without values": (argument("x", values=[]), "arguments.x", "list their value families"),
    "output with values": (argument("out", values=["few"]), "arguments.out", "outputs and sizes do not"),
    "array without shape": (argument("x", shape=[]), "arguments.x", "arrays have a shape"),
    "scalar with shape": (argument("x", role="scalar"), "arguments.x", "scalars have none"),
    "array without dtype": (lambda m: m["arguments"]["x"].pop("dtype"), "arguments.x", "needs a dtype"),
    "unknown dtype": (argument("x", dtype="float8"), "arguments.x.dtype", "'float32', 'float64', 'int32' or 'int64'"),
    "small floats on CPUs": (
        argument("x", dtype="float16"),
        "arguments.x.dtype",
        "for GPUs alone; take c, cpp, python out",
    ),
    "a small scalar": (
        argument("s", role="scalar", dtype="bfloat16", values=["few"]),
        "arguments.s",
        "passed by value, in float32 or wider and not in bfloat16",
    ),
    "values that are all the same": (
        argument("x", dtype="bfloat16", values=["near_constant"]),
        "arguments.x",
        "all 1 in bfloat16; leave the family out",
    ),
    "unknown intermediates": (top(intermediates="float8"), "intermediates", "'float16', 'bfloat16' or 'float32'"),
    "size with a dtype": (argument("n", dtype="int64"), "arguments.n", "a size has no dtype, shape or values"),
    "argument name": (argument("x-y", role="size"), "arguments.x-y", "should match pattern"),
    "too many arguments": (many_arguments, "arguments", "at most 32 items"),
    "unknown language": (top(languages=["c", "cobol"]), "languages.1", "'python', 'hip', 'cuda' or 'triton'"),
    "hip without a GPU track": (top(languages=["c", "hip"]), "gpu", "go together; give both, or neither"),
    "a language of GPUs without hip": (top(languages=["c", "triton"], gpu={}), "languages", "triton needs no mention"),
    "a GPU track without hip": (top(gpu={}), "gpu", "go together; give both, or neither"),
    "a width that no wave has": (top(languages=["c", "hip"], gpu={"waves": [48]}), "gpu.waves.0", "32 or 64"),
    "no baseline": (top(baselines=[]), "baselines", "in a language of CPUs has at least one"),
    "a baseline for CPUs that nothing is compared with": (
        top(languages=["hip"], gpu={}),
        "baselines",
        "in hip alone has none: write 'baselines: []'",
    ),
    "unknown preset for GPUs": (gpu_sizes(XS={"n": 1}), "gpu.sizes.XS", "'S', 'M', 'L' or 'XL'"),
    "size of zero for GPUs": (gpu_sizes(L={"n": 0}), "gpu.sizes.L.n", "greater than or equal to 1"),
    "GPU preset without a size": (gpu_sizes(M={"m": 4}), "gpu.sizes.M", "names ['m'], the size arguments are ['n']"),
    "tolerance": (top(tolerance=0), "tolerance", "greater than 0"),
    "kernel name": (top(name="Twice!"), "name", "should match pattern"),
    "a name that says a language": (top(name="twice_triton"), "name", "would be taken for Triton; choose another"),
    "another kernel's name": (top(name="thrice"), "name", "'thrice' must be the folder's name, 'twice'"),
    "suite-less": (lambda m: m.pop("suite"), "suite", "Field required"),
    "no languages": (top(languages=[]), "languages", "at least 1 item"),
    "unknown platform key": (top(platform={"arc": ["x"]}), "platform.arc", "unknown key; did you mean 'arch'?"),
    "unknown size in bound": (
        lambda m: m["arguments"]["x"].update(dtype="int32", values=["below"], bound="m"),
        "arguments.x.bound",
        "uses ['m'], the size arguments",
    ),
    "a word of C": (argument("register", role="size"), "arguments.register", "is a word of C, C++, Python or"),
    "a word of C++": (argument("template", role="size"), "arguments.template", "is a word of C, C++, Python or"),
    "a word of Python": (argument("lambda", role="size"), "arguments.lambda", "choose another name"),
    "a word of the shims": (argument("base", role="size"), "arguments.base", "choose another name"),
    "a word of baselines": (argument("real", role="size"), "arguments.real", "choose another name"),
    "a kernel called by a word": (top(name="switch"), "name", "choose another name"),
    "no summary": (lambda m: m.pop("summary"), "summary", "Field required"),
}


def place(node: Any, field: str) -> str:
    """What stands on the line of a field, or of the innermost part of it that the manifest has."""
    text = "{"
    for part in field.split("."):
        if isinstance(node, dict) and part in node:
            text, node = json.dumps(part), node[part]
        elif isinstance(node, list):
            node = node[int(part)]
            text = json.dumps(node)
    return text


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_file_line_and_field(tmp_path: Path, mistake: str) -> None:
    change, field, says = MISTAKES[mistake]
    folder = write_kernel(tmp_path)
    text = json.dumps(changed(change), indent=1)
    (folder / "task.yaml").write_text(text)
    with pytest.raises(TaskError) as raised:
        load_task(folder)
    found = re.match(rf"{re.escape(str(folder))}/task\.yaml:(\d+): ([^ ]+): (.*)", str(raised.value))
    assert found, str(raised.value)
    assert found[2] == field
    assert says in found[3]
    assert place(json.loads(text), field) in text.splitlines()[int(found[1]) - 1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"name: [twice\nsuite: small\n", r"task\.yaml:2: not valid YAML: "),
        (b"name: twice\n\tsuite: small\n", r"task\.yaml:2: not valid YAML: .*\\t"),
        (b"", r"task\.yaml:1: a mapping of keys"),
        (b"- a\n- b\n", r"task\.yaml:1: a mapping of keys"),
        (b"name: \xff\n", r"task\.yaml: is not UTF-8 text \(byte 6\)"),
        (b"name: !!python/object/apply:os.system ['true']\n", r"task\.yaml:1: not valid YAML: "),
        (b"name: twice\nsuite: small\nname: thrice\n", r"task\.yaml:3: name: was given in line 1; keep one"),
        (b"sizes:\n  S: {n: 1, n: 2}\n", r"task\.yaml:2: n: was given in line 2; keep one"),
        (b"edge: [{n: 1}, {m: 1,\n m: 2}]\n", r"task\.yaml:2: m: was given in line 1"),
        (None, r"task\.yaml: cannot be read \(No such file or directory\); a kernel's folder holds"),
    ],
    ids=[
        "bracket",
        "tab",
        "empty",
        "list",
        "not-utf8",
        "object",
        "key-twice",
        "inner-key-twice",
        "list-key-twice",
        "missing",
    ],
)
def test_a_manifest_that_is_no_yaml_is_named(tmp_path: Path, content: bytes | None, says: str) -> None:
    folder = write_kernel(tmp_path)
    (folder / "task.yaml").unlink()
    if content is not None:
        (folder / "task.yaml").write_bytes(content)
    with pytest.raises(TaskError, match=says):
        load_task(folder)


@pytest.mark.parametrize("missing", ["reference.py", "baseline.c"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    folder = write_kernel(tmp_path)
    (folder / missing).unlink()
    with pytest.raises(TaskError, match=rf"task\.yaml:1: the kernel lacks {missing}; put it beside"):
        load_task(folder)


def test_a_kernel_is_what_its_manifest_says(tmp_path: Path) -> None:
    task = load_task(write_kernel(tmp_path))
    assert list(task.arguments) == ["x", "out", "n"]
    assert list(task.outputs) == ["out"]
    assert task.arguments["x"].role is Role.INPUT
    assert task.shape("x", {"n": 7}) == (7,)
    assert task.size(Preset.M) == {"n": 4000}
    assert task.manifest.languages == (Language.C, Language.CPP, Language.PYTHON)
    assert [path.name for path in task.controls("honest")] == ["honest_back.c", "honest_sum.c"]
    assert set(task.files) == {"manifest", "reference", "baseline:baseline.c"}


def test_a_gpu_track_has_baselines_sizes_and_a_hash_of_its_own(tmp_path: Path) -> None:
    manifest = changed(gpu_sizes(L={"n": 80000}, XL={"n": 160000}))
    task = load_task(write_kernel(tmp_path, manifest, TWICE_FILES | {"baseline.hip": "// plain\n"}))
    track = task.gpu_track
    assert (track.name, track.folder) == (task.name, task.folder)
    assert [path.name for path in track.baselines] == ["baseline.hip"]
    assert [track.size(preset)["n"] for preset in Preset] == [2000, 4000, 80000, 160000]
    assert [task.size(preset)["n"] for preset in Preset] == [2000, 4000, 8000, 16000]
    assert set(track.files) == {"manifest", "reference", "baseline:baseline.hip"}
    (task.folder / "baseline.hip").write_text("// plainer\n")
    again = load_task(task.folder)
    assert again.hash == task.hash
    assert len({task.hash, track.hash, again.gpu_track.hash}) == 3


def test_a_kernel_without_a_gpu_track_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"twice has no GPU track; take a kernel of the language hip, or give this"):
        _ = load_task(write_kernel(tmp_path)).gpu_track


def test_a_name_is_unique_over_all_suites(tmp_path: Path) -> None:
    write_kernel(tmp_path)
    write_kernel(tmp_path, TWICE | {"suite": "other"})
    with pytest.raises(TaskError, match=r"the name 'twice' is taken by .*/other/twice; rename one"):
        select("all", tmp_path)


def test_a_suite_is_the_folder_that_its_kernels_lie_in(tmp_path: Path) -> None:
    folder = write_kernel(tmp_path)
    moved = folder.parent.rename(tmp_path / "large") / "twice"
    with pytest.raises(TaskError, match=rf"{moved}/task\.yaml:3: suite: 'small' must be the folder's name, 'large'"):
        select("all", tmp_path)


def test_a_corpus_without_kernels_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"'all' selects no kernel of {tmp_path}; "):
        select("all", tmp_path)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Three kernels in two suites, and two tags."""
    for suite, name in (("small", "b"), ("small", "a"), ("large", "c")):
        write_kernel(tmp_path, TWICE | {"suite": suite, "name": name})
    (tmp_path / "tags").mkdir()
    (tmp_path / "tags" / "tiny.txt").write_text("# Small ones.\nb  # the first\n\n  c\n")
    (tmp_path / "tags" / "stale.txt").write_text("a\ngone\n")
    return tmp_path


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("all", ["a", "b", "c"]),
        ("small", ["a", "b"]),
        ("c", ["c"]),
        ("tiny", ["b", "c"]),
        ("c,small", ["c", "a", "b"]),
        ("tiny, a b", ["b", "c", "a"]),
        ("a,a,all", ["a", "b", "c"]),
    ],
)
def test_a_selector_keeps_its_order_and_repeats_nothing(corpus: Path, selector: str, names: list[str]) -> None:
    assert [task.name for task in select(selector, corpus)] == names


@pytest.mark.parametrize(
    ("selector", "says"),
    [
        ("d", "'d' is no kernel, suite or tag; `kcourt task list` shows"),
        ("tinny", r"'tinny' is no kernel, suite or tag; did you mean 'tiny'\?"),
        ("a,tags", "'tags' is no kernel, suite or tag"),
        ("stale", r"tags/stale\.txt:2: unknown kernel 'gone'; known: a, b, c"),
        ("", "'' selects no kernel of "),
        (" , ", "selects no kernel of "),
    ],
)
def test_a_selector_of_nothing_is_refused(corpus: Path, selector: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        select(selector, corpus)


def test_an_unknown_kernel_is_refused_with_the_nearest(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown kernel 'aa'; did you mean 'a'\?"):
        find_task("aa", corpus)
    with pytest.raises(UsageError, match="unknown kernel 'aa'; known: none"):
        find_task("aa", tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["task.yaml", "reference.py", "baseline.c"])
def test_the_hash_changes_with_what_defines_a_grade(tmp_path: Path, name: str) -> None:
    folder = write_kernel(tmp_path)
    before = load_task(folder).hash
    (folder / name).write_text((folder / name).read_text() + "\n")
    assert load_task(folder).hash != before


def test_the_hash_changes_with_nothing_else(tmp_path: Path) -> None:
    before = load_task(write_kernel(tmp_path / "here")).hash
    folder = write_kernel(tmp_path / "there")
    (folder / "controls" / "honest_sum.c").write_text("// another control\n")
    (folder / "notes.md").write_text("what an author keeps beside it\n")
    assert load_task(folder).hash == before


def test_a_second_baseline_is_part_of_the_hash(tmp_path: Path) -> None:
    files = TWICE_FILES | {"other.c": TWICE_FILES["baseline.c"]}
    folder = write_kernel(tmp_path, TWICE | {"baselines": ["baseline.c", "other.c"]}, files)
    before = load_task(folder).hash
    (folder / "other.c").write_text(TWICE_FILES["baseline.c"] + "\n")
    assert load_task(folder).hash != before
