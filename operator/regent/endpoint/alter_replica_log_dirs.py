"""AlterReplicaLogDirs, versions 0 to 2: clients have a node move its replicas between its disks."""

from __future__ import annotations

import datetime
from typing import Any, Final

from kio.schema.errors import ErrorCode

from regent.endpoint.handling import Handler
from regent.protocol.entity_reader import element_class
from regent.protocol.error_codes import LOG_DIR_NOT_FOUND
from regent.protocol.served_apis import ALTER_REPLICA_LOG_DIRS
from regent.protocol.server_codec import Request
from regent.runtime.ports import ControllerRequests


async def _answer(request: Request, _: ControllerRequests) -> Any:
    """The controller has no such directory, whichever it is."""
    return _refusal(request, LOG_DIR_NOT_FOUND)


def _refusal(request: Request, error_code: int) -> Any:
    kind: Any = ALTER_REPLICA_LOG_DIRS.responses[request.header.api_version]
    topic_kind = element_class(kind, "results")
    partition_kind = element_class(topic_kind, "partitions")
    partitions: dict[str, list[int]] = {}
    for directory in request.entity.dirs:
        for topic in directory.topics:
            partitions.setdefault(topic.name, []).extend(topic.partitions)
    return kind(
        throttle_time=datetime.timedelta(0),
        results=tuple(
            topic_kind(
                topic_name=topic,
                partitions=tuple(
                    partition_kind(partition_index=index, error_code=ErrorCode(error_code))
                    for index in indexes
                ),
            )
            for topic, indexes in partitions.items()
        ),
    )


HANDLER: Final = Handler(ALTER_REPLICA_LOG_DIRS, _answer, _refusal, is_for_brokers=False)
