"""The rule of a schedule at rest: what a recurring schedule does, and what any does when late.

A rule lies in the `extra` bytes of a pending record, so it is part of the definition.  A one-shot
schedule that says nothing about lateness has no rule: `encode_rule` gives ``b""``, and its record
is the same as it would be if there were no rules.

    format u8 │ kind u8 │ fields u16 │ the numbers that are there, i64 │ codes, u8 │ texts
    1         │ 2 EVERY │ bit set    │ interval start end max late     │ policies  │ size u8, UTF-8

Frozen numbers: the format, the bits, the codes.  Fields lie in the order of their bits; a new one
takes a free bit: 0-7 are numbers, 8-11 codes, 12-14 texts.  Bit 15 is for HTTP targets: JSON at the
end, followed by its size (u16), so that it can be cut off without reading the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from belfry.schedules.targets import encode_targets, target_of

if TYPE_CHECKING:
    from belfry.schedules.request import Request

FORMAT: Final = 1
KINDS: Final = ("AT", "AFTER", "EVERY", "CRON")
RECURRING: Final = frozenset({"EVERY", "CRON"})
ONE_SHOT: Final = frozenset({"AT", "AFTER"})
# What a code of the record stands for; 0 is free, so that a zeroed byte is seen as damage.
POLICIES: Final = ("", "FIRE_ONCE", "FIRE_ALL", "SKIP")
OVERLAPS: Final = ("", "ALLOW", "SKIP", "QUEUE_ONE")
# Those that wait for the last fire's acknowledgement.
WAITING_OVERLAPS: Final = frozenset({"SKIP", "QUEUE_ONE"})
DEFAULT_MISFIRE: Final = "FIRE_ONCE"
DEFAULT_LATENESS_MS: Final = 60_000
DEFAULT_ACK_TIMEOUT_MS: Final = 300_000

_HEAD: Final = Struct(">BBH")
_NUMBERS: Final = {
    "interval_ms": 1 << 0,
    "start_at": 1 << 1,
    "end_at": 1 << 2,
    "max_fires": 1 << 3,
    "max_lateness_ms": 1 << 4,
    "ack_timeout_ms": 1 << 5,
}
_CODES: Final = {"misfire": 1 << 8, "overlap": 1 << 9, "serial": 1 << 10}
_SYMBOLS: Final[dict[str, tuple[object, ...]]] = {
    "misfire": POLICIES,
    "overlap": OVERLAPS,
    "serial": (None, True),
}
_TEXTS: Final = {"timezone": 1 << 12, "cron": 1 << 13}
TARGETS_BIT: Final = 1 << 15
_SIZE_BYTES: Final = 2
_BIT: Final = {**_NUMBERS, **_CODES, **_TEXTS, "targets": TARGETS_BIT}
_KNOWN_BITS: Final = sum(_BIT.values())
# What this version can read of rules; another version has another text.
READS: Final = f"{FORMAT} {_KNOWN_BITS:04x} {len(KINDS)} {len(POLICIES)} {len(OVERLAPS)}"


@dataclass(frozen=True, slots=True)
class Rule:
    """When a schedule recurs, within which bounds, and what becomes of what is late.

    Instants are epoch milliseconds, bounds inclusive; None stands for "not given".
    """

    kind: str
    interval_ms: int | None = None
    cron: str | None = None
    timezone: str | None = None
    start_at: int | None = None
    end_at: int | None = None
    max_fires: int | None = None
    misfire: str | None = None
    max_lateness_ms: int | None = None
    overlap: str | None = None
    serial: bool | None = None
    ack_timeout_ms: int | None = None
    targets: bytes | None = None

    @property
    def recurs(self) -> bool:
        """Whether more than one occurrence may follow."""
        return self.kind in RECURRING

    @property
    def lateness_limit_ms(self) -> int | None:
        """How late an occurrence still is in time; None: however late."""
        if self.max_lateness_ms is not None:
            return self.max_lateness_ms
        return DEFAULT_LATENESS_MS if self.recurs else None

    def misfire_policy(self, tenant_default: str | None = None) -> str:
        """What becomes of what is later than that: the rule's word, the tenant's, the default."""
        return self.misfire or tenant_default or DEFAULT_MISFIRE


def rule_of(request: Request) -> Rule:
    """The rule that a checked request asks for."""
    recurs, targets = request["kind"] in RECURRING, request["http_targets"]
    return Rule(
        kind=request["kind"],
        interval_ms=request["interval_ms"] if request["kind"] == "EVERY" else None,
        cron=request["cron"] if request["kind"] == "CRON" else None,
        timezone=request["timezone"] if request["kind"] == "CRON" else None,
        start_at=request["start_at"] if recurs else None,
        end_at=request["end_at"] if recurs else None,
        max_fires=request["max_fires"] if recurs else None,
        misfire=request["misfire"],
        max_lateness_ms=request["max_lateness_ms"],
        overlap=request["overlap"] if recurs else None,
        serial=request["serial"] or None,
        ack_timeout_ms=request["ack_timeout_ms"],
        targets=encode_targets(map(target_of, targets)) if targets else None,
    )


def encode_rule(rule: Rule) -> bytes:
    """The bytes of a rule; none where a one-shot schedule says nothing about lateness."""
    given = [name for name in _BIT if getattr(rule, name) is not None]
    if not given and rule.kind in ONE_SHOT:
        return b""
    bits = sum(_BIT[name] for name in given)
    head = _HEAD.pack(FORMAT, KINDS.index(rule.kind), bits)
    return head + b"".join(_encoded(name, getattr(rule, name)) for name in given)


def awaits(encoded: bytes) -> bool:
    """Whether something waits until a fire of this rule is acknowledged."""
    rule = decode_rule(encoded)
    return bool(rule.serial) or rule.overlap in WAITING_OVERLAPS


def has_targets(encoded: bytes) -> bool:
    """Whether these bytes of a rule, which may be none, hold HTTP targets."""
    return encoded[2:3] >= b"\x80"


def targets_in(encoded: bytes) -> bytes:
    """The HTTP targets of a rule that has some, as they lie at rest."""
    size = int.from_bytes(encoded[-_SIZE_BYTES:], "big")
    return encoded[-_SIZE_BYTES - size : -_SIZE_BYTES]


def without_targets(encoded: bytes) -> bytes:
    """The same rule without its HTTP targets; what is remembered of rules is remembered by it."""
    if not has_targets(encoded):
        return encoded
    end = len(encoded) - _SIZE_BYTES - len(targets_in(encoded))
    return b"%b%c%b" % (encoded[:2], encoded[2] & 0x7F, encoded[3:end])


def _encoded(name: str, value: Any) -> bytes:
    if name in _NUMBERS:
        return int(value).to_bytes(8, "big", signed=True)
    if name in _SYMBOLS:
        return _SYMBOLS[name].index(value).to_bytes(1, "big")
    if name == "targets":
        return bytes(value) + len(value).to_bytes(_SIZE_BYTES, "big")
    text = str(value).encode()
    return len(text).to_bytes(1, "big") + text


def decode_rule(encoded: bytes) -> Rule:
    """The rule in these bytes; ValueError for bytes of a format that this version cannot read.

    No bytes are the rule of a one-shot schedule: kind AT, nothing given.
    """
    if not encoded:
        return Rule("AT")
    version, kind, bits = _HEAD.unpack_from(encoded)
    if version != FORMAT or bits & ~_KNOWN_BITS or kind >= len(KINDS):
        raise ValueError(
            f"A rule starts with {encoded[:4].hex()}: this version reads format {FORMAT} with"
            f" fields {_KNOWN_BITS:04x}. Run the version that wrote it, or a newer one."
        )
    found: dict[str, Any] = {}
    at = _HEAD.size
    for name, bit in _BIT.items():
        if bits & bit:
            found[name], at = _decoded(name, encoded, at)
    return Rule(KINDS[kind], **found)


def _decoded(name: str, encoded: bytes, at: int) -> tuple[object, int]:
    """A field's value, and where the next one begins."""
    if name in _NUMBERS:
        return int.from_bytes(encoded[at : at + 8], "big", signed=True), at + 8
    if name in _SYMBOLS:
        return _SYMBOLS[name][encoded[at]], at + 1
    if name == "targets":
        return encoded[at:-_SIZE_BYTES], len(encoded)
    end = at + 1 + encoded[at]
    return encoded[at + 1 : end].decode(), end
