"""What a played step has against the logged one: its rows, its manifest, and its events.

    played      row a   row b            manifest
    logged      row a   row b'  row c    manifest
                same    other   nobody asked for it, unless it is what stands there already

A worker may write a row once more as it is, to sign it or to close what a former owner left.  A row
that compaction has removed is *owed*: it has to come again later under the same key.  Rows of usage
(metering) are left out: a worker reckons them at instants within a step that nothing tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import zip_longest
from typing import Final, NamedTuple

from belfry.engine.effects import Effects, Fired
from belfry.playback.logged import LoggedStep
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest
from belfry.store.layout.records import (
    ANSWERED,
    ASIDE,
    AWAITED,
    CALENDAR,
    IDENTITY,
    JOB,
    MARKER,
    PENDING,
    VERDICT,
    ZONES,
)
from belfry.store.layout.usage import USAGE_PREFIX
from belfry.wire.record import Headers

_ROWS: Final = {
    PENDING: "a pending schedule",
    MARKER: "the marker of a schedule that is over",
    VERDICT: "a verdict",
    ANSWERED: "a verdict",
    AWAITED: "an awaited fire",
    ZONES: "a text",
    IDENTITY: "an identity",
    ASIDE: "a request set aside",
    JOB: "a bulk job",
    CALENDAR: "a calendar",
}
# Bytes that are shown around the first that differs.
SHOWN: Final = 12
_FRAMES: Final = ((b"\xc3\x01", 10), (b"\0", 5))
_EXTRA: Final = ("belfry-occurrence", b"-1")
_SCHEDULED: Final = "belfry-scheduled-at"


class StepDifference(NamedTuple):
    """The first thing in which a played step differs from the log; texts are for people.

    `what` is one of row, manifest, event and place.  `offset` is in the changelog.
    """

    what: str
    transaction: int
    offset: int
    name: str
    logged: str
    played: str


def rows_differ(
    step: LoggedStep, rows: Mapping[bytes, bytes | None], standing: Callable[[bytes], bytes | None]
) -> StepDifference | None:
    """The first row that is another one in the log than a playback made.

    `standing` tells the row under a changelog key as it was before the step.
    """
    if step.twice is not None:
        return _of_row(step, step.twice, "more than one row", "one row at most")
    for key, row in step.rows.items():
        if key.startswith(USAGE_PREFIX):
            continue
        played = rows.get(key, b"") if key in rows else standing(key)
        if played != row:
            there = row_in_words(row, played)
            asked = row_in_words(played, row) if key in rows else "no row: no request asks for it"
            return _of_row(step, key, there, asked)
    if step.whole:
        missing = (key for key in rows if key not in step.rows and not is_manifest(key))
        for key in missing:
            return _of_row(step, key, "no row", row_in_words(rows[key], b""))
    return None


def distance(step: LoggedStep, rows: Mapping[bytes, bytes | None]) -> int:
    """How many rows a played step has otherwise than the log, to tell which attempt came near."""
    names = step.rows.keys() | rows.keys()
    compared = [key for key in names if not (is_manifest(key) or key.startswith(USAGE_PREFIX))]
    return sum(step.rows.get(key, b"") != rows.get(key, b"") for key in compared)


def manifests_differ(step: LoggedStep, played: Manifest) -> StepDifference | None:
    """In which fields of its manifest a step differs; None for none."""
    if played == step.manifest:
        return None
    pairs = zip(Manifest._fields, step.manifest, played, strict=True)
    other = [(name, there, here) for name, there, here in pairs if there != here]
    shown = [(name, *map(_shown, values)) for name, *values in other]
    return StepDifference(
        "manifest",
        step.manifest.txn_seq,
        step.last,
        ", ".join(name for name, *_ in shown),
        ", ".join(f"{name} {there}" for name, there, _ in shown),
        ", ".join(f"{name} {here}" for name, _, here in shown),
    )


def row_in_words(row: bytes | None, other: bytes | None) -> str:
    """A row for people: what it is, and where it begins to differ from the other one."""
    if row is None:
        return "a tombstone"
    kind = _ROWS.get(row[1], "a row") if len(row) > 1 else "a row"
    pairs = zip_longest(row, other or b"")
    at = next((n for n, (one, two) in enumerate(pairs) if one != two), len(row))
    part = row[max(0, at - 2) : at + SHOWN].hex()
    return f"{kind} of {len(row)} bytes, at byte {at} …{part}…"


def _of_row(step: LoggedStep, key: bytes, logged: str, played: str) -> StepDifference:
    offset = step.offsets.get(key, step.last)
    name = key.decode(errors="backslashreplace")
    return StepDifference("row", step.manifest.txn_seq, offset, name, logged, played)


def is_manifest(key: bytes) -> bool:
    """Whether a changelog key is that of a manifest."""
    return key.startswith(keys.MANIFEST_PREFIX)


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


class WrittenEvents:
    """Events as they lie in output topics, by their ids: a digest of each, some 150 bytes.

    An event that came twice, as one of an `AT_LEAST_ONCE` tenant may, counts once.
    """

    def __init__(self) -> None:
        self._digests: dict[bytes, tuple[bytes, ...]] = {}
        self.count = 0

    def add(
        self, identity: bytes, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> None:
        """Note a record of an output topic."""
        bodies = [value, *(_unframed(value))]
        found = tuple(_digest(topic, key, body, headers) for body in bodies)
        self._digests.setdefault(identity, found)
        self.count += 1

    def differing(
        self, step: LoggedStep, effects: Effects, enveloped: Callable[[str], bool]
    ) -> Iterator[StepDifference | None]:
        """For each event of a played step that is there: None, or in what it differs.

        An envelope begins with a frame that the registry has given, so it counts without.
        `enveloped` tells of a topic whether its values are envelopes.
        """
        for identity, fired in zip(effects.fire_ids, effects.fired, strict=True):
            known = self._digests.get(identity)
            if known is None:
                continue
            topic, key, _, value, headers = fired
            digests = known if enveloped(topic) else known[:1]
            if _digest(topic, key, value, headers) in digests:
                yield None
                continue
            yield StepDifference(
                "event", step.manifest.txn_seq, step.last, identity.decode(),
                f"an event in {topic} with other bytes", _event_in_words(fired),
            )  # fmt: skip


def _event_in_words(fired: Fired) -> str:
    _, key, _, value, headers = fired
    names: Sequence[str] = [name for name, _ in headers]
    size = "null" if value is None else f"{len(value)} bytes"
    return f"key {key!r:.80}, value {size}, headers {', '.join(names)}"


def _unframed(value: bytes | None) -> Iterator[bytes]:
    for head, size in _FRAMES:
        if value is not None and value.startswith(head):
            yield value[size:]


def _digest(topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    """A digest of an event.

    An extra event is due when its step looked at the clock, which is not always known.
    """
    if _EXTRA in headers:
        headers = [each for each in headers if each[0] != _SCHEDULED]
    parts = repr((topic, key, value, [tuple(each) for each in headers])).encode()
    return blake2b(parts, digest_size=12).digest()
