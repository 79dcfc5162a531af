"""Controller mutation quotas: Regent answers what a broker's controller answers."""

from __future__ import annotations

import asyncio
import datetime
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from regent.protocol.entity_building import build_entity
from regent.protocol.served_apis import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS, Api
from tests.support.cluster import Cluster, regent
from tests.support.endpoint import plain
from tests.support.kafka_client import connected, entity_frame

pytestmark = [pytest.mark.integration, pytest.mark.slow]

MINUTE = datetime.timedelta(minutes=1)
UNIT_S = 1_000
"""One partition takes so long: whatever a request takes, it changes no figure."""
CLIENT_RATE = 1 / UNIT_S
USER_RATE = 2 / UNIT_S
THROTTLED = 89


class Step(NamedTuple):
    """A request, on a connection of its own: the one before may not be read for an hour."""

    api: Api
    version: int
    fields: dict[str, Any]


class Answered(NamedTuple):
    """Return the compared fields; the throttle in thousands of seconds, if the version has it."""

    codes: tuple[int, ...]
    throttle: int | None


def create(version: int, *topics: tuple[str, int], factor: int = 1, dry: bool = False) -> Step:
    wanted = [
        {
            "name": name,
            "num_partitions": count,
            "replication_factor": factor,
            "assignments": (),
            "configs": (),
        }
        for name, count in topics
    ]
    fields = {"topics": wanted, "timeout": MINUTE, "validate_only": dry}
    return Step(CREATE_TOPICS, version, fields)


def grow(version: int, name: str, total: int) -> Step:
    topics = [{"name": name, "count": total, "assignments": None}]
    fields = {"topics": topics, "timeout": MINUTE, "validate_only": False}
    return Step(CREATE_PARTITIONS, version, fields)


def delete(version: int, name: str) -> Step:
    fields = {
        "topic_names": (name,),
        "topics": [{"name": name, "topic_id": None}],
        "timeout": MINUTE,
    }
    return Step(DELETE_TOPICS, version, fields)


FOR_THE_CLIENT = (
    create(7, ("a", 2), ("b", 1)),
    create(7, ("c", 1), dry=True),
    create(7, ("a", 1)),
    create(6, ("c", 1)),
    grow(3, "a", 3),
    grow(2, "a", 3),
    delete(6, "a"),
    delete(5, "none"),
    create(7, ("d", 1), factor=9),
    create(5, ("d", 1)),
    create(1, ("e", 1)),
    delete(4, "d"),
)
FOR_THE_USER = (create(5, ("f", 3)), create(7, ("g", 1)))
LEFT = ("a", "e", "f")


def ask(port: int, steps: Sequence[Step]) -> list[Answered]:
    async def answer(step: Step) -> Answered:
        async with connected(port) as client:
            entity = build_entity(step.api.requests[step.version], step.fields)
            client.send_frame(entity_frame(step.api, step.version, 1, entity))
            found = plain(await client.answer(step.api, step.version, 1))
        results = found.get("topics") or found.get("results") or found["responses"]
        waiting = found.get("throttle_time")
        return Answered(
            tuple(each["error_code"] for each in results),
            None if waiting is None else round(waiting.total_seconds() / UNIT_S),
        )

    async def answers() -> list[Answered]:
        return [await answer(step) for step in steps]

    return asyncio.run(answers())


def set_rate(cluster: Cluster, rate: float, *entity: str) -> None:
    """Set a quota, and wait until each broker knows it."""

    def known() -> list[int]:
        logs = (broker.process.log_of_this_run() for broker in cluster.running)
        return [len(re.findall("Chang.* quota for", log)) for log in logs]

    before = known()

    cluster.tools.run(
        "kafka-configs",
        f"--bootstrap-server={cluster.tools.bootstrap_servers}",
        "--alter",
        f"--add-config=controller_mutation_rate={rate}",
        *entity,
    )
    cluster.wait(
        known,
        "each broker to know the quota",
        until=lambda found: all(now > then for now, then in zip(found, before, strict=True)),
    )


def unset_rate(cluster: Cluster, *entity: str) -> None:
    cluster.tools.run(
        "kafka-configs",
        f"--bootstrap-server={cluster.tools.bootstrap_servers}",
        "--alter",
        "--delete-config=controller_mutation_rate",
        *entity,
    )


CLIENT = ("--entity-type=clients", "--entity-name=test")
USER = ("--entity-type=users", "--entity-name=ANONYMOUS")


def tell(cluster: Cluster, port: int) -> list[Answered]:
    """The client's own quota, then its user's, which counts before; topics are gone in the end."""
    set_rate(cluster, CLIENT_RATE, *CLIENT)
    found = ask(port, FOR_THE_CLIENT)
    set_rate(cluster, USER_RATE, *USER)
    try:
        found += ask(port, FOR_THE_USER)
    finally:
        unset_rate(cluster, *USER)
    for topic in LEFT:
        cluster.znodes.client.create(f"/admin/delete_topics/{topic}")
    cluster.wait(
        lambda: {*LEFT} & {*cluster.znodes.topics()},
        "the topics to be gone",
        until=lambda left: not left,
    )
    return found


@pytest.fixture
def _no_quota_is_left(cluster: Cluster) -> Iterator[None]:
    yield
    unset_rate(cluster, *CLIENT)


@pytest.mark.usefixtures("_no_quota_is_left")
def test_regent_answers_as_a_broker(cluster: Cluster) -> None:
    leader = cluster.wait_for_a_broker_as_controller()
    by_broker = tell(cluster, cluster.broker(leader).port)
    assert any(THROTTLED in answered.codes for answered in by_broker)
    assert by_broker[-1].codes == (THROTTLED,)
    with regent(cluster) as process:
        process.wait_until_active()
        status = cluster.wait(process.status, "the status")
        port = int(status["endpoint"]["served"]["PLAINTEXT"].rpartition(":")[2])
        by_regent = tell(cluster, port)
    assert by_regent == by_broker
