"""Kafka's error codes, as far as the controller answers with, or looks at, single ones."""

from __future__ import annotations

from typing import Final

from kio.schema.errors import ErrorCode

from regent.protocol.control_requests import ControlResponse

UNKNOWN_SERVER_ERROR: Final = -1
NONE: Final = 0
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
REQUEST_TIMED_OUT: Final = 7
BROKER_NOT_AVAILABLE: Final = 8
STALE_CONTROLLER_EPOCH: Final = 11
INVALID_TOPIC_EXCEPTION: Final = 17
TOPIC_AUTHORIZATION_FAILED: Final = 29
CLUSTER_AUTHORIZATION_FAILED: Final = 31
UNSUPPORTED_SASL_MECHANISM: Final = 33
UNSUPPORTED_VERSION: Final = 35
TOPIC_ALREADY_EXISTS: Final = 36
INVALID_PARTITIONS: Final = 37
INVALID_REPLICATION_FACTOR: Final = 38
INVALID_REPLICA_ASSIGNMENT: Final = 39
INVALID_CONFIG: Final = 40
NOT_CONTROLLER: Final = 41
INVALID_REQUEST: Final = 42
POLICY_VIOLATION: Final = 44
OPERATION_NOT_ATTEMPTED: Final = 55
KAFKA_STORAGE_ERROR: Final = 56
LOG_DIR_NOT_FOUND: Final = 57
REASSIGNMENT_IN_PROGRESS: Final = 60
TOPIC_DELETION_DISABLED: Final = 73
FENCED_LEADER_EPOCH: Final = 74
STALE_BROKER_EPOCH: Final = 77
PREFERRED_LEADER_NOT_AVAILABLE: Final = 80
ELIGIBLE_LEADERS_NOT_AVAILABLE: Final = 83
ELECTION_NOT_NEEDED: Final = 84
NO_REASSIGNMENT_IN_PROGRESS: Final = 85
THROTTLING_QUOTA_EXCEEDED: Final = 89
RESOURCE_NOT_FOUND: Final = 91
DUPLICATE_RESOURCE: Final = 92
UNACCEPTABLE_CREDENTIAL: Final = 93
INVALID_UPDATE_VERSION: Final = 95
FEATURE_UPDATE_FAILED: Final = 96
UNKNOWN_TOPIC_ID: Final = 100
BROKER_ID_NOT_REGISTERED: Final = 102
INCONSISTENT_TOPIC_ID: Final = 103
INELIGIBLE_REPLICA: Final = 107


def error_name(code: int) -> str:
    """Kafka's name of a code, for logs; the number itself where the code is not known."""
    try:
        return ErrorCode(code).name.upper()
    except ValueError:
        return str(code)


def is_stale_controller_epoch(response: ControlResponse) -> bool:
    """Whether the broker obeys a controller with a higher epoch: this one has to resign.

    Only the top-level code says so: for a single partition of LeaderAndIsr the same code means that
    its leader epoch is not new to the broker.
    """
    return response.error_code == STALE_CONTROLLER_EPOCH
