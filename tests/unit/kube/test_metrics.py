"""Metrics of the Kubernetes side, and what is made of them: alerts and the dashboard."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import kopf
import promql_parser
import pytest
import yaml
from prometheus_client import CollectorRegistry

from regent.kube.client import KubeClient
from regent.kube.errors import KubeUnavailableError
from regent.kube.health import KubeHealth
from regent.kube.health_metrics import KubeHealthCollector
from regent.kube.metrics import RESULTS, ResourceMetrics, ServingCollector, ServingState
from regent.kube.object_cache import ObjectKey
from regent.kube.reconciler import Reconciled
from regent.kube.work_queue import WorkQueue
from regent.kube.worker import work
from regent.model.entry_budget import EntryBudget
from regent.observability.metrics import ControllerCollector
from tests.unit.kube.jumping_clock import elapse, jumping

ROOT = Path(__file__).parents[3]
FILES = ROOT / "charts" / "regent" / "files"


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@jumping
async def test_every_result_of_a_reconciliation_is_counted_from_zero_on(
    registry: CollectorRegistry,
) -> None:
    metrics = ResourceMetrics(registry)

    def count(result: str) -> float | None:
        labels = {"kind": "KafkaTopic", "result": result}
        return registry.get_sample_value("regent_reconciliations_total", labels)

    assert [count(result) for result in RESULTS] == [0, 0, 0, 0]

    async def reconcile(key: ObjectKey) -> Reconciled:
        match key.name:
            case "again":
                return Reconciled(500.0)
            case "refused":
                raise KubeUnavailableError("no answer")
            case "broken":
                raise ZeroDivisionError
            case _:
                return Reconciled(None)

    queue: WorkQueue[ObjectKey] = WorkQueue(jitter=lambda: 1.0)
    for name in ("fine", "again", "refused", "broken"):
        queue.add(ObjectKey("KafkaTopic", "shop", name))
    worker = asyncio.create_task(work(queue, reconcile, metrics=metrics, entries=EntryBudget()))
    await elapse(0.1)
    worker.cancel()
    assert {result: count(result) for result in RESULTS} == dict.fromkeys(RESULTS, 1)
    took = registry.get_sample_value("regent_reconciliation_seconds_count", {"kind": "KafkaTopic"})
    assert took == 4


@jumping
async def test_the_oldest_key_in_the_queue_shows_how_long_resources_wait() -> None:
    queue: WorkQueue[str] = WorkQueue(jitter=lambda: 1.0)
    assert queue.oldest_s() == 0
    queue.add("a")
    await elapse(3)
    queue.add("b")
    await elapse(1)
    assert queue.oldest_s() == 4
    await queue.get()
    assert queue.oldest_s() == 1


async def test_requests_without_an_answer_are_counted_too(registry: CollectorRegistry) -> None:
    metrics = ResourceMetrics(registry)

    async def nowhere() -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server="http://127.0.0.1:1")

    async with KubeClient(
        max_connections=1,
        request_timeout_s=30,
        credentials=nowhere,
        on_request=metrics.requested,
        on_wait=metrics.waited,
    ) as client:
        with pytest.raises(KubeUnavailableError):
            await client.get("/x")
    labels = {"verb": "GET", "code": "none"}
    assert registry.get_sample_value("regent_kubernetes_requests_total", labels) == 1
    assert registry.get_sample_value("regent_kubernetes_request_wait_seconds_count") == 1


def test_the_state_is_read_when_somebody_asks(registry: CollectorRegistry) -> None:
    state = ServingState()
    registry.register(ServingCollector(lambda: state))
    assert registry.get_sample_value("regent_serving") == 0
    state = ServingState(is_serving=True, queued=7, oldest_s=2.5, refused=3)
    assert registry.get_sample_value("regent_serving") == 1
    assert registry.get_sample_value("regent_work_queue_depth") == 7
    assert registry.get_sample_value("regent_work_queue_oldest_seconds") == 2.5
    assert registry.get_sample_value("regent_resources_refused") == 3


class Statistics:
    """A controller without a cluster."""

    def __getattr__(self, name: str) -> Any:
        from regent.controller.controller_state import ControllerState
        from regent.observability.metrics import ControllerGauges

        values = {
            "gauges": ControllerGauges(),
            "state": ControllerState.IDLE,
            "queue_size": 0,
            "channel_queue_sizes": {1: 0},
            "unreached_broker_count": 0,
        }
        return values[name]


def exported(registry: CollectorRegistry) -> set[str]:
    """Names of everything that a process exports."""
    ResourceMetrics(registry).requested("GET", 200)
    health = KubeHealth()
    health.of("KafkaTopic").listed(unreadable={"a": "x"}, unwritable={"b": "y"})
    registry.register(KubeHealthCollector(health))
    registry.register(ServingCollector(ServingState))
    registry.register(ControllerCollector(Statistics()))
    return {sample.name for family in registry.collect() for sample in family.samples}


def named_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:regent|kafka_controller)_[a-z_]+", expression))


def queries() -> list[str]:
    """Of alerts and dashboard."""
    (group,) = yaml.safe_load((FILES / "alerts.yaml").read_text())
    dashboard = json.loads((FILES / "dashboard.json").read_text())
    of_alerts = [rule["expr"] for rule in group["rules"]]
    return of_alerts + [
        target["expr"] for panel in dashboard["panels"] for target in panel["targets"]
    ]


def test_alerts_and_dashboard_use_metrics_that_exist(registry: CollectorRegistry) -> None:
    used = set().union(*map(named_in, queries()))
    assert len(used) > 15
    assert used <= exported(registry)


@pytest.mark.parametrize("query", queries())
def test_queries_of_alerts_and_dashboard_can_be_read(query: str) -> None:
    promql_parser.parse(query.replace("$__rate_interval", "5m"))  # Grafana's own


def test_alerts_are_about_regent_alone() -> None:
    """Exporters of brokers give the metrics of Kafka's controller the same names."""
    (group,) = yaml.safe_load((FILES / "alerts.yaml").read_text())
    expressions = {rule["alert"]: rule["expr"] for rule in group["rules"]}
    kafkas = [alert for alert, expr in expressions.items() if "kafka_controller_" in expr]
    assert len(kafkas) >= 3
    for alert in kafkas:
        assert re.search(
            r"\(kafka_controller_\w+ and on \(namespace, job\) regent_build_info\)",
            expressions[alert],
        ), alert


def test_an_alert_is_raised_where_no_replica_runs() -> None:
    """Without a series a comparison holds for nothing."""
    (group,) = yaml.safe_load((FILES / "alerts.yaml").read_text())
    expressions = {rule["alert"]: rule["expr"] for rule in group["rules"]}
    assert expressions["RegentNoController"].endswith(" or absent(regent_build_info)")


def test_the_runbook_has_a_section_for_each_alert() -> None:
    (group,) = yaml.safe_load((FILES / "alerts.yaml").read_text())
    sections = re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    assert [rule["alert"] for rule in group["rules"]] == sections
    for rule in group["rules"]:
        assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"
