from __future__ import annotations

import pytest

from regent.network import token_bucket
from regent.network.token_bucket import TokenBuckets


def test_tokens_come_at_the_rate_and_gather_up_to_two_seconds() -> None:
    buckets = TokenBuckets(10.0)
    assert [buckets.try_take("a", now=0.0) for _ in range(21)] == [True] * 20 + [False]
    assert not buckets.try_take("a", now=0.05)
    assert buckets.try_take("a", now=0.1)
    assert [buckets.try_take("a", now=1000.0) for _ in range(21)] == [True] * 20 + [False]


def test_addresses_do_not_share_tokens() -> None:
    buckets = TokenBuckets(0.5)
    assert buckets.try_take("a", now=0.0)
    assert not buckets.try_take("a", now=0.0)
    assert buckets.try_take("b", now=0.0)


def test_who_takes_on_credit_waits_until_it_is_paid() -> None:
    buckets = TokenBuckets(10.0)
    assert buckets.take("a", 20, now=0.0) == 0
    assert buckets.take("a", now=0.0) == pytest.approx(0.1)
    assert buckets.take("a", 9, now=0.0) == pytest.approx(1.0)
    assert buckets.take("a", now=1.0) == pytest.approx(0.1)
    assert buckets.take("a", now=3.0) == 0


def test_of_many_addresses_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_bucket, "_MAX_ADDRESSES", 2)
    buckets = TokenBuckets(0.5)
    for address in ("a", "b", "c"):
        assert buckets.try_take(address, now=0.0)
    assert not buckets.try_take("c", now=0.0)
    assert not buckets.try_take("b", now=0.0)
    assert buckets.try_take("a", now=0.0)
