"""Which changes of the cluster are news for which BrokerDrains."""

from __future__ import annotations

from regent.controller.view import ClusterView
from regent.kube.broker_drains import BrokerDrains
from regent.kube.moving_partitions import MoveNews
from regent.kube.object_cache import ObjectCache, ObjectKey
from regent.kube.topic_configs import config_version
from regent.reconcile.drains.claims import brokers_to_cordon
from regent.reconcile.drains.kind import BROKER_DRAIN


class DrainNews:
    """Keeps what BrokerDrains know of the cluster up to date."""

    def __init__(self, drains: BrokerDrains) -> None:
        self._drains = drains
        self._moves = MoveNews(drains.moving)
        self._cordoned = drains.view().cordoned
        self._alive = frozenset(drains.view().brokers)
        self._facts = drains.view().broker_facts

    def topics_changed(self, topics: frozenset[str], cache: ObjectCache) -> frozenset[ObjectKey]:
        """Topics, or what concerns the whole cluster, have changed; the drains that it is news
        for."""
        drains, view, keys = self._drains, self._drains.view(), cache.keys()
        has_moved = self._moves.see_topics(view, topics)
        if not keys:
            drains.hosted.forget()
            return frozenset()
        for topic in topics:
            drains.configs.see(topic, config_version(view, topic))
        for gone in drains.planned_topics.keys() - set(keys):
            del drains.planned_topics[gone]
        brokers = drains.hosted.see_topics(view, topics) | self._come_or_gone(view)
        concerned = {key for broker in sorted(brokers) for key in drains.index.keys(str(broker))}
        concerned |= {key for key in keys if topics & drains.planned_topics.get(key, frozenset())}
        if has_moved:
            concerned |= cache.keys_not_ready()
        if (view.cordoned, view.broker_facts) != (self._cordoned, self._facts):
            # another min.insync.replicas of brokers takes it from those that are drained, too
            self._cordoned, self._facts = view.cordoned, view.broker_facts
            concerned.update(keys)
        return frozenset(concerned)

    def _come_or_gone(self, view: ClusterView) -> frozenset[int]:
        """Brokers that are alive now and were not, or the other way round: a status names those of
        its brokers that are not alive, also once they are drained."""
        before, self._alive = self._alive, frozenset(view.brokers)
        return before ^ self._alive

    def view_replaced(self) -> None:
        """Everything may have changed."""
        self._drains.hosted.forget()
        self._drains.moving.see_all(self._drains.view())


def wanted_cordon(cache: ObjectCache, view: ClusterView) -> tuple[int, ...]:
    """Brokers that are to be cordoned, by all BrokerDrains."""
    known = map(cache.get, cache.keys())
    claims = (BROKER_DRAIN.claim(each.body) for each in known if each is not None)
    return brokers_to_cordon(
        (claim for claim in claims if claim is not None), cluster_id=view.cluster_id
    )
