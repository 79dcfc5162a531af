"""From a broker's answer to the event that it is for the controller."""

from __future__ import annotations

from typing import assert_never

from regent.controller import events as e
from regent.protocol.control_requests import (
    ControlResponse,
    DescribeLogDirsResponse,
    LeaderAndIsrResponse,
    StopReplicaResponse,
    UpdateMetadataResponse,
)


def response_received(response: ControlResponse) -> e.ControllerEvent:
    """The event of a broker's answer; those of a kind are merged while they wait."""
    match response:
        case LeaderAndIsrResponse():
            return e.LeaderAndIsrResponseReceived((response,))
        case StopReplicaResponse():
            return e.StopReplicaResponseReceived((response,))
        case DescribeLogDirsResponse():
            return e.DescribeLogDirsResponseReceived((response,))
        case UpdateMetadataResponse():
            return e.UpdateMetadataResponseReceived((response,))
        case _:
            assert_never(response)
