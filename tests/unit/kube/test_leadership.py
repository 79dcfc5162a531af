"""Who serves the custom resources: two replicas and one Lease."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from regent.kube.client import KubeClient
from regent.kube.errors import KubeUnavailableError
from tests.support.present import present
from tests.unit.kube.jumping_clock import elapse, jumping
from tests.unit.kube.replicas_with_a_lease import (
    DURATION_S,
    LeaseServer,
    Replica,
    replicas,
)


class FarLeaseServer(KubeClient):
    """The same server, as somebody sees it whom it takes some seconds to answer."""

    def __init__(self, server: LeaseServer, *, answers_after_s: float) -> None:
        super().__init__(max_connections=1, request_timeout_s=30)
        self._server = server
        self._answers_after_s = answers_after_s

    async def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        await elapse(self._answers_after_s)
        return await self._server.request(method, path, **options)


class SilentLeaseServer(FarLeaseServer):
    """The same server, as somebody sees it who gets no answer any more at some time."""

    def __init__(self, server: LeaseServer) -> None:
        super().__init__(server, answers_after_s=0.1)
        self.is_silent = False

    async def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        if self.is_silent:
            await elapse(30)
            raise KubeUnavailableError("no answer within 30 s")
        return await super().request(method, path, **options)


def _count_serving(*replicas: Replica) -> int:
    return sum(replica.serves for replica in replicas)


@jumping
async def test_the_elected_replica_serves_at_once_and_alone() -> None:
    server, one, two = replicas()
    one.leadership.set_elected(True)
    await elapse(0.1)
    assert (one.serves, two.serves, server.holder) == (True, False, "one")
    await elapse(200)
    assert (one.serves, two.serves, server.holder) == (True, False, "one")


@jumping
async def test_a_term_takes_the_lease_from_an_observer_by_force() -> None:
    server, one, two = replicas()
    await elapse(DURATION_S + 4)
    observer, other = (one, two) if one.serves else (two, one)
    other.leadership.set_elected(True)
    await elapse(2.5)
    assert other.serves
    assert not observer.serves
    assert server.holder == other.name
    assert present(server.body)["spec"]["leaseTransitions"] == 1


@jumping
async def test_the_lease_is_released_at_the_end_and_another_one_observes_later() -> None:
    server, one, two = replicas()
    one.leadership.set_elected(True)
    await elapse(30)
    await one.end()
    assert server.holder is None
    assert not one.serves
    await elapse(DURATION_S - 3)
    assert not two.serves, "a term must have time to begin"
    await elapse(8)
    assert two.serves


@jumping
async def test_without_rights_on_leases_the_elected_replica_serves_and_no_other() -> None:
    server, one, two = replicas()
    server.refuses = True
    one.leadership.set_elected(True)
    await elapse(100)
    assert (one.serves, two.serves) == (True, False)
    one.leadership.set_elected(False)
    await elapse(3)
    assert not one.serves


@jumping
async def test_a_lease_whose_namespace_does_not_exist_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, one, two = replicas()
    server.has_namespace = False
    await elapse(100)
    assert (one.serves, two.serves) == (False, False)
    problems = [vars(each)["problem"] for each in caplog.records if hasattr(each, "problem")]
    assert 'namespaces "kafka" not found' in problems


@pytest.mark.parametrize("transitions", ["many", None, -7, [], 1.5, True, 2**31 - 1])
@jumping
async def test_a_lease_whose_transitions_are_no_number_can_be_taken(transitions: object) -> None:
    server, one, two = replicas()
    one.leadership.set_elected(True)
    await elapse(1)
    server.edit(leaseTransitions=transitions, holderIdentity="somebody")
    one.leadership.set_elected(False)
    await elapse(200)
    assert _count_serving(one, two) == 1
    assert present(server.body)["spec"]["leaseTransitions"] < 2**31


@jumping
async def test_an_observer_that_gets_no_answer_stops_before_another_one_begins() -> None:
    """As where packets get lost: a request takes longer to fail than the Lease to expire."""
    server = LeaseServer()
    own = SilentLeaseServer(server)
    one = Replica(own, "one")
    await elapse(DURATION_S + 4)
    assert one.serves
    two = Replica(server, "two")
    own.is_silent = True
    served_alone: list[tuple[bool, bool]] = []
    for _ in range(200):
        await elapse(0.5)
        served_alone.append((one.serves, two.serves))
    assert (True, True) not in served_alone
    assert served_alone[-1] == (False, True)
    assert served_alone[2 * DURATION_S // 3][0], "one answer that is late ends nothing"


@jumping
async def test_a_replica_that_is_elected_at_the_moment_of_its_stop_stops() -> None:
    replica = Replica(LeaseServer(), "a")
    await elapse(1)
    replica.leadership.set_elected(True)
    replica.task.cancel()
    await asyncio.wait([replica.task], timeout=60)
    assert replica.task.cancelled()
    assert not replica.serves


@jumping
async def test_the_elected_replica_gets_the_lease_though_the_other_one_renews_it_faster() -> None:
    server, one, two = replicas()
    await elapse(100)
    assert one.serves or two.serves
    far = Replica(FarLeaseServer(server, answers_after_s=5.0), "far")
    far.leadership.set_elected(True)
    await elapse(20)
    assert (one.serves, two.serves, server.holder) == (False, False, "far")
    await elapse(200)
    assert (one.serves, two.serves, server.holder) == (False, False, "far")


@jumping
async def test_the_elected_replica_keeps_the_lease_when_answers_take_most_of_its_duration() -> None:
    """It is renewed in one request."""
    server, one, two = replicas()
    far = Replica(FarLeaseServer(server, answers_after_s=10.0), "far")
    far.leadership.set_elected(True)
    await elapse(60)
    for _ in range(100):
        await elapse(2)
        assert (one.serves, two.serves, server.holder) == (False, False, "far")
    assert server.body is not None
    transitions = server.body["spec"]["leaseTransitions"]
    server.edit(holderIdentity="two", leaseTransitions=transitions + 1)
    await elapse(40)
    assert (one.serves, two.serves, server.holder) == (False, False, "far")
    assert server.body["spec"]["leaseTransitions"] == transitions + 2


def rivals() -> tuple[LeaseServer, Replica, Replica]:
    """Two Regents that serve different resources, with one Lease."""
    server = LeaseServer()
    return server, Replica(server, "east", serves="east"), Replica(server, "west", serves="west")


@jumping
async def test_two_regents_that_take_one_lease_from_each_other_notice() -> None:
    _, east, west = rivals()
    east.leadership.set_elected(True)
    west.leadership.set_elected(True)
    await elapse(10)
    assert (east.rival, west.rival) == (None, None), "it may be an upgrade"
    await elapse(20)
    assert (east.rival, west.rival) == ("west", "east")
    await west.end()
    await elapse(10)
    assert east.rival is None


@jumping
async def test_two_regents_of_two_kafka_clusters_with_one_lease_both_serve() -> None:
    """They have other resources, and no replica but themselves to serve these."""
    _, east, west = rivals()
    east.lead("first")
    await elapse(5)
    west.lead("second")
    await elapse(30)
    assert (east.serves, west.serves) == (True, True)
    assert (east.rival, west.rival) == ("west", "east")


@jumping
async def test_who_waits_for_the_lease_of_another_regent_notices() -> None:
    _, east, west = rivals()
    await elapse(60)
    waiting, holder = (west, east) if east.serves else (east, west)
    assert (waiting.serves, holder.serves) == (False, True)
    assert (waiting.rival, holder.rival) == (holder.name, None)


@jumping
async def test_a_lease_that_does_not_say_what_its_holder_serves_is_nobodys_else() -> None:
    server, one, two = replicas()
    server.version += 1
    server.body = {
        "metadata": {"resourceVersion": str(server.version)},
        "spec": {"holderIdentity": "a Regent of before"},
    }
    await elapse(10)
    assert (one.rival, two.rival) == (None, None)
