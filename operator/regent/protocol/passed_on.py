"""The APIs whose requests any broker can answer, and what has to be known of them to pass them on.

A client takes whichever node it likes for most of its requests, the controller too, and an API that
a node does not list is fatal to the caller. So a node that is no broker has brokers answer them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from regent.protocol.api_versions import VersionRange
from regent.protocol.framing import RequestHeader
from regent.protocol.primitives import Reader

PRODUCE_KEY: Final = 0
_TRANSACTIONAL_ID_SINCE: Final = 3
_PRODUCE_FLEXIBLE_SINCE: Final = 9

_BEGINNING: Final = 128 * 1024
"""Bytes that hold the client id and the transactional id of a request, whatever their lengths."""

PASSED_ON: Final[Mapping[int, str]] = {
    PRODUCE_KEY: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    28: "TxnOffsetCommit",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    42: "DeleteGroups",
    44: "IncrementalAlterConfigs",
    47: "OffsetDelete",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    60: "DescribeCluster",
    61: "DescribeProducers",
    65: "DescribeTransactions",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    74: "ListClientMetricsResources",
}
"""Names by key. What is not here is never passed on: requests among brokers and of controllers
(LeaderAndIsr, WriteTxnMarkers, Envelope, ...), those that only the controller answers, those that
ask a node about itself (ListGroups, DescribeLogDirs, ...), and what nobody knows yet."""


def common_versions(
    brokers: Iterable[Mapping[int, tuple[int, int]]], keys: Collection[int]
) -> Mapping[int, VersionRange]:
    """The versions that all brokers understand, of those of these APIs that all of them have."""
    supported = list(brokers)
    common = {}
    for key in keys:
        ranges = [broker[key] for broker in supported if key in broker]
        if not ranges or len(ranges) < len(supported):
            continue
        lowest, highest = max(low for low, _ in ranges), min(high for _, high in ranges)
        if lowest <= highest:
            common[key] = VersionRange(lowest, highest)
    return common


def has_no_answer(header: RequestHeader, frame: bytes) -> bool:
    """Whether a frame is a Produce request with acks=0, which is answered by nothing.

    Raises:
        DecodeError: If the beginning of a Produce request is malformed.
    """
    if header.api_key != PRODUCE_KEY:
        return False
    # Records follow: their beginning is enough.
    reader = _body(frame[:_BEGINNING], flexible=header.api_version >= _PRODUCE_FLEXIBLE_SINCE)
    if header.api_version >= _TRANSACTIONAL_ID_SINCE:
        reader.nullable_string()
    return reader.int16() == 0


def _body(frame: bytes, *, flexible: bool) -> Reader:
    """A reader at the body of a request."""
    head = Reader(frame)
    head.int64()  # API, version, correlation id
    head.nullable_string()  # client id
    body = Reader(head.rest(), flexible=flexible)
    body.tags()
    return body
