"""The token bucket of controller mutation quotas (KIP-599). Pure: who asks says what time it is.

A bucket may be overdrawn: what is asked for is granted as long as the bucket is not below zero, and
then paid off. So requests that are larger than the bucket are possible.

Source: ``org.apache.kafka.common.metrics.stats.TokenBucket``, ``ControllerMutationQuotaManager``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

BURST_S: Final = 11
"""A bucket holds the tokens of so many seconds: Kafka's defaults of ``controller.quota.window.num``
and ``controller.quota.window.size.seconds``, multiplied."""

MAX_THROTTLE_S: Final = (2**31 - 1) / 1000
"""What fits into an answer."""


class TokenBucket(NamedTuple):
    """What is left at some time.

    Attributes:
        tokens: Negative while something is to be paid off.
        at_s: When that was.
    """

    tokens: float
    at_s: float


def full(rate: float, *, now_s: float) -> TokenBucket:
    """A bucket of somebody who has asked for nothing yet."""
    return TokenBucket(rate * BURST_S, now_s)


def refilled(bucket: TokenBucket, rate: float, *, now_s: float) -> TokenBucket:
    """The bucket later on.

    Args:
        rate: Tokens a second, as of now: it may have been changed.
    """
    spent = max(now_s - bucket.at_s, 0.0)
    return TokenBucket(min(bucket.tokens + spent * rate, rate * BURST_S), bucket.at_s + spent)


def taken(bucket: TokenBucket, count: float, rate: float) -> TokenBucket:
    """Without some tokens; with a negative number some are given back."""
    return TokenBucket(min(bucket.tokens - count, rate * BURST_S), bucket.at_s)


def seconds_to_pay_off(bucket: TokenBucket, rate: float) -> float:
    """Until it is not below zero any more; at most :data:`MAX_THROTTLE_S`."""
    if bucket.tokens >= 0:
        return 0.0
    return min(-bucket.tokens / rate, MAX_THROTTLE_S) if rate > 0 else MAX_THROTTLE_S
