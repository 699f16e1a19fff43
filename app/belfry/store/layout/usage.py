r"""A tenant's use in the period that is under way, as it lies in a partition's changelog.

    key    00 75  tenant                                \0u, name; without a name: metering is on
    row    01 0c 00 00                                  format, kind, pad
           from, until, reckoned up to                  3 × i64, epoch ms
           accepted, fired                              2 × u64, since `from`
           held bytes                                   u64, now
           held byte-milliseconds                       u64, from `from` up to `reckoned up to`

An owner writes the row anew in each step that does something for the tenant, so the next owner goes
on where it stood.  A release that knows no such rows stops at them: switch metering off before.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from belfry.store.layout.records import FORMAT, USAGE

_ROW: Final = Struct(">BBxxqqqQQQQ")
_MOST: Final = (1 << 64) - 1

USAGE_PREFIX: Final = b"\0u"
USAGE_END: Final = b"\0v"
# Under the prefix alone: the partition is metered.
METERED: Final = bytes((FORMAT, USAGE))


class UsageRow(NamedTuple):
    """A tenant's use of one partition since `from_ms`; instants are epoch ms.

    `held_bytes` are what its pending records take now, and `held_byte_ms` is their integral over
    time, which goes up to `reckoned_ms`.
    """

    from_ms: int
    until_ms: int
    reckoned_ms: int
    accepted: int = 0
    fired: int = 0
    held_bytes: int = 0
    held_byte_ms: int = 0

    @property
    def empty(self) -> bool:
        """Whether nothing was used, and nothing is held."""
        return not any(self[3:])

    def reckoned(self, until_ms: int) -> UsageRow:
        """The same with the bytes held up to an instant; one that is past changes nothing."""
        from_ms, end_ms, reckoned_ms, accepted, fired, held, held_byte_ms = self
        if until_ms <= reckoned_ms:
            return self
        held_byte_ms += (until_ms - reckoned_ms) * held
        return UsageRow(from_ms, end_ms, until_ms, accepted, fired, held, held_byte_ms)

    def used(self, accepted: int, fired: int, grown: int) -> UsageRow:
        """The same with the requests and fires of a step, and the growth of the held bytes."""
        from_ms, until_ms, reckoned_ms, before, fired_before, held, held_byte_ms = self
        return UsageRow(
            from_ms,
            until_ms,
            reckoned_ms,
            before + accepted,
            fired_before + fired,
            held + grown,
            held_byte_ms,
        )


def usage_key(tenant: bytes) -> bytes:
    """Changelog key of a tenant's use."""
    return USAGE_PREFIX + tenant


def tenant_of_usage(key: bytes) -> bytes:
    """The tenant in such a key; empty in that of the mark."""
    return key[len(USAGE_PREFIX) :]


def encode_usage_row(row: UsageRow) -> bytes:
    """The row of a tenant."""
    return _ROW.pack(FORMAT, USAGE, *row[:6], min(row.held_byte_ms, _MOST))


def decode_usage_row(row: bytes) -> UsageRow:
    """The content of a tenant's row."""
    return UsageRow._make(_ROW.unpack(row)[2:])
