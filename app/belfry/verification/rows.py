"""Rows of a changelog as a verification reads them, with decoders of its own.

They are written from the tables of `store/README.md`, and not from the code that writes rows: one
fault in a layout would otherwise hide itself.  Only fields that are checked are read.

    pending    01 01 kind flags │ due i64 │ nominal │ … │ life u64 │ version u32 │ occurrence │ …
    marker     01 02 how  …     │ ended │ due │ life │ version │ occurrence
    manifest   01 04 or 12      │ number │ epoch │ position │ watermark │ pending │ fired │ digest

All numbers are big-endian.  A row that does not begin with its format and letter is `NotReadable`,
and counts as a stranger's: no worker writes one.
"""

from __future__ import annotations

from hashlib import blake2b
from json import loads
from struct import Struct
from struct import error as WrongSize  # noqa: N812  # the module's own name says nothing here
from typing import Final, NamedTuple

FORMAT: Final = 1
MANIFEST_KEY: Final = b"\0m"
IDENTITY_KEY: Final = b"\0i"
ASIDE_KEY: Final = b"\0w"
JOB_KEY: Final = b"\0j"
OWN_KEY: Final = b"\0"
# A record that only takes up an offset, so that no copy of a signed row lies near it.
FILLER_KEY: Final = b"filler"
# A recovery numbers its transaction so much higher than any before.
RECOVERY_JUMP: Final = 4_097
MANIFESTS_KEPT: Final = 4_096
# Codes at rest of kinds that fire once: AT, AFTER, AFTER_ACK, AFTER_GROUP.
ONE_SHOTS: Final = frozenset({0, 1, 5, 6})
ENDED_FIRED: Final = 0
# Where a job begins, and behind all instants of a schedule.
NOWHERE: Final = b"", 0
ALL_INSTANTS: Final = (1 << 63) - 1
_PENDING_ROW: Final = 1
_MARKER_ROW: Final = 2
_MANIFEST_ROW: Final = 4
# The same where the partition has rows of key groups.
_GROUPED_ROW: Final = 18
_JOB_ROW: Final = 14
_PAUSED: Final = 1
_PENDING: Final = Struct(">BBBBqq8xQQII16xBBB")
# Where tenant, id and group of a pending row begin.
_TEXTS_AT: Final = 88
_MARKER: Final = Struct(">BBBBqqQII")
_MANIFEST: Final = Struct(">BBHQIqqQI16s")
_FIRE: Final = Struct(">QIq")
# Errors of reading JSON of another form, nested very deeply, or with an infinity.
_ODD_JSON: Final = (ValueError, LookupError, TypeError, RecursionError, OverflowError)
_OFFSET: Final = Struct(">Q")
_INSTANT: Final = Struct(">q")


class Logged(NamedTuple):
    """A record of the changelog; `stranger` says that no worker wrote it.  Instants are epoch ms.

    The value is without its proof; None is a tombstone.
    """

    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None
    stranger: bool = False


class WaitingRow(NamedTuple):
    """A schedule that waits, as its row says; instants are epoch ms, `kind` is its code at rest.

    `seq` is the offset of the record that brought it.  `group` is empty where it has none.
    """

    kind: int
    paused: bool
    due_ms: int
    nominal_ms: int
    seq: int
    life: int
    version: int
    occurrence: int
    group: bytes


class Over(NamedTuple):
    """A schedule that is over, as its marker says; `how` is 0 where it fired."""

    how: int
    ended_ms: int
    due_ms: int
    life: int
    version: int
    occurrence: int


class Sealed(NamedTuple):
    """The content of a manifest on its transaction.

    `number` goes up by one from manifest to manifest, `position` is the source offset to read next,
    `pending` the number of schedules that wait after it, and `fired` with `digest` the fires in it.
    """

    number: int
    epoch: int
    position: int
    watermark_ms: int
    pending: int
    fired: int
    digest: bytes


class AskedJob(NamedTuple):
    """A bulk job, as its row says: its tenant (``tenant/``), and the place of its request.

    `offset` is that in this partition, `origin` partition and offset where it was first received.
    `reached` is how far it has come: a schedule's name, and an instant of it (epoch ms).
    """

    owner: bytes
    offset: int
    origin: tuple[int, int]
    reached: tuple[bytes, int] = NOWHERE
    runs: bool = True


class NotReadable(ValueError):
    """A row that is not laid out as specified."""


def manifest(value: bytes) -> Sealed:
    """A manifest; raises `NotReadable`."""
    letter = _GROUPED_ROW if value[1:2] == b"\x12" else _MANIFEST_ROW
    return Sealed._make(unpacked(_MANIFEST, value, letter)[3:])


def schedule(value: bytes) -> WaitingRow | Over | None:
    """The content of a schedule's row, None for a row of another kind; raises `NotReadable`."""
    letter = value[1] if len(value) > 1 else 0
    if letter == _PENDING_ROW:
        _, _, kind, flags, *rest, tenant, name, group = unpacked(_PENDING, value, letter)
        group_at = _TEXTS_AT + tenant + name
        due_ms, nominal_ms, seq, life, version, occurrence = rest
        return WaitingRow(
            kind,
            bool(flags & _PAUSED),
            due_ms,
            nominal_ms,
            seq,
            life,
            version,
            occurrence,
            value[group_at : group_at + group],
        )
    if letter == _MARKER_ROW:
        _, _, how, _, *rest = unpacked(_MARKER, value, letter)
        return Over(how, *rest)
    return None


def generation(value: bytes) -> int:
    """How often the state was recovered, by an identity row; raises `NotReadable`."""
    try:
        return int(loads(value[2:])["generation"])
    except _ODD_JSON as error:
        raise NotReadable(f"an identity that says {value[:80]!r}") from error


def job(key: bytes, value: bytes) -> AskedJob:
    """A bulk job by its row; raises `NotReadable`."""
    owner, slash, _ = key.removeprefix(JOB_KEY).partition(b"/")
    try:
        said = loads(value[2:])
        reached = said["cursor"].encode(), ALL_INSTANTS
        if said.get("amid_fired"):
            reached = said["amid"].encode(), said["amid_ms"]
        origin, runs = tuple(said["origin"]), said["state"] == "RUNNING"
        found = AskedJob(owner + slash, said["offset"], origin, reached, runs)
        # Ids are made of these numbers, so they have to fit.
        _FIRE.pack(0, 0, found.offset)
        _FIRE.pack(0, *found.origin)
        _INSTANT.pack(reached[1])
    except (*_ODD_JSON, AttributeError, WrongSize) as error:
        raise NotReadable(f"a job that says {value[:80]!r}") from error
    if value[:2] != bytes((FORMAT, _JOB_ROW)):
        raise NotReadable(f"format {value[0]}, row {value[1]}")
    return found


def aside_offset(key: bytes) -> int:
    """Offset of a request that waits until it can be read, by its key; -1 for another key."""
    return int(_OFFSET.unpack(key[2:])[0]) if len(key) == 2 + _OFFSET.size else -1


def unpacked(layout: Struct, value: bytes, letter: int) -> tuple[int, ...]:
    """The numbers of a row of this letter; raises `NotReadable`."""
    try:
        found = layout.unpack_from(value)
    except WrongSize as error:
        raise NotReadable(f"{len(value)} bytes") from error
    if found[:2] != (FORMAT, letter):
        raise NotReadable(f"format {value[0]}, row {value[1]}")
    return found


def id_of_fire(name: bytes, life: int, version: int, nominal_ms: int) -> bytes:
    """The id that a fire of a schedule (``tenant/schedule_id``) has to have: 16 bytes."""
    return blake2b(name + _FIRE.pack(life, version, nominal_ms), digest_size=16).digest()


def id_of_extra(name: bytes, life: int, version: int, position: int) -> bytes:
    """The id of the fire that a TRIGGER at this offset asked for: 16 bytes."""
    return blake2b(name + _FIRE.pack(life, version, position) + b"trigger", digest_size=16).digest()


def id_of_past(name: bytes, life: int, origin: tuple[int, int], nominal_ms: int) -> bytes:
    """The id of the fire that a backfill, first received there, makes of an instant: 16 bytes."""
    place = _FIRE.pack(life, *origin) + _INSTANT.pack(nominal_ms)
    return blake2b(name + place + b"backfill", digest_size=16).digest()


def digest_of(identities: list[bytes]) -> bytes:
    """The digest of fires, in their order: over their ids as hexadecimal digits."""
    texts = b"".join(each.hex().encode() for each in identities)
    return blake2b(texts, digest_size=16).digest()
