"""Room for connections: bounds of all connections of a port, and of those of one address.

A connection waits from when it is accepted until a head has come whole, and between two requests.
If there is no room for one more, a waiting one makes room: first the oldest that has not asked for
anything yet, so that silent connections do not shut others out. A new one is refused only if all of
them are being answered.

    accepted ──► fresh ──head──► answered ──answer sent──► idle ──head──► answered …
                   └─ makes room first                       └─ makes room then
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Protocol

# Bounds where no setting says others.
MOST_CONNECTIONS: Final = 2_000
PER_ADDRESS: Final = 500
# Refused ones are still told why, up to so many of the bound; beyond that they are cut off.
REFUSED_SHARE: Final = 1.5
# One customer has a network of IPv6 addresses, and any of them costs nothing.
IPV6_PREFIX: Final = 64


class Connection(Protocol):
    """A connection that can be asked to make room."""

    def make_room(self) -> None:
        """End at once; nothing of this connection is being answered."""


@dataclass(slots=True)
class _CountedTogether:
    """Connections counted together; those that wait, in the order in which they began to."""

    members: int = 0
    fresh: dict[Connection, None] = field(default_factory=dict)
    idle: dict[Connection, None] = field(default_factory=dict)

    def longest_waiting(self) -> Connection | None:
        """The one that makes room first."""
        return next(iter(self.fresh), None) or next(iter(self.idle), None)


class Connections:
    """The connections of one port; belongs to its event loop.

    With a bound of 3, and connections a, b and c that wait, d is accepted: a has said nothing for
    longest, so it ends, and d enters. With all three being answered, d enters as the fourth, and is
    told 503 once its head has come.
    """

    def __init__(
        self,
        most: int = MOST_CONNECTIONS,
        per_address: int = PER_ADDRESS,
        proxies: Iterable[str] = (),
    ) -> None:
        """`proxies` are addresses or networks that have no bound of their own."""
        self._most = most
        self._per_address = per_address
        self._proxies = [found for each in proxies for found in _networks(each)]
        self._all = _CountedTogether()
        self._by_address: dict[str, _CountedTogether] = defaultdict(_CountedTogether)
        self._address_of: dict[Connection, str] = {}

    @property
    def is_overrun(self) -> bool:
        """Whether even refusals take too many connections."""
        return self._all.members > self._most * REFUSED_SHARE

    def enter(self, connection: Connection, host: str) -> str:
        """Count a new connection; an empty text, or why it is refused once it has asked.

        `host` is the address at its other end; an empty one is not bounded by itself.
        """
        address = "" if not host or self._is_proxy(host) else _counted_as(host)
        why = ""
        if address and self._by_address[address].members >= self._per_address:
            why = self._shrunk(self._by_address[address], f"{self._per_address} of your address")
        if not why and self._all.members >= self._most:
            why = self._shrunk(self._all, str(self._most))
        self._address_of[connection] = address
        for counted in self._counted(connection):
            counted.members += 1
        self._wait(connection, fresh=True)
        return why

    def answered(self, connection: Connection) -> None:
        """A head of it has come."""
        for counted in self._counted(connection):
            counted.fresh.pop(connection, None)
            counted.idle.pop(connection, None)

    def idles(self, connection: Connection) -> None:
        """All that it has asked for is answered."""
        self._wait(connection, fresh=False)

    def leave(self, connection: Connection) -> None:
        """It has ended."""
        if connection not in self._address_of:
            return
        self.answered(connection)
        for counted in self._counted(connection):
            counted.members -= 1
        address = self._address_of.pop(connection)
        if address and self._by_address[address].members == 0:
            del self._by_address[address]

    def _shrunk(self, counted: _CountedTogether, many: str) -> str:
        """Make room for one; an empty text, or why there is none."""
        found = counted.longest_waiting()
        if found is None:
            return f"{many} connections are open already: try again."
        self.leave(found)
        found.make_room()
        return ""

    def _wait(self, connection: Connection, *, fresh: bool) -> None:
        for counted in self._counted(connection):
            (counted.fresh if fresh else counted.idle)[connection] = None

    def _counted(self, connection: Connection) -> list[_CountedTogether]:
        """The counts of a connection: that of the port, and that of its bounded address."""
        address = self._address_of.get(connection)
        if address is None:
            return []
        return [self._all, self._by_address[address]] if address else [self._all]

    def _is_proxy(self, host: str) -> bool:
        """Whether an address is a proxy's, behind which many callers are."""
        if not self._proxies:
            return False
        try:
            found = ip_address(host)
        except ValueError:
            return False
        return any(found in network for network in self._proxies)


def _counted_as(host: str) -> str:
    """The address, or the network of an IPv6 address."""
    try:
        found = ip_address(host)
    except ValueError:
        return host
    if not isinstance(found, IPv6Address):
        return host
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((found, IPV6_PREFIX), strict=False))


def _networks(given: str) -> list[IPv4Network | IPv6Network]:
    """The networks that a setting names: an address, a network, or `*` for all."""
    if given == "*":
        return [ip_network("0.0.0.0/0"), ip_network("::/0")]
    try:
        return [ip_network(given, strict=False)]
    except ValueError:
        return []
