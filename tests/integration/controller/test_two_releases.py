"""Two Regents with Leases of their own on one Kafka cluster, one of which is the controller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sandbox import wait_until
from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, controller_id_of, regent
from tests.support.resources import Resources, condition, topic

pytestmark = pytest.mark.integration

UNKNOWN_AFTER_S = 10
"""The least that can be set."""


class Releases(NamedTuple):
    """Two Regents.

    Attributes:
        leader: The controller. It serves the namespace of ``shared``.
        other: It serves that one, and the namespace of ``own``.
    """

    leader: RegentProcess
    other: RegentProcess
    shared: Resources
    own: Resources


@pytest.fixture
def releases(cluster: Cluster, resources: Resources, tmp_path: Path) -> Iterator[Releases]:
    own = Resources(resources.api, f"{resources.namespace}-own")
    file = tmp_path / "namespaces.yaml"
    file.write_text(json.dumps({"namespaces": [resources.namespace, own.namespace]}))
    with ExitStack() as stack:

        def started(name: str, **settings: Any) -> RegentProcess:
            return stack.enter_context(
                regent(
                    cluster,
                    name=name,
                    kubeconfig=resources.api.kubeconfig_for(name),
                    lease_namespace=resources.namespace,
                    lease_name=name,
                    status_unknown_after_s=UNKNOWN_AFTER_S,
                    **settings,
                )
            )

        leader = started("regent-a", namespace=resources.namespace)
        leader.wait_until_active()
        yield Releases(leader, started("regent-b", config=str(file)), resources, own)


def test_each_says_what_is_so_of_its_resources(
    cluster: Cluster, releases: Releases, audit_log: Path
) -> None:
    leader, other, shared, own = releases
    shared.apply(topic("orders", partitions=1), topic("payments", partitions=1))
    shared.wait_ready("orders", "payments")
    before, since = shared.get("orders"), audit_log.stat().st_size

    # When this one was told, the time of the older one is over, too.
    own.apply(topic("clicks", partitions=1))
    unknown = own.wait_for_condition("clicks", "Ready", "Unknown", "ControllerInactive")
    named = f"Regent replica {controller_id_of(leader)} with the Lease {shared.namespace}/regent-a"
    assert f"{named} is the controller of the Kafka cluster" in unknown["message"]
    assert f"serves only namespaces {shared.namespace};" in unknown["message"]
    assert f"the Lease {own.namespace.removesuffix('-own')}/regent-b" in unknown["message"]

    shared.apply(topic("refunds", partitions=1))
    shared.wait_ready("refunds")
    shared.delete("payments")
    assert cluster.znodes.assignment("payments") is None, "the one that serves it has deleted it"
    assert shared.get("orders") == before
    assert _writers(audit_log, shared.namespace, since=since) == {"regent-a"}
    for process in (leader, other):
        status = process.status() or {}
        assert status["activeRegent"] == {
            "controllerId": controller_id_of(leader),
            "customResources": {
                "lease": f"{shared.namespace}/regent-a",
                "namespaces": [shared.namespace],
                "clusterName": None,
                "isDefault": False,
            },
        }

    leader.stop()
    other.wait_until_active()
    own.wait_ready("clicks")
    shared.patch("orders", partitions=2)
    wait_until(
        lambda: condition(shared.get("orders"), "Ready"),
        until=lambda ready: ready["status"] == "True" and ready["observedGeneration"] == 2,
        describe="the other one to serve what the first one did",
    )
    assert _writers(audit_log, shared.namespace, since=since) == {"regent-a", "regent-b"}


def _writers(audit_log: Path, namespace: str, *, since: int) -> set[str]:
    """Which of the two has changed resources of a namespace."""
    with audit_log.open() as log:
        log.seek(since)
        entries = [json.loads(line) for line in log if line.endswith("\n")]
    return {
        entry["user"]["username"]
        for entry in entries
        if entry["objectRef"].get("namespace") == namespace
        and entry["verb"] not in ("get", "list", "watch")
        and entry["responseStatus"]["code"] < 300
        and entry["user"]["username"].startswith("regent-")
    }
