"""What the Lease says about the Kafka cluster: which one it is, and since when nobody knows it."""

from __future__ import annotations

import pytest

from tests.unit.kube.jumping_clock import elapse, jumping
from tests.unit.kube.replicas_with_a_lease import LeaseServer, Replica, replicas


@jumping
async def test_replicas_that_are_led_to_two_kafka_clusters_do_not_both_serve() -> None:
    server, one, two = replicas()
    one.lead("first")
    await elapse(5)
    two.leadership.set_elected(True)  # which cluster it controls shows a moment later
    await elapse(5)
    assert (two.serves, two.other_cluster, server.holder) == (False, None, "one")
    two.lead("second")
    for _ in range(100):
        await elapse(1)
        assert (one.serves, server.holder) == (True, "one")
    assert (two.serves, two.other_cluster, one.other_cluster) == (False, "first", None)
    await one.end()
    await elapse(5)
    assert (two.serves, two.other_cluster, server.holder) == (True, None, "two")


@pytest.mark.parametrize("is_released", [False, True])
@jumping
async def test_of_two_that_take_a_free_lease_at_once_one_serves(is_released: bool) -> None:
    server = LeaseServer()
    if is_released:
        replica = Replica(server, "before")
        replica.lead("first")
        await elapse(5)
        await replica.end()
    server.delay_s = 0.1
    replicas = [Replica(server, name) for name in ("one", "two")]
    for replica, cluster_id in zip(replicas, ("first", "second"), strict=True):
        replica.lead(cluster_id)
    for _ in range(20):
        await elapse(0.3)
        assert [each.serves for each in replicas].count(True) <= 1
    assert [each.serves for each in replicas].count(True) == 1


@jumping
async def test_who_controls_the_same_cluster_serves_when_the_lease_cannot_be_kept() -> None:
    server, one, two = replicas()
    one.lead("first")
    await elapse(5)
    two.leadership.set_elected(True)
    await elapse(1)
    server.refuses = True
    await elapse(5)
    assert not two.serves
    two.lead("first")
    await elapse(5)
    assert two.serves


@jumping
async def test_the_next_controller_of_the_same_cluster_gets_the_lease_of_one_that_is_gone() -> None:
    server, one, two = replicas()
    one.lead("first")
    await elapse(5)
    server.edit(holderIdentity="one that was killed")
    one.stand_by()
    two.leadership.set_elected(True)
    await elapse(0.1)
    two.lead("first")
    two.leadership.look_again()
    await elapse(0.1)
    assert (two.serves, server.holder) == (True, "two")
    await elapse(3)
    assert (one.serves, two.serves, server.holder) == (False, True, "two")


@jumping
async def test_replicas_that_fail_one_after_the_other_know_for_how_long_nobody_has_led() -> None:
    _, one, two = replicas()
    one.lead("first")
    await elapse(60)
    one.stand_by()
    for _ in range(4):
        for replica in (two, one):
            replica.lead("first", is_complete=False)
            await elapse(20)
            assert replica.serves
            replica.stand_by()
    assert 140 < one.knowledge.unknown_for_s() < 165
    assert 140 < two.knowledge.unknown_for_s() < 165
    two.lead("first")
    await elapse(5)
    two.stand_by()
    await elapse(5)
    assert 0 < one.knowledge.unknown_for_s() < 10


@pytest.mark.parametrize("said", ["soon", "nan", "inf", "-1", ""])
@jumping
async def test_a_lease_that_says_nothing_of_use_about_the_cluster_can_be_taken(said: str) -> None:
    server, one, two = replicas()
    one.leadership.set_elected(True)
    await elapse(1)
    assert server.body is not None
    annotations = server.body["metadata"]["annotations"]
    annotations["kafka.regent.dev/cluster-unknown-for-seconds"] = said
    server.edit(holderIdentity="somebody")
    one.leadership.set_elected(False)
    two.leadership.set_elected(True)
    await elapse(1)
    assert two.serves
    assert two.knowledge.unknown_for_s() < 5


@pytest.mark.parametrize("is_known", [False, True])
@jumping
async def test_what_a_former_release_leaves_in_a_lease_that_it_renews_does_not_count(
    is_known: bool,
) -> None:
    """Somebody went back to that release, and has upgraded again."""
    server = LeaseServer()
    before = Replica(server, "before")
    before.lead("first", is_complete=is_known)
    await elapse(600)
    await before.end()
    server.edit(holderIdentity="former release", renewTime="2026-02-01T00:00:00.000000Z")
    after = Replica(server, "after")
    after.lead("second", is_complete=False)
    await elapse(5)
    assert (after.serves, after.other_cluster, server.holder) == (True, None, "after")
    assert after.knowledge.unknown_for_s() < 10


@jumping
async def test_lease_is_free_when_its_holder_controls_no_cluster() -> None:
    server, one, two = replicas()
    one.lead("first")
    await elapse(5)
    two.lead("second")
    await elapse(5)
    one.stand_by()
    await elapse(5)
    assert (one.serves, two.serves, server.holder) == (False, True, "two")


@jumping
async def test_a_process_that_ends_soon_again_and_again_goes_on_counting() -> None:
    server = LeaseServer()
    for count in range(1, 8):
        replica = Replica(server, "one")
        replica.leadership.set_elected(True)
        await elapse(20)
        assert 17 * count < replica.knowledge.unknown_for_s() <= 20 * count
        await replica.end()
