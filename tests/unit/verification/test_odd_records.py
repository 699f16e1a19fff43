"""Records that anybody may have written end no verification: they are passed over."""

from __future__ import annotations

import pytest

from belfry.cli.verify_memory import MemoryOnDisk
from belfry.cli.verify_state import StateFile
from belfry.verification.findings import CheckCounts, Spot
from belfry.verification.headers import fired_entry, marked_by, origin_of
from belfry.verification.outputs import OutputVerifier
from belfry.verification.rows import JOB_KEY, NotReadable, generation, job
from tests.unit.engine.driver import T0

SPOT = Spot("fired.demo", 0, 7)
FIRE: dict[str, bytes | None] = {
    "belfry-fire-id": b"ab" * 16,
    "belfry-occurrence": b"3",
    "belfry-schedule-id": b"a",
}
MARK: dict[str, bytes | None] = {"belfry-error-code": b"redriven", "belfry-error-redriven": b"7"}
# Python makes no number of so many digits, and SQLite keeps none of the second.
ODD = [b"9" * 5_000, b"9" * 20, b"-", b"--1", b"1_0", "٣".encode(), b"", None]


def test_a_fire_that_says_its_number_is_remembered() -> None:
    for number in (b"3", b"-1", b"9" * 18):
        fire = fired_entry({**FIRE, "belfry-occurrence": number}, SPOT, T0, T0)
        assert fire is not None
        file = StateFile(None, "test")
        OutputVerifier(MemoryOnDisk(file), CheckCounts()).fired(fire)
        file.close()
    assert marked_by(MARK, SPOT) == "fired.demo/0@7"


@pytest.mark.parametrize("number", ODD)
def test_a_number_that_is_none_is_no_fire_and_no_mark(number: bytes | None) -> None:
    assert fired_entry({**FIRE, "belfry-occurrence": number}, SPOT, T0, T0) is None
    assert marked_by({**MARK, "belfry-error-redriven": number}, SPOT) is None


def test_a_mark_of_a_refusal_at_a_negative_offset_is_none() -> None:
    assert marked_by({**MARK, "belfry-error-redriven": b"-7"}, SPOT) is None


def test_records_of_moves_have_no_place_by_which_a_refusal_could_come_twice() -> None:
    """Two of them were refused, and both say that they were received at offset 0."""
    said: dict[str, bytes | None] = {
        "belfry-error-topic": b"belfry.schedules",
        "belfry-error-partition": b"1",
        "belfry-error-offset": b"0",
        "belfry-error-at": b"2027-01-15T08:00:22.167Z",
    }
    assert origin_of({**said, "belfry-error-code": b"bad_move"}, follows=False) is None
    request = {**said, "belfry-error-code": b"not_a_request"}
    assert origin_of(request, follows=False) == "belfry.schedules/1@0"


@pytest.mark.parametrize(
    "said", [b"[" * 50_000, b'{"generation": Infinity}', b"{}", b"[]", b"\xff"]
)
def test_an_identity_or_a_job_of_odd_json_is_not_readable(said: bytes) -> None:
    with pytest.raises(NotReadable):
        generation(b"\1\x08" + said)
    with pytest.raises(NotReadable):
        job(JOB_KEY + b"demo/j", b"\1\x0e" + said)
