"""The judge behind a router: its routes, and the process `python -m bench.judge.app <config.json>`."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from bench import process
from bench.config import JudgeConfig
from bench.errors import KernelcourtError, TaskError, UsageError
from bench.judge import serving
from bench.judge.admission import Route, admit, check_route
from bench.judge.caller import Caller, identify
from bench.judge.contract import contract
from bench.judge.gateway import Gateway, request_id_of
from bench.judge.logs import log_to
from bench.judge.metrics import CONTENT_TYPE, Metrics
from bench.judge.refusal import Refused, error_body, too_large
from bench.judge.scheduler import Graded, Scheduler
from bench.judge.schemas import Answer, ErrorBody, GradeRequest, Health, Kind, Language
from bench.judge.service import GradeService, Pending
from bench.records import GradeReport
from bench.results.shard import Shard, StoredAnswer
from bench.seeds import read_root
from bench.task import Task, find_task
from bench.version import package_version

log = structlog.get_logger()

JSON = "application/json"
# How long grades in flight may take after SIGTERM, and their answers after that.
DRAIN_S = 300.0
FINISH_S = 10
GONE = 499
CONTROL = {"application/json": {"schema": GradeRequest.model_json_schema()}}
