"""What each role of a job is told and how it is started: pure functions of the plan."""

import sys

from agent.config import AgentConfig
from agent.endpoint import ModelService, Wire
from agent.striping import striped
from bench.cache import default_cache
from bench.config import JudgeConfig
from bench.judge.schemas import JudgeTool
from bench.judge.search.config import KEY_VARIABLE, SearchConfig, SearchModel
from bench.measure.cores import CorePlan, plan_cores
from bench.places import anchored
from cluster.job.allocation import Host, JudgeSlot, Plan
from cluster.job.inference import Engine, engine_env, engines_of
from cluster.job.inference.arguments import served_name
from cluster.job.launchers import Role, Step
from cluster.job.layout import RunLayout
from cluster.study.briefing import tools_of
from cluster.study.prices import price_table
from cluster.study.settings import JobSettings
from cluster.study.wave import SERVICE_WIRES, SetupPlan, Wave

# Engines and gateways speak all of them.
ENGINE_WIRES: tuple[Wire, ...] = ("messages", "chat", "responses")


def core_plan(slot: JudgeSlot) -> CorePlan | None:
    """Which CPUs a judge slot times on, clocks on, and leaves to the rest; None where only the judge will see them."""
    if not slot.cpus:
        return None
    shares = slot.cpus == slot.host.cpus
    return plan_cores(slot.cpus, slot.seat if shares else 0, slot.seats if shares else 1)


def agent_cpus(host: Host, plan: Plan) -> tuple[int, ...]:
    """CPUs for agents on a host: what the judges of the same machine leave to others."""
    plans = [cores for slot in plan.judges if slot.host.reached_at == host.reached_at and (cores := core_plan(slot))]
    leased = {core for cores in plans for core in cores.leased}
    left = set(host.cpus) - leased or {core for cores in plans for core in cores.others}
    return tuple(sorted(left))


def judge_config(layout: RunLayout, wave: Wave, plan: Plan, slot: JudgeSlot) -> JudgeConfig:
    """What one rank is told."""
    settings, cores = wave.settings, core_plan(slot)
    return JudgeConfig(
        rank=slot.rank,
        ranks=len(plan.judges),
        run_id=layout.job_id,
        router_host=slot.host.reached_at,
        router_port=slot.router_port,
        judge_port=slot.judge_port,
        shard=layout.shard(slot.rank),
        peer_shards={peer.rank: layout.shard(peer.rank) for peer in plan.judges if peer is not slot},
        log_dir=layout.judge,
        shared_dir=layout.shared,
        cache_dir=anchored(settings.cache_dir) if settings.cache_dir else default_cache().absolute(),
        secret_file=layout.secret,
        setups=wave.records,
        tools={setup.name: judge_tools(setup) for setup in wave.setups},
        problems=tuple(problem.kernel for problem in wave.problems),
        input_mode=settings.judge_input_mode,
        final_protocol=settings.final_protocol,
        preview_protocol=settings.preview_protocol,
        failed_submit_step_s=settings.judge_failed_submit_step_seconds,
        evaluation=settings.judge_evaluation,
        evaluation_timeout_s=settings.judge_evaluation_timeout_seconds,
        warm_up=settings.judge_warm_up,
        queue_limit=settings.judge_queue_limit,
        max_body_bytes=settings.judge_max_body_bytes,
        search=search_config(settings, plan, slot.rank),
        allow_sandbox=settings.sandbox_allow,
        device=settings.device,
        timing_cores=cores.timing if cores else None,
        clock_core=cores.clock if cores else None,
    )


def judge_tools(setup: SetupPlan) -> tuple[JudgeTool, ...]:
    """What judges do for a setup's agents beside the grade that counts."""
    offered = {tool.value for tool in tools_of(setup.settings)}
    return tuple(tool for tool in JudgeTool if tool.value in offered)


def search_config(settings: JobSettings, plan: Plan, rank: int) -> SearchConfig:
    """One rank's web search; a model that wants a provider's key writes no summaries: judges have no such key."""
    service = model_service(settings, plan) if settings.search_summary else None
    model = None
    if service and service.key_env is None:
        model = SearchModel(
            url=service.urls[striped(rank, len(service.urls))],
            model=service.model,
            wire="chat" if "chat" in service.wires else "messages",
            max_tokens=settings.search_summary_tokens,
            timeout_s=settings.search_summary_seconds,
        )
    return SearchConfig(
        provider=settings.search_provider_url,
        engine=settings.search_engine,
        results=settings.search_results,
        pages=settings.search_pages,
        page_bytes=settings.search_page_bytes,
        page_timeout_s=settings.search_page_seconds,
        timeout_s=settings.search_seconds,
        at_once=settings.search_at_once,
        per_minute=settings.search_per_minute,
        per_episode=settings.search_per_episode,
        model=model,
    )


def agent_config(layout: RunLayout, wave: Wave, plan: Plan, node: int) -> AgentConfig:
    """What the driver of one agent node is told."""
    settings = wave.settings
    return AgentConfig(
        node=node,
        nodes=len(plan.agents),
        run_dir=layout.agent_node(node),
        shared_dir=layout.shared,
        folders_file=layout.agent_folders,
        problems_file=layout.problems,
        judge_urls=tuple(plan.urls),
        secret_file=layout.secret,
        setups=wave.records,
        harness_options={setup.name: _launched_options(layout, setup) for setup in wave.setups},
        workers=settings.agents_per_node,
        timeout_s=settings.agent_timeout_seconds,
        max_tokens=settings.agent_max_tokens,
        budget_mode=settings.agent_budget_mode,
        max_iterations=settings.agent_max_iterations,
        prices=price_table(),
        crash_attempts=settings.agent_crash_attempts,
        give_up_after=settings.agent_give_up_after,
        start_stagger_s=settings.agent_start_stagger_seconds,
        ready_timeout_s=settings.agent_ready_seconds,
        idle_timeout_s=settings.agent_idle_seconds,
        exit_grace_s=settings.agent_exit_grace_seconds,
        cpus=agent_cpus(plan.agents[node], plan) or None,
        failover=settings.agent_failover,
        seal=settings.agent_seal,
        service=model_service(settings, plan),
        usage_file=layout.usage,
    )


def model_service(settings: JobSettings, plan: Plan) -> ModelService | None:
    """What serves the agents' model: the job's engines, a gateway, a hosted service; None where there is none."""
    if settings.agent_llm_mode == "gateway":
        # It speaks whatever its clients do, and asks for a key of its own where one is named.
        return ModelService(
            urls=(_root(str(settings.agent_gateway_url)),),
            model=settings.inference_service_model or served_name(settings),
            wires=ENGINE_WIRES,
            key_env=settings.inference_service_key_env,
            auth=settings.inference_service_auth,
        )
    if settings.inference_source == "service":
        return ModelService(
            urls=(_root(str(settings.inference_service_base_url)),),
            model=settings.inference_service_model,
            wires=SERVICE_WIRES[settings.inference_service_api],
            key_env=settings.inference_service_key_env,
            auth=settings.inference_service_auth,
        )
    engines = engines_of(settings, plan.inference)
    urls = tuple(engine.url for engine in engines)
    return ModelService(urls=urls, model=served_name(settings), wires=ENGINE_WIRES) if urls else None


def _root(base_url: str) -> str:
    """What the routes `/v1/...` hang on."""
    return base_url.removesuffix("/v1")


def _launched_options(layout: RunLayout, setup: SetupPlan) -> dict[str, str]:
    """The harness's options with the run's own copy of the plan, which nobody edits while agents read it."""
    options = dict(setup.harness_options)
    return options | {"plan": str(layout.script(setup.name))} if setup.is_scripted else options


def judge_step(layout: RunLayout, settings: JobSettings, slot: JudgeSlot) -> Step:
    """Router, judge and measuring process of one rank, kept off the timing core; the last one moves to it to time."""
    cores = core_plan(slot)
    return Step(
        f"judge-{slot.rank}",
        Role.JUDGE,
        _kcourt("serve", "--config", str(layout.judge_config(slot.rank))),
        slot.host,
        layout.judge_log(slot.rank),
        layout.steps,
        cpus=cores.others if cores else (),
        gpus=slot.gpus,
        vendor=settings.device if settings.grades_on_gpu else "",
        keys=(KEY_VARIABLE,),
        child_logs=(layout.upstream_log(slot.rank),),
    )


def agent_step(layout: RunLayout, settings: JobSettings, plan: Plan, node: int) -> Step:
    """The driver of one agent node."""
    host, key = plan.agents[node], settings.inference_service_key_env
    return Step(
        f"agent-{node}",
        Role.AGENT,
        _kcourt("agent", "run", "--config", str(layout.agent_config(node))),
        host,
        layout.agent_log(node),
        layout.steps,
        cpus=agent_cpus(host, plan),
        keys=(key,) if key else (),
    )


def engine_step(layout: RunLayout, settings: JobSettings, engine: Engine) -> Step:
    """The engine of one replica, with all GPUs of its node."""
    return Step(
        f"inference-{engine.replica}",
        Role.INFERENCE,
        engine.argv,
        engine.host,
        layout.inference_log(engine.replica),
        layout.steps,
        gpus=tuple(range(engine.host.gpus)),
        env=engine_env(settings),
    )


def monitor_step(layout: RunLayout, host: Host) -> Step:
    """What samples the use of one node, and outlives the job's process where that is lost with its node."""
    argv = _kcourt("monitor", "sample", "--csv", str(layout.monitor_csv(host.name)), "--state", str(layout.state))
    return Step(f"monitor-{host.name}", Role.MONITOR, argv, host, layout.monitor_log(host.name), layout.steps)


def _kcourt(*arguments: str) -> tuple[str, ...]:
    """This installation's own command, whatever PATH or the working directory hold."""
    return (sys.executable, "-P", "-c", "from bench.cli import main; main()", *arguments)
