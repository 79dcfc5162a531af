"""Whom a replica may depose that is not the elected one: who is suspected, or leaves.

The election among the replicas is a queue in ZooKeeper. The first in it is the elected one, and it
learns so when the node before its own is gone. A replica that takes over earlier deletes the nodes
before its own in the transaction of the election, so that it is the first from then on: there is
never a second one that has a right to ``/controller``. Three things are known by the owner of a
node, which is a session: who holds ``/controller``, whose the places in the queue are, and who is
suspected, or does not answer and was never heard.

The latter lose their places only. One that lives after all queues up again behind the others, as
whoever finds that the place before its own is gone, and its own, too.
"""

from __future__ import annotations

import msgspec

from regent.controller import events as e
from regent.controller.effects import StillAbsent
from regent.zk_data.effects import ReadChildren, ReadData
from regent.zk_data.operations import Check, Delete, ZNode
from regent.zk_data.replicas import presence_name, presence_path, queue_order


class Predecessors(msgspec.Struct, frozen=True):
    """Who stands before this replica.

    Attributes:
        absent: The replicas that it may take over from.
        places: Deletes the nodes before its own in the queue, if its own is still there.
        registered: Names of the replicas' registrations that there are.
        passed: What is known, for people, of those before it that do not answer.
        before: The absent replicas that stand in the queue before this one.
    """

    absent: tuple[e.AbsentReplica, ...]
    places: tuple[Delete | Check, ...]
    registered: frozenset[str]
    passed: tuple[str, ...] = ()
    before: tuple[e.AbsentReplica, ...] = ()

    @property
    def dead(self) -> tuple[str, ...]:
        """Names of the registrations of the absent replicas before this one, if all of them are
        dead; otherwise none."""
        if not all(replica.is_dead for replica in self.before):
            return ()
        return tuple(presence_name(replica.session_id) for replica in self.before)

    def include(self, holder: ZNode | None) -> bool:
        """Whether one of them holds ``/controller``. A broker never does: it has no such session.

        If nobody holds it, brokers are about to elect one, and the queue decides among us.
        """
        return holder is not None and any(
            holder.ephemeral_owner == replica.session_id for replica in self.absent
        )


async def find_predecessors(event: e.ReplicasAbsent, election_path: str) -> Predecessors | None:
    """Who has to go for this replica to be the first in the queue.

    Returns:
        None if it is not this replica's turn: nobody is suspected any more, it has no place under
        the session of the event, or somebody before it is not absent. One that was named passes
        those, who queue up again.
    """
    children, registered = await ReadChildren([election_path, presence_path(election_path)])
    names = [f"{election_path}/{name}" for name in queue_order(children or ())]
    nodes = await ReadData(names)
    if not event.is_named:
        event = await _as_it_is_now(event)
    if not event.absent:
        return None
    may_go = {replica.session_id: replica for replica in event.absent}
    unheard = {replica.session_id: replica.reason for replica in event.unheard}
    places: list[Delete | Check] = []
    passed: list[str] = []
    before: list[e.AbsentReplica] = []
    for path, node in zip(names, nodes, strict=True):
        if node is None:
            continue
        owner = node.ephemeral_owner
        if owner == event.session_id:
            own = Check(path, node.version)
            return Predecessors(
                event.absent,
                (*places, own),
                frozenset(registered or ()),
                tuple(passed),
                tuple(before),
            )
        if owner in unheard:
            passed.append(unheard[owner])
        elif owner in may_go:
            before.append(may_go[owner])
        elif not event.is_named:
            return None
        places.append(Delete(path, node.version))
    return None


async def _as_it_is_now(event: e.ReplicasAbsent) -> e.ReplicasAbsent:
    """The event without those who have answered since: it may have waited, as may what was read."""
    suspected = tuple(replica.session_id for replica in event.absent)
    unheard = tuple(replica.session_id for replica in event.unheard)
    still = await StillAbsent(suspected, unheard)
    return msgspec.structs.replace(
        event,
        absent=tuple(replica for replica in event.absent if replica.session_id in still),
        unheard=tuple(replica for replica in event.unheard if replica.session_id in still),
    )
