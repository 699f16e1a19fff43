"""Addresses that are dialled, and those that are not, in whatever guise they come."""

from __future__ import annotations

import pytest

from belfry.delivery.addresses import networks, refusal

PUBLIC = ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
REFUSED = [
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255"),
    *("192.168.1.1", "169.254.169.254", "169.254.0.1", "100.64.0.1", "100.127.255.254"),
    *("192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1"),
    *("239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16", "100.100.100.200"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "2002:7f00:1::"),
    *("2002:a00:1::1", "2001:db8::1", "2001:0:7f00:1::", "not an address", "", "127.1"),
    *("0x7f000001", "2130706433"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_dialled(address: str) -> None:
    assert refusal(address, ()) is None


@pytest.mark.parametrize("address", REFUSED)
def test_no_other_address_is_dialled(address: str) -> None:
    assert refusal(address, ()) is not None


def test_an_operator_may_allow_networks() -> None:
    allowed = networks(["127.0.0.0/8", "::1/128"])
    assert refusal("127.0.0.1", allowed) is None
    assert refusal("::1", allowed) is None
    assert refusal("::ffff:127.0.0.1", allowed) is None
    assert refusal("10.0.0.1", allowed) is not None
    assert refusal("fe80::1", allowed) is not None


def test_a_network_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        networks(["10.0.0.0/8", "nonsense"])
