"""What is asked of a pending record's bytes, and written into them, without a decoder."""

from __future__ import annotations

import pytest

from belfry.schedules.rule import Rule, encode_rule
from belfry.store.layout import pending_bytes
from belfry.store.layout.day_files import reference_to
from belfry.store.layout.day_reference import DayFile
from belfry.store.layout.kept_fires import MOST_KEPT, NO_TALLY, packed_fire
from belfry.store.layout.pending import KIND_CODES, Away, Encrypted, decode_pending, encode_pending
from belfry.tenants.payload_keys import ENCRYPTION_BYTES
from tests.unit.store.test_records import ROW

HOUR = 3_600_000
EVERY = ROW._replace(
    kind=KIND_CODES["EVERY"], extra=encode_rule(Rule("EVERY", HOUR)), occurrence=0, version=1
)


def fired(times: int, late_ms: int = 0, missed: int = 0) -> bytes:
    """The record of a schedule that has fired so often, the last time so late."""
    record = encode_pending(EVERY)
    for number in range(1, times + 1):
        late, stood = (late_ms, missed) if number == times else (0, 0)
        if late > 1_000 or stood:
            record = pending_bytes.tallied(record, late, stood)
        fire = packed_fire((number - 1) * HOUR, 1, late, stood)
        record = pending_bytes.next_record(record, number * HOUR, number * HOUR, number, fire)
    return record


def late_by(record: bytes) -> list[int]:
    return [each.late_ms for each in pending_bytes.last_fires(record)]


@pytest.mark.parametrize(
    ("payload", "size"),
    [
        (None, None),
        (b"", 0),
        (b"12345", 5),
        (Encrypted(b"x" * (5 + ENCRYPTION_BYTES)), 5),
        (reference_to(DayFile(1, 2, b"12345678"), 40, b"p" * 300), 300),
    ],
)
def test_a_payload_is_as_long_as_its_user_gave_it(payload: bytes | None, size: int | None) -> None:
    assert pending_bytes.payload_bytes(encode_pending(ROW._replace(payload=payload))) == size


def test_a_one_shot_is_plain_where_its_payload_is_there_as_it_is() -> None:
    paid = ROW._replace(payload=b"p", extra=b"")
    for row, plain in (
        (paid, True),
        (paid._replace(payload=None), True),
        (paid._replace(payload=Encrypted(b"p")), False),
        (paid._replace(payload=Away(b"p")), False),
        (EVERY, False),
    ):
        assert pending_bytes.is_plain_one_shot(encode_pending(row)) == plain


def test_an_encrypted_payload_takes_the_place_of_a_plain_one_and_of_nothing_else() -> None:
    record = fired(3, 70_000, 2)
    secret = Encrypted(b"secret" * 9)
    kept = pending_bytes.with_encrypted(record, secret)
    assert decode_pending(kept) == decode_pending(record)._replace(payload=secret)
    assert type(decode_pending(kept).payload) is Encrypted
    assert pending_bytes.last_fires(kept) == pending_bytes.last_fires(record)
    assert pending_bytes.tally_of(kept) == pending_bytes.tally_of(record)


def test_another_definition_keeps_the_fires_of_before() -> None:
    before, changed = fired(3), encode_pending(EVERY._replace(payload=b"another"))
    for same_rule in (True, False):
        kept = pending_bytes.with_fires_of(before, changed, same_rule=same_rule)
        assert pending_bytes.last_fires(kept) == pending_bytes.last_fires(before)
        assert decode_pending(kept).payload == b"another"
    assert pending_bytes.with_fires_of(encode_pending(EVERY), changed) == changed


def test_the_tally_stays_behind_where_another_rule_counts_from_0() -> None:
    before, changed = fired(3, 70_000, 2), encode_pending(EVERY._replace(payload=b"another"))
    same = pending_bytes.with_fires_of(before, changed)
    other = pending_bytes.with_fires_of(before, changed, same_rule=False)
    assert late_by(same) == late_by(other) == [0, 0, 70_000]
    assert pending_bytes.tally_of(same) == pending_bytes.tally_of(before)
    assert pending_bytes.tally_of(other) == NO_TALLY
    alone = pending_bytes.tallied(encode_pending(EVERY), 70_000, 1)
    assert pending_bytes.with_fires_of(alone, changed, same_rule=False) == changed


def test_a_one_shot_takes_no_fires_over() -> None:
    once = encode_pending(ROW._replace(extra=b""))
    assert pending_bytes.with_fires_of(fired(3), once) == once


def test_more_fires_than_this_release_keeps_are_left_behind() -> None:
    changed = encode_pending(EVERY._replace(payload=b"another"))
    for full, most in ((fired(12), MOST_KEPT), (fired(12, 70_000), MOST_KEPT + 1)):
        assert full[-1] == most
        assert pending_bytes.with_fires_of(full, changed) != changed
        more = full[:-1] + bytes(16) + bytes((most + 1,))
        assert pending_bytes.with_fires_of(more, changed) == changed


def test_without_its_fires_a_record_is_as_it_was_before_them() -> None:
    for record in (fired(2), fired(2, 70_000, 3)):
        plain = pending_bytes.without_fires(record)
        assert plain == encode_pending(decode_pending(record))
        assert pending_bytes.without_fires(plain) == plain
