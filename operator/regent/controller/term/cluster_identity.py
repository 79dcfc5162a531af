"""Which Kafka cluster this is, and whether there is one at all.

The first broker of a cluster stores a random id in ``/cluster/id`` before it registers. Without it,
and without a registered broker, this ZooKeeper path is not that of a Kafka cluster: most often the
chroot is mistyped. A controller elected there would find no topics, and everybody who asks it would
report topics as gone that still exist elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

from regent.model.errors import ClusterChangedError, MalformedZNodeError, MissingClusterError
from regent.model.log import StructuredLog
from regent.zk_data import paths
from regent.zk_data.cluster import decode_cluster_id
from regent.zk_data.effects import Exists, ReadChildren, ReadData


class ClusterFound(NamedTuple):
    """What ZooKeeper says of the cluster.

    Attributes:
        exists: Whether there is a Kafka cluster.
        cluster_id: Its id; None if there is none, or none that can be read.
    """

    exists: bool
    cluster_id: str | None


async def find_cluster(log: StructuredLog) -> ClusterFound:
    """Look for the Kafka cluster; leaves a watch on the node of its id, be there one or not."""
    (has_id,) = await Exists([paths.CLUSTER_ID], watch=True)
    (node,) = await ReadData([paths.CLUSTER_ID])
    if node is None:
        (brokers,) = await ReadChildren([paths.BROKER_IDS])
        return ClusterFound(has_id or bool(brokers), None)
    try:
        return ClusterFound(True, decode_cluster_id(node.data))
    except MalformedZNodeError as error:
        log.error("Malformed cluster id", path=error.path, reason=error.reason)
        return ClusterFound(True, None)


def refuse_other_cluster(known: str | None, found: ClusterFound, *, may_create: bool) -> None:
    """Check that this is the cluster that this process has known so far.

    Args:
        known: The id that was found before; None if there was none.
        found: What is there now.
        may_create: Whether a cluster without brokers and without an id is one that is to begin.

    Raises:
        ClusterChangedError: The id is another one, or is gone.
        MissingClusterError: There is no cluster.
    """
    if known is not None and found.cluster_id != known:
        now = "is gone or unreadable" if found.cluster_id is None else f"is {found.cluster_id}"
        raise ClusterChangedError(
            f"the id of the Kafka cluster in {paths.CLUSTER_ID} was {known} and {now}: this is not "
            "the cluster that Regent was started for. Correct the node, or restart Regent if the "
            "cluster was replaced on purpose"
        )
    if not found.exists and not may_create:
        raise MissingClusterError(
            f"there is no Kafka cluster at this path of ZooKeeper: it has no {paths.CLUSTER_ID} "
            "and no broker. Check the chroot in the setting zookeeper against the brokers' "
            "zookeeper.connect; for a new cluster whose brokers are yet to start set "
            "missing_cluster to create"
        )
