"""Rates of addresses."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from typing import Final

_MAX_ADDRESSES: Final = 10_000
"""Addresses of which a rate is kept. What has not been used longest is forgotten, which favours its
address by one burst."""


def plain_address(address: str) -> str:
    """The form in which addresses are compared: that of IPv4 for what IPv6 sockets map to it."""
    mapped = address.lower().removeprefix("::ffff:")
    return mapped if "." in mapped else address


def address_group(address: str) -> str:
    """What a limit per address counts: the address, or its network of 64 bits with IPv6.

    With IPv6 everybody has as many addresses as they like.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # a socket without an address
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    return str(ipaddress.IPv6Network((parsed, 64), strict=False))


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
