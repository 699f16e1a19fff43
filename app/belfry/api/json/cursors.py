"""Cursors: the place where a list goes on, as an opaque text.

A cursor holds the partition and the key behind which to go on, and a digest of the question: with
another question it is refused, since it would skip or repeat.  It grants nothing; the range that a
list walks comes from the question, never from the cursor.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from http import HTTPStatus
from typing import Final

from belfry.api.problems import Problem

_CHECK_BYTES: Final = 6


def question(*parts: object) -> bytes:
    """A digest of the question."""
    return blake2b(repr(parts).encode(errors="replace"), digest_size=_CHECK_BYTES).digest()


def write_cursor(asked: bytes, partition: int, key: bytes) -> str:
    """A cursor behind a key of a partition."""
    return urlsafe_b64encode(asked + partition.to_bytes(2, "big") + key).decode().rstrip("=")


def read_cursor(cursor: str, asked: bytes) -> tuple[int, bytes]:
    """Partition and key; raises `Problem` if the text is not a cursor of this question.

    A caller that knows a cursor can make others of it, so both are only a place to begin at.
    """
    try:
        raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except ValueError:
        raw = b""
    if len(raw) < _CHECK_BYTES + 2 or raw[:_CHECK_BYTES] != asked:
        raise bad_cursor(cursor)
    return int.from_bytes(raw[_CHECK_BYTES : _CHECK_BYTES + 2], "big"), raw[_CHECK_BYTES + 2 :]


def bad_cursor(cursor: str) -> Problem:
    """The answer to a cursor of another question, or of none."""
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        f"Cursor {cursor[:100]!r} does not belong to this question: give back the cursor of a"
        " page, with all other parameters as they were, or leave it out to begin anew.",
        "bad_cursor",
    )
