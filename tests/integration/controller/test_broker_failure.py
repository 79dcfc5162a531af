"""A broker is killed: its partitions are led by others at once, never by one that lacks data."""

from __future__ import annotations

import time
from functools import partial

import pytest

from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster
from tests.support.figures import Figure
from tests.support.resources import Resources, topic
from tests.support.znodes import forget_follower, state_path

pytestmark = [pytest.mark.integration, pytest.mark.slow]

UNCLEAN = "unclean.leader.election.enable"


def test_a_killed_brokers_partitions_get_leaders_from_the_isr_and_it_rejoins(
    cluster: Cluster, resources: Resources, process: RegentProcess, figure: Figure
) -> None:
    victim = 2
    resources.apply(topic("crowd", partitions=12))
    resources.wait_ready("crowd")
    before = {
        tp: leadership
        for tp, leadership in cluster.wait_for_consistency().items()
        if victim in leadership.isr and len(leadership.isr) > 1
    }
    led = [tp for tp, leadership in before.items() if leadership.leader == victim]
    assert len([tp for tp in led if tp[0] == "crowd"]) == 4  # leaders were spread evenly

    gone = cluster.znodes.watch(f"/brokers/ids/{victim}")
    written = [cluster.znodes.watch(state_path(*tp)) for tp in led]
    cluster.kill_broker(victim)
    ended = gone.wait("the end of the broker's session")
    for broker_id in cluster.broker_ids:
        if broker_id != victim:
            cluster.wait(
                partial(cluster.metadata, broker_id),
                f"broker {broker_id} to tell clients of new leaders",
                until=lambda told: all(
                    told.partitions[tp].leader not in (victim, -1) for tp in led
                ),
                interval_s=0.002,
            )
    told = time.monotonic()
    last = max(moment.wait("a new leader in ZooKeeper") for moment in written)
    figure("partitions led by the killed broker", len(led))
    figure(
        "from the end of its session to the last new leader in ZooKeeper",
        f"{(last - ended) * 1000:.0f} ms",
    )
    figure(
        "from the end of its session to the last leader in the metadata of all brokers",
        f"{(told - ended) * 1000:.0f} ms",
    )
    after = cluster.wait_for_consistency()
    for tp, leadership in before.items():
        assert after[tp].leader in leadership.isr, tp
        assert after[tp].isr == tuple(b for b in leadership.isr if b != victim), tp
        assert after[tp].leader_epoch == leadership.leader_epoch + 1, tp

    cluster.broker(victim).start()
    began = time.monotonic()
    cluster.wait_in_sync()
    figure("started again, in sync everywhere after", f"{time.monotonic() - began:.1f} s")
    cluster.wait_for_consistency()


def test_a_replica_outside_the_isr_leads_only_where_unclean_election_is_enabled(
    cluster: Cluster, resources: Resources, process: RegentProcess
) -> None:
    names = ["never-unclean", "unclean-by-resource", "unclean-by-tool"]
    resources.apply(*(topic(n, partitions=1, replicaAssignment=[[1, 2]]) for n in names))
    resources.wait_ready(*names)
    for name in names:
        forget_follower(cluster.znodes, name, leader=1)

    cluster.kill_broker(1)
    for name in names:
        state = cluster.wait_for_leader(name, -1)
        assert state["isr"] == [1], name
    # broker 2 knows by now, and it is alive: it could lead
    leaderships = cluster.wait_for_consistency()
    assert [leaderships[name, 0].leader for name in names] == [-1, -1, -1]
    assert unclean_elections(process) == 0
    resources.wait_for_condition("never-unclean", "Ready", "False", "PartitionsLeaderless")

    resources.patch("unclean-by-resource", config={UNCLEAN: True})
    assert cluster.wait_for_leader("unclean-by-resource", 2)["isr"] == [2]
    cluster.tools.run(
        "kafka-configs",
        f"--bootstrap-server={cluster.broker(2).bootstrap_servers}",
        "--alter",
        "--entity-type=topics",
        "--entity-name=unclean-by-tool",
        f"--add-config={UNCLEAN}=true",
    )
    assert cluster.wait_for_leader("unclean-by-tool", 2)["isr"] == [2]
    assert cluster.wait_for_consistency()["never-unclean", 0].leader == -1
    cluster.wait(
        lambda: unclean_elections(process), "two to be counted", until=lambda count: count == 2
    )

    cluster.broker(1).start()
    assert cluster.wait_for_leader("never-unclean", 1)
    cluster.wait_in_sync()
    resources.wait_ready(*names)
    leaderships = cluster.wait_for_consistency()
    assert [leaderships[name, 0].leader for name in names] == [1, 2, 2]


def unclean_elections(process: RegentProcess) -> float:
    name = "kafka_controller_controllerstats_uncleanleaderelections_total "
    (line,) = (line for line in process.metrics().splitlines() if line.startswith(name))
    return float(line.removeprefix(name))
