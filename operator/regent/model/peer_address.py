"""Addresses of who connects."""

from __future__ import annotations

import ipaddress


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
