"""kazoo, bent where the controller needs it otherwise. The only module that knows its insides.

- One session per client. kazoo replaces an expired session by itself, and a request that was queued
  in between would run under the new one. Here the client ends with its session.
- Watch callbacks run in the connection's thread, in the order in which the server sent events and
  answers, instead of in a second thread. They only enqueue.
- Connecting has an explicit bound per server; kazoo's own is the whole session timeout. TLS goes
  its own way: kazoo leaks the socket of a refused handshake, and waits for data that it has.
- The granted session timeout and the moments of proven contact are reported.
- A session outlives no history: servers refuse whoever has seen later transactions than they have,
  and kazoo would ask again for ever. So it is where ZooKeeper was restored from a backup.
- A host that cannot be resolved is reported as any server that is not reached. kazoo only logs it,
  and its thread ends at a name that DNS cannot have. It waits for each name as long as the resolver
  does, which may be longer than the session lasts. It logs every attempt, several each second;
  the same is logged once in a while.
- A client whose threads could not all be started leaves none of them behind.
- Nobody waits for an answer that was lost: not when a request is taken back while it is being sent,
  which cost the next one, nor for another reason.
- Requests that are dropped with a connection take with them the bytes that were to wake kazoo's
  thread: a socket pair that is full of them holds up whoever asks next, the whole loop.
- What arrives is read in large pieces, and watch events go to the recursive watches, too. kazoo
  drops events for which it has no one-shot watch.

What is relied upon of kazoo's private parts (``_session_callback``, ``_stopped``, ``_connection``,
``ConnectionHandler._read_sock`` and ``_write_sock``,
``ConnectionHandler._invoke``, ``_read``, ``_read_socket``, ``_read_watch_event``,
``_expand_client_hosts``, ``last_zxid``, the handler's ``_running``) is pinned down by the tests of
this package.
"""

from __future__ import annotations

import contextlib
import logging
import random
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sized
from functools import partial
from typing import Any, Final, Protocol

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped, WriterNotClosedException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import PING_XID, ConnectionHandler
from kazoo.protocol.serialization import Connect, Ping
from kazoo.protocol.states import Callback, KeeperState
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from regent.zookeeper.awaited_answers import AwaitedAnswer
from regent.zookeeper.host_lookup import Address, HostLookup, ServerLookup
from regent.zookeeper.log_pauses import SilenceAboutRepeats
from regent.zookeeper.receive_buffer import Event, ReceiveBuffer, decode_event
from regent.zookeeper.request_queue import RequestQueue
from regent.zookeeper.settings import TlsSettings, ZooKeeperSettings
from regent.zookeeper.tls import connect as tls_connection
from regent.zookeeper.tls import explained

logger = logging.getLogger(__name__)

_KAZOO_LOGGER: Final = logging.getLogger("regent.zookeeper.kazoo")
_KAZOO_LOGGER.addFilter(SilenceAboutRepeats())

_RECONNECT: Final = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 0.5}
"""Pauses between rounds over all servers, in seconds. kazoo's default grows up to an hour."""

_CLOSE_TIMEOUT_S: Final = 5.0
_WAKES_AT_ONCE: Final = 4096

_CONNECTED_STATES: Final = (KeeperState.CONNECTED, KeeperState.CONNECTED_RO)


class SessionObserver(Protocol):
    """Notified about a session, in kazoo's connection thread: must not block and must not raise."""

    def attempt_failed(self, reason: str) -> None:
        """A server was tried in vain."""
        ...

    def handshake_done(self, sent_at: float, granted_timeout_ms: int) -> None:
        """A server has accepted the session. It did so after ``sent_at`` (monotonic seconds)."""
        ...

    def is_overdue(self) -> bool:
        """Whether servers that were there all the time have ended the session by now."""
        ...

    def has_answered_since(self, moment: float) -> bool:
        """Whether something was answered that was asked after a moment (monotonic seconds), and so
        all that was asked before. Called in any thread."""
        ...

    def connected(self, session_id: int) -> None:
        """Requests can be sent; for the first time, or again."""
        ...

    def suspended(self) -> None:
        """The connection is lost. Called before the requests under way fail."""
        ...

    def ended(self, state: str) -> None:
        """The session is over, and so is this client. ``state`` is kazoo's ``KeeperState``."""
        ...


class OneSessionClient(KazooClient):
    """A kazoo client for the length of one session. Knows nothing of the chroot.

    Attributes:
        on_event: Called with every watch event, in the connection's thread, before the one-shot
            watches are. Must not block.

    Args:
        lookup: Knows where servers were for former sessions; None: of this one alone.
    """

    on_event: Callable[[Event], None] | None = None
    _connection: _Connection

    def __init__(
        self,
        settings: ZooKeeperSettings,
        observer: SessionObserver,
        lookup: ServerLookup | None = None,
    ) -> None:
        self._observer = observer
        sasl = settings.sasl
        connect_timeout_s = settings.connect_timeout_ms / 1000
        sasl_options: dict[str, str] | None = None
        if sasl is not None:
            sasl_options = {"mechanism": sasl.mechanism, "service": sasl.service}
            if sasl.username is not None:
                sasl_options |= {"username": sasl.username, "password": sasl.password or ""}
        incoming = ReceiveBuffer()
        super().__init__(
            hosts=",".join(settings.hosts),
            timeout=settings.session_timeout_ms / 1000,
            handler=_Handler(connect_timeout_s, settings.tls, observer, incoming),
            randomize_hosts=True,
            connection_retry=_RECONNECT,
            command_retry=_RECONNECT,
            default_acl=access_control_list(settings),
            logger=_KAZOO_LOGGER,
        )
        # Read by kazoo for its log only: the handler decides, by our settings.
        self.use_ssl = settings.tls is not None
        self._connection = _Connection(
            self,
            observer=observer,
            incoming=incoming,
            handshake_timeout_s=connect_timeout_s,
            sasl_options=sasl_options,
            tls=settings.tls,
            lookup=HostLookup() if lookup is None else lookup,
        )

    @property
    def server(self) -> Address | None:
        """The server that was tried last: while there is a connection, the one it leads to."""
        return self._connection.server

    def _reset(self) -> None:
        super()._reset()
        self._queue = RequestQueue()

    def start_async(self) -> Any:
        """See kazoo. After an error :meth:`dispose` finds a client that is stopped."""
        try:
            return super().start_async()
        except BaseException:
            self._stopped.set()  # there is no connection that could be asked to close the session
            raise

    def _session_callback(self, state: str) -> None:
        before = self._state
        if state != before and state not in _CONNECTED_STATES:
            if state != KeeperState.CONNECTING:
                # Before kazoo fails the requests under way, and before it can think of
                # establishing another session.
                self._stopped.set()
                self._observer.ended(state)
            elif before in _CONNECTED_STATES:
                self._observer.suspended()
        super()._session_callback(state)
        if state == KeeperState.CONNECTING and before in _CONNECTED_STATES:
            _drop_surplus_wakes(self._connection, self._queue)
        if state != before and state in _CONNECTED_STATES:
            session = self.client_id
            assert session is not None
            self._observer.connected(session[0])

    def _safe_close(self) -> None:
        # kazoo's own waits for the session timeout, but no less than ten seconds.
        self.handler.stop()
        if not self._connection.stop(_CLOSE_TIMEOUT_S):
            raise WriterNotClosedException(f"no end within {_CLOSE_TIMEOUT_S:g} s")

    def dispose(self) -> None:
        """End the session, if it is not over, and the threads. Blocks, for :data:`_CLOSE_TIMEOUT_S`
        at worst: a server that is frozen finds the request to close the session when it goes on.

        Must not be called from one of kazoo's threads.
        """
        try:
            if self._stopped.is_set():
                self._safe_close()
            else:
                self.stop()
            self.close()
        except WriterNotClosedException:
            # The server does not answer, or a connection attempt is stuck in the operating system.
            # The thread is a daemon and finds the client stopped when it comes back.
            logger.warning("A ZooKeeper connection did not close in time and is abandoned")


class _Handler(SequentialThreadingHandler):
    def __init__(
        self,
        connect_timeout_s: float,
        tls: TlsSettings | None,
        observer: SessionObserver,
        incoming: ReceiveBuffer,
    ) -> None:
        super().__init__()
        self._observer = observer
        self._incoming = incoming
        self._connect_timeout_s = connect_timeout_s
        self._tls = tls

    def start(self) -> None:
        """Start all of its threads, or none. kazoo stops only a handler that has all of them."""
        try:
            super().start()  # type: ignore[misc]
        except BaseException:
            self._running = True
            self.stop()
            raise

    def async_result(self) -> AwaitedAnswer:
        return AwaitedAnswer(self, has_answered_since=self._observer.has_answered_since)

    def create_connection(self, *args: Any, **kwargs: Any) -> socket.socket:
        try:
            return self._connect(*args, **kwargs)
        except Exception as error:
            host, port = kwargs["hostname"], kwargs["address"][1]
            self._observer.attempt_failed(f"no connection to {host}:{port}: {error}")
            raise

    def _connect(self, *args: Any, **kwargs: Any) -> socket.socket:
        wanted = kwargs.get("timeout")
        bound = self._connect_timeout_s
        timeout_s = bound if wanted is None else min(wanted, bound)
        if self._tls is None:
            kwargs["timeout"] = timeout_s
            return super().create_connection(*args, **kwargs)
        return tls_connection(
            kwargs["address"], self._tls, hostname=kwargs["hostname"], timeout_s=timeout_s
        )

    def select(
        self, readers: list[Any], writers: list[Any], errors: list[Any], timeout: float | None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        # What is decrypted already makes no socket readable.
        decrypted = [s for s in readers if isinstance(s, ssl.SSLSocket) and s.pending()]
        if decrypted:
            return decrypted, [], []
        # What is in the buffer makes none readable either, but requests may be sent meanwhile.
        buffered = [self._incoming.source] if self._incoming else []
        if buffered and self._incoming.source in readers:
            timeout = 0
            readers = [s for s in readers if s not in buffered]
        else:
            buffered = []
        # kazoo calls this several times per request, and its own makes an epoll object each time.
        # It waits for reading or for writing, never for both with one socket.
        poll = select.poll()
        for reader in readers:
            poll.register(reader, select.POLLIN)
        for writer in writers:
            poll.register(writer, select.POLLOUT)
        ready = {fd for fd, _ in poll.poll(None if timeout is None else timeout * 1000)}
        return (
            buffered + [reader for reader in readers if reader.fileno() in ready],
            [writer for writer in writers if writer.fileno() in ready],
            [],
        )

    def dispatch_callback(self, callback: Callback) -> None:
        callback.func(*callback.args)


class _Connection(ConnectionHandler):
    _connection_routine: Any  # a thread, or None
    connection_stopped: threading.Event

    def __init__(
        self,
        client: OneSessionClient,
        *,
        observer: SessionObserver,
        incoming: ReceiveBuffer,
        handshake_timeout_s: float,
        sasl_options: dict[str, str] | None,
        tls: TlsSettings | None,
        lookup: ServerLookup,
    ) -> None:
        super().__init__(
            client, client._conn_retry.copy(), logger=client.logger, sasl_options=sasl_options
        )
        self._one_session_client = client
        self._observer = observer
        self._incoming = incoming
        self._handshake_timeout_s = handshake_timeout_s
        self._tls = tls
        self.server: Address | None = None
        self._lookup = lookup

    @property
    def _server_name(self) -> str:
        return "" if self.server is None else f"{self.server[0]}:{self.server[2]}"

    def stop(self, timeout: float | None = None) -> bool:
        """Wait until the thread has ended, or the time is up; whether it has ended. (kazoo's own
        waits for the time and then for the thread, which a frozen server does not let go.)"""
        has_stopped: bool = self.connection_stopped.wait(timeout)
        if has_stopped and self._connection_routine:
            self._connection_routine.join()
            self._connection_routine = None
        return has_stopped

    def _expand_client_hosts(self) -> list[tuple[str, str, int]]:
        """Host, address and port of every server that can be resolved, in random order."""
        found = self._lookup.addresses(
            self._one_session_client.hosts, on_failure=self._observer.attempt_failed
        )
        random.shuffle(found)
        return found

    def _connect(self, host: str, hostip: str, port: int) -> Any:
        self.server = host, hostip, port
        return super()._connect(host, hostip, port)  # type: ignore[misc]

    def _read(self, length: int, timeout: float) -> bytes:
        with self._socket_error_handling():
            return self._incoming.read(self._socket, length, partial(self._receive, timeout))

    def _receive(self, timeout: float, size: int) -> bytes:
        """What has arrived, one byte at least."""
        while True:
            # The handler knows of what TLS has decrypted already.
            if not self.handler.select([self._socket], [], [], timeout)[0]:
                raise self.handler.timeout_exception("socket time-out during read")
            try:
                received: bytes = self._socket.recv(size)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                continue
            if not received:
                raise ConnectionDropped("socket connection broken")
            return received

    def _read_socket(self, read_timeout: float) -> Any:
        """Process one message, and the watch events that have arrived together with it."""
        answer = super()._read_socket(read_timeout)
        while (event := self._incoming.take_event()) is not None:
            self._notify(event)
        return answer

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        self._notify(decode_event(buffer, offset))

    def _notify(self, event: Event) -> None:
        client = self._one_session_client
        if client.on_event is not None and not client._stopped.is_set():
            client.on_event(event)
        if event.path in client._data_watchers or event.path in client._child_watchers:
            super()._read_watch_event(event.as_body(), 0)

    def _invoke(self, timeout: float, request: object, xid: int | None = None) -> Any:
        if not isinstance(request, Connect):
            return super()._invoke(timeout, request, xid)
        is_overdue = self._observer.is_overdue()
        if is_overdue:
            # A server that knows less than we have seen would close the connection without a word.
            request = request._replace(last_zxid_seen=0)
        sent_at = time.monotonic()
        try:
            answer, zxid = super()._invoke(min(timeout, self._handshake_timeout_s), request, xid)
            if is_overdue and answer.time_out > 0 and not self._knows_what_was_seen(timeout):
                answer = answer._replace(time_out=0)  # for kazoo: it has expired
        except Exception as error:
            self._observer.attempt_failed(
                f"{self._server_name} gave no answer to the session request: "
                f"{self._explained(error)}"
            )
            raise
        if answer.time_out > 0:  # else the session has expired
            self._observer.handshake_done(sent_at, answer.time_out)
        return answer, zxid

    def _knows_what_was_seen(self, timeout: float) -> bool:
        """Whether the server that has just accepted the session has all the transactions that this
        client has seen. Nothing that is known of others would hold."""
        seen = self._one_session_client.last_zxid
        known = super()._invoke(min(timeout, self._handshake_timeout_s), Ping(), PING_XID)
        if known is None or known >= seen:
            return True
        logger.warning(
            "ZooKeeper has lost transactions that were seen, as after a restored backup, or the "
            "server lags behind by more than a session timeout: a new session begins",
            extra={"server": self._server_name, "seen": f"{seen:#x}", "known": f"{known:#x}"},
        )
        return False

    def _explained(self, error: Exception) -> str:
        if self._tls is None:
            return f"{error}; it may have no quorum, or expect TLS"
        return explained(error, self._tls, hostname="")


def _drop_surplus_wakes(connection: Any, queue: Sized) -> None:
    """Make the bytes in the socket pair as many as there are requests, in kazoo's thread.

    Who adds a request writes its byte afterwards: one too many does no harm, one too few would
    leave a request in the queue.
    """
    read_sock, write_sock = connection._read_sock, connection._write_sock
    if read_sock is None or write_sock is None:  # closed
        return
    with contextlib.suppress(BlockingIOError):
        while read_sock.recv(_WAKES_AT_ONCE, socket.MSG_DONTWAIT):
            pass
    if waiting := len(queue):
        write_sock.send(bytes(waiting))


def access_control_list(settings: ZooKeeperSettings, *, is_sensitive: bool = False) -> list[ACL]:
    """What nodes are created with (``ZkData.defaultAcls``).

    Args:
        is_sensitive: Of nodes that others than brokers may not even read.
    """
    if not settings.set_acl:
        return OPEN_ACL_UNSAFE
    return CREATOR_ALL_ACL if is_sensitive else CREATOR_ALL_ACL + READ_ACL_UNSAFE
