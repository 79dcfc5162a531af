"""Heartbeats between replicas, over real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from regent.model.cluster import Address
from regent.model.replica import ReplicaPresence, SuspectedReplica
from regent.network import heartbeats, replica_client
from regent.network.heartbeats import Heartbeats
from regent.network.replica_tls import ReplicaTls, tls_between_replicas
from regent.replicas.messages import Answer, encode
from regent.replicas.suspicion import SuspicionSettings
from regent.sockets.listening import listening_socket
from sandbox.pki import Authority, TlsFiles
from tests.support.waiting import wait_for

SETTINGS = SuspicionSettings(heartbeat_s=0.02, silence_s=0.4, refused_s=0.01, unreached_s=0.1)
SESSION = 77
LOCALHOST = "127.0.0.1"


class Replica:
    """The heartbeats of one replica, and what they have reported."""

    def __init__(
        self,
        stack: ExitStack,
        instance: str,
        *,
        is_ready: bool = True,
        tls: ReplicaTls | None = None,
    ) -> None:
        self.heartbeats = Heartbeats(
            instance=instance,
            listening=listening_socket(LOCALHOST, 0, setting="replica"),
            settings=SETTINGS,
            tls=tls,
        )
        self.suspected: list[Mapping[int, SuspectedReplica]] = []
        self.unheard: list[list[int]] = []
        self.named: list[int] = []
        self.heartbeats.start(
            on_suspected=self._report,
            on_named=self.named.append,
            is_ready=lambda: is_ready,
        )
        stack.callback(self.heartbeats.close)

    def _report(self, suspected: Mapping[int, SuspectedReplica]) -> None:
        self.suspected.append(suspected)
        self.unheard.append(list(self.heartbeats.unheard()))

    @property
    def presence(self) -> ReplicaPresence:
        return ReplicaPresence(
            self.heartbeats.instance, 1_000_000_001, Address(LOCALHOST, self.heartbeats.port)
        )

    def follow(self, other: ReplicaPresence) -> None:
        """Ask another one, until it has answered."""
        self.heartbeats.set_peers({SESSION: other})
        wait_for(lambda: self.heartbeats.problems() == {str(other): None}, "an answer")

    def suspicion(self) -> str:
        """Wait for one; its reason."""
        wait_for(lambda: bool(self.suspected), "a suspicion")
        counted = [reason for reason, count in self.heartbeats.suspicions.items() if count]
        assert list(self.suspected[0]) == [SESSION]
        (reason,) = counted
        return reason


class Stub:
    """Answers heartbeats by hand.

    Attributes:
        answers: Whether it does.
        accepted: Connections so far.
    """

    def __init__(self, stack: ExitStack, *, instance: str = "stub", port: int = 0) -> None:
        self._instance = instance
        self._listening = socket.create_server((LOCALHOST, port))
        self._connections: list[socket.socket] = []
        self._forgotten: set[socket.socket] = set()
        self.answers = threading.Event()
        self.answers.set()
        self.accepted = 0
        self.presence = ReplicaPresence(
            "stub", 1_000_000_002, Address(LOCALHOST, self._listening.getsockname()[1])
        )
        threading.Thread(target=self._accept, daemon=True).start()
        stack.callback(self.die)

    def die(self) -> None:
        end(self._listening)
        self.hang_up()

    def hang_up(self) -> None:
        connections, self._connections = self._connections, []
        for connection in connections:
            end(connection)

    def forget_connections(self) -> None:
        """Never answer on those that there are."""
        self._forgotten.update(self._connections)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._connections.append(connection)
            self.accepted += 1
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while connection.recv(1_000):
                if self.answers.is_set() and connection not in self._forgotten:
                    connection.sendall(encode(Answer(self._instance)))
        except OSError:
            return


def end(open_socket: socket.socket) -> None:
    """Close it, also for a thread that waits for it."""
    with suppress(OSError):  # closed by the other side
        open_socket.shutdown(socket.SHUT_RDWR)
    open_socket.close()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_two_that_live_do_not_suspect_each_other_and_know_who_is_ready(stack: ExitStack) -> None:
    a, b = Replica(stack, "a"), Replica(stack, "b", is_ready=False)
    a.follow(b.presence)
    b.follow(a.presence)
    wait_for(lambda: b.heartbeats.ready() == {"a"}, "a to be ready")
    assert a.heartbeats.ready() == frozenset()
    assert a.suspected == b.suspected == []


def test_one_that_is_named_is_told_and_nobody_else(stack: ExitStack) -> None:
    a, b, c = (Replica(stack, name) for name in "abc")
    for other in (b, c):
        other.follow(a.presence)
    wait_for(lambda: a.heartbeats.ready() == {"b", "c"}, "both to be ready")
    a.heartbeats.name("c")
    wait_for(lambda: c.named == [SESSION], "c to be named")
    assert b.named == []


def test_one_whose_process_ends_is_dead(stack: ExitStack) -> None:
    a, stub = Replica(stack, "a"), Stub(stack)
    a.follow(stub.presence)
    stub.die()
    assert a.suspicion() == "dead"
    suspect = a.suspected[0][SESSION]
    assert "port refuses" in suspect.why
    assert str(stub.presence) in suspect.why
    assert suspect.is_dead


def test_a_suspicion_is_reported_as_long_as_it_lasts(stack: ExitStack) -> None:
    a, stub = Replica(stack, "a"), Stub(stack)
    a.follow(stub.presence)
    stub.die()
    wait_for(lambda: len(a.suspected) >= 2, "another report")
    a.heartbeats.set_peers({})
    wait_for(lambda: not a.heartbeats.problems(), "it to be forgotten")
    assert sum(a.heartbeats.suspicions.values()) == 1


@pytest.mark.parametrize("function", ["encode", "decode_answer"])
def test_an_error_of_its_own_is_no_silence_of_the_other_and_heals(
    stack: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    function: str,
) -> None:
    """Else a standby without memory for a moment would depose a controller in best health."""
    a, stub = Replica(stack, "a"), Stub(stack)
    a.follow(stub.presence)

    def fail(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(replica_client, "RETRY_PAUSE_S", 0.05)
    monkeypatch.setattr(replica_client, function, fail)
    before = stub.accepted
    wait_for(lambda: stub.accepted >= before + 20, "silence to have been long enough")
    assert a.suspected == []
    problem = a.heartbeats.problems()[str(stub.presence)]
    assert problem == "a defect of this replica: MemoryError('no room')"
    assert len([r for r in caplog.records if r.levelname == "ERROR"]) == 1
    monkeypatch.undo()
    wait_for(lambda: a.heartbeats.problems() == {str(stub.presence): None}, "an answer")
    assert a.suspected == []
    stub.answers.clear()
    assert a.suspicion() == "frozen"


def test_a_connection_that_was_forgotten_is_replaced_by_another(stack: ExitStack) -> None:
    """Else the suspicion would last as long as TCP repeats what is not acknowledged."""
    a, stub = Replica(stack, "a"), Stub(stack)
    a.follow(stub.presence)
    stub.answers.clear()
    assert a.suspicion() == "frozen"
    stub.forget_connections()
    stub.answers.set()
    wait_for(lambda: a.heartbeats.problems() == {str(stub.presence): None}, "an answer")


def test_another_process_at_its_port_has_replaced_it(stack: ExitStack) -> None:
    a, stub = Replica(stack, "a"), Stub(stack)
    a.follow(stub.presence)
    stub._instance = "another"
    stub.hang_up()
    assert a.suspicion() == "replaced"


@pytest.mark.parametrize("answering", ["a", "b"])
def test_address_of_other_live_replicas_proves_nothing(stack: ExitStack, answering: str) -> None:
    """Replicas behind one address that spreads connections, such as that of a Service."""
    a, b, stub = Replica(stack, "a"), Replica(stack, "b"), Stub(stack)
    a.follow(stub.presence)
    a.heartbeats.set_peers({SESSION: stub.presence, SESSION + 1: b.presence})
    stub._instance = answering
    before = stub.accepted
    stub.hang_up()
    wait_for(lambda: stub.accepted >= before + 3, "silence to have been long enough")
    assert a.suspected == []
    problem = a.heartbeats.problems()[str(stub.presence)]
    assert problem is not None
    assert f"instance {answering} answers there" in problem
    assert "replica_advertised_host" in problem
    stub._instance = "stub"
    wait_for(lambda: a.heartbeats.problems()[str(stub.presence)] is None, "it to answer again")


def test_a_connection_that_ends_alone_is_opened_again(stack: ExitStack) -> None:
    a, stub = Replica(stack, "a"), Stub(stack)
    a.follow(stub.presence)
    for _ in range(3):
        stub.hang_up()
        wait_for(lambda: bool(stub._connections), "another connection")
        wait_for(lambda: a.heartbeats.problems() == {str(stub.presence): None}, "an answer")
    assert a.suspected == []


def test_unreached_peer_is_no_suspect(stack: ExitStack, caplog: pytest.LogCaptureFixture) -> None:
    a, stub = Replica(stack, "a"), Stub(stack)
    stub.die()
    a.heartbeats.set_peers({SESSION: stub.presence})
    wait_for(
        lambda: "refused" in (a.heartbeats.problems().get(str(stub.presence)) or ""), "a problem"
    )
    wait_for(lambda: list(a.heartbeats.unheard()) == [SESSION], "it to be unheard")
    assert "does not answer: refused" in a.heartbeats.unheard()[SESSION]
    assert a.suspected == []
    assert a.heartbeats.suspected() == {}
    assert [r.message for r in caplog.records] == [
        "Another replica is not reached: if it leads and ends, its session is waited for"
    ]


def test_one_that_accepts_and_never_answers_is_unheard_until_it_does(stack: ExitStack) -> None:
    a, stub = Replica(stack, "a"), Stub(stack)
    stub.answers.clear()
    a.heartbeats.set_peers({SESSION: stub.presence})
    wait_for(lambda: list(a.heartbeats.unheard()) == [SESSION], "it to be unheard")
    assert a.suspected == []
    stub.answers.set()
    wait_for(lambda: not a.heartbeats.unheard(), "it to be heard")
    stub.die()
    assert a.suspicion() == "dead"


def test_a_former_self_at_the_same_address_is_unheard(stack: ExitStack) -> None:
    """As after a restart in the same pod: this process answers there itself."""
    a = Replica(stack, "a")
    former = ReplicaPresence("former", 1_000_000_001, a.presence.address)
    a.heartbeats.set_peers({SESSION: former})
    wait_for(lambda: list(a.heartbeats.unheard()) == [SESSION], "it to be unheard")
    assert a.suspected == []


def test_unheard_beside_suspect_reported(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits behind both of them need not wait until the suspicion is repeated."""
    monkeypatch.setattr(heartbeats, "REPEAT_S", 3_600.0)
    a, leader, former = Replica(stack, "a"), Stub(stack), Stub(stack)
    former.answers.clear()
    a.heartbeats.set_peers({SESSION: leader.presence})
    wait_for(lambda: a.heartbeats.problems() == {str(leader.presence): None}, "an answer")
    a.heartbeats.set_peers({SESSION: leader.presence, SESSION + 1: former.presence})
    wait_for(lambda: former.accepted, "it to be asked")
    leader.die()
    wait_for(lambda: [SESSION + 1] in a.unheard, "a report")
    assert list(a.heartbeats.suspected()) == [SESSION]


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", b"x" * 100_000, b"[" * 900 + b"\n"])
def test_who_is_no_replica_is_cut_off_and_harms_nobody(stack: ExitStack, sent: bytes) -> None:
    a, b = Replica(stack, "a"), Replica(stack, "b")
    b.follow(a.presence)
    with socket.create_connection(a.presence.address) as stranger:
        stranger.settimeout(60)
        with suppress(ConnectionError):  # cut off before it had sent all
            stranger.sendall(sent)
            assert stranger.recv(1) == b""
    assert b.suspected == []


def wait_for_problem(replica: Replica, peer: ReplicaPresence, *texts: str) -> None:
    """Have a replica ask another one in vain, until it is known why it has no answer. On a busy
    machine an attempt may take too long for another reason."""
    replica.heartbeats.set_peers({SESSION: peer})
    wait_for(
        lambda: replica.heartbeats.problems().get(str(peer)) or "",
        f"a problem with {texts}",
        until=lambda problem: all(text in problem for text in texts),
    )


def tls_by(files: TlsFiles, *, authorities: Path | None = None) -> ReplicaTls:
    """A replica's TLS; it trusts the authority of its own certificate, unless others are named."""
    return tls_between_replicas(
        authorities=authorities or files.ca_certificate,
        certificate=files.certificate,
        key=files.key,
    )


class TestTls:
    def test_both_show_certificates(self, stack: ExitStack, tmp_path: Path) -> None:
        authority = Authority(tmp_path)
        a, b = (Replica(stack, name, tls=tls_by(authority.issue(name))) for name in "ab")
        b.follow(a.presence)
        wait_for(lambda: a.heartbeats.ready() == {"b"}, "b to be ready")
        a.heartbeats.name("b")
        wait_for(lambda: b.named == [SESSION], "b to be named")

    def test_wrong_authority_is_named_by_both(self, stack: ExitStack, tmp_path: Path) -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        both = [tmp_path / "one" / "ca.pem", tmp_path / "two" / "ca.pem"]
        one, two = (Authority(path.parent) for path in both)
        a = Replica(stack, "a", tls=tls_by(one.issue("a")))
        b = Replica(stack, "b", tls=tls_by(two.issue("b")))
        # c accepts both, and is accepted by none but itself
        trusted = tmp_path / "both.pem"
        trusted.write_bytes(b"".join(path.read_bytes() for path in both))
        c = Replica(stack, "c", tls=tls_by(two.issue("c"), authorities=trusted))
        wait_for_problem(b, a.presence, "replica_tls_ca_file must have the authority")
        wait_for_problem(c, a.presence, "may not accept our certificate")

    def test_expired_certificate_is_named_by_both(self, stack: ExitStack, tmp_path: Path) -> None:
        authority = Authority(tmp_path)
        a = Replica(stack, "a", tls=tls_by(authority.issue("a")))
        files = authority.issue("b", is_expired=True)
        b = Replica(stack, "b", tls=tls_by(files))
        wait_for_problem(
            a,
            b.presence,
            "certificate is not valid now: renew its replica_tls_certificate_file",
        )
        wait_for_problem(b, a.presence, f"the certificate in {files.certificate}", "expired at")
        assert a.suspected == b.suspected == []

        authority.renew(files)
        b.follow(a.presence)
        a.follow(b.presence)

    def test_one_without_tls_is_named(self, stack: ExitStack, tmp_path: Path) -> None:
        a = Replica(stack, "a", tls=tls_by(Authority(tmp_path).issue("a")))
        plain = Replica(stack, "b")
        a.heartbeats.set_peers({SESSION: plain.presence})
        wait_for_problem(a, plain.presence, "or it has no replica_tls")


def test_an_error_that_ends_them_is_a_defect() -> None:
    listening = listening_socket(LOCALHOST, 0, setting="replica")
    broken = Heartbeats(instance="a", listening=listening, settings=SETTINGS, tls=None)
    assert broken.defect() is None
    listening.close()
    with pytest.raises(OSError):
        broken.start(on_suspected=lambda _: None, on_named=lambda _: None, is_ready=lambda: True)
    assert (broken.defect() or "").startswith("the heartbeats of replicas have ended: ")
