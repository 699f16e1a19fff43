"""Names of hosts: which one a `Host` header names, and which mean this machine alone.

    Host: localhost:8700        localhost      this machine
    Host: [::1]:8700            ::1            this machine
    Host: 10.0.0.7              10.0.0.7       an address: no web page has one as its own name
    Host: a@b                   (empty)        no host at all

The results depend on the text alone, and no name is looked up: a stranger may run the name server,
and a foreign page would let its name resolve to 127.0.0.1 (`guard.py`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

# A name has 253 characters at most (RFC 1035), and a port follows.
LONGEST_HOST: Final = 300
# An IPv6 address in brackets, or a name, and perhaps a port (RFC 3986, section 3.2.2).
_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s@:/?#\\\[\]]+))(?::[0-9]*)?")


def is_loopback(host: str) -> bool:
    """Whether a host name or address means only this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_name(header: str) -> str:
    """Host part of a `Host` header: ``[::1]:8700`` gives ``::1``; empty if it is malformed."""
    # A URL's parser would take what stands around brackets for nothing.
    match = _HOST.fullmatch(header)
    return "" if match is None else match[1] or match[2]


def is_address(host: str) -> bool:
    """Whether a host is an IP address."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


@lru_cache(64)
def named_host(header: str) -> tuple[str, bool]:
    """The host in a `Host` header, and whether it means this machine."""
    name = host_name(header)
    return name.lower(), is_loopback(name)
