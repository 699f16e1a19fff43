"""What `belfry doctor` says of signatures in the changelog."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Message

from belfry.cli.check import Status
from belfry.cli.doctor_changelog import changelog_checks, judge, unsigned_rows
from belfry.kafka import signature_marks
from belfry.kafka.signature_marks import NOTHING, Mark
from belfry.settings import Settings
from belfry.store.layout.keys import manifest_key
from belfry.store.signatures import SIGNATURE
from tests.unit.kafka.offset_notes import OffsetNotes

WHOLE = Mark(("one",), whole=True)
PARTLY = Mark(("one",))


def record(offset: int, key: bytes, value: bytes | None, *proof: bytes) -> Message:
    """A record of partition 1."""
    headers: Any = [(SIGNATURE, each) for each in proof]
    made: Any = Message
    found: Message = made(
        topic="changelog", partition=1, offset=offset, key=key, value=value, headers=headers
    )
    return found


def test_where_nobody_signs_there_is_nothing_to_look_at() -> None:
    (found,) = judge({0: NOTHING, 1: NOTHING}, {}, "trusted")
    assert found.status is Status.SKIPPED
    assert "trusted" in found.detail


def test_rows_that_are_not_signed_yet() -> None:
    for said, wanted in (({0: WHOLE, 1: PARTLY}, "trusted"), ({0: WHOLE, 1: NOTHING}, "signed")):
        (found,) = judge(said, {}, wanted)
        assert found.status is Status.RISK
        assert found.detail.startswith("Rows of partition 1 are not all signed")
        assert "BELFRY_CHANGELOG=signed" in found.to_do


def test_all_rows_are_signed() -> None:
    (found,) = judge({0: WHOLE, 1: WHOLE}, {}, "signed")
    assert (found.check, found.status) == ("signatures", Status.OK)


def test_an_unsigned_row_behind_signed_ones() -> None:
    (found,) = judge({0: WHOLE, 1: WHOLE}, {1: [41, 43]}, "signed")
    assert found.status is Status.PROBLEM
    assert "2 of the newest records of partition 1" in found.detail
    assert "first at offset 41): workers take them for state." in found.detail
    (found,) = judge({1: WHOLE}, {1: [41]}, "required")
    assert "BELFRY_CHANGELOG=required skip them" in found.detail


def test_what_counts_as_unsigned() -> None:
    records = [
        record(1, b"t/a", b"\x02" + bytes(8) + b"\1\1 signed by place"),
        record(2, b"t/a", b"\x03" + bytes(16) + b"\1\1 signed by content"),
        record(3, b"t/a", None, b"\x02" + bytes(8)),
        record(4, b"order", b"an event, which nobody takes for a row"),
        record(5, b"t/a", b"\1\1 not signed"),
        record(6, b"t/b", None),
    ]
    assert unsigned_rows(records) == {1: [5, 6]}


def test_what_was_signed_since_counts_as_signed() -> None:
    signed = b"\x03" + bytes(16) + b"\1\1 signed by content"
    records = [
        record(1, b"t/a", b"\1\1 not signed"),
        record(2, manifest_key(7), b"\1\1 not signed"),
        record(3, b"t/b", b"\1\1 not signed"),
        record(4, b"t/a", signed),
        record(5, manifest_key(8), signed),
    ]
    assert unsigned_rows(records) == {1: [3]}
    assert unsigned_rows([*records[3:], *records[:1]]) == {1: [1]}


def test_it_goes_on_where_kafka_is_silent_and_where_there_is_no_changelog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = OffsetNotes()
    monkeypatch.setattr(signature_marks, "OffsetNotes", lambda *_: notes)
    settings = Settings(changelog="signed", http_worker_secret="a secret of the workers")
    topics = {settings.topic("changelog"): SimpleNamespace(partitions={0: None, 1: None})}
    cluster = SimpleNamespace(topics=topics)
    (found,) = changelog_checks(cluster, settings)
    assert found.status is Status.RISK
    notes.away = True
    (found,) = changelog_checks(cluster, settings)
    assert found.status is Status.SKIPPED
    assert list(changelog_checks(SimpleNamespace(topics={}), settings)) == []


def test_a_mark_that_is_none_is_a_problem_and_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its partition has no owner until somebody removes it."""
    notes = OffsetNotes()
    monkeypatch.setattr(signature_marks, "OffsetNotes", lambda *_: notes)
    settings = Settings()
    topics = {settings.topic("changelog"): SimpleNamespace(partitions={0: None, 1: None})}
    notes.write({1: "nonsense"})
    (found,) = changelog_checks(SimpleNamespace(topics=topics), settings)
    assert found.status is Status.PROBLEM
    assert "partition 1: 'nonsense' is no mark of signatures" in found.detail
    assert found.to_do == signature_marks.CHOICE
    assert found.to_do not in found.detail
