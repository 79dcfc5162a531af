"""Port to the controller, for requests of an administrator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from regent.model.cluster import Broker
from regent.model.partition import FoundPartition, TopicPartition


class AdminRequestsPort(Protocol):
    """Asks the broker that is the controller, as Kafka's admin client does. The results of
    partitions are error codes of Kafka's, 0 if it was done or begun, with the broker's message.

    Methods raise ``BrokerQuestionError`` if the broker does not answer, or refuses the request as a
    whole, of which its subclasses say why.
    """

    async def alter_partition_reassignments(
        self,
        broker: Broker,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        found: Mapping[TopicPartition, FoundPartition],
    ) -> Mapping[TopicPartition, tuple[int, str]]:
        """Begin, replace or, where the target is None, cancel reassignments (KIP-455).

        Args:
            found: Conditions. A Regent does not move a partition that has changed since; a broker
                ignores the conditions.
        """
        ...

    async def elect_leaders(
        self,
        broker: Broker,
        election_type: int,
        partitions: Sequence[TopicPartition] | None,
    ) -> Mapping[TopicPartition, tuple[int, str]]:
        """Elect leaders of partitions, None: of all (KIP-460)."""
        ...

    def close(self) -> None:
        """Close all connections: a request under way fails. The next request reconnects."""
        ...
