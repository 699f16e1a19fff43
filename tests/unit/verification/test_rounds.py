"""Rounds, recoveries, copies and thinned-out logs, as they follow one another in a partition."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import blake2b
from typing import Any, Final

import pytest

from belfry.verification import partition, rows
from belfry.verification.coverage import Coverage
from belfry.verification.findings import Breach, Spot
from belfry.verification.rows import (
    IDENTITY_KEY,
    MANIFEST_KEY,
    RECOVERY_JUMP,
    Logged,
    NotReadable,
    aside_offset,
    generation,
)
from tests.unit.engine.driver import FIRED, T0
from tests.unit.verification.planted import (
    MANIFEST,
    all_from,
    at_manifest,
    lose_a_fire,
    rewritten,
)
from tests.unit.verification.test_traces import compacted
from tests.unit.verification.trace import Trace, Verification, varied, verified

NONE: Final = blake2b(digest_size=16).digest()


@pytest.fixture
def trace() -> Trace:
    return varied()


def test_a_digest_that_is_right_is_worked_out_once(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: Counter[bytes] = Counter()

    def counting(data: bytes, *, digest_size: int) -> Any:
        hashed[data] += 1
        return blake2b(data, digest_size=digest_size)

    monkeypatch.setattr(rows, "blake2b", counting)
    assert verified(trace).findings == []
    manifests = [each.value for each in trace.changelog if each.key.startswith(MANIFEST_KEY)]
    right = {rows.manifest(each or b"").digest for each in manifests} - {NONE}
    of_those = [
        times for data, times in hashed.items() if blake2b(data, digest_size=16).digest() in right
    ]
    assert len(of_those) == len(right)
    assert {*of_those} == {1}


# -- outputs that are read further within a round --------------------------------------------------


def test_a_topic_that_was_read_within_the_round_counts(trace: Trace) -> None:
    """At the begin of the round nothing was known of it."""
    lose_a_fire(trace)
    found = []
    for renewed in (True, False):
        made = Verification()
        nothing = Coverage(FIRED, {})
        made.outputs.begin(nothing)
        made.partition.begin(nothing)
        for fire in trace.fired:
            made.outputs.fired(fire)
        if renewed:
            made.partition.renew(made.coverage)
        made.partition.feed(trace.changelog)
        assert made.partition.go_on(final=True)
        found.append([each.breach for each in made.findings])
        assert (made.counts.output_unread > 0) is not renewed
    assert found == [[Breach.LOST], []]


def test_what_belongs_to_nothing_is_undecided_until_it_is_judged(trace: Trace) -> None:
    made = Verification()
    made.round(trace)
    first = made.outputs.round
    assert not made.outputs.undecided(first)
    trace.fired.append(trace.fired[0]._replace(identity=bytes(16), spot=Spot("t", 0, 10**6)))
    made.round(trace)
    assert not made.outputs.undecided(first)
    assert made.outputs.undecided(first + 1)
    made.round(trace)
    assert not made.outputs.undecided(first + 2)


def test_what_was_told_of_a_fire_that_nobody_saw_is_undecided_as_well(trace: Trace) -> None:
    made = Verification()
    made.round(trace)
    first = made.outputs.round
    trace.add_told("ab" * 16, "s1", T0)
    made.round(trace)
    assert not made.outputs.undecided(first)
    assert made.outputs.undecided(first + 1)


# -- a recovery begins anew ------------------------------------------------------------------------


def recovered(trace: Trace, jump: int, said: bytes) -> None:
    """Let transaction 9 be one of a recovery, which says so in the identity row."""
    at, _ = at_manifest(trace, 9)
    _, before = at_manifest(trace, 8)
    for later in range(at, len(trace.changelog)):
        row = trace.changelog[later]
        trace.changelog[later] = row._replace(offset=row.offset + 1)
    all_from(trace, 9, "number", jump)
    rewritten(trace, 9, position=before.position - 1, watermark_ms=before.watermark_ms - 1)
    offset = trace.changelog[at].offset - 1
    trace.changelog.insert(at, Logged(offset, T0, IDENTITY_KEY, b"\1\x09" + said))
    trace.offset += 1


@pytest.mark.parametrize(
    ("jump", "found"),
    [
        (RECOVERY_JUMP - 1, []),
        (RECOVERY_JUMP + 7, []),
        (RECOVERY_JUMP - 2, [f"{9 + RECOVERY_JUMP}, behind 9 or more"]),
    ],
)
def test_a_recovery_goes_on_with_a_number_that_is_higher_by_so_much(
    trace: Trace, jump: int, found: list[str]
) -> None:
    recovered(trace, jump, b'{"generation": 1}')
    made = verified(trace)
    assert [each.expected for each in made.findings] == found
    assert made.counts.recoveries == 1
    assert made.standing.generation == 1


def test_without_a_higher_generation_it_is_no_recovery(trace: Trace) -> None:
    recovered(trace, RECOVERY_JUMP - 1, b'{"generation": 0}')
    made = verified(trace)
    found = {each.breach for each in made.findings}
    assert {Breach.NUMBER, Breach.POSITION, Breach.WATERMARK} <= found
    assert made.counts.recoveries == 0


def test_a_generation_is_a_number() -> None:
    assert generation(b"\1\x09" + json.dumps({"generation": 12}).encode()) == 12
    for said in (b"", b"{", b"[]", b"{}", b'{"generation": null}', b'{"generation": "x"}'):
        with pytest.raises(NotReadable, match="an identity that says"):
            generation(b"\1\x09" + said)


# -- rows that are written once more ---------------------------------------------------------------


def written_again(trace: Trace, rows: list[Logged]) -> None:
    """One more transaction, in which nothing fires."""
    _, sealed = at_manifest(trace, -1)
    more = sealed._replace(number=sealed.number + 1, fired=0, digest=NONE)
    key = next(each.key for each in reversed(trace.changelog) if each.key[:2] == MANIFEST_KEY)
    last_ms = trace.changelog[-1].timestamp_ms
    for row in (*rows, Logged(0, 0, key, MANIFEST.pack(1, 4, 0, *more))):
        trace.changelog.append(row._replace(offset=trace.offset, timestamp_ms=last_ms))
        trace.offset += 1


def markers(trace: Trace) -> list[Logged]:
    """The last rows of schedules that have fired and are over."""
    last = {each.key: each for each in trace.changelog if each.key[:1] != b"\0"}
    return [each for each in last.values() if (each.value or b"")[1:3] == b"\2\0"]


def test_an_owner_that_begins_to_sign_writes_markers_once_more_and_nothing_fires(
    trace: Trace,
) -> None:
    again = markers(trace)
    assert len(again) > 5
    written_again(trace, again)
    assert verified(trace).findings == []


def test_a_job_whose_key_is_no_text_is_forgotten_like_any_other(trace: Trace) -> None:
    written_again(trace, [Logged(0, 0, b"\0jdemo/\xff", None)])
    assert verified(trace).findings == []


def test_a_marker_of_another_version_is_no_copy(trace: Trace) -> None:
    row = markers(trace)[0]
    value = row.value or b""
    written_again(trace, [row._replace(value=value[:31] + b"\x07" + value[32:])])
    found = verified(trace).findings
    assert Breach.UNASKED in {each.breach for each in found}


# -- a log that compaction has thinned out ---------------------------------------------------------


def test_rows_without_manifests_are_folded_bit_by_bit(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "MOST_OPEN", 3)
    end = trace.changelog[at_manifest(trace, 20)[0]].offset
    compacted(trace, end)
    trace.changelog = [
        each
        for each in trace.changelog
        if each.offset >= end or not each.key.startswith(MANIFEST_KEY)
    ]
    made = Verification()
    made.partition.begin(made.coverage)
    made.partition.feed([each for each in trace.changelog if each.offset < end - 5])
    assert 0 < made.standing.next_offset <= made.partition.fed_to
    assert not made.standing.contiguous
    made = verified(trace)
    assert made.findings == []
    assert made.counts.compacted > 0
    _, sealed = at_manifest(trace, -1)
    assert (made.standing.waiting, made.standing.drift) == (sealed.pending, 0)


@pytest.mark.parametrize(
    ("key", "offset"),
    [
        (b"\0w" + (258).to_bytes(8), 258),
        (b"\0w" + bytes(8), 0),
        (b"\0w" + bytes(7), -1),
        (b"\0w" + bytes(9), -1),
        (b"\0w", -1),
    ],
)
def test_the_key_of_a_request_that_waits_is_its_offset(key: bytes, offset: int) -> None:
    assert aside_offset(key) == offset
