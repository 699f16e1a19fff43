"""Addresses that belong to no public server: a table, with the source of each row.

The rows are those of IANA's special-purpose registries for IPv4 and IPv6, both as last updated on
2025-10-09 (iana.org/assignments/iana-ipv4-special-registry, .../iana-ipv6-special-registry).  Rows
that the registries call globally reachable stand here too: they are anycast services, sinks and
identifiers, and no webhook is received there.

Beside them stand multicast, a cloud's metadata address that passes for public, and the site-local
space that IANA's registry of IPv6 address space holds back.  IPv6 outside of `GLOBAL_UNICAST` is
not assigned to anybody, so it needs no rows.  To bring the table up to date, copy new rows of the
registries and change the date; the tests go over each row.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Final

# The one block that IANA assigns unicast addresses from.
GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
# An address of this block stands for the IPv4 address in its last 32 bits (RFC 6052).
NAT64: Final = IPv6Network("64:ff9b::/96")

# Networks that are not dialled, and what each one is.
IPV4: Final[dict[IPv4Network, str]] = {
    IPv4Network("0.0.0.0/8"): "this network",
    IPv4Network("0.0.0.0/32"): "this host on this network",
    IPv4Network("10.0.0.0/8"): "private use",
    IPv4Network("100.64.0.0/10"): "shared address space",
    IPv4Network("127.0.0.0/8"): "loopback",
    IPv4Network("168.63.129.16/32"): "a cloud's metadata; in no registry",
    IPv4Network("169.254.0.0/16"): "link local",
    IPv4Network("172.16.0.0/12"): "private use",
    IPv4Network("192.0.0.0/24"): "IETF protocol assignments",
    IPv4Network("192.0.0.0/29"): "IPv4 service continuity prefix",
    IPv4Network("192.0.0.8/32"): "IPv4 dummy address",
    IPv4Network("192.0.0.9/32"): "port control protocol anycast",
    IPv4Network("192.0.0.10/32"): "traversal using relays around NAT anycast",
    IPv4Network("192.0.0.170/32"): "NAT64/DNS64 discovery",
    IPv4Network("192.0.0.171/32"): "NAT64/DNS64 discovery",
    IPv4Network("192.0.2.0/24"): "documentation (TEST-NET-1)",
    IPv4Network("192.31.196.0/24"): "AS112",
    IPv4Network("192.52.193.0/24"): "automatic multicast tunneling",
    IPv4Network("192.88.99.0/24"): "6to4 relay anycast, deprecated",
    IPv4Network("192.88.99.2/32"): "6a44 relay anycast",
    IPv4Network("192.168.0.0/16"): "private use",
    IPv4Network("192.175.48.0/24"): "direct delegation AS112 service",
    IPv4Network("198.18.0.0/15"): "benchmarking",
    IPv4Network("198.51.100.0/24"): "documentation (TEST-NET-2)",
    IPv4Network("203.0.113.0/24"): "documentation (TEST-NET-3)",
    IPv4Network("224.0.0.0/4"): "multicast; in a registry of its own",
    IPv4Network("240.0.0.0/4"): "reserved",
    IPv4Network("255.255.255.255/32"): "limited broadcast",
}

IPV6: Final[dict[IPv6Network, str]] = {
    IPv6Network("::1/128"): "loopback",
    IPv6Network("::/128"): "unspecified address",
    IPv6Network("::ffff:0:0/96"): "IPv4-mapped address",
    NAT64: "IPv4-IPv6 translation",
    IPv6Network("64:ff9b:1::/48"): "IPv4-IPv6 translation, local use",
    IPv6Network("100::/64"): "discard only",
    IPv6Network("100:0:0:1::/64"): "dummy prefix",
    IPv6Network("2001::/23"): "IETF protocol assignments",
    IPv6Network("2001::/32"): "Teredo",
    IPv6Network("2001:1::1/128"): "port control protocol anycast",
    IPv6Network("2001:1::2/128"): "traversal using relays around NAT anycast",
    IPv6Network("2001:1::3/128"): "DNS-SD service registration protocol anycast",
    IPv6Network("2001:2::/48"): "benchmarking",
    IPv6Network("2001:3::/32"): "automatic multicast tunneling",
    IPv6Network("2001:4:112::/48"): "AS112",
    IPv6Network("2001:10::/28"): "ORCHID, deprecated",
    IPv6Network("2001:20::/28"): "ORCHIDv2",
    IPv6Network("2001:30::/28"): "drone remote identification",
    IPv6Network("2001:db8::/32"): "documentation",
    IPv6Network("2002::/16"): "6to4",
    IPv6Network("2620:4f:8000::/48"): "direct delegation AS112 service",
    IPv6Network("3fff::/20"): "documentation",
    IPv6Network("5f00::/16"): "segment routing (SRv6) identifiers",
    IPv6Network("fc00::/7"): "unique local",
    IPv6Network("fe80::/10"): "link-local unicast",
    IPv6Network("fec0::/10"): "site-local, deprecated; in the registry of address space",
    IPv6Network("ff00::/8"): "multicast; in a registry of its own",
}
