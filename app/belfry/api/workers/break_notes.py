"""Breaks of hosts as short texts, one for each partition, that Kafka keeps (`shared_breaks.py`).

    partition 0   [["a.example",1700000000000,1700001800000,"ann","maintenance",0], …]
    partition 1   [["hooks.example:8443",1700000600000,1700001800000,"ann",null,1]]    closed
    partition 2   []

A broker takes 4 096 bytes for a text, and a text is filled before the next one is begun, so 8
partitions hold some 250 breaks.  Reasons are cut here, and a close does not say whose it is, so
that it needs no more room than its break did; the audit log has all of it.

A client that may write offsets of the group may write any text, and a later release may write more
fields: a text that is not an entry of a break is passed over (`_entry`).

Pure: entries to texts, and back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from belfry.api.workers.host_breaks import MOST, HostBreak

# Bytes of a text: what a broker takes by default (`offset.metadata.max.bytes`), less a reserve.
MOST_BYTES: Final = 4_000
MOST_REASON: Final = 150
MOST_BY: Final = 100
# A break stands for a day at most, and no clock that counts is a day ahead.
DAY_MS: Final = 86_400_000
EMPTY: Final = "[]"


class NoRoomForBreaks(ValueError):
    """The breaks do not fit into the texts; the message says how many there are."""


def texts_of(entries: Iterable[HostBreak], partitions: int) -> dict[int, str]:
    """A text for each partition, which together hold all entries; raises `NoRoomForBreaks`."""
    rows = [_row(each) for each in entries]
    if len(rows) > MOST:
        raise NoRoomForBreaks(f"{len(rows)} breaks are more than {MOST}")
    texts: dict[int, str] = {}
    page: list[bytes] = []
    for row in rows:
        if page and sum(map(len, page)) + len(page) + len(row) + 2 > MOST_BYTES:
            texts[len(texts)] = _joined(page)
            page = []
        page.append(row)
    texts[len(texts)] = _joined(page)
    if len(texts) > partitions:
        raise NoRoomForBreaks(
            f"{len(rows)} breaks are more than {partitions} notes of {MOST_BYTES} bytes hold"
        )
    return dict.fromkeys(range(partitions), EMPTY) | texts


def in_the_way(
    entries: Iterable[HostBreak], spare: Sequence[HostBreak], partitions: int
) -> Sequence[HostBreak]:
    """The first ones of `spare`, as few as possible, without which the entries fit."""
    rest = set(entries).difference(spare)

    def fits(left_out: int) -> bool:
        try:
            texts_of(sorted(rest.union(spare[left_out:])), partitions)
        except NoRoomForBreaks:
            return False
        return True

    return spare[: bisect_left(range(len(spare)), True, key=fits)]


def entries_in(texts: Mapping[int, str], now_ms: int) -> list[HostBreak]:
    """The entries of these texts, without other texts; at most `MOST` of them."""
    rows = [row for _, text in sorted(texts.items()) for row in _rows(text)]
    return [each for row in rows if (each := _entry(row, now_ms)) is not None][:MOST]


def _joined(rows: list[bytes]) -> str:
    return f"[{b','.join(rows).decode()}]"


def _row(each: HostBreak) -> bytes:
    """An entry as JSON."""
    reason = None if each.reason is None else each.reason[:MOST_REASON]
    by = "" if each.closed else each.by[:MOST_BY]
    told = [each.host, each.since_ms, each.until_ms, by, reason, int(each.closed)]
    return orjson.dumps(told)


def _rows(text: str) -> list[Any]:
    try:
        found = orjson.loads(text)
    except ValueError:
        return []
    return found if isinstance(found, list) else []


def _entry(row: Any, now_ms: int) -> HostBreak | None:
    """An entry from its row; None if a process of belfry would not have written it."""
    match row:
        case [str(host), int(since_ms), int(until_ms), str(by), (str() | None) as why, int(closed)]:
            believed = since_ms <= now_ms + DAY_MS and until_ms - since_ms <= DAY_MS
            return HostBreak(host, since_ms, until_ms, by, why, bool(closed)) if believed else None
    return None
