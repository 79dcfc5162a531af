"""The stub brokers' process: one thread, one selector, a listening socket for each broker."""

import gc
import selectors
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from benchmarks.stub.answers import (
    CONTROL_APIS,
    LEADER_AND_ISR,
    STALE_CONTROLLER_EPOCH,
    STOP_REPLICA,
    UPDATE_METADATA,
    Header,
    HostedPartitions,
    UnsupportedRequestError,
    controller_epoch,
    error_without_partitions,
    leader_and_isr_answer,
    read_header,
    response,
    stop_replica_answer,
    update_metadata_answer,
)
from benchmarks.stub.exchanges import Exchange, StubStatus
from benchmarks.stub.followers import Followers
from benchmarks.stub.queries import (
    API_VERSIONS,
    DESCRIBE_CONFIGS,
    DESCRIBE_LOG_DIRS,
    api_versions_answer,
    describe_configs_answer,
    describe_log_dirs_answer,
)

LOOPBACK = "127.0.0.1"
_LARGEST_FRAME = 1 << 30

STATUS = "status"
TAKE = "take"
FORGET = "forget"


@dataclass(slots=True, eq=False)
class _Peer:
    """One connection of a controller to one broker."""

    broker_id: int
    connection: socket.socket
    length: bytearray = field(default_factory=lambda: bytearray(4))
    frame: bytearray | None = None
    filled: int = 0
    began_at: int = 0
    unsent: memoryview = field(default_factory=lambda: memoryview(b""))
    unanswered: Exchange | None = None
    waits_for_room: bool = False

    @property
    def is_busy(self) -> bool:
        return bool(self.frame is not None or self.filled or self.unsent)


class StubServer:
    """Serves all stub brokers until the other end of `commands` is closed."""

    def __init__(
        self,
        commands: Connection,
        listeners: Mapping[int, socket.socket],
        config: Mapping[str, str],
        followers: Followers | None,
    ) -> None:
        self._commands = commands
        self._config = config
        self._followers = followers
        self._selector = selectors.DefaultSelector()
        self._peers: set[_Peer] = set()
        self._highest_epoch: dict[int, int] = dict.fromkeys(listeners, 0)
        self._hosted = {broker_id: HostedPartitions() for broker_id in listeners}
        self._refused: list[str] = []
        self._forget()
        self._selector.register(commands, selectors.EVENT_READ, self._on_command)
        for broker_id, listener in listeners.items():
            listener.setblocking(False)
            self._selector.register(
                listener, selectors.EVENT_READ, self._acceptor(broker_id, listener)
            )

    def run(self) -> None:
        """Serve."""
        while True:
            for key, mask in self._selector.select():
                try:
                    key.data(mask)
                except EOFError:  # the benchmark has ended
                    return

    def _forget(self) -> None:
        self._exchanges: list[Exchange] = []
        self._leader_and_isr_partitions = dict.fromkeys(self._highest_epoch, 0)
        self._stopped_partitions = dict.fromkeys(self._highest_epoch, 0)
        self._update_metadata_bytes = dict.fromkeys(self._highest_epoch, 0)
        self._last_activity_at = time.monotonic_ns()

    def _on_command(self, _mask: int) -> None:
        command = self._commands.recv()
        if command == STATUS:
            self._commands.send(self._status())
        elif command == TAKE:
            self._commands.send(self._exchanges)
            self._forget()
        elif command == FORGET:
            self._forget()
            self._commands.send(None)

    def _status(self) -> StubStatus:
        return StubStatus(
            busy=sum(peer.is_busy for peer in self._peers),
            last_activity_at=self._last_activity_at,
            leader_and_isr_partitions=dict(self._leader_and_isr_partitions),
            stopped_partitions=dict(self._stopped_partitions),
            update_metadata_bytes=dict(self._update_metadata_bytes),
            cpu_seconds=time.process_time(),
            refused=tuple(self._refused),
        )

    def _acceptor(self, broker_id: int, listener: socket.socket) -> Callable[[int], None]:
        def accept(_mask: int) -> None:
            connection, _ = listener.accept()
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = _Peer(broker_id, connection)
            self._peers.add(peer)
            self._selector.register(connection, selectors.EVENT_READ, self._handler(peer))

        return accept

    def _handler(self, peer: _Peer) -> Callable[[int], None]:
        def handle(mask: int) -> None:
            try:
                if mask & selectors.EVENT_WRITE:
                    self._write(peer)
                if mask & selectors.EVENT_READ:
                    self._read(peer)
            except (OSError, UnsupportedRequestError) as error:
                if isinstance(error, UnsupportedRequestError):
                    self._refused.append(str(error))
                self._drop(peer)

        return handle

    def _drop(self, peer: _Peer) -> None:
        self._selector.unregister(peer.connection)
        peer.connection.close()
        self._peers.discard(peer)

    def _read(self, peer: _Peer) -> None:
        """Take what is there, at most one request: its answer has to be sent first."""
        if peer.unsent:
            return
        try:
            if peer.frame is None:
                peer.began_at = peer.began_at or time.monotonic_ns()
                self._receive(peer, peer.length)
                if peer.filled < 4:
                    return
                size = int.from_bytes(peer.length, "big")
                if size > _LARGEST_FRAME:
                    raise UnsupportedRequestError(f"a frame of {size} bytes")
                peer.frame, peer.filled = bytearray(size), 0
            while peer.filled < len(peer.frame):
                self._receive(peer, peer.frame)
        except BlockingIOError:
            return
        frame, peer.frame, peer.filled = peer.frame, None, 0
        self._last_activity_at = received_at = time.monotonic_ns()
        self._answer(peer, frame, received_at)
        peer.began_at = 0

    def _receive(self, peer: _Peer, buffer: bytearray) -> None:
        count = peer.connection.recv_into(memoryview(buffer)[peer.filled :])
        if not count:
            raise ConnectionResetError
        peer.filled += count

    def _answer(self, peer: _Peer, frame: bytearray, received_at: int) -> None:
        header = read_header(frame)
        if header.api_key in CONTROL_APIS:
            body, flexible = self._control_answer(peer.broker_id, frame, header), True
            peer.unanswered = Exchange(
                peer.broker_id, header.api_key, header.version, frame, peer.began_at, received_at, 0
            )
        elif header.api_key == API_VERSIONS:
            body, flexible = api_versions_answer(header), False
        elif header.api_key == DESCRIBE_CONFIGS:
            body, flexible = describe_configs_answer(frame, header, self._config)
        elif header.api_key == DESCRIBE_LOG_DIRS:
            body, flexible = describe_log_dirs_answer(header), False
        else:
            raise UnsupportedRequestError(f"version {header.version} of API {header.api_key}")
        peer.unsent = memoryview(response(header.correlation_id, body, flexible=flexible))
        self._write(peer)
        if self._followers is not None and header.api_key == LEADER_AND_ISR:
            self._followers.sent(peer.broker_id, frame, header)

    def _control_answer(self, broker_id: int, frame: bytearray, header: Header) -> bytes:
        """As a broker answers: an older controller than the newest one known is told so."""
        epoch = controller_epoch(frame, header)
        is_stale = epoch < self._highest_epoch[broker_id]
        error = STALE_CONTROLLER_EPOCH if is_stale else 0
        self._highest_epoch[broker_id] = max(epoch, self._highest_epoch[broker_id])
        if header.api_key == UPDATE_METADATA:
            self._update_metadata_bytes[broker_id] += len(frame)
            return update_metadata_answer(error)
        if error:
            return error_without_partitions(error)
        hosted = self._hosted[broker_id]
        if header.api_key == STOP_REPLICA:
            answer = stop_replica_answer(frame, header, hosted)
            self._stopped_partitions[broker_id] += answer.partitions
        else:
            assert header.api_key == LEADER_AND_ISR
            answer = leader_and_isr_answer(frame, header, hosted)
            self._leader_and_isr_partitions[broker_id] += answer.partitions
        return answer.body

    def _write(self, peer: _Peer) -> None:
        """Send what the kernel takes; wait for it to take more, or else for the next request."""
        try:
            while peer.unsent:
                peer.unsent = peer.unsent[peer.connection.send(peer.unsent) :]
        except BlockingIOError:
            self._wait_for_room(peer, waits=True)
            return
        self._last_activity_at = now = time.monotonic_ns()
        if peer.unanswered is not None:
            self._exchanges.append(peer.unanswered._replace(answered_at=now))
            peer.unanswered = None
        self._wait_for_room(peer, waits=False)

    def _wait_for_room(self, peer: _Peer, *, waits: bool) -> None:
        if waits != peer.waits_for_room:
            peer.waits_for_room = waits
            events = selectors.EVENT_WRITE if waits else selectors.EVENT_READ
            self._selector.modify(peer.connection, events, self._handler(peer))


def serve(
    commands: Connection,
    broker_ids: Sequence[int],
    config: Mapping[str, str],
    zookeeper: str | None,
) -> None:
    """Listen, tell the benchmark the ports by broker id, and serve it until it ends.

    `zookeeper` is where followers get in sync; without one, they never do.
    """
    listeners = {broker_id: socket.create_server((LOOPBACK, 0)) for broker_id in broker_ids}
    followers = None if zookeeper is None else Followers(zookeeper)
    commands.send({broker_id: s.getsockname()[1] for broker_id, s in listeners.items()})
    server = StubServer(commands, listeners, config, followers)
    gc.disable()  # requests are freed by their counts; nothing here is cyclic
    server.run()
    if followers is not None:
        followers.close()
