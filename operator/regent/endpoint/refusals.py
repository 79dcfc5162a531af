"""What the controller refuses, as Kafka's error codes and messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from regent.admin.commands import Accepted, Outcome, Reason
from regent.protocol.error_codes import (
    INVALID_CONFIG,
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    NONE,
    NOT_CONTROLLER,
    REASSIGNMENT_IN_PROGRESS,
    REQUEST_TIMED_OUT,
    THROTTLING_QUOTA_EXCEEDED,
    TOPIC_ALREADY_EXISTS,
    TOPIC_DELETION_DISABLED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
)


class ApiError(NamedTuple):
    """An error of Kafka's protocol.

    Attributes:
        message: None where the code says everything.
    """

    code: int = NONE
    message: str | None = None


DONE: Final = ApiError()
TIMED_OUT: Final = ApiError(REQUEST_TIMED_OUT)
WRONG_CONTROLLER: Final = ApiError(NOT_CONTROLLER)
THROTTLED: Final = ApiError(THROTTLING_QUOTA_EXCEEDED)

_CODES: Final[Mapping[Reason, int]] = {
    Reason.INVALID_TOPIC_NAME: INVALID_TOPIC_EXCEPTION,
    Reason.INVALID_PARTITIONS: INVALID_PARTITIONS,
    Reason.INVALID_REPLICATION_FACTOR: INVALID_REPLICATION_FACTOR,
    Reason.INVALID_REPLICA_ASSIGNMENT: INVALID_REPLICA_ASSIGNMENT,
    Reason.INVALID_CONFIG: INVALID_CONFIG,
    Reason.NOT_ENOUGH_BROKERS: INVALID_REPLICATION_FACTOR,
    Reason.BROKERS_UNAVAILABLE: INVALID_REPLICA_ASSIGNMENT,
    Reason.BROKER_VERSION_UNKNOWN: REQUEST_TIMED_OUT,
    Reason.BROKER_SETTINGS_UNKNOWN: REQUEST_TIMED_OUT,
    Reason.TOO_LARGE: INVALID_REQUEST,
    Reason.TOPIC_ALREADY_EXISTS: TOPIC_ALREADY_EXISTS,
    Reason.TOPIC_NAME_COLLISION: INVALID_TOPIC_EXCEPTION,
    Reason.UNKNOWN_TOPIC: UNKNOWN_TOPIC_OR_PARTITION,
    Reason.TOPIC_MARKED_FOR_DELETION: INVALID_TOPIC_EXCEPTION,
    Reason.TOPIC_DELETION_DISABLED: TOPIC_DELETION_DISABLED,
    Reason.REASSIGNMENT_IN_PROGRESS: REASSIGNMENT_IN_PROGRESS,
    Reason.CONCURRENT_CHANGE: UNKNOWN_SERVER_ERROR,
    Reason.NOT_CONTROLLER: NOT_CONTROLLER,
    Reason.ZOOKEEPER_UNAVAILABLE: REQUEST_TIMED_OUT,
    Reason.ZOOKEEPER_REFUSED: UNKNOWN_SERVER_ERROR,
    Reason.INTERNAL_ERROR: UNKNOWN_SERVER_ERROR,
}


def error_of(outcome: Outcome) -> ApiError:
    """The error that an outcome stands for."""
    if isinstance(outcome, Accepted):
        return DONE
    if outcome.reason is Reason.NOT_CONTROLLER:
        return WRONG_CONTROLLER
    return ApiError(_CODES[outcome.reason], outcome.message)


def fields_of(error: ApiError) -> dict[str, object]:
    """An error as fields of a response."""
    return {"error_code": error.code, "error_message": error.message}
