"""TLS, SASL/SCRAM and access control lists everywhere: ZooKeeper, brokers, endpoint, clients."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from sandbox import wait_until
from sandbox.regent_process import RegentProcess
from sandbox.znodes import end_session_of_owner
from tests.integration.endpoint.secured_support import (
    SecuredCluster,
    address_of,
    controller_id_of,
)
from tests.integration.endpoint.stopping import assert_stopped_cleanly_at_the_first_attempt
from tests.support.librdkafka import TIMEOUT_S

pytestmark = [pytest.mark.integration, pytest.mark.slow]

_numbers = itertools.count(1)


@pytest.fixture
def process(secured: SecuredCluster) -> Iterator[RegentProcess]:
    secured.restore()
    with secured.active_regent() as started:
        yield started


def test_records_survive_a_regent_that_is_killed_and_one_that_hands_over(
    secured: SecuredCluster,
) -> None:
    secured.restore()
    topic = f"round-trip-{next(_numbers)}"
    batches = [[f"{number}-{each}" for each in range(30)] for number in range(3)]
    with secured.active_regent() as first:
        address = address_of(first)
        secured.create_topic(address, topic)
        secured.produce(address, topic, batches[0])
        first.kill()
        end_session_of_owner(secured.zookeeper.connect_string, "/controller")
    with secured.active_regent() as second:
        address = address_of(second)
        secured.produce(address, topic, batches[1])
        found = secured.consume(address, topic, 60)
        assert sorted(found) == sorted(batches[0] + batches[1])
        controller = controller_id_of(second)
    assert secured.znodes.controller() != controller
    secured.produce(secured.kafka.bootstrap_servers, topic, batches[2])
    found = secured.consume(secured.kafka.bootstrap_servers, topic, 90)
    assert sorted(found) == sorted(itertools.chain.from_iterable(batches))


def test_a_broker_stops_cleanly_at_the_first_attempt(
    secured: SecuredCluster, process: RegentProcess
) -> None:
    topic = f"clean-stop-{next(_numbers)}"
    secured.create_topic(address_of(process), topic, partitions=6)
    secured.wait_in_sync(topic)
    broker = secured.kafka.broker(2)
    broker.stop()
    assert_stopped_cleanly_at_the_first_attempt(broker)
    # It may have fetched before its replicas were stopped, and have been in an ISR once more.
    wait_until(
        lambda: [secured.znodes.state(topic, partition) for partition in range(6)],
        until=lambda states: all(s["leader"] in (1, 3) and 2 not in s["isr"] for s in states),
        describe="the others to lead, without broker 2",
        logs=[process.log_path],
    )
    broker.start()
    secured.wait_in_sync(topic)


def test_a_reassignment_runs_to_its_end(
    secured: SecuredCluster, process: RegentProcess, tmp_path: Path
) -> None:
    topic = f"reassigned-{next(_numbers)}"
    address = address_of(process)
    secured.create_topic(address, topic, partitions=2)
    secured.produce(address, topic, [f"message-{n}" for n in range(30)])
    plan = tmp_path / "plan.json"
    moves = [
        {"topic": topic, "partition": 0, "replicas": [2, 3]},
        {"topic": topic, "partition": 1, "replicas": [3, 1]},
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    secured.tools(address).run(
        "kafka-reassign-partitions",
        f"--bootstrap-server={address}",
        f"--command-config={secured.command_config()}",
        f"--reassignment-json-file={plan}",
        "--execute",
    )
    wait_until(
        lambda: secured.znodes.assignment(topic),
        until=lambda found: found == {0: [2, 3], 1: [3, 1]},
        describe="the reassignment to end",
        logs=[process.log_path],
    )
    secured.wait_in_sync(topic)
    assert len(secured.consume(address, topic, 30)) == 30


def test_what_regent_writes_can_be_changed_by_brokers_and_by_nobody_else(
    secured: SecuredCluster, process: RegentProcess
) -> None:
    topic = f"owned-{next(_numbers)}"
    secured.create_topic(address_of(process), topic)
    secured.wait_in_sync(topic)
    for path in (
        f"/brokers/topics/{topic}",
        f"/brokers/topics/{topic}/partitions/0/state",
        f"/config/topics/{topic}",
        "/controller",
    ):
        acls, _ = secured.znodes.client.get_acls(path)
        rights = {(acl.id.scheme, acl.id.id): acl.perms for acl in acls}
        assert rights[("sasl", "kafka")] == 31, path
        assert rights[("world", "anyone")] == 1, path
    assert not [e for e in process.log_entries() if "NOAUTH" in str(e)]


def test_certificates_that_are_renewed_in_place_are_used_without_a_restart(
    secured: SecuredCluster,
) -> None:
    """All of Regent's have expired when it starts: what it shows to ZooKeeper, to brokers and to
    clients. Each connection comes about once the file is replaced."""
    secured.restore()
    own, endpoint = secured.regent_files, secured.endpoint_files
    try:
        for files in (own, endpoint):
            secured.authority.renew(files, is_expired=True)
        with secured.regent() as process:
            wait_until(
                lambda: (process.status() or {}).get("zooKeeperProblem") or "",
                until=lambda problem: str(own.certificate) in problem,
                describe="ZooKeeper to refuse the certificate",
                logs=[process.log_path],
            )
            secured.authority.renew(own)
            process.wait_until_active()
            wait_until(
                lambda: secured.shown_controllers(),
                until=lambda shown: shown == {controller_id_of(process)},
                describe="brokers to be informed",
                logs=[process.log_path],
            )
            address = address_of(process)
            with pytest.raises(KafkaException):
                secured.admin(address).list_topics(timeout=60)
            secured.authority.renew(endpoint)
            secured.admin(address).list_topics(timeout=TIMEOUT_S)
            status = process.status() or {}
            assert status["unreachedBrokers"] == {}
            assert status["endpoint"]["problem"] is None
    finally:
        for files in (own, endpoint):
            secured.authority.renew(files)


def test_what_a_tool_sets_for_a_user_is_readable_by_brokers_only(
    secured: SecuredCluster, process: RegentProcess
) -> None:
    """AlterUserScramCredentials makes Regent write the user's credential."""
    user = f"user-{next(_numbers)}"
    admin = secured.admin(address_of(process))
    change = UserScramCredentialUpsertion(
        user, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"a new secret"
    )
    (answer,) = admin.alter_user_scram_credentials([change]).values()
    answer.result(TIMEOUT_S)
    acls, _ = secured.znodes.client.get_acls(f"/config/users/{user}")
    assert "world" not in {acl.id.scheme for acl in acls}
    options = secured.client_options(address_of(process), user=user, password="a new secret")
    client = AdminClient(options)
    wait_until(
        lambda: client.list_topics(timeout=60).brokers,
        describe="brokers, to whom the request is passed on, to know the user",
    )
