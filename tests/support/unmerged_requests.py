"""The requests of a batch as Kafka's own controller queues them: nothing is merged or split."""

from __future__ import annotations

from regent.protocol.control_requests import (
    BrokerList,
    ControlHeader,
    ControlRequest,
    ControlRequests,
    DescribeLogDirsRequest,
    LeaderAndIsrRequest,
    PartitionUpdates,
    StopReplicaRequest,
    UpdateMetadataRequest,
)


def header_for(requests: ControlRequests, broker_id: int) -> ControlHeader:
    """What every request of the batch to that broker begins with."""
    return ControlHeader(
        requests.controller_id,
        requests.controller_epoch,
        broker_id,
        requests.brokers[broker_id].epoch,
    )


def leader_and_isr_to(requests: ControlRequests, broker_id: int) -> LeaderAndIsrRequest:
    """The LeaderAndIsr to one broker."""
    return LeaderAndIsrRequest(
        header_for(requests, broker_id),
        requests.leader_and_isr[broker_id],
        requests.partitions,
        requests.topic_ids,
        requests.brokers,
    )


def updates_of(requests: ControlRequests) -> PartitionUpdates:
    """The partitions of the UpdateMetadata."""
    return PartitionUpdates(
        requests.partitions,
        requests.deleted_partitions,
        requests.offline_replicas,
        requests.topic_ids,
    )


def update_metadata_to(requests: ControlRequests, broker_id: int) -> UpdateMetadataRequest:
    """The UpdateMetadata to one broker."""
    brokers = BrokerList(requests.brokers, requests.announced)
    return UpdateMetadataRequest(header_for(requests, broker_id), brokers, updates_of(requests))


def stop_replica_to(requests: ControlRequests, broker_id: int) -> list[StopReplicaRequest]:
    """The StopReplica to one broker: the one that deletes, then the one that does not."""
    stops = requests.stop_replica[broker_id]
    halves = [{tp: s for tp, s in stops.items() if s.delete is delete} for delete in (True, False)]
    return [StopReplicaRequest(header_for(requests, broker_id), half) for half in halves if half]


def requests_to(requests: ControlRequests, broker_id: int) -> list[ControlRequest]:
    """All requests of a batch to one broker, in the order of sending."""
    found: list[ControlRequest] = []
    if requests.leader_and_isr.get(broker_id):
        found.append(leader_and_isr_to(requests, broker_id))
    if broker_id in requests.update_metadata_receivers:
        found.append(update_metadata_to(requests, broker_id))
    if requests.stop_replica.get(broker_id):
        found += stop_replica_to(requests, broker_id)
    lists_replicas = broker_id in requests.list_replicas
    if lists_replicas or broker_id in requests.describe_log_dirs:
        found.append(DescribeLogDirsRequest(header_for(requests, broker_id), lists_replicas))
    return found
