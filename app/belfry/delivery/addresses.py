"""Which addresses may be dialled: public ones, and those of networks that the operator allows.

A name is resolved once, each of its addresses is judged, and only a judged address is dialled. An
address is public if no row of `special_purpose.py` covers it; an IPv6 address also has to be of the
block that addresses are assigned from. An address that holds another one is judged as that one
(IPv4-mapped, NAT64), or has to pass together with it (6to4, Teredo, ISATAP).

Local-use NAT64 (64:ff9b:1::/48) is refused as a whole, since only the network itself knows where in
such an address the IPv4 address lies.  An operator who allows that network allows all addresses
behind it.
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

from belfry.delivery.special_purpose import GLOBAL_UNICAST, IPV4, IPV6, NAT64

Address = IPv4Address | IPv6Address
Networks = tuple[IPv4Network | IPv6Network, ...]

# The upper half of an ISATAP interface identifier, but for the bits that say local or universal,
# and single or group (RFC 5214, RFC 4291 appendix A).
_ISATAP: Final = 0x0000_5EFE
_ISATAP_MASK: Final = 0xFCFF_FFFF


def networks(given: Iterable[str]) -> Networks:
    """Networks in CIDR notation; ValueError names the first text that is not one."""
    return tuple(ip_network(each) for each in given)


def refusal(text: str, allowed: Networks) -> str | None:
    """Why this address is not dialled, or None."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return f"{text[:60]!r} is no IP address"
    for each in _leading_to(address):
        if not (_within(each, allowed) or _is_public(each)):
            return f"{text} is no public address"
    return None


def _within(address: Address, allowed: Networks) -> bool:
    return any(address in network for network in allowed if network.version == address.version)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in IPV4)
    return address in GLOBAL_UNICAST and not any(address in network for network in IPV6)


def _leading_to(address: Address) -> list[Address]:
    """The address, or where it leads if it holds others."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    last = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in NAT64:
        return [last]
    if address.sixtofour is not None:
        return [address, address.sixtofour]
    if address.teredo is not None:
        return [address, *address.teredo]
    if int(address) >> 32 & _ISATAP_MASK == _ISATAP:
        return [address, last]
    return [address]
