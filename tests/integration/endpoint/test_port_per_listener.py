"""Brokers with two listeners of one security protocol, and a Regent with a port for each."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from sandbox.ports import LOOPBACK, lease_port
from sandbox.secured import BROKERS_LISTENER, CLIENTS_LISTENER
from tests.integration.endpoint.secured_support import (
    SecuredCluster,
    address_of,
    controller_id_of,
)
from tests.support.librdkafka import TIMEOUT_S

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TOPIC = "by-both-listeners"
MESSAGES = [f"message-{number}" for number in range(30)]


class Forwarder:
    """Takes and counts connections to another port, as a load balancer does."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server((LOOPBACK, 0))
        self._threads = [threading.Thread(target=self._accept)]
        self.port = int(self._listening.getsockname()[1])
        self.connections = 0
        self._threads[0].start()

    def close(self) -> None:
        """Take no more connections, and wait until either side of each has ended it."""
        self._listening.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listening.accept()
                self.connections += 1
                thread = threading.Thread(target=self._forward, args=(client,))
                self._threads.append(thread)
                thread.start()

    def _forward(self, client: socket.socket) -> None:
        with (
            client,
            contextlib.suppress(ConnectionRefusedError),  # the target has ended
            socket.create_connection((LOOPBACK, self._target)) as server,
        ):
            back = threading.Thread(target=_copy, args=(server, client))
            back.start()
            _copy(client, server)
            back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Until one of them ends; then both do."""
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    for each in (source, sink):
        with contextlib.suppress(OSError):  # it has ended
            each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def forwarder(target: int) -> Iterator[Forwarder]:
    forwarding = Forwarder(target)
    try:
        yield forwarding
    finally:
        forwarding.close()


def test_clients_and_brokers_reach_regent_at_a_port_each(secured: SecuredCluster) -> None:
    secured.restore()
    with (
        lease_port() as lease,
        forwarder(lease.port) as outside,
        secured.active_regent(
            endpoint_listener=BROKERS_LISTENER,
            endpoint_further_listeners=f"{CLIENTS_LISTENER}://{LOOPBACK}:{lease.port}",
            endpoint_advertised_listeners=f"{CLIENTS_LISTENER}://{LOOPBACK}:{outside.port}",
        ) as process,
    ):
        for_clients = f"{LOOPBACK}:{outside.port}"
        status = process.status()
        assert status is not None
        assert status["endpoint"]["servedListeners"] == {CLIENTS_LISTENER: for_clients}
        assert address_of(process) not in (for_clients, f"{LOOPBACK}:{lease.port}")

        # Whom brokers show clients, and whom Regent does: everybody's listener for clients.
        shown = {(LOOPBACK, outside.port), *((LOOPBACK, b.port) for b in secured.kafka.brokers)}
        for address in (secured.kafka.bootstrap_servers, for_clients):
            found = secured.admin(address).list_topics(timeout=TIMEOUT_S)
            assert found.controller_id == controller_id_of(process)
            assert {(str(each.host), each.port) for each in found.brokers.values()} == shown

        before = outside.connections
        secured.create_topic(secured.kafka.bootstrap_servers, TOPIC)
        assert outside.connections > before
        secured.produce(for_clients, TOPIC, MESSAGES)
        assert sorted(secured.consume(for_clients, TOPIC, len(MESSAGES))) == sorted(MESSAGES)

        # Brokers ask by theirs: a controlled shutdown, and ISR changes.
        secured.wait_in_sync(TOPIC)
        broker = secured.kafka.broker(2)
        broker.stop()
        log = broker.process.log_of_this_run()
        assert "Proceeding to do an unclean shutdown" not in log
        broker.start()
        secured.wait_in_sync(TOPIC)
