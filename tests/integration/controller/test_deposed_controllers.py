"""A broker whose own controller Regent has deposed is named until it is restarted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.cluster import Cluster, regent
from tests.support.command_line import run_regent
from tests.support.resources import Resources

pytestmark = pytest.mark.integration

WARNING = "Restart brokers before one of them is elected"


def test_it_is_named_by_every_command_and_at_the_hand_back_until_it_is_restarted(
    cluster: Cluster, resources: Resources
) -> None:
    zookeeper = cluster.kafka.zookeeper
    former = cluster.wait_for_a_broker_as_controller()

    def status() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            run_regent("status", "--json", "--zookeeper", zookeeper).stdout
        )
        return found

    # Other tests of this cluster may have left some.
    named = sorted({former, *status()["deposedControllers"]})
    with regent(cluster) as process:
        process.wait_until_active()
        assert status()["deposedControllers"] == named
        released = run_regent(
            *("release", "--all", "--namespace", resources.namespace, "--zookeeper", zookeeper),
            KUBECONFIG=str(resources.api.kubeconfig),
        )
        assert released.exit_code == 0
        assert f"Note: brokers {', '.join(map(str, named))}: restart" in released.stderr
        process.stop()
        assert WARNING in process.process.log_of_this_run()
        # Whoever leads now: what was deposed before is known.
        second = cluster.wait_for_a_broker_as_controller()
        process.start()
        process.wait_until_active()
        named = sorted({second, *named})
        assert status()["deposedControllers"] == named
        for broker_id in named:
            cluster.broker(broker_id).stop()
            cluster.broker(broker_id).start()
        assert status()["deposedControllers"] == []
        # Brokers know everything once Regent has seen them, and this is the life it has seen.
        cluster.wait_for_consistency()
        process.stop()
        assert WARNING not in process.process.log_of_this_run()
