"""Notifications: znodes that say what has changed, written by brokers and tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from regent.controller.log import MALFORMED_NOTIFICATIONS
from regent.model.errors import MalformedZNodeError
from regent.model.log import StructuredLog, report_malformed
from regent.zk_data.permitted_reads import read_permitted

T = TypeVar("T")


async def read_notifications(
    log: StructuredLog, nodes: Sequence[str], decode: Callable[[str, bytes], T]
) -> list[T]:
    """What nodes say, in order, without those that are gone, closed to us, or malformed.

    Malformed ones are reported together.

    Args:
        decode: Raises ``MalformedZNodeError`` at path and content that are no notification.
    """
    said: list[T] = []
    problems: list[tuple[str, str]] = []
    for path, node in zip(nodes, await read_permitted(nodes), strict=True):
        if node is None:
            continue
        try:
            said.append(decode(path, node.data))
        except MalformedZNodeError as error:
            problems.append((error.path, error.reason))
    report_malformed(log, MALFORMED_NOTIFICATIONS, problems)
    return said
