"""The judge's Prometheus metrics, in a registry of their own."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from bench.judge.schemas import Kind, Outcome, ProfileTool

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
SECONDS = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)


class Metrics:
    """What one judge process counts since its start."""

    def __init__(self, queue_depth: Callable[[], float]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "kcourt_requests", "Requests by route and status.", ["route", "status"], registry=self._registry
        )
        self._grades = Counter(
            "kcourt_grades", "Grades by kind and outcome.", ["kind", "outcome"], registry=self._registry
        )
        self._profiles = Counter(
            "kcourt_profiles", "Profiles by tool and outcome.", ["tool", "outcome"], registry=self._registry
        )
        self._searches = Counter(
            "kcourt_searches", "Web searches by how they ended.", ["result"], registry=self._registry
        )
        self._waited = Histogram("kcourt_queue_seconds", "Time in the queue.", buckets=SECONDS, registry=self._registry)
        self._worked = Histogram(
            "kcourt_grade_seconds", "Time from queue to report.", buckets=SECONDS, registry=self._registry
        )
        depth = Gauge("kcourt_queue_depth", "Requests that wait.", registry=self._registry)
        depth.set_function(queue_depth)

    def requested(self, route: str, status: int) -> None:
        self._requests.labels(route, str(status)).inc()

    def graded(self, kind: Kind, outcome: Outcome, queue_ms: float, grade_ms: float) -> None:
        self._grades.labels(kind, outcome).inc()
        self._waited.observe(queue_ms / 1e3)
        self._worked.observe(grade_ms / 1e3)

    def profiled(self, tool: ProfileTool, outcome: Outcome) -> None:
        self._profiles.labels(tool, outcome).inc()

    def searched(self, result: str) -> None:
        self._searches.labels(result).inc()

    def text(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self._registry)
