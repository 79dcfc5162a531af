"""A broker that accepts delegation tokens drops one that Regent has found to be expired."""

from __future__ import annotations

import time

import pytest

from regent.zk_data.delegation_tokens import delegation_token
from regent.zk_data.paths import DELEGATION_TOKENS
from sandbox import KafkaBroker, ZooKeeper, wait_until
from sandbox.regent_process import RegentProcess
from tests.support.broker_znodes import encode_delegation_token
from tests.support.znodes import Znodes

pytestmark = [pytest.mark.integration, pytest.mark.slow]

EXPIRED, ALIVE = "MqUe1vj9SSS4kbPwkjLsrg", "JYbBHqGTQ7ec0ZK3XnTdlg"
HOUR_MS = 3_600_000


def test_an_expired_token_goes_and_the_broker_is_notified() -> None:
    now = int(time.time() * 1_000)
    with (
        ZooKeeper() as zookeeper,
        KafkaBroker(
            zookeeper=zookeeper.connect_string,
            inter_broker_protocol_version="2.6",
            config={"delegation.token.secret.key": "a secret"},
        ) as broker,
        Znodes(zookeeper.connect_string) as znodes,
    ):
        for token_id, expiry_ms in ((EXPIRED, now - 1), (ALIVE, now + HOUR_MS)):
            content = encode_delegation_token(
                token_id, issued_ms=now - HOUR_MS, expiry_ms=expiry_ms, max_ms=now + HOUR_MS
            )
            znodes.client.create(delegation_token(token_id), content)
        regent = RegentProcess(zookeeper=zookeeper.connect_string, forked=True)
        try:
            regent.start()
            regent.wait_until_active()
            wait_until(
                lambda: znodes.children(DELEGATION_TOKENS),
                until=lambda left: left == [ALIVE],
                describe="the expired token to go",
                watch=[regent.process],
            )
            line = f"Processing Token Notification for tokenId: {EXPIRED}"
            wait_until(
                lambda: line in broker.process.log_of_this_run(),
                describe="the broker to process the notification",
                logs=[broker.log_path],
            )
            assert ALIVE not in broker.process.log_of_this_run()
            regent.stop()
        finally:
            regent.close()
