"""Replicas with TLS between them, as processes with certificates in files: those of one authority
follow each other, and the others are told what is wrong with theirs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sandbox import ZooKeeper, wait_until
from sandbox.pki import Authority, TlsFiles
from sandbox.regent_process import RegentProcess

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SESSION_TIMEOUT_MS = 40_000
"""Longer than any of this takes: what is seen does not come from the end of a session."""

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeper]:
    with ZooKeeper() as server:
        yield server


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class Replicas:
    """Of one Regent, whose cluster has neither brokers nor topics."""

    def __init__(self, stack: ExitStack, zookeeper: ZooKeeper, chroot: str) -> None:
        self._stack = stack
        self._connect_string = f"{zookeeper.connect_string}/{chroot}"

    def start(self, files: TlsFiles) -> RegentProcess:
        number = next(_numbers)
        process = RegentProcess(
            zookeeper=self._connect_string,
            name=f"regent-{number}",
            forked=True,
            settings={
                "controller_id": 1_000_000_000 + number,
                "zookeeper_session_timeout_ms": SESSION_TIMEOUT_MS,
                "missing_cluster": "create",
                "warm_standby": True,
                "replica_host": "127.0.0.1",
                "replica_tls": True,
                "replica_tls_ca_file": str(files.ca_certificate),
                "replica_tls_certificate_file": str(files.certificate),
                "replica_tls_key_file": str(files.key),
            },
        )
        self._stack.callback(process.close)
        process.start()
        return process


@pytest.fixture
def replicas(stack: ExitStack, zookeeper: ZooKeeper, tmp_path: Path) -> Replicas:
    return Replicas(stack, zookeeper, tmp_path.name)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def shown(process: RegentProcess) -> dict[str, Any]:
    found: dict[str, Any] = (process.status() or {}).get("replicas") or {}
    return found


def wait_until_known(*processes: RegentProcess) -> None:
    for process in processes:
        wait_until(
            lambda one=process: list((shown(one).get("others") or {}).values()),  # type: ignore[misc]
            until=lambda problems: problems == [None] * (len(processes) - 1),
            describe="replicas that know each other",
            watch=[process.process],
            logs=[process.log_path],
        )


def wait_for_problem(process: RegentProcess, text: str) -> None:
    wait_until(
        lambda: list((shown(process).get("others") or {}).values()),
        until=lambda problems: any(text in (problem or "") for problem in problems),
        describe=f"the problem {text!r}",
        watch=[process.process],
        logs=[process.log_path],
    )


def test_replicas_with_certificates_of_one_authority_follow_each_other(
    replicas: Replicas, authority: Authority
) -> None:
    first = replicas.start(authority.issue("first"))
    first.wait_until_active()
    second = replicas.start(authority.issue("second"))
    wait_until_known(first, second)
    first.kill()
    second.wait_until_active()
    assert shown(second)["suspicions"]["dead"] == 1


def test_a_certificate_of_another_authority_is_named(
    replicas: Replicas, authority: Authority, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    first = replicas.start(authority.issue("first"))
    second = replicas.start(Authority(other).issue("second"))
    for process in (first, second):
        wait_for_problem(process, "replica_tls_ca_file must have the authority that has issued")
        assert sum(shown(process)["suspicions"].values()) == 0


def test_a_certificate_that_has_expired_is_named(replicas: Replicas, authority: Authority) -> None:
    expired = authority.issue("second", is_expired=True)
    first = replicas.start(authority.issue("first"))
    second = replicas.start(expired)
    wait_for_problem(first, "the other replica's certificate is not valid now: renew its")
    wait_for_problem(second, f"the certificate in {expired.certificate}")
    wait_for_problem(second, "expired at")
    for process in (first, second):
        assert sum(shown(process)["suspicions"].values()) == 0

    authority.renew(expired)
    wait_until_known(first, second)
