"""The rule of a schedule at rest: how it recurs, and how it is treated when late.

A rule lies in the `extra` bytes of a pending record, so it is part of the definition.  A one-shot
schedule that says nothing about lateness has no rule: `encode_rule` gives ``b""``, and its record
is the same as it would be if there were no rules.

    format u8 │ kind u8 │ fields u16 │ the numbers that are there, i64 │ codes, u8 │ texts
    1         │ 2 EVERY │ bit set    │ interval start end max late     │ policies  │ size u8, UTF-8

The value of the kind's own field is the number of bit 0, or the text of bit 13; the kind tells
which. A text of more than 255 bytes has bit 14 instead, and a size of two bytes.  The number of bit
6 is the seed of H in an expression of cron, the text of bit 11 that of the minutes that are left
out.

Frozen numbers: the format, the bits, the codes, also those of the kinds.  Fields lie in the order
of their bits: 0-6 are numbers, 8-10 codes, 11-14 texts.  Bit 15 is for HTTP targets: JSON at the
end, followed by its size (u16), so that it can be cut off without reading the rest.

All of these are taken.  Bit 7 says that 16 more bits follow the first ones (u16), and a new field
takes one of those; they lie before the targets.  The first four of them are numbers.  The fifth is
the calendar: a size of two bytes, then a code of what becomes of instants on days off, the name
with its size (u8), and the days as `calendars` packs them.  The sixth is whose ACK is awaited.
The seventh is the priority as its level (`levels.py`, u8): right behind the bits, before all other
fields, so that it can be read without them.

Three rules, byte for byte:

    EVERY 60 s            01 02 0001  000000000000ea60
    AT, max late 1 s      01 00 0010  00000000000003e8
    CRON @daily, UTC      01 03 3000  03 "UTC"  06 "@daily"

A reader that meets a bit, a format or a kind that it does not know refuses the whole rule: a field
that is not understood might be what keeps the schedule from firing.  Such a schedule waits, and a
worker of the later release fires it (`engine/README.md`, "What cannot be understood").
"""

from __future__ import annotations

from operator import attrgetter
from struct import Struct
from typing import Any, Final

from belfry.schedules.triggers.levels import LEVEL_AT, LEVEL_BIT, level_for, priority_at
from belfry.schedules.triggers.registry import BY_CODE, KINDS
from belfry.schedules.triggers.rule import ON_HOLIDAY, OVERLAPS, POLICIES, Rule

FORMAT: Final = 1
_HEAD: Final = Struct(">BBH")
_MORE_BITS: Final = Struct(">H")
_MORE: Final = 1 << 7
_NUMBER: Final = 1 << 0
_TEXT: Final = 1 << 13
_LONG_TEXT: Final = 1 << 14
_MOST_SHORT: Final = 255
_NUMBERS: Final = {
    "start_at": 1 << 1,
    "end_at": 1 << 2,
    "max_fires": 1 << 3,
    "max_lateness_ms": 1 << 4,
    "ack_timeout_ms": 1 << 5,
    "seed": 1 << 6,
}
_MORE_NUMBERS: Final = {
    "max_wait_ms": 1 << 16,
    "concurrency": 1 << 17,
    "ack_delay_ms": 1 << 18,
    "latest_at": 1 << 19,
}
_CODES: Final = {"misfire": 1 << 8, "overlap": 1 << 9, "serial": 1 << 10}
_SYMBOLS: Final[dict[str, tuple[object, ...]]] = {
    "misfire": POLICIES,
    "overlap": OVERLAPS,
    "serial": (None, True),
}
_CALENDAR: Final = 1 << 20
_AWAITED: Final = 1 << 21
_PRIORITY: Final = LEVEL_BIT << 16
_EXCEPT_CRON: Final = 1 << 11
_TIMEZONE: Final = 1 << 12
TARGETS_BIT: Final = 1 << 15
_SIZE_BYTES: Final = 2
# Bits in the order in which they lie, with the field that each stands for.
_FIELDS: Final = {
    _PRIORITY: "priority",
    _NUMBER: "when",
    **{bit: name for name, bit in _NUMBERS.items()},
    **{bit: name for name, bit in _CODES.items()},
    _EXCEPT_CRON: "except_cron",
    _TIMEZONE: "timezone",
    _TEXT: "when",
    _LONG_TEXT: "when",
    **{bit: name for name, bit in _MORE_NUMBERS.items()},
    _CALENDAR: "calendar",
    _AWAITED: "awaited",
    TARGETS_BIT: "targets",
}
# One look at all fields of a rule, in that order: most rules say next to nothing.
_values: Final = attrgetter(*_FIELDS.values())
# `when` lies behind one of these, by its type and size.
_BY_KIND_OF_WHEN: Final = frozenset({_NUMBER, _TEXT, _LONG_TEXT})
_KNOWN_BITS: Final = sum(_FIELDS) | _MORE
_ARE_NUMBERS: Final = frozenset({_NUMBER, *_NUMBERS.values(), *_MORE_NUMBERS.values()})
# The formats of rules that this version can read; another version has another text.
READS: Final = f"{FORMAT} {_KNOWN_BITS:04x} {len(KINDS)} {len(POLICIES)} {len(OVERLAPS)}"


def encode_rule(rule: Rule) -> bytes:
    """The bytes of a rule; none where a one-shot schedule says nothing about lateness.

    Equal rules have equal bytes, so an update that changes nothing is found by comparing them.
    """
    values = _values(rule)
    if values.count(None) == len(values):
        return b""
    given = [
        (bit, said)
        for bit, value in zip(_FIELDS, values, strict=True)
        if value is not None and (said := _said(rule, bit, value)) is not None
    ]
    if not given and not rule.recurs:
        return b""
    bits = sum(bit for bit, _ in given)
    more = _MORE_BITS.pack(bits >> 16) if bits >> 16 else b""
    head = _HEAD.pack(FORMAT, KINDS[rule.kind].code, bits & 0xFFFF | _MORE * bool(more)) + more
    return head + b"".join(_encoded(bit, value) for bit, value in given)


def _said(rule: Rule, bit: int, value: Any) -> Any:
    """The value at rest behind this bit for a value of its field; None for nothing."""
    if bit == _CALENDAR:
        return _calendar_of(rule)
    if bit not in _BY_KIND_OF_WHEN:
        return value
    if isinstance(value, int):
        return value if bit == _NUMBER else None
    is_long = len(value.encode()) > _MOST_SHORT
    return value if bit == (_LONG_TEXT if is_long else _TEXT) else None


def _calendar_of(rule: Rule) -> bytes | None:
    """The calendar of a rule, as it lies at rest."""
    if rule.calendar is None or rule.packed_days is None:
        return None
    name = rule.calendar.encode()
    return bytes((ON_HOLIDAY.index(rule.on_holiday or ""), len(name))) + name + rule.packed_days


def _encoded(bit: int, value: Any) -> bytes:
    name = _FIELDS[bit]
    if bit in _ARE_NUMBERS:
        return int(value).to_bytes(8, "big", signed=True)
    if name in _SYMBOLS:
        return _SYMBOLS[name].index(value).to_bytes(1, "big")
    if bit == _PRIORITY:
        return level_for(value)
    if bit == _CALENDAR:
        return len(value).to_bytes(_SIZE_BYTES, "big") + bytes(value)
    if bit == TARGETS_BIT:
        return bytes(value) + len(value).to_bytes(_SIZE_BYTES, "big")
    text = str(value).encode()
    return len(text).to_bytes(_size_bytes(bit), "big") + text


def _size_bytes(bit: int) -> int:
    return _SIZE_BYTES if bit == _LONG_TEXT else 1


def decode_rule(encoded: bytes) -> Rule:
    """The rule in these bytes; ValueError for bytes of a format that this version cannot read.

    No bytes are the rule of a one-shot schedule: kind AT, nothing given.
    """
    if not encoded:
        return Rule("AT")
    version, code, bits = _HEAD.unpack_from(encoded)
    at = _HEAD.size
    if bits & _MORE:
        bits |= _MORE_BITS.unpack_from(encoded, at)[0] << 16
        at += _MORE_BITS.size
    if version != FORMAT or bits & ~_KNOWN_BITS or code not in BY_CODE:
        raise ValueError(
            f"A rule starts with {encoded[:4].hex()}: this version reads format {FORMAT} with"
            f" fields {_KNOWN_BITS:04x}. Run the version that wrote it, or a newer one."
        )
    found: dict[str, Any] = {}
    for bit, name in _FIELDS.items():
        if bits & bit == _CALENDAR:
            at = _read_calendar(encoded, at, found)
        elif bits & bit:
            found[name], at = _decoded(bit, encoded, at)
    return Rule(BY_CODE[code].name, **found)


def _decoded(bit: int, encoded: bytes, at: int) -> tuple[object, int]:
    """A field's value, and where the next one begins."""
    name = _FIELDS[bit]
    if bit in _ARE_NUMBERS:
        return int.from_bytes(encoded[at : at + 8], "big", signed=True), at + 8
    if name in _SYMBOLS:
        return _SYMBOLS[name][encoded[at]], at + 1
    if bit == _PRIORITY:
        return priority_at(encoded[LEVEL_AT]), at + 1
    if bit == TARGETS_BIT:
        return encoded[at:-_SIZE_BYTES], len(encoded)
    start = at + _size_bytes(bit)
    end = start + int.from_bytes(encoded[at:start], "big")
    return encoded[start:end].decode(), end


def _read_calendar(encoded: bytes, at: int, found: dict[str, Any]) -> int:
    """Read the calendar that lies here; where the next field begins."""
    start = at + _SIZE_BYTES
    end = start + int.from_bytes(encoded[at:start], "big")
    name_end = start + 2 + encoded[start + 1]
    found["on_holiday"] = ON_HOLIDAY[encoded[start]] or None
    found["calendar"] = encoded[start + 2 : name_end].decode()
    found["packed_days"] = encoded[name_end:end]
    return end


def leaves_out(encoded: bytes) -> bool:
    """Whether these bytes of a rule, which may be none, leave instants out by the clock."""
    return bool(encoded) and bool(_bits(encoded) & (_EXCEPT_CRON | _CALENDAR))


def has_calendar(encoded: bytes) -> bool:
    """Whether these bytes of a rule, which may be none, have a calendar."""
    return bool(encoded) and bool(_bits(encoded) & _CALENDAR)


def _bits(encoded: bytes) -> int:
    """All bits of a rule."""
    bits: int = _HEAD.unpack_from(encoded)[2]
    return bits | _MORE_BITS.unpack_from(encoded, _HEAD.size)[0] << 16 if bits & _MORE else bits


def has_targets(encoded: bytes) -> bool:
    """Whether these bytes of a rule, which may be none, hold HTTP targets."""
    return encoded[2:3] >= b"\x80"


def targets_in(encoded: bytes) -> bytes:
    """The HTTP targets of a rule that has some, as they lie at rest."""
    size = int.from_bytes(encoded[-_SIZE_BYTES:], "big")
    return encoded[-_SIZE_BYTES - size : -_SIZE_BYTES]


def without_targets(encoded: bytes) -> bytes:
    """The same rule without its HTTP targets; caches of rules have these bytes as their key."""
    if not has_targets(encoded):
        return encoded
    end = len(encoded) - _SIZE_BYTES - len(targets_in(encoded))
    return b"%b%c%b" % (encoded[:2], encoded[2] & 0x7F, encoded[3:end])
