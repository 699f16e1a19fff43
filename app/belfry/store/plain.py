"""Pending records as plain fires read them: only what they need, in one call.

The layouts are those of `records`, with the rest passed over; None stands for a schedule that asks
for more than a plain fire gives.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from belfry.schedules.rule import ONE_SHOT, RECURRING
from belfry.store.records import CONTENT_AT, FORMAT, KIND_CODES, PENDING

# What a plain schedule needs to fire.
_PLAIN: Final = Struct(">4xqq16xQII16xBBBBiIIi")
_PLAIN_HEADS: Final = frozenset(bytes((FORMAT, PENDING, KIND_CODES[k], 0)) for k in ONE_SHOT)
# And what a plain one needs that recurs.
_TURN: Final = Struct(">4xqq8xQQII8xqBBBBiIIi")
_TURN_HEADS: Final = frozenset(bytes((FORMAT, PENDING, KIND_CODES[k], 0)) for k in RECURRING)

# due, nominal, life, version; tenant, id, group, key, payload
PlainRow = tuple[
    int, int, int, int, bytes, bytes, bytes | None, bytes | None, bytes | None
]  # fmt: skip


# due, nominal, seq, life, version, occurrence; tenant, id, group, key, rule, payload
TurnRow = tuple[
    int, int, int, int, int, int,
    bytes, bytes, bytes | None, bytes | None, bytes, bytes | None,
]  # fmt: skip


def decode_plain(record: bytes) -> PlainRow | None:
    """What the fire of a plain schedule needs of its record; None where it needs more."""
    if record[:4] not in _PLAIN_HEADS:
        return None
    (due, nominal, life, version, occurrence, tenant_n, id_n, group_n, type_n, key_n,
     headers_n, extra_n, payload_n) = _PLAIN.unpack_from(record)  # fmt: skip
    if headers_n or extra_n or occurrence:
        return None
    a = CONTENT_AT + tenant_n
    b = a + id_n
    c = b + group_n
    d = c + type_n
    e = d + (key_n if key_n > 0 else 0)
    return (
        due, nominal, life, version, record[CONTENT_AT:a], record[a:b],
        record[b:c] if group_n else None,
        None if key_n < 0 else record[d:e], None if payload_n < 0 else record[e:],
    )  # fmt: skip


def decode_turn(record: bytes) -> TurnRow | None:
    """What the fire of a plain recurring schedule needs of its record; None where it needs more."""
    if record[:4] not in _TURN_HEADS:
        return None
    (due, nominal, seq, life, version, occurrence, jitter, tenant_n, id_n, group_n, type_n, key_n,
     headers_n, extra_n, payload_n) = _TURN.unpack_from(record)  # fmt: skip
    if headers_n or jitter:
        return None
    a = CONTENT_AT + tenant_n
    b = a + id_n
    c = b + group_n
    d = c + type_n
    e = d + (key_n if key_n > 0 else 0)
    f = e + extra_n
    return (
        due, nominal, seq, life, version, occurrence, record[CONTENT_AT:a], record[a:b],
        record[b:c] if group_n else None, None if key_n < 0 else record[d:e], record[e:f],
        None if payload_n < 0 else record[f:],
    )  # fmt: skip
