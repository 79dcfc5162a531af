"""Rates of addresses."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_MAX_ADDRESSES: Final = 10_000
"""Addresses of which a rate is kept. What has not been used longest is forgotten, which favours its
address by one burst."""


class TokenBuckets:
    """One token bucket per group of addresses. Holds twice the tokens of a second.

    Args:
        rate: Tokens a second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._burst = max(2 * rate, 1.0)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def try_take(self, group: str, *, now: float) -> bool:
        """Take a token if there is one."""
        tokens = self._tokens(group, now)
        if tokens < 1:
            self._put(group, tokens, now)
            return False
        self._put(group, tokens - 1, now)
        return True

    def take(self, group: str, count: float = 1, *, now: float) -> float:
        """Take tokens, on credit if there are too few; the seconds to wait until they are paid."""
        tokens = self._tokens(group, now) - count
        self._put(group, tokens, now)
        return max(-tokens / self._rate, 0.0)

    def _tokens(self, group: str, now: float) -> float:
        tokens, since = self._buckets.get(group, (self._burst, now))
        return min(tokens + (now - since) * self._rate, self._burst)

    def _put(self, group: str, tokens: float, now: float) -> None:
        self._buckets[group] = (tokens, now)
        self._buckets.move_to_end(group)
        if len(self._buckets) > _MAX_ADDRESSES:
            self._buckets.popitem(last=False)
