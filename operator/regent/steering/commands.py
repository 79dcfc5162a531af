"""Commands of custom resources while a broker is the controller.

On topics they are carried out by the controller's own code, which writes what Kafka's
``AdminZkClient`` writes. What only a controller does it is asked for, as by Kafka's admin client
(KIP-455, KIP-460): it answers for each partition, knows cancellations, and takes many requests at a
time. ``/admin/reassign_partitions`` and ``/admin/preferred_replica_election`` do none of that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from regent.admin.commands import (
    Accepted,
    AlterPartitionReassignments,
    CreatePartitions,
    DeleteTopic,
    ElectLeaders,
    Outcome,
    PartitionResult,
    Reason,
    ReassignTopic,
    Rejected,
)
from regent.admin.topic_refusals import refused_by_zookeeper
from regent.cluster.announced_controller import ANNOUNCED_EPOCH, announced_controller
from regent.controller.active_controller import ActiveController
from regent.controller.commands import Command
from regent.controller.effects import AskElections, AskReassignments
from regent.controller.reassignment import throttles
from regent.controller.reassignment.reassignment_commands import (
    decide_moves,
    refused_reassignment,
    throttle_moves,
)
from regent.controller.topics.topic_commands import process_commands
from regent.model.active_regent import ActiveRegent
from regent.model.cluster import Broker
from regent.model.errors import (
    BrokerNotControllerError,
    BrokerQuestionError,
    BrokerRefusedError,
    BrokerSilentError,
    BrokerTooOldError,
    BrokerUnreachedError,
    MalformedZNodeError,
    UnexpectedZooKeeperError,
)
from regent.model.partition import FoundPartition, ReplicaAssignment, TopicPartition
from regent.protocol.error_codes import (
    INVALID_REPLICA_ASSIGNMENT,
    UNKNOWN_SERVER_ERROR,
    error_name,
)
from regent.steering.expected_moves import ExpectedMoves
from regent.zk_data import paths
from regent.zk_data.effects import ReadData
from regent.zk_data.permitted_reads import read_permitted
from regent.zk_data.reassign_partitions import decode_reassign_partitions
from regent.zk_data.throttles import PartitionThrottle

Targets = Mapping[TopicPartition, tuple[int, ...] | None]
Results = dict[TopicPartition, PartitionResult]
Silent = dict[int, BrokerSilentError]

_ASKED: Final = (AlterPartitionReassignments, ElectLeaders, ReassignTopic)
"""Kinds of commands that the controller is asked for."""

_NO_ANSWER: Final = (UNKNOWN_SERVER_ERROR, "the controller has not answered for this partition")


def is_asked(command: Command) -> bool:
    """Whether the controller is asked for a command."""
    return isinstance(command, _ASKED)


async def carry_out(
    active: ActiveController,
    commands: Sequence[Command],
    expected: ExpectedMoves,
    leading_regent: Callable[[], ActiveRegent | None],
) -> tuple[Outcome, ...]:
    """Carry commands out in order.

    While the controller is asked, whoever drives this may do something else: what is known of the
    cluster may be newer then, but is of the same ``active``. A controller that is not reached, or
    does not answer in time, is not asked for each of them: all would wait for that.

    Args:
        expected: Learns what the controller has accepted.
        leading_regent: Returns the present controller if it is a Regent. The controller can change
            while a question is open.

    Raises:
        ControllerMovedError, SessionExpiredError, ZooKeeperUnavailableError: As
            :func:`~regent.controller.topics.topic_commands.process_commands` does.
    """
    outcomes: list[Outcome] = []
    silent: Silent = {}
    for are_asked, some in itertools.groupby(commands, key=is_asked):
        if are_asked:
            outcomes += [
                await _ask(active, command, expected, silent, leading_regent()) for command in some
            ]
        else:
            outcomes += await _change_topics(active, list(some))
    return tuple(outcomes)


async def _change_topics(active: ActiveController, commands: Sequence[Command]) -> list[Outcome]:
    """What the controller's own code does.

    Before Kafka 2.4 a topic's node does not say that it is being reassigned: the request does, and
    ``AdminZkClient`` lets no such topic grow.
    """
    moving = await _requested_moves() if any(map(_grows, commands)) else ()
    unseen = await _unseen_partitions(active, commands)
    refused = [
        _growth_refused(command, moving) or _deletion_refused(command, unseen)
        for command in commands
    ]
    allowed = [c for c, refusal in zip(commands, refused, strict=True) if refusal is None]
    done = iter(await process_commands(active, allowed))
    return [refusal or next(done) for refusal in refused]


def _grows(command: Command) -> bool:
    return isinstance(command, CreatePartitions)


def _growth_refused(command: Command, moving: Collection[str] | Rejected) -> Rejected | None:
    """Why a topic does not grow now, if that is what is asked for."""
    if not isinstance(command, CreatePartitions):
        return None
    if isinstance(moving, Rejected):
        return moving
    return _is_moving(command.topic) if command.topic in moving else None


async def _unseen_partitions(
    active: ActiveController, commands: Sequence[Command]
) -> dict[str, TopicPartition]:
    """By topic that is to be deleted a partition that has no state, so that no controller has seen
    it."""
    cluster = active.context.cluster
    stateless = [
        tp
        for command in commands
        if isinstance(command, DeleteTopic)
        for tp in cluster.partitions_of(command.topic)
        if tp not in cluster.leadership
    ]
    if not stateless:
        return {}
    nodes = await read_permitted(paths.partition_states(stateless))
    return {tp.topic: tp for tp, node in zip(stateless, nodes, strict=True) if node is None}


def _deletion_refused(command: Command, unseen: Mapping[str, TopicPartition]) -> Rejected | None:
    """Why a topic is not deleted now, if that is what is asked for. The controller of Kafka 1.1
    begins a deletion again and again, and never ends it, if it learns of a partition and of the
    deletion of its topic at the same time."""
    if not isinstance(command, DeleteTopic) or command.topic not in unseen:
        return None
    message = (
        f"partition {unseen[command.topic]} never had a leader: the controller has not seen it "
        "yet, or none of its brokers is alive; the topic is deleted afterwards"
    )
    return Rejected(Reason.BROKERS_UNAVAILABLE, message)


async def _requested_moves() -> Collection[str] | Rejected:
    """Topics that ``/admin/reassign_partitions`` names, or why they are not known. What does not
    decode moves nothing."""
    try:
        (node,) = await ReadData([paths.REASSIGN_PARTITIONS])
    except UnexpectedZooKeeperError as error:
        return refused_by_zookeeper(error)
    if node is None:
        return ()
    try:
        request = decode_reassign_partitions(node.data)
    except MalformedZNodeError:
        return ()
    return dict.fromkeys(tp.topic for tp in request.targets).keys()


def _is_moving(topic: str) -> Rejected:
    message = f"topic {topic!r} is being reassigned; it can grow once that is done"
    return Rejected(Reason.REASSIGNMENT_IN_PROGRESS, message)


def _controller(active: ActiveController, regent: ActiveRegent | None) -> Broker | None:
    """The controller as a broker that can be asked: one, or a Regent with an endpoint."""
    brokers, controller_id = active.context.cluster.brokers, active.context.term.controller_id
    if regent is None or regent.endpoint is None:
        return brokers.get(controller_id)
    return announced_controller(
        controller_id,
        brokers,
        regent.endpoint.served,
        addresses=regent.endpoint.listener_addresses,
    )


async def _ask(
    active: ActiveController,
    command: Command,
    expected: ExpectedMoves,
    silent: Silent,
    regent: ActiveRegent | None,
) -> Outcome:
    broker = _controller(active, regent)
    if broker is None:
        return _no_controller(active.context.term.controller_id, regent)
    known = silent.get(broker.broker_id)
    if known is not None:
        return _unanswered(broker, command, known)
    try:
        match command:
            case AlterPartitionReassignments():
                return await _alter_reassignments(active, broker, command, expected)
            case ReassignTopic():
                return await _reassign_topic(active, broker, command, expected)
            case ElectLeaders():
                return await _elect_leaders(broker, command)
            case _:
                raise AssertionError(f"nobody is asked for {command}")
    except BrokerSilentError as error:
        silent[broker.broker_id] = error
        return _unanswered(broker, command, error)
    except BrokerQuestionError as error:
        return _unanswered(broker, command, error)


async def _alter_reassignments(
    active: ActiveController,
    broker: Broker,
    command: AlterPartitionReassignments,
    expected: ExpectedMoves,
) -> Outcome:
    """Start, replace or cancel reassignments, each for itself.

    What is cancelled stays throttled until it has come to its end: it goes on if the controller
    does not answer. Without an answer all throttles stay, since partitions may be on their way:
    those that are not lose them with the next look at all of them. A controller that refuses to be
    asked, or is not reached, has begun nothing: a throttle would hold back replicas that catch up,
    for as long as it is asked again.
    """
    results, wanted = decide_moves(active, command)
    if not wanted:
        return Accepted(results)
    moves = {tp: new for tp, new in wanted.items() if command.targets[tp] is not None}
    before = throttles.throttles_of(active, wanted)
    unthrottled = await throttle_moves(active, command, moves)
    results |= {tp: _invalid(reason) for tp, reason in unthrottled.items()}
    to_begin = {
        tp: command.targets[tp]
        for tp, new in wanted.items()
        if tp not in unthrottled and not _is_on_its_way(active, tp, new)
    }
    if to_begin:
        try:
            results |= await _move(broker, to_begin, command.found, expected)
        except (BrokerRefusedError, BrokerTooOldError, BrokerUnreachedError):
            await _put_back(active, {tp: before[tp] for tp in to_begin}, expected)
            raise
    failed = {tp: before[tp] for tp in wanted if results[tp].error_code}
    await _put_back(active, failed, expected)
    return Accepted(results)


async def _put_back(
    active: ActiveController,
    before: Mapping[TopicPartition, PartitionThrottle | None],
    expected: ExpectedMoves,
) -> None:
    """Throttle partitions as before, and remove the throttles of topics of which nothing is
    moved."""
    await throttles.put_back(active, before)
    awaited = expected.awaited(active.context.cluster)
    await throttles.release(active, [tp.topic for tp in before if tp.topic not in awaited])


def _is_on_its_way(active: ActiveController, tp: TopicPartition, new: ReplicaAssignment) -> bool:
    """Whether a partition stays on its way, perhaps at another rate: Kafka's controller would give
    it a new leader epoch, for which its replicas and clients stop for a moment."""
    return new.is_being_reassigned and active.context.cluster.assignment(tp) == new


async def _reassign_topic(
    active: ActiveController, broker: Broker, command: ReassignTopic, expected: ExpectedMoves
) -> Outcome:
    """As in the controller: accepted if one of the partitions could be started."""
    refused = refused_reassignment(active, command)
    if refused is not None:
        return refused
    results = await _move(broker, command.by_partition, {}, expected)
    if any(not result.error_code for result in results.values()):
        return Accepted()
    tp, result = next(iter(results.items()))
    is_invalid = result.error_code == INVALID_REPLICA_ASSIGNMENT
    reason = Reason.BROKERS_UNAVAILABLE if is_invalid else Reason.CONCURRENT_CHANGE
    message = f"partition {tp} keeps its replicas: {result.message}"
    return Rejected(reason, message, "replication_factor")


async def _move(
    broker: Broker,
    targets: Targets,
    found: Mapping[TopicPartition, FoundPartition],
    expected: ExpectedMoves,
) -> Results:
    with expected.asking(targets):
        answers = await AskReassignments(broker, targets, found)
    results = _results({tp: answers.get(tp, _NO_ANSWER) for tp in targets})
    accepted = {
        tp: target
        for tp, target in targets.items()
        if target is not None and not results[tp].error_code
    }
    expected.expect(accepted)
    return results


async def _elect_leaders(broker: Broker, command: ElectLeaders) -> Outcome:
    answers = await AskElections(broker, int(command.election_type), command.partitions)
    return Accepted(_results(answers))


def _results(answers: Mapping[TopicPartition, tuple[int, str]]) -> Results:
    return {
        tp: PartitionResult(code, message or (error_name(code) if code else ""))
        for tp, (code, message) in answers.items()
    }


def _invalid(reason: str) -> PartitionResult:
    return PartitionResult(INVALID_REPLICA_ASSIGNMENT, reason)


def _no_controller(controller_id: int, regent: ActiveRegent | None) -> Rejected:
    if controller_id < 0:
        problem = "there is no controller"
    elif regent is None:
        problem = f"the controller, {controller_id}, is no broker that is alive"
    elif regent.endpoint is None:
        problem = f"the controller, Regent {controller_id}, has no endpoint: set its endpoint_port"
    else:
        problem = (
            f"the controller, Regent {controller_id}, serves none of the brokers' security "
            f"protocols, only {sorted(regent.endpoint.served)}"
        )
    return Rejected(Reason.BROKERS_UNAVAILABLE, f"{problem}; the command is tried again")


def _unanswered(broker: Broker, command: Command, error: BrokerQuestionError) -> Rejected:
    is_regent = broker.epoch == ANNOUNCED_EPOCH
    who = f"{'Regent' if is_regent else 'broker'} {broker.broker_id}, which is the controller"
    if isinstance(error, BrokerTooOldError):
        needed = "2.2" if isinstance(command, ElectLeaders) else "2.4"
        message = (
            f"{who}, is older than Kafka {needed}, which this needs in client mode ({error}); "
            "upgrade the brokers, or use mode controller"
        )
        return Rejected(Reason.CONTROLLER_TOO_OLD, message)
    if isinstance(error, BrokerNotControllerError):
        message = f"{who} a moment ago, is not any more; the command is tried again"
        return Rejected(Reason.NOT_CONTROLLER, message)
    message = f"{who}, was asked and gave no result: {error}. The command is tried again"
    is_refused = isinstance(error, BrokerRefusedError)
    reason = Reason.CONTROLLER_REFUSED if is_refused else Reason.BROKERS_UNAVAILABLE
    return Rejected(reason, message)
