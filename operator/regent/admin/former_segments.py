"""Segments of a former topic that a broker loads with the configuration of the present one.

The deletion of a topic does not wait for brokers that are down. When such a broker starts, it loads
what it has on its disk by the name of the topic, before it is told to delete it.
"""

from __future__ import annotations

from regent.admin.commands import CreateTopic, Reason, Rejected
from regent.admin.topic_admin import TopicAdmin
from regent.model.topic_config import lowered_index_problems
from regent.zk_data.permitted_reads import list_permitted, read_permitted
from regent.zk_data.stray_replicas import STRAY_REPLICAS, strays_of


async def former_segments_refuse(admin: TopicAdmin, command: CreateTopic) -> Rejected | None:
    """Why a topic cannot be created yet whose index has less room than one of the brokers' own."""
    facts = admin.broker_facts.all()
    if not any(lowered_index_problems({}, command.config, facts)):
        return None
    (brokers,) = await list_permitted([STRAY_REPLICAS], admin.log)
    ids = sorted(int(name) for name in brokers or () if name.isdecimal())
    notes = await read_permitted([strays_of(broker_id, command.topic) for broker_id in ids])
    holders = [broker_id for broker_id, note in zip(ids, notes, strict=True) if note is not None]
    if not holders:
        return None
    return Rejected(
        Reason.BROKERS_UNAVAILABLE,
        f"brokers {holders} may still have segments of a former topic {command.topic!r}, and would "
        "not start with the index sizes of this one (segment.index.bytes, index.interval.bytes); "
        "it is created once they have deleted them; to go on without, leave these keys out, or "
        "choose another name",
        "config",
    )
