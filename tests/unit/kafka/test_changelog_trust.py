"""Whom a worker believes in the changelog, and which partitions it leaves to others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from belfry.kafka.changelog_trust import ChangelogTrust, NotTrusted
from belfry.kafka.signature_marks import NOTHING, RENEW_EVERY_MS, Mark, Marks, mark_of
from belfry.settings import Settings
from belfry.store.signatures import FILLER, NEAR, NOWHERE, bound, fingerprint
from belfry.wire.worker_keys import Purpose, keys_of
from tests.unit.kafka.offset_notes import OffsetNotes

FIRST, SECOND = (f"secret number {each} of the workers" for each in (1, 2))
ROW = b"\x01\x02row"


def name_of(secret: str) -> str:
    return fingerprint(keys_of([secret.encode()], Purpose.CHANGELOG)[0])


ONE, TWO = name_of(FIRST), name_of(SECOND)


def trust(
    notes: OffsetNotes, changelog: str, first: str | None = FIRST, also: str | None = None
) -> ChangelogTrust:
    """That of a worker with these settings."""
    settings: dict[str, Any] = {"http_worker_secret": first, "http_worker_secret_also": also}
    kept: Any = notes
    return ChangelogTrust(Settings(changelog=changelog, **settings), Marks(kept))


@pytest.fixture
def notes() -> OffsetNotes:
    return OffsetNotes("belfry.signatures")


def begun(notes: OffsetNotes, worker: ChangelogTrust) -> bool:
    """Let a worker own partition 2; whether it signs older rows anew."""
    return worker.begins(2, worker.check(2), 7)


# -- marks ---------------------------------------------------------------------------------------


def test_a_mark_is_kept_as_it_was_given(notes: OffsetNotes) -> None:
    marks, mark = trust(notes, "signed").marks, Mark((ONE, TWO), whole=True, required=True)
    assert marks.read(2) == NOTHING
    marks.owned(2, mark)
    assert (marks.read(2), marks.read(1)) == (mark, NOTHING)
    assert mark_of(mark.text()) == mark


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"keys": ["a"], "whole": 1, "required": true}',
        '{"keys": [7], "whole": true, "required": true}',
        '{"keys": "ab", "whole": true, "required": true, "near_from": "7"}',
        '{"keys": ["a"], "whole": true, "required": true, "near_from": 1e999}',
    ],
)
def test_a_text_that_is_no_mark_is_told_as_a_cluster_that_does_not_answer(
    notes: OffsetNotes, text: str
) -> None:
    """What rows are to be believed is not known then, so no partition is taken over."""
    notes.write({2: text})
    worker = trust(notes, "signed")
    with pytest.raises(ConnectionError, match=r"signatures, partition 2: .* is no mark.*delete"):
        worker.check(2)


def test_what_is_owned_is_said_again_every_hour_until_it_is_given_up(notes: OffsetNotes) -> None:
    marks = trust(notes, "signed").marks
    marks.owned(2, Mark((ONE,)))
    marks.owned(3, Mark((TWO,)))
    notes.kept.clear()
    marks.look(RENEW_EVERY_MS)
    assert marks.read(2) == Mark((ONE,))
    marks.given_up(3)
    notes.kept.clear()
    marks.look(2 * RENEW_EVERY_MS - 1)
    assert not notes.kept
    marks.look(2 * RENEW_EVERY_MS)
    assert set(notes.kept) == {2}


def test_a_cluster_that_does_not_answer_is_no_answer_that_nothing_was_said(
    notes: OffsetNotes,
) -> None:
    marks = trust(notes, "signed").marks
    marks.owned(2, Mark((ONE,)))
    notes.away = True
    with pytest.raises(ConnectionError, match="signatures"):
        marks.read(2)
    with pytest.raises(ConnectionError):
        marks.owned(2, NOTHING)
    marks.look(RENEW_EVERY_MS)
    notes.away = False
    assert marks.read(2) == Mark((ONE,))


# -- going over ----------------------------------------------------------------------------------


def test_who_trusts_says_nothing_and_signs_nothing(notes: OffsetNotes) -> None:
    worker = trust(notes, "trusted")
    assert not begun(notes, worker)
    assert worker.signer(2, "topic", 7, int) is None
    assert not notes.kept


def test_who_signs_says_so_first_and_once_more_when_all_is_signed(notes: OffsetNotes) -> None:
    worker = trust(notes, "signed")
    assert begun(notes, worker)
    assert worker.marks.read(2) == Mark((ONE,))
    assert worker.signer(2, "topic", 7, int) is not None
    assert worker.all_signed(2)
    assert worker.marks.read(2) == Mark((ONE,), whole=True)
    assert not begun(notes, trust(notes, "signed"))


def test_a_mark_that_cannot_be_written_is_not_taken_for_written(notes: OffsetNotes) -> None:
    worker = trust(notes, "signed")
    assert begun(notes, worker)
    notes.away = True
    assert not worker.all_signed(2)
    notes.away = False
    assert not worker.marks.read(2).whole


def test_that_signatures_were_required_is_not_forgotten(notes: OffsetNotes) -> None:
    required = trust(notes, "required")
    begun(notes, required)
    required.all_signed(2)
    assert required.marks.read(2) == Mark((ONE,), whole=True, required=True)
    signed = trust(notes, "signed")
    begun(notes, signed)
    signed.all_signed(2)
    assert signed.marks.read(2).required


def test_who_trusts_does_not_take_over_from_one_who_requires(notes: OffsetNotes) -> None:
    begun(notes, trust(notes, "required"))
    before = dict(notes.kept)
    with pytest.raises(NotTrusted, match="BELFRY_CHANGELOG=signed, or required"):
        begun(notes, trust(notes, "trusted"))
    assert notes.kept == before


def test_who_requires_does_not_take_over_before_all_is_signed(notes: OffsetNotes) -> None:
    signed, required = trust(notes, "signed"), trust(notes, "required")
    begun(notes, signed)
    for asks in (required.known, required.check):
        with pytest.raises(NotTrusted, match=r"not all signed yet.*BELFRY_CHANGELOG=signed"):
            asks(2)
    signed.all_signed(2)
    assert not begun(notes, required)


def test_the_way_back_makes_the_next_one_sign_all_anew(notes: OffsetNotes) -> None:
    worker = trust(notes, "signed")
    begun(notes, worker)
    worker.all_signed(2)
    assert not begun(notes, trust(notes, "trusted"))
    assert worker.marks.read(2) == Mark((ONE,), whole=False)
    assert begun(notes, worker)


def test_a_secret_is_changed_in_steps(notes: OffsetNotes) -> None:
    old = trust(notes, "required")
    begun(notes, old)
    old.all_signed(2)
    with pytest.raises(NotTrusted, match="does not have"):
        begun(notes, trust(notes, "required", SECOND))
    both = trust(notes, "required", SECOND, FIRST)
    assert begun(notes, both)
    assert both.marks.read(2) == Mark((TWO, ONE), whole=False, required=True)
    with pytest.raises(NotTrusted, match="does not have"):
        old.known(2)
    assert both.all_signed(2)
    assert not begun(notes, trust(notes, "required", SECOND))


def test_from_which_offset_on_all_owners_write_fillers_is_kept(notes: OffsetNotes) -> None:
    """A release that writes none does not say it: its rows are judged as they were before."""
    old = orjson.dumps({"keys": [ONE], "whole": True, "required": True}).decode()
    assert mark_of(old).near_from == NOWHERE
    worker = trust(notes, "required")
    worker.marks.owned(2, mark_of(old))
    assert not worker.begins(2, worker.check(2), 7_000)
    assert worker.marks.read(2).near_from == 7_000
    assert not worker.begins(2, worker.check(2), 9_000)
    assert worker.all_signed(2)
    assert worker.marks.read(2).near_from == 7_000
    by = worker.signer(2, "topic", 0, int)
    assert by is not None
    for base, believed in ((6_999 - NEAR - 1, True), (7_000 - NEAR - 1, False)):
        row = bound(by._by, base, b"t/a", ROW) + ROW
        judge = worker.judge(2, "topic", worker.marks.read(2))
        assert judge.row(base + NEAR + 1, b"t/a", row, lambda: None)[0] is believed


def test_a_reader_that_began_before_learns_that_owners_write_fillers(notes: OffsetNotes) -> None:
    sieve = trust(notes, "required").sieve(2, "topic", Mark(near_from=NOWHERE))
    sieve.believe_near(lambda: NOWHERE)
    assert sieve._judge.near_from == NOWHERE
    sieve.believe_near(lambda: 7_000)
    assert sieve._judge.near_from == 7_000
    sieve.believe_near(lambda: pytest.fail("it is known by now"))


def test_fillers_are_skipped_without_a_word(notes: OffsetNotes) -> None:
    told: list[tuple[str, int]] = []
    sieve = trust(notes, "required").sieve(2, "topic", NOTHING)
    sieve._counted = lambda *counted: told.append(counted)
    records: list[Any] = [SimpleNamespace(key=FILLER, value=None, offset=7, headers=None)] * 3
    assert sieve.ours(records, ("changelog", 2)) == ([], [])
    assert told == []
    loud: Any = SimpleNamespace(key=FILLER, value=b"said", offset=10, headers=None)
    assert sieve.ours([*records, loud], ("changelog", 2)) == ([], [])
    assert told == [("changelog", 1)]


@pytest.mark.parametrize(
    ("changelog", "plain"), [("trusted", True), ("signed", True), ("required", False)]
)
def test_who_believes_what(notes: OffsetNotes, changelog: str, plain: bool) -> None:
    writer = trust(notes, "signed", SECOND)
    by = writer.signer(2, "topic", 5, int)
    assert by is not None
    row = bound(by._by, 5, b"t/a", ROW) + ROW
    for worker, believes in (
        (trust(notes, changelog, FIRST, SECOND), True),
        (trust(notes, changelog, FIRST), False),
    ):
        judge = worker.judge(2, "topic", NOTHING)
        assert judge.row(6, b"t/a", row, lambda: None)[0] is believes
        assert judge.row(7, b"t/a", ROW, lambda: None)[0] is plain
        assert judge.row(8, b"t/a", None, lambda: None)[0] is plain
