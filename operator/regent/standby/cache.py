"""A standby's copy of the cluster, and what a take-over sends brokers, made in advance."""

from __future__ import annotations

from collections.abc import Sequence

from regent.cluster.cache import ClusterCache
from regent.cluster.reads import Reads
from regent.controller.state.cluster_state import ClusterState
from regent.controller.state.standby_copy import NOT_TAKEN, StandbyCopy
from regent.model.errors import MalformedZNodeError
from regent.standby.prepared_replicas import PreparedReplicas
from regent.standby.prepared_states import PreparedStates
from regent.zk_data import paths
from regent.zk_data.operations import ZNode


class StandbyCache(ClusterCache[ClusterState]):
    """A copy that a controller can take over with."""

    def __init__(self) -> None:
        super().__init__(ClusterState())
        self._prepared = PreparedStates()
        self._replicas = PreparedReplicas()

    def apply(self, reads: Reads, nodes: Sequence[ZNode | None]) -> None:
        super().apply(reads, nodes)
        self.cluster.take_changed_topics()  # nobody asks for these

    def prepare(self, most: int, *, protocol: tuple[int, int] | None) -> bool:
        """Make some of what a take-over sends brokers; whether more is to be made.

        Args:
            most: How many partitions are looked at, for each part of it.
            protocol: The inter.broker.protocol.version of the brokers, as far as is known: what is
                made for another one has to be made again. None: it will be known soon, and what
                depends on it is not made yet.
        """
        if protocol is not None:
            self.cluster.inter_broker_protocol = protocol
        more_states = self._prepared.prepare(self.cluster, most=most, collects=protocol is not None)
        return self._replicas.prepare(self.cluster, most=most) or more_states

    def is_prepared_for(self, protocol: tuple[int, int] | None) -> bool:
        """Whether all that a take-over sends brokers of this protocol version is made."""
        cluster = self.cluster
        is_made = self._prepared.is_complete(cluster) and self._replicas.is_complete(cluster)
        return is_made and cluster.inter_broker_protocol == protocol

    def copy(self) -> StandbyCopy:
        """The topics as they are known, whatever becomes of the cache. What was prepared goes with
        the copy: nobody sends anything from here."""
        malformed: list[MalformedZNodeError] = []
        state_mzxids = dict(self._state_mzxids)
        for path, reason in self.malformed.items():
            tp = paths.partition_of_state(path)
            if tp is not None:
                malformed.append(MalformedZNodeError(path, reason))
                state_mzxids.pop(tp, None)
        mzxids = {topic: version.mzxid for topic, version in self._topic_versions.items()}
        for path in self.malformed:
            topic = paths.topic_of(path)
            if topic is not None and topic in mzxids:
                mzxids[topic] = NOT_TAKEN
        cluster = self.cluster.copy_topics()
        cluster.announced_states = self._prepared.hand_over(self.cluster)
        cluster.hosted = self._replicas.hand_over(self.cluster)
        return StandbyCopy(cluster, mzxids, state_mzxids, tuple(malformed))
