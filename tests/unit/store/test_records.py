"""Records at rest: nulls are no empties, and what this version cannot read stops it."""

from __future__ import annotations

import pytest

from belfry.store.layout import locations, manifests, pending, pending_bytes, records, verdicts
from belfry.store.layout.aside import Waits, encode_aside
from belfry.store.layout.calendars import CalendarRow, decode_calendar, encode_calendar
from belfry.store.layout.groups import GroupRow, encode_group
from belfry.store.layout.jobs import JobRow, decode_job, encode_job
from belfry.store.layout.locations import Location
from belfry.store.layout.manifests import Manifest
from belfry.store.layout.pending import Pending
from belfry.store.layout.records import Awaited, Marker, UnknownFormat
from belfry.store.layout.usage import UsageRow, encode_usage_row
from belfry.store.layout.verdicts import VerdictRow

ROW = Pending(
    due_ms=1_800_000_000_007,
    nominal_ms=1_800_000_000_000,
    accepted_ms=1_799_999_999_000,
    seq=41,
    life=3 << 48 | 41,
    version=2,
    occurrence=5,
    kind=0,
    when=1_800_000_000_000,
    jitter_ms=10,
    tenant=b"demo",
    schedule_id="é/1".encode(),
    group=b"g",
    event_type=b"t",
    key=b"k",
    headers=pending.encode_headers([(b"h", None)]),
    extra=b"more",
    payload=b"payload",
)


@pytest.mark.parametrize("key", [None, b"", b"k"])
@pytest.mark.parametrize("payload", [None, b"", b"p"])
@pytest.mark.parametrize("extra", [b"", b"x"])
def test_null_and_empty_are_told_apart(
    key: bytes | None, payload: bytes | None, extra: bytes
) -> None:
    row = ROW._replace(key=key, payload=payload, extra=extra)
    assert pending.decode_pending(pending.encode_pending(row)) == row


@pytest.mark.parametrize(
    "numbers",
    [{"due_ms": 1}, {"nominal_ms": 1}, {"accepted_ms": 1}, {"seq": 1}, {"life": 1}, {"version": 9}],
)
def test_a_definition_is_the_same_whatever_its_instants(numbers: dict[str, int]) -> None:
    other = ROW._replace(**numbers)  # type: ignore[arg-type]
    assert pending_bytes.same_definition(pending.encode_pending(ROW), pending.encode_pending(other))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": 1},
        {"when": 7},
        {"jitter_ms": 0},
        {"key": None},
        {"payload": b"payloae"},
        {"headers": b""},
        {"group": b"", "event_type": b"gt"},
        {"schedule_id": b"other"},
    ],
)
def test_a_definition_is_all_that_the_user_asked_for(change: dict[str, object]) -> None:
    other = ROW._replace(**change)  # type: ignore[arg-type]
    assert not pending_bytes.same_definition(
        pending.encode_pending(ROW), pending.encode_pending(other)
    )


def test_headers_keep_order_repeats_and_nulls() -> None:
    headers = [("b", b"1"), ("a", None), ("b", b""), ("", b"x"), ("é" * 512, b"\xff" * 70_000)]
    encoded = pending.encode_headers([(name.encode(), value) for name, value in headers])
    assert pending.decode_headers(encoded) == headers
    assert pending.encode_headers([]) == b""


@pytest.mark.parametrize("text", [None, b"", b"x"])
@pytest.mark.parametrize("payload", [None, b"", b"paid"])
@pytest.mark.parametrize("key", [None, b"", b"k"])
def test_the_record_of_a_plain_request_is_the_general_one(
    key: bytes | None, payload: bytes | None, text: bytes | None
) -> None:
    plain = (b"demo", "é/1".encode(), 8_000, text, text and text * 3, key, payload, b"r")
    general = Pending(
        8_000, 8_000, 7, 41, 3, 1, 0, 0, 8_000, 0, plain[0], plain[1], plain[4] or b"", text or b"",
        key, b"", b"", payload,
    )  # fmt: skip
    assert pending.encode_plain(plain, 7, 41, 3) == pending.encode_pending(general)


@pytest.mark.parametrize("payload", [pending.Encrypted(b"p"), pending.Away(b"p"), b"p", None])
@pytest.mark.parametrize("extra", [b"", b"x"])
def test_a_payload_that_is_none_as_it_is_comes_back_marked(
    payload: bytes | None, extra: bytes
) -> None:
    row = ROW._replace(payload=payload, extra=extra)
    found = pending.decode_pending(pending.encode_pending(row))
    assert found == row
    assert type(found.payload) is type(payload)


def test_headers_have_frozen_bytes() -> None:
    headers: list[tuple[bytes, bytes | None]] = [(b"a", b"xy"), (b"bc", None), (b"d", b"")]
    encoded = pending.encode_headers(headers)
    assert encoded.hex() == "000161000000027879" + "00026263ffffffff" + "00016400000000"


def test_a_marker_says_how_it_ended() -> None:
    marker = Marker(records.ENDED_FIRED, 9, 8, 7, 6, 5)
    assert records.decode_marker(records.encode_marker(marker)) == marker


@pytest.mark.parametrize("due_ms", [None, 0, 8])
@pytest.mark.parametrize("version", [None, 3])
def test_a_verdict_may_have_neither_instant_nor_version(
    due_ms: int | None, version: int | None
) -> None:
    verdict = VerdictRow("NOT_FOUND", 9, due_ms, version, "not_found")
    assert verdicts.decode_verdict(verdicts.encode_verdict(verdict)) == verdict
    with_digest = verdict._replace(digest=b"d" * 16, action="CANCEL", schedule_id="a")
    assert verdicts.decode_verdict(verdicts.encode_verdict(with_digest)) == with_digest


def test_a_verdict_keeps_as_much_of_long_names_as_has_room() -> None:
    given = VerdictRow("REJECTED", 9, None, None, "bad", b"d" * 16, "é" * 999, "é" * 999, 7)
    kept = verdicts.decode_verdict(verdicts.encode_verdict(given))
    assert (kept.action[:127], kept.schedule_id[:127]) == ("é" * 127, "é" * 127)
    assert (kept.digest, kept.generation, kept.code) == (given.digest, 7, "bad")


def test_half_a_character_of_a_refused_name_is_kept_as_a_question_mark() -> None:
    """A name of a refused request may be no text that has bytes."""
    given = VerdictRow("REJECTED", 9, None, None, "bad", b"d" * 16, "a\ud800", "b\ud800", 7)
    kept = verdicts.decode_verdict(verdicts.encode_verdict(given))
    assert (kept.action, kept.schedule_id) == ("a?", "b?")


def test_the_verdict_on_a_plain_request_is_the_general_one() -> None:
    plain = (b"demo", b"a/1", 8, None, None, None, b"x", b"r")
    general = VerdictRow("ACCEPTED", 9, 8, 1, "", b"d" * 16, "UPSERT", "a/1", 7)
    assert verdicts.encode_accepted(plain, 9, 7, b"d" * 16) == verdicts.encode_verdict(general)


def test_rows_of_json_are_short_and_come_back_whole() -> None:
    """Without blanks, in UTF-8; what a later release has added is left out."""
    calendar = CalendarRow(b"\x60\x05", "Ferien é", 1, 3, under_way=True, cursor="demo/é", moved=2)
    row = encode_calendar(calendar)
    assert row.startswith('\1\x0f{"days":"6005","source":"Ferien é","changed_ms":1,'.encode())
    assert decode_calendar(row) == calendar
    assert decode_calendar(row[:-1] + b',"later":1}') == calendar
    job = JobRow(
        '{"action":"CANCEL"}', 7, 1, (3, 4), 2, "é", "DONE", "demo/é", 9, 1, 2, 3, {"x": 3}
    )
    row = encode_job(job)
    assert '"offset":7,"begun_ms":1,"origin":[3,4],"homes":2,"reason":"é"'.encode() in row
    assert decode_job(row) == job
    assert decode_job(row[:-1] + b',"later":1}') == job
    assert job.matched == 6


WHOLE = {
    records.PENDING: pending.encode_pending(ROW),
    records.MARKER: records.encode_marker(Marker(0, 1, 2, 3, 4, 5)),
    records.VERDICT: verdicts.encode_verdict(VerdictRow("ACCEPTED", 1, 2, 3, "")),
    records.ANSWERED: verdicts.encode_verdict(
        VerdictRow("ACCEPTED", 1, 2, 3, "", bytes(16), "UPSERT", "a", 4)
    ),
    records.MANIFEST: manifests.encode_manifest(Manifest(1, 2, 3, 4, 5, 6, bytes(16))),
    records.GROUPED: manifests.encode_manifest(Manifest(1, 2, 3, 4, 5, 6, bytes(16), grouped=True)),
    records.AWAITED: records.encode_awaited(Awaited(1, 2, 3, 4, 5, b"a", b"g")),
    records.ZONES: records.encode_zones("2026b"),
    records.LOCATION: locations.encode_location(Location(locations.IN_BACKLOG, 1, 2)),
    records.USAGE: encode_usage_row(UsageRow(1, 2, 3, 4, 5, 6, 7)),
    records.CALENDAR: encode_calendar(CalendarRow(b"\x60", "by hand", 1, 3, True, "demo/a", 2)),
    records.JOB: encode_job(JobRow('{"action": "CANCEL"}', 1, 2, (3, 4))),
    records.ASIDE: encode_aside(Waits(b"t", (0, 1, b"k", b"v", None), appended=True)),
    records.GROUP: encode_group(GroupRow(3, 2, 1, 900, 7, (b"big",))),
}


@pytest.mark.parametrize("letter", WHOLE)
def test_every_record_begins_with_format_and_row(letter: int) -> None:
    assert WHOLE[letter][:2] == bytes([records.FORMAT, letter])
    assert records.check_format(WHOLE[letter]) == letter


@pytest.mark.parametrize("letter", WHOLE)
def test_every_other_format_is_unknown(letter: int) -> None:
    for first in range(256):
        if first != records.FORMAT:
            with pytest.raises(UnknownFormat, match=f"starts with '{first:02x}"):
                records.check_format(bytes([first]) + WHOLE[letter][1:])


def test_every_other_row_is_unknown() -> None:
    for second in set(range(256)) - WHOLE.keys():
        with pytest.raises(UnknownFormat, match=r"Run the version that wrote it"):
            records.check_format(bytes([records.FORMAT, second]) + b"rest")


@pytest.mark.parametrize("record", [b"", b"\1"])
def test_what_is_too_short_is_unknown(record: bytes) -> None:
    with pytest.raises(UnknownFormat):
        records.check_format(record)


def test_a_manifest_of_another_format_is_unknown() -> None:
    with pytest.raises(UnknownFormat):
        manifests.decode_manifest(b"\2" + WHOLE[records.MANIFEST][1:])
