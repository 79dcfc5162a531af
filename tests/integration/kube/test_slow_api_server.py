"""An API server that answers, but takes its time, while there is more to be written than there are
connections."""

from __future__ import annotations

import pytest

from tests.integration.kube.conftest import Namespace, running, topic, wait_for
from tests.support.kubernetes_proxy import KubernetesProxy
from tests.support.live_controller import LiveController

pytestmark = pytest.mark.integration

TOPICS = 12
WRITE_S, PATIENCE_S = 1.0, 10.0


async def test_writes_that_wait_for_others_are_not_taken_for_ones_without_an_answer(
    controller: LiveController,
    namespace: Namespace,
    proxy: KubernetesProxy,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They were given up before they were sent, and began again behind all others."""
    proxy.slow_writes(WRITE_S)
    async with running(
        controller, namespace, max_connections=1, request_timeout_s=PATIENCE_S
    ) as operator:
        namespace.apply(*(topic(f"topic-{number}") for number in range(TOPICS)))
        # Each is held and gets a status: the last one waits for longer than an answer may take.
        await wait_for(
            lambda: operator.writes >= 2 * TOPICS and operator.queue.is_idle,
            describe="all statuses to be written",
        )
        assert proxy.held == 0
    said = [record.getMessage() for record in caplog.records]
    assert "A resource is requeued, the API server did not serve" not in said
