"""Addresses that are dialled, and those that are not, in whatever guise they come.

What is right comes from the registries' definition: an address of a row is refused, the neighbours
of a row are not, unless another row has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

import pytest

from belfry.delivery.addresses import Address, networks, refusal
from belfry.delivery.special_purpose import GLOBAL_UNICAST, IPV4, IPV6, NAT64

PUBLIC = [
    *("1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"),
    *(
        "9.255.255.255",
        "11.0.0.0",
        "172.32.0.0",
        "192.88.98.255",
        "192.88.100.0",
        "223.255.255.255",
    ),
    *("3fff:1000::", "2001:200::1", "2001:db9::1", "2003::1", "2606::5efe:808:808"),
]
REFUSED = [
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255"),
    *("192.168.1.1", "169.254.169.254", "169.254.0.1", "100.64.0.1", "100.127.255.254"),
    *("192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1"),
    *("239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16", "100.100.100.200"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "2002:7f00:1::"),
    *("2002:a00:1::1", "2001:db8::1", "2001:0:7f00:1::", "not an address", "", "127.1"),
    *("0x7f000001", "2130706433", "192.88.99.1", "fec0::1", "3fff::1", "4000::1", "1fff::1"),
    *("64:ff9b:1:a00:0:100:808:808", "64:ff9b:2::1", "::ffff:0:8.8.8.8", "::8.8.8.8"),
    *("2606:4700::5efe:a00:1", "2606:4700::200:5efe:7f00:1", "2606:4700::100:5efe:a9fe:a9fe"),
    *("fe80::5efe:808:808", "2002:808:808::1", "2001:0:808:808::"),
]
# IPv4 addresses that are dialled, and some that are not, for the forms that hold one.
HELD_PUBLIC = ("1.1.1.1", "8.8.8.8", "93.184.216.34", "223.255.255.255")
FORMS: Final[dict[str, Callable[[int], IPv6Address]]] = {
    "mapped": lambda held: IPv6Address(0xFFFF << 32 | held),
    "nat64": lambda held: IPv6Address(int(NAT64.network_address) | held),
    "isatap": lambda held: IPv6Address("2606:4700::5efe:0:0") + held,
    "isatap, universal": lambda held: IPv6Address("2606:4700::200:5efe:0:0") + held,
}
# Forms that are refused whatever they hold: their space is of a row.
REFUSED_FORMS: Final[dict[str, Callable[[int], IPv6Address]]] = {
    "6to4": lambda held: IPv6Address(0x2002 << 112 | held << 80 | 1),
    "teredo, server": lambda held: IPv6Address(0x20010000 << 96 | held << 64 | 0xF7F7F7F7),
    "teredo, client": lambda held: IPv6Address("2001:0:808:808::") + (held ^ 0xFFFFFFFF),
    "nat64 local /48": lambda held: IPv6Address(
        0x64FF9B0001 << 80 | held >> 16 << 64 | (held & 0xFFFF) << 40 | 0x08080808
    ),
    "nat64 local /96": lambda held: IPv6Address("64:ff9b:1::") + held,
    "compatible": IPv6Address,
    "translated": lambda held: IPv6Address(0xFFFF << 48 | held),
}


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_dialled(address: str) -> None:
    assert refusal(address, ()) is None


@pytest.mark.parametrize("address", REFUSED)
def test_no_other_address_is_dialled(address: str) -> None:
    assert refusal(address, ()) is not None


def edges(row: IPv4Network | IPv6Network) -> Iterator[Address]:
    """The first, the last, and one amid."""
    yield row.network_address
    yield row.broadcast_address
    yield row.network_address + row.num_addresses // 2


def neighbours(row: IPv4Network | IPv6Network) -> Iterator[Address]:
    """The address before, and the one behind, where there are any."""
    last = (1 << row.max_prefixlen) - 1
    if int(row.network_address):
        yield row.network_address - 1
    if int(row.broadcast_address) < last:
        yield row.broadcast_address + 1


@pytest.mark.parametrize("row", [*IPV4, *IPV6], ids=str)
def test_a_row_is_refused_and_its_neighbours_are_not(row: IPv4Network | IPv6Network) -> None:
    for address in edges(row):
        # Of IPv4-mapped and NAT64 the edges hold 0.0.0.0, 128.0.0.0 and 255.255.255.255.
        held = str(address) in ("::ffff:8000:0", "::ffff:128.0.0.0", "64:ff9b::8000:0")
        assert (refusal(str(address), ()) is None) == held, address
    for address in neighbours(row):
        others = any(address in other for other in (IPV4 if address.version == 4 else IPV6))
        space = address.version == 4 or address in GLOBAL_UNICAST
        assert (refusal(str(address), ()) is None) == (space and not others), address


@pytest.mark.parametrize("form", FORMS)
def test_a_form_that_holds_an_address_counts_as_that(form: str) -> None:
    for public in map(IPv4Address, HELD_PUBLIC):
        assert refusal(str(FORMS[form](int(public))), ()) is None, (form, public)
    for row in IPV4:
        for held in edges(row):
            assert refusal(str(FORMS[form](int(held))), ()) is not None, (form, held)


@pytest.mark.parametrize("form", REFUSED_FORMS)
def test_a_form_whose_space_is_special_is_refused_whatever_it_holds(form: str) -> None:
    held = [*map(IPv4Address, HELD_PUBLIC), *(each for row in IPV4 for each in edges(row))]
    for each in held:
        assert refusal(str(REFUSED_FORMS[form](int(each))), ()) is not None, (form, each)


def test_an_operator_may_allow_networks() -> None:
    allowed = networks(["127.0.0.0/8", "::1/128"])
    assert refusal("127.0.0.1", allowed) is None
    assert refusal("::1", allowed) is None
    assert refusal("::ffff:127.0.0.1", allowed) is None
    assert refusal("10.0.0.1", allowed) is not None
    assert refusal("fe80::1", allowed) is not None


def test_a_network_that_is_allowed_does_not_allow_what_its_addresses_hold() -> None:
    allowed = networks(["2002::/16", "2606:4700::/32"])
    assert refusal("2002:808:808::1", allowed) is None
    assert refusal("2002:7f00:1::1", allowed) is not None
    assert refusal("2606:4700::5efe:7f00:1", allowed) is not None


def test_a_network_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        networks(["10.0.0.0/8", "nonsense"])
