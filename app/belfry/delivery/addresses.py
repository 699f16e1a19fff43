"""Which addresses may be dialled: public ones, and those of networks that the operator allows.

A name is resolved once, each of its addresses is judged, and the judged address is the one that is
dialled.  An address that holds another one (IPv4 mapped into IPv6, 6to4, NAT64, Teredo) counts as
what it leads to.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

Address = IPv4Address | IPv6Address
Networks = tuple[IPv4Network | IPv6Network, ...]

_NAT64: Final = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL: Final = IPv6Network("64:ff9b:1::/48")
# Space of protocols, and a cloud's metadata, that would pass for public.
_OTHERS: Final = (IPv4Network("192.0.0.0/24"), IPv4Network("168.63.129.16/32"))


def networks(given: Iterable[str]) -> Networks:
    """Networks in CIDR notation; ValueError names the one that is none."""
    return tuple(ip_network(each) for each in given)


def refusal(text: str, allowed: Networks) -> str | None:
    """Why this address is not dialled, or None."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return f"{text[:60]!r} is no IP address"
    for each in _leading_to(address):
        if any(each in network for network in allowed if network.version == each.version):
            continue
        special = each.is_multicast or each.is_reserved or any(each in one for one in _OTHERS)
        if special or not each.is_global:
            return f"{text} is no public address"
    return None


def _leading_to(address: Address) -> list[Address]:
    """The address, or where it leads if it holds others."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address in _NAT64 or address in _NAT64_LOCAL:
        return [IPv4Address(int(address) & 0xFFFFFFFF)]
    if address.sixtofour is not None:
        return [address, address.sixtofour]
    if address.teredo is not None:
        return [address, *address.teredo]
    if int(address) >> 32 == 0 and int(address) > 1:
        # IPv4-compatible addresses, long deprecated.
        return [address, IPv4Address(int(address))]
    return [address]
