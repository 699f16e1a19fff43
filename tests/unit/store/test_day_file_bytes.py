"""Day files to the byte: what may go into one, and what is refused as none."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.schedules.rule import Rule, encode_rule
from belfry.store.layout.day_files import (
    LEAST_BYTES,
    MAGIC,
    Entry,
    NoDayFile,
    encode_file,
    may_go,
    payload_in,
    read_file,
    with_payload,
    without_payload,
)
from belfry.store.layout.pending import Away, encode_pending
from belfry.store.layout.pending_bytes import PAUSED, payload_bytes
from tests.unit.store.test_records import ROW

FAR = ROW._replace(group=b"", extra=b"", payload=b"p" * LEAST_BYTES)
FILE, OFFSETS = encode_file([(b"demo/a", b"first"), (b"demo/b", b""), (b"demo/c", b"third")])
DIGEST_END = len(MAGIC) + 16


@pytest.mark.parametrize(
    ("changed", "goes"),
    [
        ({}, True),
        ({"kind": 1}, True),
        ({"payload": b"p" * (LEAST_BYTES - 1)}, False),
        ({"payload": None}, False),
        ({"group": b"g"}, False),
        ({"extra": encode_rule(Rule("AT", misfire="SKIP"))}, False),
        ({"kind": 2}, False),
        ({"schedule_id": b"belfry/set"}, False),
        ({"schedule_id": b"belfry"}, True),
        ({"tenant": b"belfry/", "schedule_id": b"a"}, True),
    ],
)
def test_what_may_go(changed: dict[str, Any], goes: bool) -> None:
    assert may_go(encode_pending(FAR._replace(**changed))) is goes


def test_what_is_paused_stays() -> None:
    assert not may_go(encode_pending(FAR, PAUSED))


def test_a_row_that_was_away_has_the_bytes_of_before() -> None:
    record = encode_pending(FAR)
    shorter = without_payload(record, Away(b"reference"))
    assert len(shorter) == len(record) - LEAST_BYTES + len(b"reference")
    assert payload_in(shorter) == b"reference"
    assert with_payload(shorter, payload_in(record)) == record
    assert payload_bytes(shorter) == 0, "of a reference that a later release has written"


def test_a_file_is_read_as_it_was_written() -> None:
    names = b"demo/a", b"demo/b", b"demo/c"
    payloads = b"first", b"", b"third"
    assert read_file(FILE) == [*map(Entry, names, OFFSETS, payloads)]
    assert [FILE[at : at + 5] for at in (OFFSETS[0], OFFSETS[2])] == [b"first", b"third"]
    assert read_file(encode_file([])[0]) == []


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it does not begin as a day file does"),
        (b"another thing", "it does not begin as a day file does"),
        (FILE[: DIGEST_END + 3], f"it is cut at byte {DIGEST_END}"),
        (FILE[: OFFSETS[0] + 2], f"it is cut amid the payload at byte {OFFSETS[0]}"),
        (FILE[:-1], f"it is cut amid the payload at byte {OFFSETS[2]}"),
        (FILE[: OFFSETS[1]], "names in it are not those that were written, or some are missing"),
        (FILE.replace(b"demo/b", b"demo/x"), "names in it are not those that were written, or"),
    ],
)
def test_what_is_no_whole_day_file_says_why(data: bytes, why: str) -> None:
    with pytest.raises(NoDayFile, match=f"^{why}"):
        read_file(data)
