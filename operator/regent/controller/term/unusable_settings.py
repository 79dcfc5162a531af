"""Settings that contradict the cluster: with them Regent must not be its controller.

Only another setting helps, and so a restart; until then the cluster is left to its brokers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import Final

from regent.controller.config import ControllerConfig
from regent.controller.state.context import ControllerContext
from regent.model.errors import UnusableSettingError
from regent.zk_data import paths
from regent.zk_data.permitted_reads import read_permitted

RESERVED_BROKER_MAX_ID: Final = 1_000
"""Brokers' default of ``reserved.broker.max.id``: up to it people give ids, above it brokers draw
theirs in sequence."""

_isr_of = attrgetter("isr")
_replicas_of = attrgetter("replicas")


async def refuse_id_of_a_broker(controller_id: int, brokers: Collection[int]) -> None:
    """Check the controller id against what is known before an election.

    A broker with our id reads ``/controller`` and takes itself for the controller. Where the node
    with the ids that brokers draw may not be read, none counts as drawn: a broker that registers
    under our id ends the term.

    Args:
        controller_id: Ours.
        brokers: Ids of the registered brokers.

    Raises:
        UnusableSettingError: The id is a broker's, or one that brokers draw.
    """
    refuse_id_of_a_registered_broker(controller_id, brokers)
    (node,) = await read_permitted([paths.BROKER_SEQID])
    drawn = RESERVED_BROKER_MAX_ID + (0 if node is None else max(node.version, 0))
    if controller_id <= drawn:
        raise _id_refused(controller_id, f"ids up to {drawn} are those of brokers")


def refuse_id_of_a_registered_broker(controller_id: int, brokers: Collection[int]) -> None:
    """The same against registrations alone.

    Raises:
        UnusableSettingError: A broker has the id.
    """
    if controller_id in brokers:
        raise _id_refused(controller_id, "a broker is registered under it")


def refuse_id_of_a_replica(context: ControllerContext) -> None:
    """Check the controller id against brokers of the past, which topics still name.

    A controller that is announced may be among the replicas of a topic by mistake. In an ISR there
    are brokers only.

    Raises:
        UnusableSettingError: A topic names the id.
    """
    ours = context.term.controller_id
    if not any(ours in brokers for brokers in _lists_of_brokers(context)):
        return
    for topic in () if context.term.served else context.cluster.topics:
        for tp, assignment in context.cluster.partitions_of(topic).items():
            if ours in assignment.replicas:
                raise _id_refused(ours, f"it is the id of a replica of {tp}")
    for tp, state in context.cluster.leadership.items():
        if ours in state.isr:
            raise _id_refused(ours, f"it is the id of a replica of {tp}")


def _lists_of_brokers(context: ControllerContext) -> Iterable[tuple[int, ...]]:
    """All replica lists and ISRs, each once: there are few."""
    cluster = context.cluster
    lists = dict.fromkeys(map(_isr_of, cluster.leadership.values()))
    if cluster.hosted is not None:
        return (*lists, tuple(cluster.hosted))
    for topic in cluster.topics:
        lists |= dict.fromkeys(map(_replicas_of, cluster.partitions_of(topic).values()))
    return lists


def _id_refused(controller_id: int, reason: str) -> UnusableSettingError:
    return UnusableSettingError(
        f"controller_id {controller_id} cannot be used: {reason}. Choose one that no broker has or "
        "will have, such as a number around 1,000,000,000, and restart Regent"
    )


def refuse_other_protocol(config: ControllerConfig, version: tuple[int, int]) -> None:
    """The setting may say what the brokers cannot be asked for; it cannot overrule them.

    Args:
        config: The settings.
        version: Lowest inter.broker.protocol.version of the brokers. Brokers that do not report
            theirs count with the setting, if they understand what it stands for.

    Raises:
        UnusableSettingError: The brokers have another version.
    """
    wanted = config.inter_broker_protocol
    if wanted is not None and wanted != version:
        raise UnusableSettingError(
            f"inter_broker_protocol is {wanted[0]}.{wanted[1]}, but the brokers run "
            f"{version[0]}.{version[1]}, or understand no more; set it to that, or leave it out, "
            "and restart Regent"
        )
