"""Treatments: what a folder says, what composes, what is refused, and what agents are given in the end."""

import os
import stat

import pytest
from goldens import check_golden

from agent.tools.offered import Tool
from bench.errors import ConfigError
from bench.judge.schemas import Language, SubmissionMode
from bench.task import find_task
from cluster.job.allocation import Host, plan_job
from cluster.job.layout import RunLayout
from cluster.job.prepare import prepare
from cluster.study.briefing import check_treatment, given_to, kept_beside, launch_material, told, tools_of
from cluster.study.problems import make_problem
from cluster.study.settings import JobSettings, read_settings
from cluster.study.treatments import known_treatments, read_treatment
from cluster.study.wave import read_wave

SHIPPED = ["hints", "none", "profile", "reference", "search", "skills"]
SKILL = "# Tiles\n\nTrigger: values are used again\n"


def settings(**values):
    return JobSettings(setup="s", kernels="axpy", **values)


def treat(folder, name, text="", **files):
    """Write a treatment; a file's `__` in its name stands for `/`."""
    place = folder / name
    place.mkdir(parents=True)
    (place / "treatment.yaml").write_text(f"summary: Of {name}.\n{text}")
    for file, content in files.items():
        path = place / file.replace("__", "/").replace("_md", ".md").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return place


def check(treatment, **values):
    chosen = settings(**values)
    check_treatment(chosen, treatment, make_problem(chosen, find_task("axpy")))


def test_the_shipped_ones():
    assert [name for name in known_treatments() if name in SHIPPED] == SHIPPED
    assert read_treatment("none").env == {}
    assert read_treatment("reference").env == {"AGENT_START": "numpy"}
    assert read_treatment("profile").env == {"AGENT_TOOLS_ON": "profile"}
    assert sorted(read_treatment("skills").material()) == [
        "skills/blocking/SKILL.md",
        "skills/reductions/SKILL.md",
    ]


def test_everything_that_a_treatment_can_hold(tmp_path):
    text = (
        "hints: [one.md]\nsections: {role: role.md, extra: more.md}\nskills: [tiles]\n"
        "tools: {on: [profile], off: [syntax_check]}\nstart: none\nfiles: [notes/machine.md]\n"
    )
    files = {
        "one_md": "First.\n",
        "role_md": "You are {{ task.kernel }}.\n",
        "more_md": "More.\n",
        "skills__tiles__SKILL_md": SKILL,
        "skills__tiles__more_md": "more\n",
        "notes__machine_md": "8 cores\n",
    }
    place = treat(tmp_path, "all", text, **files)
    found = read_treatment("all", tmp_path)
    assert found.env == {"AGENT_START": "none", "AGENT_TOOLS_ON": "profile", "AGENT_TOOLS_OFF": "syntax_check"}
    assert found.material() == {
        "skills/tiles/SKILL.md": SKILL.encode(),
        "skills/tiles/more.md": b"more\n",
        "files/notes/machine.md": b"8 cores\n",
    }
    assert found.hints[0].path == place / "one.md"
    chosen = settings(agent_tools_on="profile", agent_tools_off="syntax_check", agent_start="none")
    prompt = told(launch_material(chosen, found), chosen, make_problem(chosen, find_task("axpy"))).prompt
    assert prompt.startswith("You are axpy.\n")
    assert prompt.endswith("More.\n")
    for part in (
        "First.",
        "tiles: values are used again (/skills/tiles/SKILL.md)",
        "* /shared/files/notes/machine.md",
    ):
        assert part in prompt
    assert "syntax_check" not in prompt
    assert "# Tiles" not in prompt, "a skill is indexed, never inlined"
    assert "Your folder is empty." in prompt


def test_treatments_compose_from_left_to_right(tmp_path):
    treat(tmp_path, "a", "hints: [a.md]\ntools: {on: [profile]}\nstart: reference\n", a_md="A")
    treat(
        tmp_path,
        "b",
        "hints: [b.md]\nskills: [tiles]\ntools: {on: [profile]}\n",
        b_md="B",
        skills__tiles__SKILL_md=SKILL,
    )
    both = read_treatment("a+b", tmp_path)
    assert both.name == "a+b"
    assert [hint.text for hint in both.hints] == ["A", "B"]
    assert [hint.text for hint in read_treatment("b+a", tmp_path).hints] == ["B", "A"]
    assert both.env == {"AGENT_START": "numpy", "AGENT_TOOLS_ON": "profile"}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param("sections: {role: x.md}", "sections: {role: x.md}", "both give the section 'role'", id="section"),
        pytest.param(
            "tools: {on: [score]}", "tools: {off: [score]}", r"'score' is on \(.*a/treatment.yaml:2\)", id="tool"
        ),
        pytest.param("start: none", "start: reference", "from none, the other from reference", id="start"),
        pytest.param("skills: [t]", "skills: [t]", "both give the skill 't'", id="skill"),
        pytest.param("files: [x.md]", "files: [x.md]", "both give the file 'x.md'", id="file"),
    ],
)
def test_what_conflicts_names_both(tmp_path, one, other, expected):
    for name, text in (("a", one), ("b", other)):
        treat(tmp_path, name, text, x_md="x", skills__t__SKILL_md=SKILL)
    with pytest.raises(ConfigError, match=f"treatments 'a' and 'b' conflict: .*{expected}"):
        read_treatment("a+b", tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("hint: [x.md]", ":2: hint: ", id="unknown-key"),
        pytest.param("hints: [y.md]", r":2: .*y.md is not there", id="no-file"),
        pytest.param("\nfiles:\n- x.md\n- ../c/x.md", r":5: ../c/x.md lies outside", id="outside"),
        pytest.param("tools: {on: [scroe]}", ":2: tools.on.0: .*'score'", id="tool"),
        pytest.param("tools:\n  on: [score]\n  off: [score]", ":4: tool 'score' is both on and off", id="both"),
        pytest.param("tools: {off: [submit]}", ":2: 'submit' cannot be off", id="submit"),
        pytest.param("start: fortran", ":2: start: .*'baseline'", id="start"),
        pytest.param("skills: [t]", r"skills/t/SKILL.md:1: has no line 'Trigger: WHEN'", id="trigger"),
        pytest.param("sections: {Role: x.md}", ":2: sections", id="section-name"),
        pytest.param("summary: again", ":2: summary: was given in line 1", id="twice"),
    ],
)
def test_a_mistake_names_file_and_line(tmp_path, text, expected):
    treat(tmp_path, "b", text, x_md="x", skills__t__SKILL_md="# T\n")
    with pytest.raises(ConfigError, match=expected) as caught:
        read_treatment("b", tmp_path)
    assert str(tmp_path / "b") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hnits", "did you mean 'hints'"),
        ("hints+hints", "name each treatment once"),
        ("none+hints", "'none', the control, alone"),
        ("../treatments/hints", "no treatment"),
        ("", "no treatment ''"),
    ],
)
def test_a_name_that_is_none(name, expected):
    with pytest.raises(ConfigError, match=expected):
        read_treatment(name)


def test_an_operators_own_treatments_stand_beside_the_shipped_ones(tmp_path, monkeypatch):
    monkeypatch.setenv("KCOURT_EXPERIMENTS_DIR", str(tmp_path))
    treat(tmp_path / "treatments", "mine", "hints: [x.md]", x_md="Mine.")
    treat(tmp_path / "treatments", "hints")
    assert read_treatment("mine+skills").name == "mine+skills"
    assert read_treatment("hints").hints == ()
    assert {*SHIPPED, "mine"} <= set(known_treatments())


@pytest.mark.parametrize(
    ("file", "content", "mode", "expected"),
    [
        pytest.param("one", "Go.\n\nCall `score` often.", "blind", "one.md:3: '`score`' promises", id="hint-score"),
        pytest.param("one", "Use previews.", "blind", "one.md:1: 'previews'", id="hint-preview"),
        pytest.param("one", "Then submit\nit again.", "single", "one.md:1: .*mode single takes one", id="resubmission"),
        pytest.param("one", "Ask the profile tool.", "multi", "'profile tool'.*not offered", id="profile"),
        pytest.param("one", "You have 3 hours.", "single", "the limits are 72000 s and", id="time"),
        pytest.param("one", "Within 2,000 tokens.", "single", "the limits are", id="tokens"),
        pytest.param("one", "There is no limit.", "single", "the limits are", id="endless"),
        pytest.param("one", "`-ffast-math` is on.", "single", "'-ffast-math' .*the judge builds with: gcc", id="flag"),
        pytest.param("one", "x\n\n    gcc -O2 axpy.c\n", "single", "the judge builds with: gcc", id="command"),
        pytest.param(
            "role", "A\n{{ kernel }}\n", "single", "role.md:2: 'kernel' is undefined; .* task,", id="undefined"
        ),
        pytest.param("role", "A\n{{ 1 / 0 }}\n", "single", "role.md:2: division by zero; .* task,", id="arithmetic"),
        pytest.param("role", "{{ tokens() }}", "single", "role.md:1: 'int' object is not callable", id="type"),
        pytest.param("role", "{% include 'other' %}", "single", "role.md:1: no loader", id="include"),
        pytest.param("role", "A\n\n{% if %}\n", "single", "role.md:3: is no Jinja template", id="template"),
        pytest.param("skills__t__SKILL", SKILL + "\nUse `score`.", "blind", "SKILL.md:5: '`score`'", id="skill"),
    ],
)
def test_a_promise_that_is_not_kept_names_file_and_line(tmp_path, file, content, mode, expected):
    keys = {"one": "hints: [one.md]", "role": "sections: {role: role.md}", "skills__t__SKILL": "skills: [t]"}
    treat(tmp_path, "mine", keys[file], **{f"{file}_md": content})
    with pytest.raises(ConfigError, match=f"(?s){expected}") as caught:
        check(read_treatment("mine", tmp_path), agent_submission_mode=mode)
    assert str(tmp_path / "mine") in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "The score matters; a call takes 2 seconds, a row has 512 tokens.",
        "You have 20 hours and 120000000 tokens, at most 72,000 seconds.",
        "`-O3` and `-march=native` are on; use non-temporal stores, -1 is no flag.",
        "Hand in your final submission with `submit`.",
    ],
)
def test_words_that_promise_nothing_false(tmp_path, text):
    treat(tmp_path, "mine", "hints: [x.md]", x_md=text)
    check(read_treatment("mine", tmp_path))


def test_a_section_may_say_different_things_in_different_modes(tmp_path):
    text = "{% if mode == 'multi' %}\nSubmit again.\n{% elif 'score' in tools %}\nCall `score`.\n{% endif %}\n"
    treat(tmp_path, "mine", "sections: {advice: x.md}", x_md=text)
    for mode in SubmissionMode:
        check(read_treatment("mine", tmp_path), agent_submission_mode=mode)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"agent_submission_mode": "blind"}, "submission mode blind shows nothing before the submit"),
        ({"language": "python"}, "python is not profiled, only c, cpp, fortran, hip"),
    ],
    ids=["blind", "python"],
)
def test_a_tool_that_the_judge_refuses_is_refused_with_its_line(values, expected):
    profile = read_treatment("profile")
    with pytest.raises(
        ConfigError, match=rf"profile/treatment.yaml:3: setup 's' has the tool 'profile' on, and {expected}"
    ):
        check(profile, agent_tools_on="profile", **values)
    with pytest.raises(ConfigError, match=f"AGENT_TOOLS_ON: setup 's' has the tool 'profile' on, and {expected}"):
        tools_of(settings(agent_tools_on="profile", **values))


def test_a_setup_that_is_not_what_its_treatment_says_is_refused():
    with pytest.raises(ConfigError, match="'reference' gives AGENT_START=numpy, the setup has 'c'; set AGENT_START"):
        check(read_treatment("reference"))
    check(read_treatment("reference"), agent_start="numpy")


def test_an_unknown_tool_names_the_nearest():
    with pytest.raises(ConfigError, match="AGENT_TOOLS_OFF: no tool 'syntax'; did you mean 'syntax_check'"):
        tools_of(settings(agent_tools_off="syntax"))


@pytest.mark.parametrize(
    ("mode", "tools"),
    [
        ("single", (Tool.SCORE, Tool.SUBMIT, Tool.SYNTAX_CHECK)),
        ("multi", (Tool.SCORE, Tool.SUBMIT, Tool.SYNTAX_CHECK)),
        ("blind", (Tool.SUBMIT, Tool.SYNTAX_CHECK)),
    ],
)
def test_the_usual_tools_of_a_mode(mode, tools):
    assert tools_of(settings(agent_submission_mode=mode)) == tools


def test_the_whole_prompt():
    chosen = settings(language=Language.FORTRAN, agent_submission_mode="multi", agent_tools_on="profile")
    treatment = read_treatment("hints+skills+profile")
    check_golden(
        "prompt.md",
        told(launch_material(chosen, treatment), chosen, make_problem(chosen, find_task("spmv_csr"))).prompt,
    )


@pytest.mark.parametrize(
    ("language", "device"), [(Language.HIP, "cpu"), (Language.CUDA, "cuda"), (Language.TRITON, "cuda")]
)
def test_the_task_in_a_language_of_gpus(language, device):
    given = {"agent_start": "torch", "agent_tools_on": "profile" if language == "hip" else ""}
    chosen = settings(language=language, device=device, hardware="" if device == "cpu" else "h200", **given)
    said = told(launch_material(chosen, read_treatment("none")), chosen, make_problem(chosen, find_task("rmsnorm")))
    check_golden(f"prompt-{language}.md", said.prompt)


@pytest.fixture
def env(tmp_path):
    (tmp_path / "plan.json").write_text('{"axpy": [], "gelu": []}')
    path = tmp_path / "s-1.env"
    text = "SETUP=s\nHARNESS=scripted\nAGENT_SCRIPT=plan.json\nKERNELS=axpy,gelu\nINFERENCE_NODES=0\nTREATMENT=skills\n"
    path.write_text(text)
    return path


def prepared(env, root):
    wave = read_wave([env])
    layout = RunLayout(root)
    prepare(layout, wave, plan_job([Host("here", (0, 1), 1)] * 2, wave.settings))
    return layout


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_job_stages_what_agents_are_given_and_keeps_it_for_a_rerun(env, tmp_path):
    layout = prepared(env, tmp_path / "job")
    kept = ["brief.json", "prompt.md", "skills/blocking/SKILL.md", "skills/reductions/SKILL.md"]
    assert files_in(layout.given("s")) == sorted([*kept, "contracts/axpy.json", "contracts/gelu.json"])
    assert files_in(layout.kept_given("s")) == kept
    assert {stat.S_IMODE((layout.given("s") / name).stat().st_mode) for name in kept} == {0o444}
    assert kept_beside(layout.env_snapshot("s")) == layout.kept_given("s")
    again = prepared(layout.env_snapshot("s"), tmp_path / "again")
    assert (again.given("s") / "prompt.md").read_bytes() == (layout.given("s") / "prompt.md").read_bytes()


def test_what_a_snapshot_keeps_wins_over_a_treatment_that_has_changed(env):
    chosen = read_settings(env)
    problem = make_problem(chosen, find_task("axpy"))
    folder = kept_beside(env)
    folder.mkdir()
    for name, content in launch_material(chosen, read_treatment("none")).items():
        (folder / name).write_bytes(content)
    assert set(given_to(env, chosen, [problem])) == {"brief.json", "prompt.md"}
    (folder / "prompt.md").write_text("Submit again.\n")
    with pytest.raises(ConfigError, match="promises 'Submit again', and mode single takes one submission; plan"):
        given_to(env, chosen, [problem])
    blind = chosen.model_copy(update={"agent_submission_mode": SubmissionMode.BLIND})
    with pytest.raises(ConfigError, match="was made for the tools score, submit, syntax_check; plan the study again"):
        given_to(env, blind, [problem])


def test_a_launch_with_a_false_promise_leaves_no_run_directory(env, tmp_path, monkeypatch):
    monkeypatch.setenv("KCOURT_EXPERIMENTS_DIR", str(tmp_path))
    treat(tmp_path / "treatments", "skills", "hints: [x.md]", x_md="Submit twice.")
    with pytest.raises(ConfigError, match=r"x\.md:1: 'Submit twice'"):
        prepared(env, tmp_path / "job")
    assert not os.path.exists(tmp_path / "job")
