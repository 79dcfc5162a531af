"""KafkaTopics whose topics were refused because of their names."""

from __future__ import annotations

from regent.controller.commands import Reason, Rejected
from regent.kube.object_cache import ObjectKey
from tests.unit.kube.test_object_cache import body, key
from tests.unit.kube.test_topic_reconciler import Bench


def test_what_was_refused_for_a_name_waits_for_it_as_long_as_there_is_the_resource() -> None:
    bench = Bench(body(version="5"))
    bench.port.outcome = Rejected(Reason.TOPIC_NAME_COLLISION, "other.orders has it")
    waiting: list[set[ObjectKey]] = []

    def look_and_delete() -> None:
        waiting.append(set(bench.kafka_topics.without_name))
        bench.cache.remove(key(), uid="uid-orders")

    bench.reconcile(times=2, between=look_and_delete)
    assert waiting == [{key()}, set()]
