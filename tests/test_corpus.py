"""The shipped kernels: they load, have the fixed signatures, ordered presets, controls, and tags that exist."""

import contextlib
import re

import pytest

from bench import abi
from bench.inputs import Case
from bench.judge.contract import described, tolerance_in_words
from bench.judge.schemas import GPU_LANGUAGES, Language, Preset
from bench.measure.session import Session
from bench.measure.stopwatch import Stopwatch
from bench.mutants import KINDS
from bench.runner.buffers import Arena
from bench.task import CONTROL_KINDS, Argument, Family, Manifest, Platform, Role, Task, find_task, select, tasks_root

ROOT = tasks_root()
FOLDERS = sorted(path.parent for path in ROOT.glob("*/*/task.yaml"))
SIGNATURES = {
    "axpy": "void axpy(const float *x, const float *y, float *out, int64_t n, float a);",
    "softmax_rows": "void softmax_rows(const float *x, float *out, int64_t rows, int64_t cols);",
    "sgemm": "void sgemm(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k);",
}
# Kernels with in-out arguments, indices, scalars and wide value ranges; not in the demo.
WIDER = {"logsumexp_rows", "segment_max", "scatter_add", "gauss_seidel2d"}
FIRST = {
    *("axpy", "softmax_rows", "sgemm", "jacobi2d", "spmv_csr", "prefix_sum", "histogram", "argmax_rows"),
    *("rmsnorm", "gelu", "nbody", "floyd_warshall"),
}


@pytest.fixture(params=FOLDERS, ids=lambda folder: str(folder.name))
def task(request: pytest.FixtureRequest) -> Task:
    return find_task(request.param.name)


def test_the_corpus_has_the_first_kernels() -> None:
    assert {folder.name for folder in FOLDERS} >= FIRST | WIDER
    assert [task.name for task in select("all")] == sorted(folder.name for folder in FOLDERS)


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_fixed_signature(name: str) -> None:
    assert abi.declaration(select(name)[0], Language.C) == SIGNATURES[name]


def test_a_kernel_lies_in_its_suite(task: Task) -> None:
    assert task.manifest.suite == task.folder.parent.name


def test_presets_grow(task: Task) -> None:
    for track in (task, task.gpu_track):
        work = [track.manifest.traffic(track.size(preset)) for preset in Preset]
        assert work == sorted(work)
        assert len(set(work)) == len(work)
        for name in track.size(Preset.S):
            values = [track.size(preset)[name] for preset in Preset]
            assert values == sorted(values)


def test_a_gpu_gets_sizes_of_its_own_and_the_small_ones_of_the_cpu(task: Task) -> None:
    own = task.gpu_track
    assert own.size(Preset.S) == task.size(Preset.S)
    if not task.baselines:
        assert own.manifest.sizes == task.manifest.sizes, "a kernel for GPUs alone has no others"
        return
    assert all(own.size(preset) != task.size(preset) for preset in (Preset.M, Preset.L, Preset.XL))


def test_integers_of_32_bits_hold_every_index_of_every_preset(task: Task) -> None:
    for sizes in (track.size(preset) for track in (task, task.gpu_track) for preset in Preset):
        for name, argument in task.arrays.items():
            if argument.dtype == "int32":
                largest = argument.bound(sizes) if argument.bound else max(sizes.values())
                assert largest < 2**31, (name, sizes)


def test_small_sizes_meet_every_residue(task: Task) -> None:
    assert min(task.size(Preset.S).values()) >= 16


def test_edges_hold_one_and_tails(task: Task) -> None:
    assert task.manifest.edge
    for values in task.manifest.edge.values():
        assert {1, 2, 3} <= set(values)


def test_controls_of_different_styles(task: Task) -> None:
    honest = task.controls("honest")
    assert len(honest) >= 2
    assert len({path.read_bytes() for path in honest}) == len(honest)
    assert task.controls("wrong")


def test_a_gpu_track_has_its_baselines_and_controls(task: Task) -> None:
    assert task.gpu_baselines and all(path.is_file() for path in task.gpu_baselines)
    for kind in ("honest", "wrong"):
        assert any(path.suffix == Language.HIP.suffix for path in task.controls(kind))


def test_most_kernels_have_a_faster_solution_in_c() -> None:
    fast = [folder.name for folder in FOLDERS if [*folder.glob("controls/fast_*.c")]]
    assert len(fast) >= 10


def test_a_kernel_is_for_all_first_languages_or_for_gpus_alone(task: Task) -> None:
    first = {Language.C, Language.CPP, Language.FORTRAN, Language.PYTHON}
    assert first <= set(task.manifest.languages) or set(task.manifest.languages) <= GPU_LANGUAGES


def test_the_tag_gpu_lists_every_kernel_with_a_gpu_track(task: Task) -> None:
    assert (task.name in {one.name for one in select("gpu")}) == bool(task.gpu_baselines)
    assert ("gpu" in task.manifest.tags) == bool(task.gpu_baselines)


def test_exemptions_name_kinds_of_mutants_and_say_why(task: Task) -> None:
    assert set(task.manifest.mutants) <= set(KINDS)
    assert all(reason.strip() for reason in task.manifest.mutants.values())


def test_controls_are_of_three_kinds(task: Task) -> None:
    known = {path for kind in ("honest", "fast", "wrong") for path in task.controls(kind)}
    suffixes = tuple(language.suffix for language in task.manifest.languages)
    found = {path for path in (task.folder / "controls").iterdir() if path.name.endswith(suffixes)}
    assert found == known


@pytest.mark.parametrize("tag", sorted(path.stem for path in ROOT.glob("tags/*.txt")))
def test_a_tag_names_kernels_that_exist(tag: str) -> None:
    listed = re.findall(r"^\w+", (ROOT / "tags" / f"{tag}.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == [task.name for task in select(tag)]


def test_a_manifests_tags_are_tags_that_list_it(task: Task) -> None:
    for tag in task.manifest.tags:
        assert task.name in {one.name for one in select(tag)}


def test_the_demo_has_a_tag() -> None:
    names = {task.name for task in select("demo")}
    assert names >= FIRST
    assert not names & WIDER


def test_the_corpus_uses_every_role_and_family() -> None:
    used = [argument for task in select("all") for argument in task.arguments.values()]
    assert {argument.role for argument in used} == set(Role)
    assert {family for argument in used for family in argument.values} == set(Family)


def test_many_kernels_have_an_honest_solution_in_fortran() -> None:
    written = [task.name for task in select("core") if any(p.suffix == ".f90" for p in task.controls("honest"))]
    assert len(written) >= 6 and set(written) >= WIDER


@pytest.mark.parametrize(
    ("kernel", "root", "magnitude"),
    [
        ("spmv_csr", "1", "the root of the number of row i's entries e, times the sum of |values[e] * x[col_idx[e]]|"),
        ("sgemm", "k", "the sum of the magnitudes that were added up"),
        ("rmsnorm", "cols", "|expected|,"),
        ("attention_fwd", "1", "the sum over keys of probability * |v|"),
    ],
)
def test_a_tolerance_says_what_its_magnitude_is(kernel: str, root: str, magnitude: str) -> None:
    words = tolerance_in_words(select(kernel)[0])
    assert f" * roundoff * sqrt({root}) * magnitude: " in words and f"magnitude is {magnitude}" in words


def test_integers_are_within_what_the_contract_says(task: Task) -> None:
    sizes = task.size(Preset.S)
    with contextlib.closing(Arena(task, [sizes])) as arena:
        session = Session(task, bytes(range(32)), arena, Stopwatch())
        views = session.prepare(Case("timed", "i0.1", sizes)).views
        for name, argument in task.arrays.items():
            if argument.bound is not None:
                said, bound = described(name, argument), argument.bound(sizes)
                assert (said["below"] or said["at_most"]) == argument.bound.text
                assert views[name].min() >= 0
                assert views[name].max() <= (bound if said["at_most"] else bound - 1)


def test_the_page_names_every_key_of_a_manifest() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    keys = {*Manifest.model_fields, *Argument.model_fields, *Platform.model_fields, *Role, *Family, *CONTROL_KINDS}
    assert [key for key in sorted(keys) if not re.search(rf"`(controls/)?{key}(_\*)?`", page)] == []
