"""Differences of a played step from the logged one: rows, the manifest, and rows that are owed.

    played      row a   row b            manifest
    logged      row a   row b'  row c    manifest
                same    other   nobody asked for it, unless it is what stands there already

A worker may write a row once more as it is, to sign it or to close what a former owner left.  A row
that compaction has removed is *owed*: it has to come again later under the same key.  Rows of usage
(metering) are left out: a worker reckons them at instants within a step that nothing tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Final, NamedTuple

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


class StepDifference(NamedTuple):
    """The first thing in which a played step differs from the log; texts are for people.

    `what` is one of row, manifest, event and place.  `offset` is in the changelog.  With a `doubt`
    it is no fault for certain: the step depended on values that the doubt names, which are in no
    log.
    """

    what: str
    transaction: int
    offset: int
    name: str
    logged: str
    played: str
    doubt: str = ""


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
        played = rows[key] if key in rows else standing(key)
        if played != row:
            there = row_in_words(row, played)
            asked = row_in_words(played, row) if key in rows else "no row: no request asks for it"
            return _of_row(step, key, there, asked)
    if step.whole:
        missing = (key for key in rows if key not in step.rows and not is_manifest(key))
        for key in missing:
            return _of_row(step, key, "no row", row_in_words(rows[key]))
    return None


def difference_at(step: LoggedStep, key: bytes, played: bytes | None) -> StepDifference:
    """How a row of a step differs from the one that was played under the same key."""
    if key not in step.rows:
        return _of_row(step, key, "no row", row_in_words(played))
    logged = step.rows[key]
    return _of_row(step, key, row_in_words(logged, played), row_in_words(played, logged))


def distance(step: LoggedStep, rows: Mapping[bytes, bytes | None]) -> int:
    """How many rows a played step has otherwise than the log, to tell which attempt came near."""
    names = step.rows.keys() | rows.keys()
    compared = [key for key in names if not (is_manifest(key) or key.startswith(USAGE_PREFIX))]
    return sum(step.rows.get(key, b"") != rows.get(key, b"") for key in compared)


def manifests_differ(step: LoggedStep, played: Manifest) -> StepDifference | None:
    """In which fields of its manifest a step differs; None for none.

    Releases before this one did not say whether a step sent something on.
    """
    if not step.manifest.sent_on:
        played = played._replace(sent_on=False)
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


def row_in_words(row: bytes | None, other: bytes | None = None) -> str:
    """A row for people: its kind, and where it begins to differ from the other one, if any."""
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


class OwedRows:
    """Rows that the log owes so far: a step wrote them when it was played, and they are not there.

    Compaction keeps the last row of each key, so a later one has to come.  Of a tombstone nothing
    has to be left.
    """

    def __init__(self) -> None:
        self._rows: dict[bytes, StepDifference] = {}

    def copy(self) -> OwedRows:
        """The same, to go on from."""
        other = OwedRows()
        other._rows = self._rows.copy()
        return other

    @property
    def first(self) -> StepDifference | None:
        """One that is still missing, None for none."""
        return next(iter(self._rows.values()), None)

    def note(self, step: LoggedStep, rows: Mapping[bytes, bytes | None]) -> int:
        """Note the rows that a step has written and its log lacks; how many these are."""
        for key in step.rows:
            self._rows.pop(key, None)
        if step.whole:
            return 0
        missing = [key for key in rows if key not in step.rows and not is_manifest(key)]
        for key in missing:
            if rows[key] is not None:
                name, played = key.decode(errors="backslashreplace"), row_in_words(rows[key])
                self._rows[key] = StepDifference(
                    "row", step.manifest.txn_seq, step.last, name, "no row, here or later", played
                )
        return len(missing)
