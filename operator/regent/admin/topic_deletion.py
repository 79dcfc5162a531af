"""Marking topics for deletion. The controller deletes them."""

from __future__ import annotations

from collections.abc import Sequence

from regent.admin.commands import Accepted, DeleteTopic, Outcome, Reason, Rejected
from regent.admin.deletion_permission import Forbidden
from regent.admin.topic_admin import TopicAdmin
from regent.admin.topic_refusals import created_again, has_another_id, not_written, unknown
from regent.zk_data import paths
from regent.zk_data.deletion_marker import encode_deletion_marker
from regent.zk_data.effects import Write
from regent.zk_data.operations import Create, Written
from regent.zk_data.permitted_reads import UnreadableZNode, read_permitted


async def delete_topics(
    admin: TopicAdmin, commands: Sequence[DeleteTopic], forbidden: Forbidden | None
) -> list[Outcome]:
    """Leave markers as Kafka's tools do, which say which topic is meant; marking a marked topic
    again is fine.

    Args:
        forbidden: Why no topic may be deleted; None: topics may be.
    """
    if forbidden is not None:
        reason, way_out = (
            (Reason.TOPIC_DELETION_DISABLED, "enable it or let the topic be")
            if forbidden.is_known
            else (Reason.BROKER_SETTINGS_UNKNOWN, "the command is tried again")
        )
        return [
            Rejected(
                reason, f"topic {command.topic!r} cannot be deleted: {forbidden.why}; {way_out}"
            )
            for command in commands
        ]
    replaced = await _created_again(commands)
    refused = [
        _deletion_problem(admin, command) or replaced.get(command.topic) for command in commands
    ]
    meant = {c.topic: c.czxid for c, problem in zip(commands, refused, strict=True) if not problem}
    markers = [_marker(admin, topic, czxid) for topic, czxid in meant.items()]
    results = await Write(markers, guard=admin.guard)
    outcomes = {
        topic: Accepted() if isinstance(result, Written) else not_written(topic, [marker], [result])
        for topic, marker, result in zip(meant, markers, results, strict=True)
    }
    return [
        problem or outcomes[command.topic]
        for command, problem in zip(commands, refused, strict=True)
    ]


def _marker(admin: TopicAdmin, topic: str, czxid: int) -> Create:
    known = czxid or admin.cluster.topic_czxids.get(topic, 0)
    return Create(paths.delete_topic(topic), encode_deletion_marker(known), exist_ok=True)


async def _created_again(commands: Sequence[DeleteTopic]) -> dict[str, Rejected]:
    """Return refusals, by topic, for topics whose node is not the intended one.

    The known facts may be out of date: a client learns of changes later than the controller, and a
    paused process when it goes on.
    """
    meant = {command.topic: command.czxid for command in commands if command.czxid}
    if not meant:
        return {}
    nodes = await read_permitted([paths.topic(topic) for topic in meant])
    refused = {}
    for (topic, czxid), node in zip(meant.items(), nodes, strict=True):
        if node is None:
            refused[topic] = unknown(topic)
        elif node.czxid != czxid and not isinstance(node, UnreadableZNode):
            refused[topic] = created_again(topic)
    return refused


def _deletion_problem(admin: TopicAdmin, command: DeleteTopic) -> Rejected | None:
    topic = command.topic
    if not admin.cluster.has_topic(topic):
        return unknown(topic)
    return has_another_id(admin, topic, command.topic_id)
