"""The KEYs of a job, one model a role: type, unit, default, meaning. `settings.JobSettings` is all of them together."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from agent.budget import BudgetMode
from agent.seal import SealMode
from bench.config import EvaluationTools, FinalProtocol, PreviewProtocol
from bench.evaluation import LONGEST_S, USUAL, USUAL_TIMEOUT_S
from bench.judge.schemas import InputMode, Language, Preset, SubmissionMode
from bench.judge.search.config import ProviderUrl
from bench.places import RUN_ROOT
from bench.start import Start
from cluster.study.scripts import ScriptRule

Role = Literal["setup", "treatment", "job", "inference", "agent", "judge"]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
# A comma list of words, without spaces.
Words = Annotated[str, Field(pattern=r"^(\w+(,\w+)*)?$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]
# No user and password before the host: this URL is written down, and a secret never is.
BaseUrl = Annotated[str, Field(pattern=r"^https?://[^/@\s]+(/[^@\s]*)?/v1$")]


def _refuse_secret(_: object) -> None:
    raise ValueError("a secret is written in no file and on no command line; export it in the shell that submits")


Secret = Annotated[None, BeforeValidator(_refuse_secret)]


@dataclass(frozen=True)
class Key:
    """What a reader needs to know of a KEY; those of roles `setup` and `treatment` may differ in one wave."""

    role: Role
    meaning: str
    unit: str = ""
    secret: bool = False


class SetupKeys(BaseModel):
    """What a setup is, and what it is asked to do."""

    setup: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+-]*$"), Key("setup", "Name of the setup, on every row.")]
    study: Annotated[str, Key("setup", "Study that the setup is a cell of.")] = ""
    experiment: Annotated[str, Key("setup", "Experiment: what all setups of the study share.")] = ""
    hardware: Annotated[str, Key("setup", "Hardware that grades are for: a profile of hardware.yaml.")] = ""
    model: Annotated[str, Key("setup", "Model that drives the agent.")] = ""
    language: Annotated[Language, Key("setup", "Language that submissions are written in.")] = Language.C
    treatment: Annotated[str, Key("setup", "What this setup changes in what the agent gets.")] = "none"
    harness: Annotated[str, Key("setup", "Program that drives the model as an agent.")] = "claude_code"
    temperature: Annotated[
        float | None, Field(ge=0, le=2), Key("setup", "Sampling temperature; unset: the model's own.")
    ] = None
    effort: Annotated[
        str | None, Field(pattern=r"^[a-z0-9]+$"), Key("setup", "Reasoning effort; unset: the model's own.")
    ] = None
    preset: Annotated[Preset, Key("setup", "Preset that grades are timed at.")] = Preset.XL
    agent_submission_mode: Annotated[
        SubmissionMode,
        Key("setup", "single: the first submit ends the episode; multi: the last one counts; blind."),
    ] = SubmissionMode.SINGLE
    problems_file: Annotated[
        Path | None, Key("setup", "JSONL file of problems; wins over KERNELS; relative to the env file.")
    ] = None
    kernels: Annotated[str, Key("setup", "Comma list of kernels, suites or tags, each one problem of slot 0.")] = ""
    agent_script: Annotated[
        Path | None, Key("setup", "JSON plan that the scripted harness replays; relative to the env file.")
    ] = None
    agent_script_rule: Annotated[
        ScriptRule | None,
        Key("setup", "Makes the scripted harness's plan from each kernel's controls, in place of AGENT_SCRIPT."),
    ] = None


class TreatmentKeys(BaseModel):
    """What a treatment may change."""

    agent_start: Annotated[
        Start,
        Key(
            "treatment", "Start material: none, numpy (the reference), c, hip, cuda or triton (and a baseline), torch."
        ),
    ] = Start.C
    agent_tools_on: Annotated[
        Words, Key("treatment", "Comma list of tools offered beyond those of the submission mode.")
    ] = ""
    agent_tools_off: Annotated[Words, Key("treatment", "Comma list of tools withheld.")] = ""


class JobKeys(BaseModel):
    """The job as a whole: where it lies, how long it lasts, how its roles are containerised."""

    run_root: Annotated[
        Path,
        Key("job", "Folder of run directories; relative to the checkout, or to where you call outside of it."),
    ] = RUN_ROOT
    kcourt_scratch: Annotated[
        Path, Key("job", "Slurm's own output goes to logs/ in there; relative as RUN_ROOT is.")
    ] = RUN_ROOT.parent
    kcourt_base_hardware: Annotated[
        str, Key("job", "Hardware that the layers' EDFs and images are named for; another one renames them.")
    ] = ""
    gpus_per_node: Annotated[
        Count | None, Key("job", "GPUs of a node; a Slurm job needs it, and the system pins it on submission.")
    ] = None
    container_runtime: Annotated[
        Literal["ce", "apptainer", "podman", "docker", "none"] | None,
        Key("job", "How roles are containerised; none: on the host; unset: ce under Slurm, none on this machine."),
    ] = None
    container_mounts: Annotated[
        str, Key("job", "Comma list of HOST:CONTAINER[:ro] in place of every role's own mounts.")
    ] = ""
    container_gpu_flags: Annotated[str, Key("job", "Flags that give a container its GPUs (not with ce).")] = ""
    bench_image: Annotated[str, Key("job", "Image of judges and agents (not with ce).")] = ""
    job_wall_seconds: Annotated[
        Count,
        Key("job", "Wall clock of the job; 0: none on this machine, what the agents' budget needs under Slurm.", "s"),
    ] = 0
    step_stop_grace_seconds: Annotated[
        Positive, Key("job", "How long a step may take to end after TERM before it is killed.", "s")
    ] = 120
    agent_stall_abort_seconds: Annotated[
        Count,
        Key("job", "The job is torn down after so long without an episode or grade event; 0: never.", "s"),
    ] = 3600
    arena_power: Annotated[float, Field(gt=0), Key("job", "p of the arena score max(0, 1 - t/s)^p.")] = 1.0
    arena_threshold: Annotated[
        float, Field(gt=0), Key("job", "t of the arena score: the speedup that still scores 0.")
    ] = 1.05


class InferenceKeys(BaseModel):
    """Where tokens come from: an engine on nodes of the job, or a hosted service."""

    inference_source: Annotated[
        Literal["served", "service"],
        Key("inference", "served: by an engine on INFERENCE_NODES of the job; service: by a hosted endpoint."),
    ] = "served"
    inference_nodes: Annotated[Count, Key("inference", "Nodes that serve the model.")] = 2
    inference_engine: Annotated[Literal["vllm", "sglang"], Key("inference", "Program that serves the model.")] = "vllm"
    inference_mode: Annotated[
        Literal["replicas", "pipeline"],
        Key("inference", "replicas: one engine a node; pipeline: one engine whose stages are the nodes."),
    ] = "replicas"
    inference_model: Annotated[str, Key("inference", "Model that the engine loads: a hub's name or a folder.")] = ""
    inference_checkpoint: Annotated[
        str, Key("inference", "Revision of the weights, as provenance has it; empty: the hub's latest.")
    ] = ""
    inference_served_name: Annotated[
        str, Key("inference", "Name that clients must ask for; empty: INFERENCE_MODEL's.")
    ] = ""
    inference_tensor_parallel: Annotated[
        Positive | None, Key("inference", "GPUs that share each layer of the model; unset: GPUS_PER_NODE.")
    ] = None
    inference_context_tokens: Annotated[
        Positive | None, Key("inference", "Longest context; unset: the model's own.", "tokens")
    ] = None
    inference_args: Annotated[str, Key("inference", "Further arguments of the engine, split as a shell would.")] = ""
    inference_port: Annotated[int, Field(ge=1, le=65535), Key("inference", "Port of the engine on its node.")] = 8000
    inference_ready_seconds: Annotated[
        Positive, Key("inference", "How long an engine may take to load its model and answer.", "s")
    ] = 3600
    inference_edf: Annotated[str, Key("inference", "Registered EDF of the engine (with ce).")] = ""
    inference_image: Annotated[str, Key("inference", "Image of the engine (not with ce).")] = ""
    hf_home: Annotated[Path | None, Key("inference", "Folder of model weights, mounted into the engine.")] = None
    jit_cache_dir: Annotated[
        Path | None, Key("inference", "Folder of kernels that engines compile, mounted into them.")
    ] = None
    inference_service_provider: Annotated[str, Key("inference", "Who hosts the model; kept as provenance.")] = ""
    inference_service_tier: Annotated[
        Literal["standard", "contributor"],
        Key("inference", "Terms of the account; contributor: the provider trains on the traffic."),
    ] = "standard"
    inference_service_base_url: Annotated[
        BaseUrl | None, Key("inference", "Base URL of the service; it ends in /v1 and holds no password.")
    ] = None
    inference_service_model: Annotated[str, Key("inference", "The provider's id of the model.")] = ""
    inference_service_api: Annotated[
        Literal["anthropic", "openai"],
        Key("inference", "What the service speaks: anthropic (messages) or openai (chat completions)."),
    ] = "anthropic"
    inference_service_auth: Annotated[
        Literal["bearer", "x-api-key"], Key("inference", "Header that carries the key.")
    ] = "bearer"
    inference_service_key_env: Annotated[
        VariableName | None, Key("inference", "NAME of the variable that holds the key, never the key.")
    ] = None


class AgentKeys(BaseModel):
    """Agents: how many, their budget, their clients."""

    agent_nodes: Annotated[Count, Key("agent", "Nodes that run agents; 0 with JUDGE_NODES=0: only serve a model.")] = 1
    agents_per_node: Annotated[Positive, Key("agent", "Concurrent workers on an agent node.")] = 4
    agent_llm_mode: Annotated[
        Literal["direct", "gateway"],
        Key("agent", "direct: agents ask the model's endpoint; gateway: they ask AGENT_GATEWAY_URL, which forwards."),
    ] = "direct"
    agent_gateway_url: Annotated[
        BaseUrl | None, Key("agent", "Base URL of the gateway (with AGENT_LLM_MODE=gateway); it ends in /v1.")
    ] = None
    agent_timeout_seconds: Annotated[Positive, Key("agent", "Wall clock of an episode, all attempts.", "s")] = 72000
    agent_max_tokens: Annotated[Positive, Key("agent", "Token cap of an episode, all attempts.", "tokens")] = (
        120_000_000
    )
    agent_budget_mode: Annotated[
        BudgetMode,
        Key("agent", "iterations: the prompt asks for versions; time: a session that ends early is resumed."),
    ] = BudgetMode.ITERATIONS
    agent_max_iterations: Annotated[
        Positive | None,
        Key("agent", "Versions that the prompt asks for in budget mode iterations; unset: no number is named."),
    ] = None
    agent_crash_attempts: Annotated[Positive, Key("agent", "Launches of an episode at most.")] = 3
    agent_give_up_after: Annotated[
        Count,
        Key("agent", "So many episodes of a node in a row that a client or model failed, and no more start; 0: never."),
    ] = 10
    agent_start_stagger_seconds: Annotated[
        float, Field(ge=0), Key("agent", "Pause between the first starts of a node's workers.", "s")
    ] = 1.0
    agent_ready_seconds: Annotated[
        float, Field(gt=0), Key("agent", "How long a client may take to announce its tools.", "s")
    ] = 120.0
    agent_idle_seconds: Annotated[
        float, Field(gt=0), Key("agent", "Silence of a client after which it counts as crashed.", "s")
    ] = 7200.0
    agent_exit_grace_seconds: Annotated[
        float, Field(ge=0), Key("agent", "How long a finished client may take to exit before it is killed.", "s")
    ] = 30.0
    agent_seal: Annotated[
        SealMode,
        Key("agent", "auto: seal clients that a model drives; required: every client; off: they see the node."),
    ] = "auto"
    agent_failover: Annotated[bool, Key("agent", "Turn to a surviving judge when the home rank is lost.")] = True
    agent_edf: Annotated[str, Key("agent", "Registered EDF of agents (with ce).")] = ""


class JudgeKeys(BaseModel):
    """Judges: how many, on what, and how they grade."""

    judge_nodes: Annotated[Count, Key("judge", "Nodes that grade; 0 with AGENT_NODES=0: only serve a model.")] = 1
    judges_per_node: Annotated[
        Positive | None,
        Key("judge", "Judge slots of a node; unset: one a GPU where those grade, else one a socket."),
    ] = None
    judge_grades_per_hour: Annotated[
        Positive | None,
        Key("judge", "Measured rate of one judge slot; sizes JUDGE_NODES for a peak of grades.", "grades/h"),
    ] = None
    grade_cpus: Annotated[
        Annotated[int, Field(ge=2)] | None,
        Key("judge", "CPUs of a judge slot, 2 at least; unset: its even part of the node, one socket by default."),
    ] = None
    judge_port: Annotated[
        int | None,
        Field(ge=1, le=65534),
        Key("judge", "First port of a judge node; unset: 8800, or a free block where nodes are shared."),
    ] = None
    device: Annotated[
        Literal["cpu", "hip", "cuda"],
        Key("judge", "Device that grades: cpu, or a GPU of AMD (hip) or NVIDIA (cuda), one at least for each judge."),
    ] = "cpu"
    judge_edf: Annotated[str, Key("judge", "Registered EDF of judges (with ce).")] = ""
    judge_input_mode: Annotated[InputMode, Key("judge", "What a submission may be.")] = InputMode.SOURCE
    judge_ready_seconds: Annotated[Positive, Key("judge", "How long a judge may take to become healthy.", "s")] = 600
    judge_drain_reserve_seconds: Annotated[
        Positive, Key("judge", "Part of the allocation kept for merge and extraction; bounds the drain.", "s")
    ] = 900
    judge_failed_submit_step_seconds: Annotated[
        float, Field(ge=0, le=600), Key("judge", "A failed submit is answered after a multiple of so long.", "s")
    ] = 10.0
    judge_evaluation: Annotated[
        EvaluationTools,
        Key("judge", "Tools that look at what a submit is about to credit: name[:policy[:seconds]] each."),
    ] = USUAL
    judge_evaluation_timeout_seconds: Annotated[
        int, Field(ge=1, le=LONGEST_S), Key("judge", "What all those tools have together for one submission.", "s")
    ] = USUAL_TIMEOUT_S
    judge_warm_up: Annotated[
        bool,
        Key("judge", "Build the job's denominators, and race a GPU's, while nothing waits; else on demand alone."),
    ] = True
    judge_queue_limit: Annotated[Positive, Key("judge", "Waiting requests beyond which a judge answers 429.")] = 256
    judge_max_body_bytes: Annotated[int, Field(ge=1024), Key("judge", "Largest request body.", "bytes")] = 8 << 20
    cache_dir: Annotated[
        Path | None,
        Key("judge", "Built helpers, denominators and oracles, by content; unset: where every command has them."),
    ] = None
    final_protocol: Annotated[FinalProtocol, Key("judge", "Protocol of /submit.")] = "mw4x5"
    preview_protocol: Annotated[PreviewProtocol, Key("judge", "Protocol of /score.")] = "mw2x5"
    sandbox_allow: Annotated[
        Literal["full", "user", "limits"], Key("judge", "Weakest sandbox level that a judge may serve with.")
    ] = "user"
    serpapi_api_key: Annotated[
        Secret, Key("judge", "Key of the web search; it travels by name, to judges alone.", secret=True)
    ] = None


class SearchKeys(BaseModel):
    """The web search that judges serve to agents whose treatment has it."""

    search_provider_url: Annotated[
        ProviderUrl, Key("judge", "Address of the search API, which answers as SerpAPI does.")
    ] = "https://serpapi.com/search.json"
    search_engine: Annotated[str, Key("judge", "Engine that the search API is asked for.")] = "google"
    search_results: Annotated[int, Field(ge=1, le=100), Key("judge", "Results of a search at most.")] = 8
    search_pages: Annotated[int, Field(ge=0, le=20), Key("judge", "How many of the first results are read.")] = 4
    search_page_bytes: Annotated[
        int, Field(ge=1024, le=16 << 20), Key("judge", "What is read of a page at most.", "bytes")
    ] = 1 << 20
    search_page_seconds: Annotated[float, Field(gt=0), Key("judge", "How long a page may take to arrive.", "s")] = 10.0
    search_seconds: Annotated[
        float, Field(gt=0), Key("judge", "How long a search may take, without the summary.", "s")
    ] = 60.0
    search_at_once: Annotated[Positive, Key("judge", "Searches of a judge at a time; others wait.")] = 4
    search_per_minute: Annotated[Positive, Key("judge", "Searches of an episode a minute.", "searches/min")] = 6
    search_per_episode: Annotated[Positive, Key("judge", "Searches of an episode in all.")] = 200
    search_summary: Annotated[
        bool, Key("judge", "Have the job's engine or gateway sum up what a search finds; else excerpts are the answer.")
    ] = True
    search_summary_tokens: Annotated[Positive, Key("judge", "Longest summary of a search.", "tokens")] = 2048
    search_summary_seconds: Annotated[
        float, Field(gt=0), Key("judge", "How long a summary may take; then excerpts are the answer.", "s")
    ] = 60.0
