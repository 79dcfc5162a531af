"""A controller in this process, which takes commands from code."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry

from regent.admin.commands import (
    Accepted,
    AlterPartitionReassignments,
    ElectionType,
    ElectLeaders,
    PartitionResult,
)
from regent.app import controller_config
from regent.connections.client_settings import channel_settings, zookeeper_settings
from regent.connections.real_connections import real_connections
from regent.controller.commands import Command, ListPartitionReassignments
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.observability.metrics import EventMetrics
from regent.servers.kafka_endpoint import KafkaEndpoint
from regent.services.controller_service import ControllerService
from regent.settings.loading import load_settings
from tests.support.cluster import Cluster

_SESSION_TIMEOUT_MS = 30_000
"""Its end is never waited for, and the test takes time of the same interpreter."""


@contextlib.contextmanager
def controller_in_this_process(cluster: Cluster, controller_id: int) -> Iterator[ControllerService]:
    """A controller that takes commands from code."""
    settings = load_settings(
        {
            "zookeeper": cluster.kafka.zookeeper,
            "controller_id": controller_id,
            "zookeeper_session_timeout_ms": _SESSION_TIMEOUT_MS,
            "auto_leader_rebalance_enable": False,
            **cluster.regent_settings,
        }
    )
    registry = CollectorRegistry()
    endpoint = None if settings.endpoint_port is None else KafkaEndpoint(settings, registry)
    service = ControllerService(
        config=controller_config(settings)
        if endpoint is None
        else controller_config(
            settings, served=endpoint.served, listener_addresses=endpoint.listener_addresses
        ),
        connect=real_connections(
            controller_id=controller_id,
            zookeeper=zookeeper_settings(settings),
            election_path=settings.election_path,
            channels=channel_settings(settings),
        ),
        metrics=EventMetrics(registry),
        serve=None if endpoint is None else endpoint.serve,
    )
    service.start()
    try:
        cluster.wait(lambda: service.view.is_complete, "this process to be the controller")
        yield service
    finally:
        service.stop()


def elect(
    service: ControllerService, election_type: ElectionType, *partitions: TopicPartition
) -> dict[TopicPartition, PartitionResult]:
    """Elect leaders of partitions, or of all partitions."""
    results: dict[TopicPartition, PartitionResult] = _result(
        service, ElectLeaders(election_type, partitions or None)
    )
    return results


def reassign(
    service: ControllerService, targets: Mapping[TopicPartition, tuple[int, ...] | None]
) -> dict[TopicPartition, PartitionResult]:
    """Start reassignments; a target None cancels the one that is in progress."""
    results: dict[TopicPartition, PartitionResult] = _result(
        service, AlterPartitionReassignments(targets)
    )
    return results


def reassignments(service: ControllerService) -> dict[TopicPartition, ReplicaAssignment]:
    """The partitions that are being reassigned."""
    found: dict[TopicPartition, ReplicaAssignment] = _result(service, ListPartitionReassignments())
    return found


def _result(service: ControllerService, command: Command) -> Any:
    (outcome,) = asyncio.run(service.submit([command]))
    assert isinstance(outcome, Accepted), outcome
    return outcome.result
