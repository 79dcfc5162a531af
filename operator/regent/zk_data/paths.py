"""Where everything is: the paths of Kafka's znodes, and back from a path to what it names.

Source: ``kafka.zk.ZkData``. All paths are relative to the chroot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from regent.model.partition import TopicPartition

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKERS: Final = "/brokers"
BROKER_IDS: Final = "/brokers/ids"
BROKER_TOPICS: Final = "/brokers/topics"
BROKER_SEQID: Final = "/brokers/seqid"
CLUSTER: Final = "/cluster"
CLUSTER_ID: Final = "/cluster/id"
ADMIN: Final = "/admin"
DELETE_TOPICS: Final = "/admin/delete_topics"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION: Final = "/admin/preferred_replica_election"
ISR_CHANGE_NOTIFICATION: Final = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION: Final = "/log_dir_event_notification"
CONFIG: Final = "/config"
CONFIG_CHANGES: Final = "/config/changes"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
CLIENT_CONFIGS: Final = "/config/clients"
USER_CONFIGS: Final = "/config/users"
DELEGATION_TOKENS: Final = "/delegation_token/tokens"
FEATURE: Final = "/feature"
MIGRATION: Final = "/migration"
"""State of a migration to KRaft, kept by KRaft controllers alone."""
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
CONSUMERS: Final = "/consumers"

DEFAULT_ENTITY: Final = "<default>"
"""Entity name of the default for all brokers, users or clients."""

MAX_ENTITY_NAME: Final = 1_000
"""Characters of a user or client id with a node of its own. ZooKeeper closes the connection on a
path above its limit of a request."""

CONFIG_ENTITY_TYPES: Final = ("topics", "clients", "users", "brokers", "ips")

SENSITIVE_PATHS: Final = (USER_CONFIGS, BROKER_CONFIGS, DELEGATION_TOKENS)
"""Nodes that others than brokers may not read, and everything below them: they have SCRAM
credentials and passwords (``ZkData.SensitiveRootPaths``)."""

PERSISTENT_PATHS: Final = (
    CONSUMERS,
    BROKERS,
    BROKER_IDS,
    BROKER_TOPICS,
    CONFIG,
    CONFIG_CHANGES,
    ADMIN,
    DELETE_TOPICS,
    BROKER_SEQID,
    ISR_CHANGE_NOTIFICATION,
    LOG_DIR_EVENT_NOTIFICATION,
    *(f"{CONFIG}/{entity_type}" for entity_type in CONFIG_ENTITY_TYPES),
)
"""Nodes that a broker creates at its start if they are missing, empty; parents come first.

It creates ``/latest_producer_id_block``, too, but without data, which is not the same as empty: a
broker that finds that node empty does not start. Nothing here needs it: it is left to the brokers.
"""

_TOPIC_PREFIX: Final = BROKER_TOPICS + "/"
_PARTITIONS: Final = "/partitions/"
_STATE_SUFFIX: Final = "/state"


def broker_id(broker: int) -> str:
    """Registration of a broker."""
    return f"{BROKER_IDS}/{broker}"


def topic(name: str) -> str:
    """Assignment and id of a topic."""
    return _TOPIC_PREFIX + name


def topic_partitions(name: str) -> str:
    """Parent of a topic's partition nodes."""
    return f"{BROKER_TOPICS}/{name}/partitions"


def topic_partition(partition: TopicPartition) -> str:
    """Parent of a partition's state node."""
    return f"{BROKER_TOPICS}/{partition[0]}/partitions/{partition[1]}"


def partition_state(partition: TopicPartition) -> str:
    """Leadership of a partition."""
    return f"{BROKER_TOPICS}/{partition[0]}/partitions/{partition[1]}/state"


def partition_states(partitions: Iterable[TopicPartition]) -> list[str]:
    """:func:`partition_state` for many. Fast where the partitions of a topic are adjacent."""
    found: list[str] = []
    ends = _StateEnds()
    of_topic, start = None, ""
    for topic, number in partitions:
        if topic is not of_topic:
            of_topic, start = topic, _TOPIC_PREFIX + topic + _PARTITIONS
        found.append(start + ends[number])
    return found


class _StateEnds(dict[int, str]):
    """Ends of the paths of state nodes, by the partition."""

    def __missing__(self, number: int) -> str:
        end = self[number] = f"{number}{_STATE_SUFFIX}"
        return end


def delete_topic(name: str) -> str:
    """Marker that asks for a topic's deletion."""
    return f"{DELETE_TOPICS}/{name}"


def isr_change_notification(child: str) -> str:
    """One ISR change notification."""
    return f"{ISR_CHANGE_NOTIFICATION}/{child}"


def log_dir_event_notification(child: str) -> str:
    """One log directory event."""
    return f"{LOG_DIR_EVENT_NOTIFICATION}/{child}"


def is_sensitive(path: str) -> bool:
    """Whether a node is one of :data:`SENSITIVE_PATHS`, or below one."""
    return path.startswith(SENSITIVE_PATHS)


def config_change_prefix() -> str:
    """To be created as a sequential node."""
    return f"{CONFIG_CHANGES}/config_change_"


def config_change(child: str) -> str:
    """One config change notification."""
    return f"{CONFIG_CHANGES}/{child}"


def topic_config(name: str) -> str:
    """Configuration overrides of a topic."""
    return f"{TOPIC_CONFIGS}/{name}"


def user_config(name: str | None) -> str:
    """Configuration of a user, quotas and SCRAM credentials; None: the default for all users."""
    return f"{USER_CONFIGS}/{_entity(name)}"


def client_config(client_id: str | None) -> str:
    """Quotas of a client id, whoever the user is; None: the default for all client ids."""
    return f"{CLIENT_CONFIGS}/{_entity(client_id)}"


def user_client_config(user: str | None, client_id: str | None) -> str:
    """Quotas of a user's client id; None: as for :func:`user_config`, :func:`client_config`."""
    return f"{user_config(user)}/clients/{_entity(client_id)}"


def _entity(name: str | None) -> str:
    return DEFAULT_ENTITY if name is None else sanitized(name)


def is_entity_name(name: str) -> bool:
    """Whether a user or client of that name can have a node of its own."""
    return name not in ("", ".", "..") and len(name) <= MAX_ENTITY_NAME


def sanitized(name: str) -> str:
    """Name of a user or client as it stands in paths and notifications.

    Encoded as Kafka's ``Sanitizer`` does: everything but letters, digits and ``-._``.
    """
    return quote(name, safe="").replace("~", "%7E")


def broker_config(broker: int | None = None) -> str:
    """Dynamic configuration of a broker; None: the cluster-wide default."""
    return f"{BROKER_CONFIGS}/{DEFAULT_ENTITY if broker is None else broker}"


def broker_of(path: str) -> int | None:
    """The broker whose registration ``path`` is, or None if it is another kind of node."""
    parent, _, child = path.rpartition("/")
    return broker_id_of(child) if parent == BROKER_IDS else None


def broker_id_of(child: str) -> int | None:
    """A child of ``/brokers/ids`` as a broker id, or None if it is not one."""
    if child.isascii() and child.isdigit() and len(child) <= 10 and int(child) < 2**31:
        return int(child)
    return None


def topic_of(path: str) -> str | None:
    """The topic that ``path``, its topic node or any node below it, belongs to; else None."""
    if not path.startswith(_TOPIC_PREFIX):
        return None
    return path[len(_TOPIC_PREFIX) :].partition("/")[0] or None


def partition_of_state(path: str) -> TopicPartition | None:
    """The partition whose state node ``path`` is, or None if it is another kind of node."""
    if not (path.startswith(_TOPIC_PREFIX) and path.endswith(_STATE_SUFFIX)):
        return None
    name, separator, partition = path[len(_TOPIC_PREFIX) : -len(_STATE_SUFFIX)].partition(
        _PARTITIONS
    )
    if not (separator and name and partition.isascii() and partition.isdigit()):
        return None
    return TopicPartition(name, int(partition)) if len(partition) <= 10 else None
