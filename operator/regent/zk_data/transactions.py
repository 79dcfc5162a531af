"""Transactions of ZooKeeper: what their results say, and how large they may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from regent.model.errors import ControllerMovedError
from regent.zk_data.operations import Operation, WriteResult, Written, ZkError, operation_size

OPERATION_OVERHEAD: Final = 256
"""More bytes than an operation takes beside its path and data: header, chroot, access control."""
REQUEST_RESERVE: Final = 4_096
"""More bytes than a request has beside its operations, and more than the servers add to it when
they pass it on and store it."""


def transaction_size(operations: Sequence[Operation]) -> int:
    """How many bytes of ZooKeeper's limit operations use up, at most."""
    return sum(operation_size(operation) + OPERATION_OVERHEAD for operation in operations)


def transaction_limit(jute_max_buffer: int) -> int:
    """The largest :func:`transaction_size` that servers with this ``jute.maxbuffer`` accept."""
    return jute_max_buffer - REQUEST_RESERVE


def all_written(results: Sequence[WriteResult]) -> bool:
    return all(isinstance(result, Written) for result in results)


def raise_if_moved(results: Sequence[WriteResult]) -> None:
    """The first operation of every transaction here is the fence."""
    if results[0] in (ZkError.BAD_VERSION, ZkError.NO_NODE):
        raise ControllerMovedError("the epoch check of a transaction failed")
