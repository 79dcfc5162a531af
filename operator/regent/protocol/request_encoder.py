"""Request bodies of one batch for all its receivers, each part encoded once per version."""

from __future__ import annotations

from regent.protocol import leader_and_isr, stop_replica, update_metadata
from regent.protocol.control_requests import ControlRequests
from regent.protocol.leader_and_isr import LeaderAndIsrEncoder
from regent.protocol.partition_sections import PartitionPrefixes
from regent.protocol.primitives import FLEXIBLE, LEGACY
from regent.protocol.update_metadata import UpdateMetadataEncoder

Body = tuple[bytes, ...]
"""A request body in parts that are sent one after the other.

In parts, because the large one of UpdateMetadata is one object for all receivers: with a hundred
brokers, a copy for each would be half a gigabyte.
"""


class RequestEncoder:
    """Encodes a batch, lazily, and remembers what several receivers share.

    Not for concurrent use. A receiver that is not among ``requests.brokers``, or that the batch has
    nothing for, raises KeyError.

    Args:
        requests: The batch.
        listener: Name of the listener under which LeaderAndIsr gives the live leaders; None: the
            first of each broker.
    """

    def __init__(self, requests: ControlRequests, *, listener: str | None = None) -> None:
        self.requests = requests
        self._listener = listener
        self._prefixes: dict[bool, PartitionPrefixes] = {}
        self._leader_and_isr: dict[int, LeaderAndIsrEncoder] = {}
        self._update_metadata: dict[int, UpdateMetadataEncoder] = {}

    def leader_and_isr(self, broker_id: int, version: int) -> Body:
        """Body of LeaderAndIsr, versions 0 to 7."""
        encoder = self._leader_and_isr.get(version)
        if encoder is None:
            encoder = self._leader_and_isr[version] = LeaderAndIsrEncoder(
                self.requests,
                self._prefixes_for(flexible=leader_and_isr.is_flexible(version)),
                version=version,
                listener=self._listener,
            )
        return (encoder.body(broker_id),)

    def update_metadata(self, broker_id: int, version: int) -> Body:
        """Body of UpdateMetadata, versions 4 to 8."""
        encoder = self._update_metadata.get(version)
        if encoder is None:
            encoder = self._update_metadata[version] = UpdateMetadataEncoder(
                self.requests,
                self._prefixes_for(flexible=update_metadata.is_flexible(version)),
                version=version,
            )
        return encoder.body(broker_id)

    def stop_replica(
        self, broker_id: int, version: int, *, partitions: stop_replica.Partitions
    ) -> Body:
        """Body of StopReplica, versions 0 to 4, for one of the parts of ``stop_replica.split``."""
        return (
            stop_replica.encode_stop_replica(
                self.requests, broker_id, version=version, partitions=partitions
            ),
        )

    def release(self) -> None:
        """Forget what was encoded; it is made again when somebody asks for it."""
        self._prefixes.clear()
        self._leader_and_isr.clear()
        self._update_metadata.clear()

    def _prefixes_for(self, *, flexible: bool) -> PartitionPrefixes:
        prefixes = self._prefixes.get(flexible)
        if prefixes is None:
            prefixes = self._prefixes[flexible] = PartitionPrefixes(
                self.requests.partitions, encoding=FLEXIBLE if flexible else LEGACY
            )
        return prefixes
