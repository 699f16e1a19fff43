"""Records that their reader could not take in whole, and the headers that mark them.

A reader meets records that it cannot pass on as they are: ten thousand headers, a name that is not
text, a record that unpacks to 900 MB, a batch that cannot be unpacked. The reader drops none of
them, and does not stop for them. It keeps the part that it has room for and adds a last header that
says what is missing, so the record goes on to the engine and is refused there, under its offset:

    reader      value, 1 500 of 10 000 headers, belfry-error-cut: cut from 10000 headers
    engine      too_many ─► bad_fields

    reader      first 250 000 bytes, belfry-unread: request_too_large The record takes …
    engine      refused_unread ─► request_too_large

A producer may write such headers as well. They only have its own record refused, and with one of
few codes.
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.rejections import Rejection
from belfry.wire.record import ORIGIN_PREFIX, Headers

# The most headers of a record that are read. Headers that belfry adds on the way do not count.
MOST_READ: Final = 1_024
MOST_ADDED: Final = 16
# Of more than `MOST_CARRIED` headers the first `MOST_KEPT` are kept, with a header that says so.
MOST_CARRIED: Final = 2_048
MOST_KEPT: Final = 1_500
CUT: Final = "belfry-error-cut"
# In place of all headers, if the name of one is not text.
NO_TEXT: Final = ("belfry-unreadable", b"a header name of this record is no UTF-8")
# On a record that its reader could not take in whole: why it is to be refused.
UNREAD: Final = "belfry-unread"
UNREADABLE_BATCH: Final = "unreadable_batch"
_UNREAD_CODES: Final = ("request_too_large", UNREADABLE_BATCH)


def bounded(headers: Headers | None) -> Headers | None:
    """Headers as they came, or the first of very many, since a header may have two bytes.

    A cut record is always refused (`too_many`), and lies in `belfry.rejected` as it was cut.
    """
    if not headers or len(headers) <= MOST_CARRIED:
        return headers
    return [*headers[:MOST_KEPT], (CUT, b"cut from %d headers" % len(headers))]


def too_many(headers: Headers) -> Rejection | None:
    """Why a record with so many headers is refused, or None."""
    count = len(headers)
    added = MOST_ADDED if headers[-1][0].startswith(ORIGIN_PREFIX) else 0
    if count <= MOST_READ + added:
        return None
    more = "more than " if count > MOST_KEPT and headers[-1][0] == CUT else ""
    return Rejection(
        "bad_fields",
        f"The record has {more}{count} headers; {MOST_READ} are read, and 256 travel with an"
        " event.",
    )


def unread(code: str, reason: str) -> tuple[str, bytes]:
    """The header by which a reader has a record refused; it is the last one."""
    return UNREAD, f"{code} {reason}".encode(errors="replace")


def refused_unread(headers: Headers) -> Rejection | None:
    """Why a reader could not take a record in whole, or None if it could.

    A producer that writes such a header only has its own record refused.
    """
    name, given = headers[-1]
    if name != UNREAD or given is None:
        return None
    code, _, reason = given.decode(errors="replace").partition(" ")
    return Rejection(code if code in _UNREAD_CODES else UNREADABLE_BATCH, reason[:1_000])
