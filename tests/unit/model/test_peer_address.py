"""Addresses of who connects."""

from __future__ import annotations

import pytest

from regent.model.peer_address import address_group, plain_address


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_a_network_of_64_bits_counts_as_one_address(address: str, group: str) -> None:
    assert address_group(address) == group


@pytest.mark.parametrize(
    ("address", "plain"),
    [
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::FFFF:10.0.0.1", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("::ffff:0:1", "::ffff:0:1"),
        ("", ""),
    ],
)
def test_an_ipv4_address_is_the_same_over_an_ipv6_socket(address: str, plain: str) -> None:
    assert plain_address(address) == plain
