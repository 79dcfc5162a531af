"""The APIs of which requests can be read and answered: their numbers, versions and entities.

What a server really serves is for it to say: it takes the part of this table that it has handlers
for, and lists only that to its clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kio.index import load_request_schema, load_response_schema

from regent.protocol.entities.alter_partition import (
    ALTER_PARTITION_REQUEST,
    ALTER_PARTITION_RESPONSE,
)
from regent.protocol.entities.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS_REQUEST,
)
from regent.protocol.entities.controlled_shutdown import (
    CONTROLLED_SHUTDOWN_REQUEST,
    CONTROLLED_SHUTDOWN_RESPONSE,
)
from regent.protocol.entities.create_topics import CREATE_TOPICS_REQUEST, CREATE_TOPICS_RESPONSE
from regent.protocol.entities.declaration import Message
from regent.protocol.entities.delete_topics import DELETE_TOPICS_REQUEST, DELETE_TOPICS_RESPONSE
from regent.protocol.entities.describe_configs import (
    DESCRIBE_CONFIGS_REQUEST,
    DESCRIBE_CONFIGS_RESPONSE,
)
from regent.protocol.entities.leader_and_isr import (
    LEADER_AND_ISR_REQUEST,
    LEADER_AND_ISR_RESPONSE,
)
from regent.protocol.entities.stop_replica import STOP_REPLICA_REQUEST, STOP_REPLICA_RESPONSE
from regent.protocol.entities.update_metadata import (
    UPDATE_METADATA_REQUEST,
    UPDATE_METADATA_RESPONSE,
)


class Api(NamedTuple):
    """One API.

    Attributes:
        key: Kafka's number.
        name: Kafka's name.
        requests: Class of the request's entity by version.
        responses: Class of the response's entity by version.
    """

    key: int
    name: str
    requests: Mapping[int, type[Any]]
    responses: Mapping[int, type[Any]]

    @property
    def lowest(self) -> int:
        """The oldest version."""
        return min(self.requests)

    @property
    def highest(self) -> int:
        """The newest version."""
        return max(self.requests)


def _of_kio(key: int, name: str, versions: range, *, oldest_entity: int = 0) -> Api:
    """An API of which kio has the entities.

    Args:
        oldest_entity: First version that kio has. Those before it are the same on the wire.
    """
    entities = {version: max(version, oldest_entity) for version in versions}
    return Api(
        key,
        name,
        {version: load_request_schema(key, entity) for version, entity in entities.items()},
        {version: load_response_schema(key, entity) for version, entity in entities.items()},
    )


def _declared(name: str, request: Message, response: Message) -> Api:
    return Api(
        request.api_key,
        name,
        {version: request[version] for version in request.versions},
        {version: response[version] for version in response.versions},
    )


def _completed(former: Api, later: Api) -> Api:
    """An API of which kio has only the later versions."""
    return Api(
        later.key,
        later.name,
        {**former.requests, **later.requests},
        {**former.responses, **later.responses},
    )


METADATA: Final = _of_kio(3, "Metadata", range(13))
LEADER_AND_ISR: Final = _declared("LeaderAndIsr", LEADER_AND_ISR_REQUEST, LEADER_AND_ISR_RESPONSE)
STOP_REPLICA: Final = _declared("StopReplica", STOP_REPLICA_REQUEST, STOP_REPLICA_RESPONSE)
UPDATE_METADATA: Final = _declared(
    "UpdateMetadata", UPDATE_METADATA_REQUEST, UPDATE_METADATA_RESPONSE
)
CONTROLLED_SHUTDOWN: Final = _declared(
    "ControlledShutdown", CONTROLLED_SHUTDOWN_REQUEST, CONTROLLED_SHUTDOWN_RESPONSE
)
LIST_GROUPS: Final = _of_kio(16, "ListGroups", range(6))
SASL_HANDSHAKE: Final = _of_kio(17, "SaslHandshake", range(2))
API_VERSIONS: Final = _of_kio(18, "ApiVersions", range(5))
CREATE_TOPICS: Final = _completed(
    _declared("CreateTopics", CREATE_TOPICS_REQUEST, CREATE_TOPICS_RESPONSE),
    _of_kio(19, "CreateTopics", range(2, 8)),
)
DELETE_TOPICS: Final = _completed(
    _declared("DeleteTopics", DELETE_TOPICS_REQUEST, DELETE_TOPICS_RESPONSE),
    _of_kio(20, "DeleteTopics", range(1, 7)),
)
CREATE_PARTITIONS: Final = _of_kio(37, "CreatePartitions", range(4))
ELECT_LEADERS: Final = _of_kio(43, "ElectLeaders", range(3))
ALTER_PARTITION_REASSIGNMENTS: Final = _of_kio(
    45, "AlterPartitionReassignments", range(1)
)._replace(requests={0: ALTER_PARTITION_REASSIGNMENTS_REQUEST[0]})
LIST_PARTITION_REASSIGNMENTS: Final = _of_kio(46, "ListPartitionReassignments", range(1))
ALTER_USER_SCRAM_CREDENTIALS: Final = _of_kio(51, "AlterUserScramCredentials", range(1))
UPDATE_FEATURES: Final = _of_kio(57, "UpdateFeatures", range(2))
DESCRIBE_CONFIGS: Final = _completed(
    _declared("DescribeConfigs", DESCRIBE_CONFIGS_REQUEST, DESCRIBE_CONFIGS_RESPONSE),
    _of_kio(32, "DescribeConfigs", range(1, 5)),
)
ALTER_CONFIGS: Final = _of_kio(33, "AlterConfigs", range(3))
ALTER_REPLICA_LOG_DIRS: Final = _of_kio(34, "AlterReplicaLogDirs", range(3), oldest_entity=1)
DESCRIBE_LOG_DIRS: Final = _of_kio(35, "DescribeLogDirs", range(5), oldest_entity=1)
SASL_AUTHENTICATE: Final = _of_kio(36, "SaslAuthenticate", range(3))
INCREMENTAL_ALTER_CONFIGS: Final = _of_kio(44, "IncrementalAlterConfigs", range(2))
ALTER_PARTITION: Final = _declared(
    "AlterPartition", ALTER_PARTITION_REQUEST, ALTER_PARTITION_RESPONSE
)
LIST_TRANSACTIONS: Final = _of_kio(66, "ListTransactions", range(2))
ALLOCATE_PRODUCER_IDS: Final = _of_kio(67, "AllocateProducerIds", range(1))


def table_of(apis: Iterable[Api]) -> Mapping[int, Api]:
    """APIs by their keys, in the order of these, as brokers list them."""
    return {api.key: api for api in sorted(apis, key=lambda api: api.key)}


CONNECTION_APIS: Final = (SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE)
"""What every server answers by itself, on every connection."""

ADMIN_APIS: Final = (
    CREATE_TOPICS,
    DELETE_TOPICS,
    CREATE_PARTITIONS,
    ELECT_LEADERS,
    ALTER_PARTITION_REASSIGNMENTS,
    LIST_PARTITION_REASSIGNMENTS,
    ALTER_USER_SCRAM_CREDENTIALS,
    UPDATE_FEATURES,
)
"""What administrators ask of the controller, in the versions of brokers in ZooKeeper mode."""

BROKER_APIS: Final = (
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
    CONTROLLED_SHUTDOWN,
    ALTER_PARTITION,
    ALLOCATE_PRODUCER_IDS,
)
"""What brokers ask of the controller, or of each other."""

MAX_ELEMENTS: Final = 200_000
"""Elements of all arrays in a request that is no broker's: a reassignment of 50,000 partitions with
three replicas each has about so many. What is done for each is done in the controller's loop, and
takes a hundred times the memory of its bytes. (A controller of KRaft refuses what makes more than
10,000 records.)"""
