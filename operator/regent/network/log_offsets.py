"""Asking leaders where the logs of their partitions begin and end."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from regent.model.cluster import Broker
from regent.model.errors import BrokerQuestionError
from regent.model.log_offsets import LogOffsets
from regent.model.partition import TopicPartition
from regent.network.broker_line import BrokerLine
from regent.network.settings import ChannelSettings
from regent.protocol import list_offsets
from regent.protocol.error_codes import NONE, error_name
from regent.protocol.list_offsets import EARLIEST, LATEST
from regent.protocol.primitives import DecodeError

CLIENT_ID: Final = "regent-sample"

_PARTITIONS: Final = 2_000
"""In one request."""

_VERSIONS: Final = range(list_offsets.VERSION, list_offsets.VERSION + 1)

Led = Iterable[tuple[Broker, Sequence[TopicPartition]]]
"""Brokers, each with the partitions that it leads."""


async def ask_log_offsets(led: Led, settings: ChannelSettings) -> LogOffsets:
    """What the leaders say of their partitions.

    Each broker is asked once on each listener that the settings can use, until one answers. What it
    does not say is missing, and ``unknown`` has the reason.
    """
    async with asyncio.TaskGroup() as group:
        asking = [
            group.create_task(_ask_broker(broker, partitions, settings))
            for broker, partitions in led
        ]
    answers = [task.result() for task in asking]
    return LogOffsets(
        {tp: offset for answer in answers for tp, offset in answer.start.items()},
        {tp: offset for answer in answers for tp, offset in answer.end.items()},
        tuple(why for answer in answers for why in answer.unknown),
    )


async def _ask_broker(
    broker: Broker, partitions: Sequence[TopicPartition], settings: ChannelSettings
) -> LogOffsets:
    problem = ""
    line = BrokerLine(broker, client_id=CLIENT_ID, settings=settings)
    try:
        # A line takes another listener after a failure.
        for _ in settings.candidates(broker) or (None,):
            try:
                return await _ask(line, partitions)
            except (BrokerQuestionError, DecodeError) as error:
                problem = str(error)
                line.close()  # after nonsense, another one
    finally:
        line.close()
    why = f"broker {broker.broker_id} does not tell offsets of {len(partitions)} partitions"
    return LogOffsets({}, {}, (f"{why}: {problem}",))


async def _ask(line: BrokerLine, partitions: Sequence[TopicPartition]) -> LogOffsets:
    # The start first, so that no end is before it.
    found: dict[int, dict[TopicPartition, int]] = {EARLIEST: {}, LATEST: {}}
    refused: dict[TopicPartition, str] = {}
    for first in range(0, len(partitions), _PARTITIONS):
        topics: dict[str, list[int]] = defaultdict(list)
        for topic, partition in partitions[first : first + _PARTITIONS]:
            topics[topic].append(partition)
        for at, offsets in found.items():
            body = list_offsets.encode_list_offsets(topics, at=at)
            answer = await line.ask(list_offsets.API_KEY, _VERSIONS, body)
            for listed in list_offsets.decode_list_offsets(answer):
                where = TopicPartition(listed.topic, listed.partition)
                if listed.error != NONE:
                    refused[where] = error_name(listed.error)
                elif listed.offset >= 0:
                    offsets[where] = listed.offset
    unknown = tuple(
        f"broker {line.broker.broker_id} answers ListOffsets of {count} partitions with {error}"
        for error, count in sorted(Counter(refused.values()).items())
    )
    return LogOffsets(found[EARLIEST], found[LATEST], unknown)
