"""Whether the settings of Regent and of the brokers allow the deletion of topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from regent.model.topic_config import DELETE_TOPIC_ENABLE, BrokerFacts


class Forbidden(NamedTuple):
    """Why no topic may be deleted.

    Attributes:
        is_known: False: no broker has said yet whether topics may be, or none may tell us.
    """

    why: str
    is_known: bool


def deletion_forbidden(
    *, delete_topic_enable: bool, live: Mapping[int, BrokerFacts]
) -> Forbidden | None:
    """Why no topic may be deleted now; None if topics may be.

    Args:
        delete_topic_enable: Regent's own setting.
        live: Facts of the live brokers, by id.

    Kafka's controller goes by ``delete.topic.enable`` of the broker that it is part of. Ours is
    part of none, and the default of the setting is Kafka's: a cluster that forbids deletions must
    not allow them because nobody has answered yet. Any live broker might be the controller, so one
    that forbids them is enough. A setting that a broker leaves out of its answer it allows. One
    that has not answered, or may not describe its settings, allows nothing: the first one that does
    decides.
    """
    if not delete_topic_enable:
        return Forbidden("topic deletion is disabled (delete.topic.enable)", is_known=True)
    forbidding = [
        broker_id
        for broker_id, facts in live.items()
        if (facts.settings or {}).get(DELETE_TOPIC_ENABLE) == "false"
    ]
    if forbidding:
        return Forbidden(
            f"topic deletion is disabled: brokers {forbidding} run with delete.topic.enable=false",
            is_known=True,
        )
    if any(facts.settings is not None for facts in live.values()):
        return None
    refusing = [broker_id for broker_id, facts in live.items() if facts.has_answered]
    if refusing:
        return Forbidden(
            f"brokers {refusing} refuse to say whether they run with delete.topic.enable=false: "
            "allow Regent's user DescribeConfigs on the cluster (kafka-acls --add --cluster "
            "--operation DescribeConfigs); they are asked again every minute",
            is_known=False,
        )
    return Forbidden(
        "no broker has said yet whether it runs with delete.topic.enable=false", is_known=False
    )
