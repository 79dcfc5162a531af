"""min.insync.replicas of topics, as far as ZooKeeper knows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from regent.model.errors import MalformedZNodeError
from regent.model.log import StructuredLog
from regent.zk_data import paths
from regent.zk_data.config import decode_entity_config
from regent.zk_data.operations import ZNode
from regent.zk_data.permitted_reads import read_permitted

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
DEFAULT: Final = 1
"""Kafka's. What brokers have in their files is not known here."""


async def min_insync_replicas(topics: Sequence[str], log: StructuredLog) -> dict[str, int]:
    """The value for each topic: its own, the cluster-wide dynamic one, or Kafka's default.

    What does not decode is logged and left out of account.
    """
    sources = [paths.broker_config(None), *map(paths.topic_config, topics)]
    default, *own = [
        _value(path, node, log)
        for path, node in zip(sources, await read_permitted(sources), strict=True)
    ]
    fallback = DEFAULT if default is None else default
    return {
        topic: fallback if value is None else value
        for topic, value in zip(topics, own, strict=True)
    }


def _value(path: str, node: ZNode | None, log: StructuredLog) -> int | None:
    if node is None:
        return None
    try:
        text = decode_entity_config(path, node.data).get(MIN_INSYNC_REPLICAS)
    except MalformedZNodeError as error:
        log.error("Malformed configuration", path=error.path, reason=error.reason)
        return None
    try:
        return None if text is None else int(text)
    except ValueError:
        log.error("Malformed min.insync.replicas", path=path, value=text)
        return None
