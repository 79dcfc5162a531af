"""Topics that are lost before a status that is stored names them."""

from __future__ import annotations

import copy

import msgspec
import pytest

from regent.admin.commands import CreateTopic
from regent.kube.errors import KubeUnavailableError
from regent.model.topic import topic_id_to_text
from tests.support.present import present
from tests.unit.kube.stored_objects import body
from tests.unit.kube.topic_bench import DRAWN, Bench, a_topic


@pytest.mark.parametrize("times_lost", [1, 2])
def test_a_topic_that_was_lost_before_a_status_named_it_is_created_again_once(
    times_lost: int,
) -> None:
    """The API server does not answer while it is created, seen and lost."""
    bench = Bench(body(version="5", onForeignDeletion="Recreate"))
    bench.borne = (KubeUnavailableError,)
    created: list[CreateTopic] = []

    def fail() -> None:
        raise KubeUnavailableError("no answer")

    def show_and_lose() -> None:
        before = len(created)
        created[:] = [each for each in bench.port.commands if isinstance(each, CreateTopic)]
        topics = {}
        if len(created) > before or len(created) > times_lost:
            topic_id = present(created[-1].topic_id)
            topics = {"orders": msgspec.structs.replace(a_topic(topic_id), czxid=len(created))}
            if len(created) <= times_lost:
                bench.store.before_write = [fail]
        bench.port.view = msgspec.structs.replace(bench.port.view, topics=topics)

    bench.reconcile(times=10, every_s=15, between=show_and_lose)
    assert len(created) == times_lost + 1
    assert bench.losses == times_lost
    assert bench.stored["status"]["intendedTopicId"] == topic_id_to_text(DRAWN)


def test_the_id_of_a_lost_topic_is_never_given_to_another_one() -> None:
    """Its ownership is not stored until somebody has removed an admission policy."""
    bench = Bench(body(version="5"))
    bench.store.unknown_fields = frozenset({"ownership"})

    def lose_and_confirm() -> None:
        topics = {}
        match len(bench.looks):
            case 1:
                (command,) = bench.port.commands
                assert isinstance(command, CreateTopic)
                assert command.topic_id is not None
                topics = {"orders": msgspec.structs.replace(a_topic(command.topic_id), czxid=7)}
            case 4:
                bench.store.unknown_fields = frozenset()
                bench.stored["spec"]["onForeignDeletion"] = "Recreate"
                bench.store.change(generation=2)
                bench.cache.put(copy.deepcopy(bench.stored))
        bench.port.view = msgspec.structs.replace(bench.port.view, topics=topics)

    bench.reconcile(times=5, every_s=60, between=lose_and_confirm)
    first, second = (each for each in bench.port.commands if isinstance(each, CreateTopic))
    assert first.topic_id != second.topic_id == DRAWN
    assert bench.losses == 1
