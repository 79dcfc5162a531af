"""Access control lists that refuse Regent something: what needs it waits until it is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL, make_acl, make_digest_acl

from sandbox.regent_process import RegentProcess
from tests.integration.controller.test_partition_reassignments import assign, reassignment
from tests.support.cluster import Cluster, controller_id_of
from tests.support.reassigning import create_topic, wait_until_moved
from tests.support.resources import Resources
from tests.support.soak import soak
from tests.support.znodes import Znodes

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ONLY_OWNER = [make_digest_acl("owner", "secret", all=True)]
NO_CREATE = [*ONLY_OWNER, make_acl("world", "anyone", read=True, write=True, delete=True)]


@pytest.fixture
def owner(cluster: Cluster) -> Iterator[KazooClient]:
    """Somebody who has all rights on what is closed."""
    auth_data = [("digest", "owner:secret")]
    with Znodes(cluster.kafka.zookeeper, auth_data=auth_data) as znodes:
        yield znodes.client


@contextmanager
def closed(owner: KazooClient, path: str, acl: list[ACL]) -> Iterator[None]:
    """The node has this list; afterwards the one that it had."""
    before, _ = owner.get_acls(path)
    owner.set_acls(path, acl)
    try:
        yield
    finally:
        owner.set_acls(path, before)


def test_a_throttle_that_may_not_be_set_keeps_partitions_where_they_are_until_it_may(
    cluster: Cluster, resources: Resources, process: RegentProcess, owner: KazooClient
) -> None:
    moves = resources.of("reassignment")
    create_topic(cluster, "closed-throttle", {0: [1, 2]})
    epoch = cluster.znodes.controller_epoch()
    with closed(owner, "/config/changes", NO_CREATE):
        moves.apply(
            reassignment(
                "closed-throttle",
                assignments=assign("closed-throttle", {0: [3, 2]}),
                approval={"policy": "Automatic"},
                throttle={"bytesPerSecond": 10_000_000},
            )
        )
        cluster.wait(
            lambda: json.dumps(moves.get("closed-throttle").get("status", {})),
            "the refusal to be shown",
            until=lambda status: "NOAUTH for /config/changes" in status,
        )
        assert cluster.znodes.assignment("closed-throttle") == {0: [1, 2]}
    wait_until_moved(cluster, {("closed-throttle", 0): [3, 2]})
    assert cluster.znodes.controller_epoch() == epoch


@soak("controller")  # what cannot be read is tried again after a minute
def test_requests_that_nobody_may_read_take_the_controller_from_nobody(
    cluster: Cluster, process: RegentProcess, owner: KazooClient
) -> None:
    epoch = cluster.znodes.controller_epoch()
    create_topic(cluster, "closed-request", {0: [1, 2]})
    owner.create("/admin/preferred_replica_election", b"{}", acl=ONLY_OWNER)
    request = {"topic": "closed-request", "partition": 0, "replicas": [3, 2]}
    content = json.dumps({"version": 1, "partitions": [request]}).encode()
    owner.create("/admin/reassign_partitions", content, acl=ONLY_OWNER)
    cluster.wait(
        lambda: owner.exists("/admin/preferred_replica_election") is not None,
        "the request for elections to be removed",
        until=lambda is_there: not is_there,
    )
    owner.set_acls("/admin/reassign_partitions", [make_acl("world", "anyone", all=True)])
    wait_until_moved(cluster, {("closed-request", 0): [3, 2]})
    assert cluster.znodes.controller_epoch() == epoch


def test_an_epoch_that_nobody_may_read_keeps_no_controller_that_cannot_lead(
    cluster: Cluster, process: RegentProcess, owner: KazooClient
) -> None:
    """Brokers that may read it would take over. Here they are refused as well."""
    own = controller_id_of(process)
    with closed(owner, "/controller_epoch", ONLY_OWNER):
        cluster.znodes.create_topic("closed-epoch", {0: [1, 2]})
        cluster.wait(
            lambda: str(cluster.znodes.controller()),
            "Regent to let /controller go",
            until=lambda controller_id: controller_id != str(own),
        )
    process.wait_until_active()
    cluster.wait_for_leader("closed-epoch", 1)
