"""The host under which other machines reach this one's HTTP port.

A port that is bound to all addresses (``0.0.0.0``, ``::``) has none that others could call, so one
is found: that of the interface that leads to the brokers, by which the other workers reach them
too; else what this machine's own name stands for.  Where the brokers are on this very machine, so
are the other workers, and loopback is right.

    BELFRY_HTTP_ADVERTISED_URL   set: its host, whatever the port is bound to
    BELFRY_HTTP_HOST             an address or name: that
                                 all addresses: the interface's, else the machine's own
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from belfry.api.server.hosts import is_loopback
from belfry.api.server.server import HttpAddressError
from belfry.settings import ServerSettings

# Connecting a datagram socket sends no packet; it only asks which interface would be taken.
_ANY_PORT = 9


def is_everywhere(host: str) -> bool:
    """Whether a host stands for all addresses of a machine, which nobody can call."""
    try:
        return host == "" or ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def reached_host(settings: ServerSettings) -> str:
    """The host by which others call this worker; raises `HttpAddressError` if none is found."""
    advertised = urlsplit(settings.http_advertised_url or "").hostname
    if advertised:
        return advertised
    if not is_everywhere(settings.http_host):
        return settings.http_host
    family = socket.AF_INET6 if ":" in settings.http_host else socket.AF_INET
    # A port on :: takes IPv4 as well, so an address of either kind will do there.
    families = (family, socket.AF_INET) if family == socket.AF_INET6 else (family,)
    for each in families:
        for found in _own(settings.bootstrap_servers, each):
            return found
    raise HttpAddressError(
        f"BELFRY_HTTP_HOST is {settings.http_host}, which nobody can call, and neither the way to"
        f" the brokers ({settings.bootstrap_servers}) nor this machine's own name"
        f" ({socket.gethostname()}) tells an address: set BELFRY_HTTP_ADVERTISED_URL to the one"
        " under which other workers reach this one, such as http://10.0.0.5:8700."
    )


def _own(brokers: str, family: socket.AddressFamily) -> Iterator[str]:
    """Addresses of this machine, the best one first; names that do not resolve are passed over."""
    for each in brokers.split(","):
        host = urlsplit(f"//{each.strip()}").hostname
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((host, _ANY_PORT))
            yield asking.getsockname()[0]
    with suppress(OSError):
        for found in socket.getaddrinfo(socket.gethostname(), None, family, socket.SOCK_STREAM):
            address = str(found[4][0])
            if not is_loopback(address):
                yield address
