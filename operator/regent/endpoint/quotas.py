"""Controller mutation quotas (KIP-599): how many partitions who may create and delete in a second.

Source: ``ControllerMutationQuotaManager``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from regent.endpoint.log_pauses import LogPauses
from regent.endpoint.quotas_bucket import (
    BURST_S,
    TokenBucket,
    full,
    refilled,
    seconds_to_pay_off,
    taken,
)
from regent.model.errors import MalformedZNodeError, RegentError, ZooKeeperError
from regent.runtime.zookeeper_read_port import ZooKeeperReadPort
from regent.zk_data.client_quotas import decode_mutation_rate, quota_entities
from regent.zk_data.permitted_reads import UnreadableZNode, read_in_parts

logger = logging.getLogger(__name__)

_MAX_BUCKETS: Final = 1_000
"""Above that, buckets that are full are forgotten: a new one is full, too. So are those of whom
nothing was heard for long, as in Kafka: with a rate of 0 none is ever full again."""

_FORGOTTEN_S: Final = 3600.0
"""Kafka's time of expiry of the sensors of quotas."""

Name = TypeVar("Name")


class QuotasUnavailableError(RegentError):
    """The quotas cannot be read now: nobody can say how much who may ask for."""


class BucketKey(NamedTuple):
    """Who shares a bucket; None: everybody."""

    user: str | None
    client_id: str | None


class Buckets:
    """The buckets of everybody who is subject to a quota."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: dict[BucketKey, TokenBucket] = {}
        self._rates: dict[BucketKey, float] = {}
        self._most = _MAX_BUCKETS

    def __len__(self) -> int:
        return len(self._buckets)

    def look(self, key: BucketKey, rate: float) -> TokenBucket:
        """The bucket as it is now."""
        now_s = self._clock()
        known = self._buckets.get(key)
        if known is None:
            return full(rate, now_s=now_s)
        return refilled(known, rate, now_s=now_s)

    def take(self, key: BucketKey, rate: float, count: float) -> TokenBucket:
        """Take tokens, more than there are if need be; with a negative number give some back."""
        bucket = taken(self.look(key, rate), count, rate)
        self._buckets[key] = bucket
        self._rates[key] = rate
        if len(self._buckets) > self._most:
            self._forget_some()
            self._most = max(_MAX_BUCKETS, 2 * len(self._buckets))
        return bucket

    def _forget_some(self) -> None:
        long_ago = self._clock() - _FORGOTTEN_S
        for key, rate in list(self._rates.items()):
            is_full = self.look(key, rate).tokens >= rate * BURST_S
            if is_full or self._buckets[key].at_s < long_ago:
                del self._buckets[key], self._rates[key]


class MutationQuota:
    """What a single request may do.

    Args:
        is_strict: Whether it is refused what exceeds the quota. Otherwise it gets it, and the
            client waits afterwards.
    """

    def __init__(
        self, buckets: Buckets, key: BucketKey, rate: float | None, *, is_strict: bool
    ) -> None:
        self._buckets = buckets
        self._key = key
        self._rate = rate
        self._is_strict = is_strict
        self._is_exceeded = False

    @property
    def throttle_s(self) -> float:
        """So long the client is to ask for nothing else."""
        if not self._is_exceeded or self._rate is None:
            return 0.0
        return seconds_to_pay_off(self._buckets.look(self._key, self._rate), self._rate)

    def admitted(self, partitions: Mapping[Name, int]) -> list[Name]:
        """Which of several mutations may be done, judged in their order, and charged.

        Args:
            partitions: How many partitions each of them creates or deletes.
        """
        return [name for name, count in partitions.items() if self._admit(count)]

    def give_back(self, partitions: int) -> None:
        """What was charged and then refused for another reason was not done."""
        if self._rate is not None and partitions:
            self._buckets.take(self._key, self._rate, -partitions)

    def _admit(self, count: int) -> bool:
        if self._rate is None:
            return True
        if self._is_strict and self._buckets.look(self._key, self._rate).tokens < 0:
            self._is_exceeded = True
            return False
        left = self._buckets.take(self._key, self._rate, count).tokens
        if not self._is_strict and left < 0:
            self._is_exceeded = True
        return True


class MutationQuotas:
    """The quotas in ZooKeeper, which are looked up for each request, and what is left of them.

    Belongs into the controller's loop.
    """

    def __init__(
        self, zookeeper: ZooKeeperReadPort, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._zookeeper = zookeeper
        self._buckets = Buckets(clock)
        self._pauses = LogPauses(clock)

    def without_limit(self) -> MutationQuota:
        """Of who is refused anyway."""
        return MutationQuota(self._buckets, BucketKey(None, None), None, is_strict=False)

    async def quota_of(self, principal: str, client_id: str, *, is_strict: bool) -> MutationQuota:
        """The quota of a request.

        Args:
            principal: As Kafka words it: ``User:alice``.

        Raises:
            QuotasUnavailableError: ZooKeeper does not say.
        """
        user = principal.partition(":")[2]
        entities = quota_entities(user, client_id)
        try:
            nodes = await read_in_parts(
                [entity.path for entity in entities], self._zookeeper.get_data, UnreadableZNode.at
            )
        except ZooKeeperError as error:
            raise QuotasUnavailableError(
                f"quotas cannot be read from ZooKeeper: {error}"
            ) from error
        for entity, node in zip(entities, nodes, strict=True):
            if node is None:
                continue
            try:
                rate = decode_mutation_rate(entity.path, node.data)
            except MalformedZNodeError as error:
                self._log(error)
                continue
            if rate is not None:
                key = BucketKey(
                    user if entity.by_user else None, client_id if entity.by_client else None
                )
                return MutationQuota(self._buckets, key, rate, is_strict=is_strict)
        return self.without_limit()

    def _log(self, error: MalformedZNodeError) -> None:
        if self._pauses.is_over(error.path):
            logger.error(
                "Quota ignored: it cannot be read",
                extra={"path": error.path, "reason": error.reason},
            )
