"""Winning, taking over and giving up ``/controller``.

Every write of a controller is fenced by the dataVersion of ``/controller_epoch``, so becoming the
controller means: raise that node and own ``/controller``, in one transaction. The transaction also
deletes the present holder's node, as the KRaft migration does: its owner's next write fails the
check, its watch makes it resign.

A broker does not take the node back, and of the replicas of a Regent one is elected. Regents that
are elected in different places would depose each other without end, so that is not done. A replica
that only suspects another one deposes nobody else: :mod:`regent.controller.term.take_over`.
"""

from __future__ import annotations

from typing import NamedTuple

from regent.controller.brokers import own_registration
from regent.controller.config import ControllerConfig
from regent.controller.effects import CurrentTime, OwnSession
from regent.controller.state.context import ControllerContext
from regent.controller.state.term import DeposedHolder, Term
from regent.controller.term.take_over import Predecessors
from regent.controller.term.watches import WATCHED_PARENTS
from regent.model.active_regent import ActiveRegent, RegentEndpoint
from regent.model.errors import (
    MalformedZNodeError,
    OtherControllerError,
    UnexpectedZooKeeperError,
    UnsupportedClusterError,
    ZooKeeperUnavailableError,
)
from regent.model.log import StructuredLog
from regent.zk_data import paths
from regent.zk_data.controller import (
    decode_active_regent,
    decode_controller,
    decode_controller_epoch,
    decode_election_path,
    encode_controller,
    encode_controller_epoch,
    is_kraft_controller,
)
from regent.zk_data.effects import Exists, Multi, ReadData
from regent.zk_data.operations import (
    Check,
    Create,
    Delete,
    Operation,
    SetData,
    Written,
    ZkError,
    ZNode,
)
from regent.zk_data.permitted_reads import NO_AUTH

NO_CONTROLLER = -1
UNKNOWN_CONTROLLER = -2
"""``/controller`` exists but does not decode."""


class Holder(NamedTuple):
    """The holder of ``/controller``.

    Attributes:
        controller_id: Its id, or one of the constants above.
        session_id: The ZooKeeper session that owns the node; 0 if there is none.
        regent: Description that the holder has written if it is a Regent.
    """

    controller_id: int
    session_id: int = 0
    regent: ActiveRegent | None = None


async def watch_controller(log: StructuredLog) -> Holder:
    """Read the holder of ``/controller``, and leave a watch on the node."""
    await Exists([paths.CONTROLLER], watch=True)
    (node,) = await ReadData([paths.CONTROLLER])
    if node is None:
        return Holder(NO_CONTROLLER)
    return Holder(_holder_id(node, log), node.ephemeral_owner, decode_active_regent(node.data))


def _holder_id(node: ZNode | None, log: StructuredLog) -> int:
    if node is None:
        return NO_CONTROLLER
    try:
        return decode_controller(node.data)
    except MalformedZNodeError as error:
        log.error("Malformed controller node", path=error.path, reason=error.reason)
        return UNKNOWN_CONTROLLER


async def elect(
    config: ControllerConfig,
    log: StructuredLog,
    predecessors: Predecessors | None = None,
    *,
    above: int = -1,
) -> ControllerContext | None:
    """Become the controller, deposing the present one.

    Args:
        predecessors: If given, only one of these is deposed, and their places in the election
            among the replicas are deleted with its node, and its registration, if it has one.
        above: An epoch that is used up, if ``/controller_epoch`` does not say so.

    Returns:
        The context of the new epoch, or None if somebody else changed the nodes meanwhile: the
        watch on ``/controller`` leads to the next attempt.

    Raises:
        MalformedZNodeError: ``/controller_epoch`` is not a number: without it nothing can be
            fenced, so nothing is done.
        UnsupportedClusterError: The cluster is being migrated to KRaft.
        OtherControllerError: A Regent with another election path is the controller.
        UnexpectedZooKeeperError: What every controller needs may not be read.
    """
    # Who may not read what every term needs finds that out before it deposes anybody.
    nodes = await ReadData([paths.CONTROLLER, paths.CONTROLLER_EPOCH, *WATCHED_PARENTS])
    holder, epoch_node = nodes[:2]
    if epoch_node is None:
        # The first election of this cluster. Losing this race is fine: the node is read again.
        await Multi([Create(paths.CONTROLLER_EPOCH, encode_controller_epoch(0))])
        holder, epoch_node = await ReadData([paths.CONTROLLER, paths.CONTROLLER_EPOCH])
    if epoch_node is None:
        return None
    if predecessors is not None and not predecessors.include(holder):
        return None
    await _refuse_holder(holder, config)
    epoch = _next_epoch(epoch_node.data, above, log)
    content = _content(config, await CurrentTime())
    take_over = await _deposition(holder, predecessors, log)
    try:
        results = await Multi(
            [
                SetData(paths.CONTROLLER_EPOCH, encode_controller_epoch(epoch), epoch_node.version),
                *take_over,
                Create(paths.CONTROLLER, content, ephemeral=True),
            ]
        )
    except ZooKeeperUnavailableError:
        results = []
    raised = results[0] if results else None
    if isinstance(raised, Written):
        version = raised.version
    else:
        found = await _find_own(epoch)
        if found is None:
            log.info("Controller election lost", epoch=epoch)
            return None
        version = found
    deposed = _deposed(holder, log)
    log.info(
        "Controller elected",
        controller_id=config.controller_id,
        epoch=epoch,
        deposed=NO_CONTROLLER if deposed is None else deposed.controller_id,
    )
    return ControllerContext(_term(config, epoch, version, deposed))


def _content(config: ControllerConfig, now_ms: int) -> bytes:
    """What ``/controller`` is to say."""
    return encode_controller(
        config.controller_id,
        now_ms,
        election_path=config.election_path,
        resources=config.resources,
        endpoint=RegentEndpoint(config.served, config.listener_addresses)
        if config.served
        else None,
    )


async def _deposition(
    holder: ZNode | None, predecessors: Predecessors | None, log: StructuredLog
) -> list[Operation]:
    """What of the present holder goes in the transaction of the election."""
    operations: list[Operation] = []
    if holder is not None:
        operations.append(Delete(paths.CONTROLLER, holder.version))
    if predecessors is not None:
        operations.extend(predecessors.places)
        # It would outlive its controller, and a broker's controller would take it for a broker.
        operations.extend(await own_registration.deletion(_holder_id(holder, log)))
    return operations


def _next_epoch(data: bytes, above: int, log: StructuredLog) -> int:
    stored = decode_controller_epoch(data)
    epoch = max(stored, above) + 1
    if above > stored:
        log.warning(
            "Brokers or partitions know a later controller epoch than ZooKeeper: it is raised. Was "
            "ZooKeeper restored from a backup, or the node edited?",
            path=paths.CONTROLLER_EPOCH,
            stored=stored,
            epoch=epoch,
        )
    return epoch


def _term(
    config: ControllerConfig, epoch: int, version: int, deposed: DeposedHolder | None
) -> Term:
    return Term(
        config.controller_id,
        epoch,
        version,
        served=config.served,
        listener_addresses=config.listener_addresses,
        announced_listeners=config.announced_listeners,
        deposed=deposed,
    )


def _deposed(holder: ZNode | None, log: StructuredLog) -> DeposedHolder | None:
    if holder is None:
        return None
    return DeposedHolder(_holder_id(holder, log), holder.ephemeral_owner)


async def check_holder(config: ControllerConfig) -> None:
    """Look whether the present controller could be deposed.

    Raises:
        UnsupportedClusterError: The cluster is being migrated to KRaft.
        OtherControllerError: A Regent with another election path is the controller.
    """
    (holder,) = await ReadData([paths.CONTROLLER])
    await _refuse_holder(holder, config)


async def _refuse_holder(holder: ZNode | None, config: ControllerConfig) -> None:
    await _refuse_kraft(holder)
    if holder is not None:
        _refuse_to_depose(holder, config)


async def _refuse_kraft(holder: ZNode | None) -> None:
    """Leave a cluster alone whose metadata a KRaft controller has, or is about to take over.

    It holds ``/controller`` by a persistent node that has its epoch, and keeps how far it has come
    in ``/migration``. What is changed in ZooKeeper besides is lost, or breaks the migration. A
    persistent node that somebody made by hand is not its.

    Raises:
        UnsupportedClusterError: Says why, and what to do.
    """
    (is_migrating,) = await Exists([paths.MIGRATION])
    if holder is not None and not holder.ephemeral_owner and is_kraft_controller(holder.data):
        raise UnsupportedClusterError(
            f"{paths.CONTROLLER} is a persistent node of a KRaft controller: this cluster is being "
            "migrated to KRaft. Uninstall Regent; or, if the migration was reverted, delete "
            f"{paths.CONTROLLER} and {paths.MIGRATION}"
        )
    if is_migrating:
        raise UnsupportedClusterError(
            f"there is a node {paths.MIGRATION}: this cluster is being migrated to KRaft. "
            f"Uninstall Regent; or, if the migration was reverted, delete {paths.MIGRATION}"
        )


def _refuse_to_depose(holder: ZNode, config: ControllerConfig) -> None:
    """Leave a Regent alone that would take ``/controller`` back.

    Raises:
        OtherControllerError: Names its id, and what to do.
    """
    election_path = decode_election_path(holder.data)
    if election_path in (None, config.election_path):
        return
    raise OtherControllerError(
        f"the controller is another Regent, {decode_controller(holder.data)}, whose election_path "
        f"is {election_path} and not {config.election_path}; stop one of them, or give both the "
        "same election_path"
    )


async def _find_own(epoch: int) -> int | None:
    """The answer to our transaction was lost or negative: did it take place after all?

    A ``/controller`` of our own session under the epoch that we tried to write is proof. Our id
    alone is none: a former process of ours has it, or another Regent by mistake.
    """
    holder, epoch_node = await ReadData([paths.CONTROLLER, paths.CONTROLLER_EPOCH])
    if holder is None or epoch_node is None:
        return None
    ours = holder.ephemeral_owner == await OwnSession()
    if ours and decode_controller_epoch(epoch_node.data) == epoch:
        return epoch_node.version
    return None


async def release(term: Term, log: StructuredLog, *, is_registered: bool) -> bool:
    """Give ``/controller`` up so that a broker takes over at once. False if it was not ours.

    Our registration goes in the same transaction: whoever is elected does not see it.

    Without the right to read ``/controller_epoch`` there is no fence. Then what ZooKeeper says of
    the node stands in for it: that our own session owns it. A Regent that deposes us within that
    round trip loses the node, resigns, and takes it again.

    Raises:
        ZooKeeperError: The node may still be there.
    """
    try:
        fence = Check(paths.CONTROLLER_EPOCH, term.epoch_zk_version)
        released = await _delete_own(term, [fence], Delete(paths.CONTROLLER), is_registered)
    except UnexpectedZooKeeperError as error:
        if error.code != NO_AUTH:
            raise
        (holder,) = await ReadData([paths.CONTROLLER])
        if holder is None or holder.ephemeral_owner != await OwnSession():
            return False
        deletion = Delete(paths.CONTROLLER, holder.version)
        released = await _delete_own(term, [], deletion, is_registered)
        if released:
            log.warning("Controller released without a check of the epoch", reason=str(error))
    log.info("Controller released", epoch=term.epoch, released=released)
    return released


async def _delete_own(
    term: Term, fence: list[Operation], deletion: Delete, is_registered: bool
) -> bool:
    """Whether ``/controller`` and our registration, if we have one, are deleted."""
    while True:
        registration: list[Operation] = []
        if is_registered:
            registration += await own_registration.deletion(term.controller_id)
        results = await Multi([*fence, *registration, deletion])
        if not registration or results[len(fence)] not in (ZkError.NO_NODE, ZkError.BAD_VERSION):
            break  # else it was changed in between
    return all(isinstance(result, Written) for result in results)
