"""Requests to the controller over real sockets: a broker reads and answers them with the codec of
the server's side, in the versions of its release."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from regent.model.cluster import Broker
from regent.model.errors import (
    BrokerNotControllerError,
    BrokerQuestionError,
    BrokerRefusedError,
    BrokerSilentError,
    BrokerTooOldError,
    BrokerUnreachedError,
)
from regent.model.partition import FoundPartition, ReplicaAssignment, TopicPartition
from regent.network.admin_requests import AdminRequests
from regent.network.settings import ChannelSettings
from regent.protocol.entity_building import build_entity
from regent.protocol.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    ELECTION_NOT_NEEDED,
    INVALID_REPLICA_ASSIGNMENT,
    NONE,
    NOT_CONTROLLER,
    UNKNOWN_SERVER_ERROR,
)
from regent.protocol.framing import API_VERSIONS_KEY, RequestHeader
from regent.protocol.served_apis import (
    ALTER_PARTITION_REASSIGNMENTS,
    ELECT_LEADERS,
    Api,
    table_of,
)
from regent.protocol.server_codec import ServerCodec
from tests.support.raw_broker import NO_BYTES, RawBroker, raw_brokers
from tests.support.waiting import DEADLINE_S

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
PREFERRED, UNCLEAN = 0, 1

_CODEC = ServerCodec(table_of([ALTER_PARTITION_REASSIGNMENTS, ELECT_LEADERS]))


class Controller:
    """A broker that answers with these fields.

    Attributes:
        entities: What it was asked.
        versions: In which versions.
    """

    def __init__(self, broker: RawBroker, api: Api, fields: Mapping[str, Any]) -> None:
        self.entities: list[Any] = []
        self.versions: list[int] = []
        self.broker = broker
        self._api = api
        self._fields = fields
        broker.answer = self._answer

    @property
    def registration(self) -> Broker:
        return self.broker.as_upstream().broker

    def _answer(self, header: RequestHeader, frame: bytes) -> bytes:
        if header.api_key == API_VERSIONS_KEY:
            return self.broker.listing(header)
        request = _CODEC.decode(frame)
        self.entities.append(request.entity)
        self.versions.append(request.header.api_version)
        kind = self._api.responses[request.header.api_version]
        return _CODEC.encode(request.header, build_entity(kind, self._fields))


@contextlib.asynccontextmanager
async def asking(
    release: tuple[int, int], api: Api, fields: Mapping[str, Any]
) -> AsyncIterator[tuple[Controller, AdminRequests]]:
    """A controller of a release, and requests to it."""
    async with raw_brokers(release) as (broker,):
        admin = AdminRequests(client_id="9", settings=ChannelSettings())
        yield Controller(broker, api, fields), admin
        admin.close()


def reassigned(
    code: int = NONE, partitions: Mapping[int, tuple[int, str | None]] | None = None
) -> dict[str, Any]:
    listed = [
        {"partition_index": p, "error_code": each, "error_message": message}
        for p, (each, message) in (partitions or {}).items()
    ]
    topics = [{"name": "orders", "partitions": listed}] if listed else []
    return {"error_code": code, "error_message": None, "responses": topics}


def elected(code: int, partitions: Mapping[int, int]) -> dict[str, Any]:
    listed = [
        {"partition_id": p, "error_code": each, "error_message": None}
        for p, each in partitions.items()
    ]
    results = [{"topic": "orders", "partition_result": listed}]
    return {"error_code": code, "replica_election_results": results}


@pytest.mark.parametrize("release", [(2, 4), (3, 9)])
async def test_reassignments_are_begun_and_cancelled(release: tuple[int, int]) -> None:
    fields = reassigned(partitions={0: (NONE, None), 1: (INVALID_REPLICA_ASSIGNMENT, "Not alive.")})
    found = FoundPartition(77, ReplicaAssignment((1, 2, 4), (4,), (1,)))
    async with asking(release, ALTER_PARTITION_REASSIGNMENTS, fields) as (controller, admin):
        answers = await admin.alter_partition_reassignments(
            controller.registration, {P0: (3, 2), P1: None}, {P0: found}
        )
        assert answers == {P0: (NONE, ""), P1: (INVALID_REPLICA_ASSIGNMENT, "Not alive.")}
        (entity,) = controller.entities
        (topic,) = entity.topics
        assert topic.name == "orders"
        assert [(p.partition_index, p.replicas) for p in topic.partitions] == [
            (0, (3, 2)),
            (1, None),
        ]
        (condition,) = topic.partitions[0].found
        assert condition.topic_czxid == 77
        assert condition.replicas == (1, 2, 4)
        assert (condition.adding_replicas, condition.removing_replicas) == ((4,), (1,))
        assert topic.partitions[1].found == ()
        await admin.alter_partition_reassignments(controller.registration, {P0: (3, 2)}, {})
        assert controller.broker.accepted == 1


@pytest.mark.parametrize(
    ("release", "version"), [((2, 2), 0), ((2, 3), 0), ((2, 4), 2), ((3, 9), 2)]
)
async def test_preferred_election_in_every_version(release: tuple[int, int], version: int) -> None:
    fields = elected(NONE, {0: NONE, 1: ELECTION_NOT_NEEDED})
    async with asking(release, ELECT_LEADERS, fields) as (controller, admin):
        answers = await admin.elect_leaders(controller.registration, PREFERRED, (P0, P1))
        assert answers == {P0: (NONE, ""), P1: (ELECTION_NOT_NEEDED, "")}
        (entity,) = controller.entities
        assert controller.versions == [version]
        (asked,) = entity.topic_partitions
        assert (asked.topic, getattr(asked, "partitions", None)) == ("orders", (0, 1))


async def test_all_partitions_and_unclean_elections_can_be_asked_for() -> None:
    fields = elected(NONE, {0: NONE})
    async with asking((3, 9), ELECT_LEADERS, fields) as (controller, admin):
        await admin.elect_leaders(controller.registration, UNCLEAN, None)
        (entity,) = controller.entities
        assert (entity.election_type, entity.topic_partitions) == (UNCLEAN, None)


async def test_a_broker_that_is_too_old_is_not_asked() -> None:
    async with asking((2, 3), ELECT_LEADERS, elected(NONE, {})) as (controller, admin):
        with pytest.raises(BrokerTooOldError, match="API 45"):
            await admin.alter_partition_reassignments(controller.registration, {P0: None}, {})
        with pytest.raises(BrokerTooOldError, match="API 43"):
            await admin.elect_leaders(controller.registration, UNCLEAN, (P0,))
        assert controller.entities == []


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        (NOT_CONTROLLER, BrokerNotControllerError, "NOT_CONTROLLER"),
        (CLUSTER_AUTHORIZATION_FAILED, BrokerRefusedError, "--operation Alter"),
        (UNKNOWN_SERVER_ERROR, BrokerQuestionError, "UNKNOWN_SERVER_ERROR"),
    ],
)
async def test_whole_refusal_names_its_cause(code: int, error: type[Exception], text: str) -> None:
    fields = reassigned(code)
    async with asking((3, 9), ALTER_PARTITION_REASSIGNMENTS, fields) as (controller, admin):
        with pytest.raises(error, match=text):
            await admin.alter_partition_reassignments(controller.registration, {P0: None}, {})


async def test_a_former_controller_says_so_for_each_partition() -> None:
    """So does ElectLeaders, version 0, which has no other place for it."""
    fields = elected(NONE, {0: NOT_CONTROLLER})
    async with asking((2, 2), ELECT_LEADERS, fields) as (controller, admin):
        with pytest.raises(BrokerNotControllerError):
            await admin.elect_leaders(controller.registration, PREFERRED, (P0,))


async def test_a_controller_that_is_not_reached_is_told_from_one_that_breaks_off() -> None:
    async with asking((3, 9), ALTER_PARTITION_REASSIGNMENTS, {}) as (controller, admin):
        registration, broker = controller.registration, controller.broker
        answer, was_asked = broker.answer, asyncio.Event()

        def say_instead(what: bytes | None) -> None:
            def say(header: RequestHeader, frame: bytes) -> bytes | None:
                if header.api_key == API_VERSIONS_KEY:
                    return answer(header, frame)
                was_asked.set()
                return what

            broker.answer = say

        say_instead(None)
        with pytest.raises(BrokerQuestionError) as unanswered:
            await admin.alter_partition_reassignments(registration, {P0: None}, {})
        assert not isinstance(unanswered.value, BrokerSilentError)
        was_asked.clear()
        say_instead(NO_BYTES)
        asked = asyncio.create_task(
            admin.alter_partition_reassignments(registration, {P0: None}, {})
        )
        await was_asked.wait()
        admin.close()
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(BrokerQuestionError):
                await asked
    with pytest.raises(BrokerUnreachedError):
        await admin.alter_partition_reassignments(registration, {P0: None}, {})


async def test_late_controller_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is asked next would wait as long: a batch asks it nothing else."""
    monkeypatch.setattr("regent.network.admin_requests._ANSWER_S", 0.2)
    async with asking((3, 9), ALTER_PARTITION_REASSIGNMENTS, {}) as (controller, admin):
        answer = controller.broker.answer
        controller.broker.answer = lambda header, frame: (
            answer(header, frame) if header.api_key == API_VERSIONS_KEY else NO_BYTES
        )
        with pytest.raises(BrokerSilentError) as silent:
            await admin.alter_partition_reassignments(controller.registration, {P0: None}, {})
        assert not isinstance(silent.value, BrokerUnreachedError)
