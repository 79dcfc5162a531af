"""Whom a replica may depose that is not the elected one: who is suspected, or leaves.

The election among the replicas is a queue in ZooKeeper. The first in it is the elected one, and it
learns so when the node before its own is gone. A replica that takes over earlier deletes the nodes
before its own in the transaction of the election, so that it is the first from then on: there is
never a second one that has a right to ``/controller``. Three things are known by the owner of a
node, which is a session: who holds ``/controller``, whose the places in the queue are, and who is
suspected.
"""

from __future__ import annotations

import msgspec

from regent.controller import events as e
from regent.controller.effects import ReadChildren, ReadData
from regent.zk_data.operations import Check, Delete, ZNode
from regent.zk_data.replicas import queue_order


class Predecessors(msgspec.Struct, frozen=True):
    """Who stands before this replica.

    Attributes:
        sessions: Those of the replicas that it may take over from.
        places: Deletes the nodes before its own in the queue, if its own is still there.
    """

    sessions: tuple[int, ...]
    places: tuple[Delete | Check, ...]

    def include(self, holder: ZNode | None) -> bool:
        """Whether one of them holds ``/controller``. A broker never does: it has no such session.

        If nobody holds it, brokers are about to elect one, and the queue decides among us.
        """
        return holder is not None and holder.ephemeral_owner in self.sessions


async def find_predecessors(event: e.ReplicasAbsent, election_path: str) -> Predecessors | None:
    """Who has to go for this replica to be the first in the queue.

    Returns:
        None if it is not this replica's turn: it has no place under the session of the event, or
        somebody before it is not absent. One that was named passes those, who queue up again.
    """
    (children,) = await ReadChildren([election_path])
    names = [f"{election_path}/{name}" for name in queue_order(children or ())]
    nodes = await ReadData(names)
    absent = [replica.session_id for replica in event.absent]
    places: list[Delete | Check] = []
    for path, node in zip(names, nodes, strict=True):
        if node is None:
            continue
        if node.ephemeral_owner == event.session_id:
            own = Check(path, node.version)
            return Predecessors(tuple(absent), (*places, own))
        if node.ephemeral_owner not in absent and not event.is_named:
            return None
        places.append(Delete(path, node.version))
    return None
