"""The benchmark's own ZooKeeper session: it fills in the cluster and sees who is elected when."""

import itertools
import json
import secrets
import threading
import time
from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from benchmarks.cluster import Cluster
from benchmarks.errors import BenchmarkError
from regent.model.cluster import Broker
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.simulation.broker_znodes import encode_broker, encode_cluster_id
from regent.zk_data import paths
from regent.zk_data.operations import ZNode
from regent.zk_data.topics import TopicZNode, encode_partition_state, encode_topic
from sandbox.process import ManagedProcess

SESSION_TIMEOUT_S = 30.0
_NODES_IN_A_TRANSACTION = 1000
_TRANSACTIONS_IN_FLIGHT = 8
_EMPTY_CONFIG = b'{"version":1,"config":{}}'
_NS_IN_MS = 1_000_000
LARGEST_CLOCK_STEP_NS = 5_000_000

POLL_S = 0.01
"""How exactly the end of something in ZooKeeper is known."""

ZNodes = Iterator[tuple[str, bytes]]


class Create(NamedTuple):
    """Create a node."""

    path: str
    data: bytes


class SetData(NamedTuple):
    """Replace the content of a node, whatever its version."""

    path: str
    data: bytes


Write = Create | SetData


class Election(NamedTuple):
    """A controller that was elected.

    Attributes:
        epoch: Its controller epoch.
        triggered_at: When the node of the one before was deleted; monotonic nanoseconds.
        elected_at: When ZooKeeper gave the transaction that made it the controller its time
            (ctime of `/controller`, mtime of `/controller_epoch`), by the same clock.
        clock_offset: Wall clock minus monotonic clock, in nanoseconds.
        zxid: That transaction.
    """

    controller_id: int
    epoch: int
    triggered_at: int
    elected_at: int
    clock_offset: int
    zxid: int


def clock_offset() -> int:
    """Wall clock minus monotonic clock, in nanoseconds."""
    return time.time_ns() - time.monotonic_ns()


class ZooKeeperSession:
    """One session, for the length of a `with` block; registrations are gone after it."""

    def __init__(self, connect_string: str) -> None:
        self._hosts, _, self._chroot = connect_string.partition("/")
        self._client: Any = KazooClient(self._hosts, timeout=SESSION_TIMEOUT_S)
        self._changed = threading.Event()

    def __enter__(self) -> "ZooKeeperSession":
        self._client.start(timeout=SESSION_TIMEOUT_S)
        if self._chroot:
            self._client.ensure_path(f"/{self._chroot}")
            self._client.chroot = f"/{self._chroot}"
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.stop()
        self._client.close()

    def populate(self, cluster: Cluster) -> int:
        """Create the znodes of a cluster that has been in use; returns their number."""
        total = self.write_in_bulk(Create(path, data) for path, data in _znodes(cluster))
        self._client.create(paths.PRODUCER_ID_BLOCK, None)  # empty data makes a broker exit
        return total + 1

    def write_in_bulk(self, operations: Iterable[Write]) -> int:
        """Carry out many operations in as few transactions as they fit; returns their number.

        Raises:
            BenchmarkError: one of them failed.
        """
        pending: deque[Any] = deque()
        total = 0
        remaining = iter(operations)
        while batch := list(itertools.islice(remaining, _NODES_IN_A_TRANSACTION)):
            total += len(batch)
            pending.append(self._commit(batch))
            if len(pending) >= _TRANSACTIONS_IN_FLIGHT:
                _check(pending.popleft().get(SESSION_TIMEOUT_S))
        for result in pending:
            _check(result.get(SESSION_TIMEOUT_S))
        return total

    def write_at_once(self, operations: Iterable[Write]) -> int:
        """Carry out operations in one transaction and return when it began; monotonic nanoseconds.

        Raises:
            BenchmarkError: one of them failed.
        """
        began_at = time.monotonic_ns()
        _check(self._commit(operations).get(SESSION_TIMEOUT_S))
        return began_at

    def _commit(self, operations: Iterable[Write]) -> Any:
        transaction = self._client.transaction()
        for operation in operations:
            match operation:
                case Create(path, data):
                    transaction.create(path, data)
                case SetData(path, data):
                    transaction.set_data(path, data)
        return transaction.commit_async()

    def read(self, node_paths: Sequence[str]) -> list[ZNode | None]:
        """Many nodes; None for those that do not exist."""
        nodes: list[ZNode | None] = []
        for start in range(0, len(node_paths), _NODES_IN_A_TRANSACTION):
            some = node_paths[start : start + _NODES_IN_A_TRANSACTION]
            pending = [self._client.get_async(path) for path in some]
            for result in pending:
                try:
                    data, stat = result.get(timeout=SESSION_TIMEOUT_S)
                except NoNodeError:
                    nodes.append(None)
                else:
                    nodes.append(
                        ZNode(data, stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner)
                    )
        return nodes

    def states(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, LeaderAndIsr]:
        """Leaderships as they are stored, of partitions that have any."""
        nodes = self.read([paths.partition_state(tp) for tp in partitions])
        return {
            tp: _state(node) for tp, node in zip(partitions, nodes, strict=True) if node is not None
        }

    def require_assignment(self, topic: str, replicas: Mapping[int, Sequence[int]]) -> None:
        """A topic has these replicas by partition, and none is being added or removed.

        Raises:
            BenchmarkError: it has others.
        """
        (node,) = self.read([paths.topic(topic)])
        content = {} if node is None else json.loads(node.data)
        expected = {str(number): list(some) for number, some in replicas.items()}
        is_moving = content.get("adding_replicas") or content.get("removing_replicas")
        if content.get("partitions") != expected or is_moving:
            raise BenchmarkError(f"topic {topic} is left with {content}")

    def children(self, path: str) -> list[str]:
        """Names of the nodes below one."""
        found: list[str] = self._client.get_children(path)
        return found

    def await_end(self, is_over: Callable[[], bool], *, what: str, timeout_s: float) -> int:
        """Wait until something is over and return when that was seen; monotonic nanoseconds.

        Raises:
            BenchmarkError: it is not.
        """
        deadline = time.monotonic() + timeout_s
        while not is_over():
            if time.monotonic() > deadline:
                raise BenchmarkError(f"after {timeout_s:g} s {what}")
            time.sleep(POLL_S)
        return time.monotonic_ns()

    def exists(self, path: str) -> bool:
        """Whether there is a node."""
        return self._client.exists(path) is not None

    def child_count(self, path: str) -> int:
        """How many nodes are below one."""
        stat = self._client.exists(path)
        return 0 if stat is None else int(stat.numChildren)

    def deregister(self, broker_id: int) -> int:
        """A broker's registration vanishes; returns when, in monotonic nanoseconds."""
        deleted_at = time.monotonic_ns()
        self._client.delete(paths.broker_id(broker_id))
        return deleted_at

    def register(self, brokers: list[Broker]) -> dict[int, int]:
        """Register brokers for as long as this session lives; returns their epochs by id."""
        epochs: dict[int, int] = {}
        for broker in brokers:
            path = paths.broker_id(broker.broker_id)
            content = encode_broker(broker, timestamp_ms=time.time_ns() // _NS_IN_MS)
            self._client.create(path, ephemeral=True)
            epochs[broker.broker_id] = self._client.set(path, content).czxid
        return epochs

    def broker_ids(self) -> set[int]:
        """Brokers that are registered now."""
        return {int(child) for child in self._client.get_children(paths.BROKER_IDS)}

    def controller(self) -> int | None:
        """Who is the controller now, if anybody is."""
        node = self._read(paths.CONTROLLER)
        return None if node is None else _holder(node)

    def require_controller(self, election: Election) -> None:
        """The controller is still the one that was elected.

        Raises:
            BenchmarkError: It lost its session meanwhile, most likely.
        """
        node = self._read(paths.CONTROLLER_EPOCH)
        if node is None or int(node[0]) != election.epoch:
            raise BenchmarkError("another controller was elected meanwhile")

    def depose(self) -> int:
        """Delete `/controller` and return when; monotonic nanoseconds.

        Raises:
            BenchmarkError: there is no controller.
        """
        triggered_at = time.monotonic_ns()
        try:
            self._client.delete(paths.CONTROLLER)
        except NoNodeError as error:
            raise BenchmarkError("there is no controller that could be deposed") from error
        return triggered_at

    def await_election(
        self,
        controller_id: int,
        *,
        triggered_at: int,
        timeout_s: float,
        instead_of: int | None = None,
        process: ManagedProcess | None = None,
    ) -> Election:
        """Wait until somebody is the controller, and say since when.

        Args:
            instead_of: Who may still be the controller.
            process: The process that is to become the controller; once it has ended there is
                nothing to wait for.

        Raises:
            BenchmarkError: no controller was elected, or another one, or the wall clock was set
                meanwhile, so that ZooKeeper's time of the election means nothing here.
        """
        offset_before = clock_offset()
        deadline = time.monotonic() + timeout_s
        while (node := self._read(paths.CONTROLLER, watch=True)) is None or _holder(
            node
        ) == instead_of:
            if process is not None and not process.is_running:
                raise BenchmarkError(f"it ended with exit code {process.exit_code}")
            if time.monotonic() > deadline:
                raise BenchmarkError(f"after {timeout_s:g} s there is no (other) controller")
            self._changed.wait(0.5)
        elected, stat = _holder(node), node[1]
        epoch_node = self._read(paths.CONTROLLER_EPOCH)
        if elected != controller_id or epoch_node is None:
            raise BenchmarkError(f"{elected} was elected, not {controller_id}")
        epoch, epoch_stat = epoch_node
        if epoch_stat.mzxid != stat.czxid:
            raise BenchmarkError("the controller has changed again")
        offset = clock_offset()
        if abs(offset - offset_before) > LARGEST_CLOCK_STEP_NS:
            raise BenchmarkError("the machine's clock was set during the election")
        return Election(
            controller_id=elected,
            epoch=int(epoch),
            triggered_at=triggered_at,
            elected_at=stat.ctime * _NS_IN_MS - offset,
            clock_offset=offset,
            zxid=stat.czxid,
        )

    def _read(self, path: str, *, watch: bool = False) -> tuple[bytes, Any] | None:
        """A node; with a watch that sets `_changed` when it is created or changes."""
        if watch:
            self._changed.clear()
            if self._client.exists(path, watch=lambda _: self._changed.set()) is None:
                return None
        try:
            content, stat = self._client.get(path)
        except NoNodeError:
            return None
        return content, stat


def _holder(node: tuple[bytes, Any]) -> int:
    """Whose `/controller` is."""
    controller_id: int = json.loads(node[0])["brokerid"]
    return controller_id


def _state(node: ZNode) -> LeaderAndIsr:
    """Read here, so that what a controller has written is not judged by its own decoder."""
    content = json.loads(node.data)
    return LeaderAndIsr(
        leader=content["leader"],
        leader_epoch=content["leader_epoch"],
        isr=tuple(content["isr"]),
        controller_epoch=content["controller_epoch"],
        partition_epoch=node.version,
    )


def _check(results: list[Any]) -> None:
    for result in results:
        if isinstance(result, Exception):
            raise BenchmarkError(f"ZooKeeper refused a write: {result!r}") from result


def _znodes(cluster: Cluster) -> ZNodes:
    """All persistent znodes, parents before children."""
    for path in (*paths.PERSISTENT_PATHS, paths.CLUSTER):
        if path != paths.PRODUCER_ID_BLOCK:  # without data, which no transaction can create
            yield path, b""
    cluster_id = urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
    yield paths.CLUSTER_ID, encode_cluster_id(cluster_id)
    states: Mapping[tuple[int, ...], bytes] = {
        partition.replicas: encode_partition_state(partition.state)
        for partition in cluster.partitions
    }
    for topic, partitions in cluster.topics.items():
        yield paths.topic_config(topic), _EMPTY_CONFIG
        node = TopicZNode(cluster.topic_id(topic), cluster.assignments(topic))
        yield paths.topic(topic), encode_topic(node)
        yield paths.topic_partitions(topic), b""
        for partition in partitions:
            tp = TopicPartition(topic, partition.partition)
            yield paths.topic_partition(tp), b""
            yield paths.partition_state(tp), states[partition.replicas]
