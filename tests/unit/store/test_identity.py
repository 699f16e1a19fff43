"""The world that state belongs to, and what contradicts it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from belfry.store.identity import (
    UNKNOWN_ID,
    Contradiction,
    Identity,
    decode_identity,
    encode_identity,
    foreign_state,
    identity_of,
    logged_contradiction,
    lost_changelog,
    lost_requests,
    truncated_log,
)
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, encode_manifest
from belfry.store.layout.records import UnknownFormat
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import HoleInChangelog, Replay
from belfry.store.schedules import ScheduleStore

HERE = Identity("cluster-a", "log-1", "in-1", 2)
GOLDEN = b'\x01\x09{"cluster":"cluster-a","changelog":"log-1","schedules":"in-1","generation":2}'


ODD = [
    '{"cluster":"c","changelog":"l","schedules":null}',
    '{"cluster":"c","changelog":"l","schedules":"s","generation":"7"}',
]


def manifest(txn_seq: int) -> tuple[bytes, bytes]:
    return keys.manifest_key(txn_seq), encode_manifest(Manifest(txn_seq, 1, 0, 0, 0, 0, bytes(16)))


def test_an_identity_has_frozen_bytes() -> None:
    assert encode_identity(HERE) == GOLDEN
    assert decode_identity(GOLDEN) == HERE


def test_names_that_a_newer_version_adds_are_passed_over() -> None:
    told = '{"cluster":"c","changelog":"l","schedules":"s","more":1}'
    assert identity_of(told) == Identity("c", "l", "s", 0)


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", '{"cluster":"c"}', '{"cluster":', *ODD])
def test_what_is_no_identity_stops_with_the_reason(text: str) -> None:
    with pytest.raises(UnknownFormat, match="the identity of a partition is none"):
        identity_of(text)


def test_a_newer_format_stops() -> None:
    reads = (
        "starts with '0209'; this version reads '0109'. Run the version that wrote it, or a newer"
    )
    with pytest.raises(UnknownFormat, match=f"^The identity of a partition {reads} one.$"):
        decode_identity(b"\x02\x09{}")


@pytest.mark.parametrize(
    ("logged", "code"),
    [
        (HERE._replace(cluster="cluster-b"), "other_cluster"),
        (HERE._replace(changelog="log-0"), "changelog_copied"),
        (HERE._replace(schedules="in-0"), "input_anew"),
    ],
)
def test_another_world_contradicts_and_names_the_choices(logged: Identity, code: str) -> None:
    found = logged_contradiction(HERE, logged)
    assert found is not None
    assert found.code == code
    assert "belfry recover" in found.choices
    assert str(found).startswith(f"{code}: ")


def all_contradictions() -> list[Contradiction]:
    held = "this partition had an owner"
    found = [
        logged_contradiction(HERE, HERE._replace(cluster="cluster-b")),
        logged_contradiction(HERE, HERE._replace(changelog="log-0")),
        logged_contradiction(HERE, HERE._replace(schedules="in-0")),
        lost_changelog(HERE, "log-0", held),
        foreign_state(HERE, "cluster-b", "/data keeps 7 schedules that wait,"),
        truncated_log(40, 90),
        lost_requests(3, 40, 100, 200),
        lost_requests(3, 240, 100, 200),
    ]
    return [each for each in found if each is not None]


def test_each_contradiction_says_what_is_wrong_and_what_can_be_chosen_word_by_word() -> None:
    """Somebody acts on these sentences while nothing fires."""
    told = [{"code": e.code, "what": e.what, "choices": e.choices} for e in all_contradictions()]
    place = Path(__file__).with_name("contradictions.json")
    assert told == json.loads(place.read_text("utf-8"))
    for each in all_contradictions():
        asks = "Nothing is fired until somebody chooses:"
        assert str(each) == f"{each.code}: {each.what} {asks} {each.choices}"


def test_the_same_world_in_another_generation_contradicts_nothing() -> None:
    assert logged_contradiction(HERE, HERE._replace(generation=0)) is None


def test_brokers_that_tell_no_ids_contradict_nothing() -> None:
    unknown = HERE._replace(changelog=UNKNOWN_ID, schedules=UNKNOWN_ID)
    assert logged_contradiction(HERE, unknown) is None
    assert logged_contradiction(unknown, HERE) is None
    assert HERE.same_world(unknown)
    assert unknown.same_world(HERE)
    assert unknown.filled(HERE) == HERE
    for other in (HERE._replace(changelog="log-9"), HERE._replace(schedules="in-9")):
        assert other.filled(HERE) == other
        assert not other.same_world(HERE)
    other = HERE._replace(cluster="cluster-b")
    assert not other.same_world(HERE)


@pytest.mark.parametrize(
    ("position", "code"),
    [(99, "requests_lost"), (100, ""), (150, ""), (200, ""), (201, "input_truncated")],
)
def test_a_position_has_to_be_one_that_the_input_holds(position: int, code: str) -> None:
    found = lost_requests(3, position, 100, 200)
    assert ("" if found is None else found.code) == code


def test_what_is_to_be_accepted_is_named() -> None:
    found = lost_requests(3, 40, 100, 200)
    assert found is not None
    assert "--accept-lost 3:40-99" in found.choices


def replayed(store: ScheduleStore, *generations: int, first: int) -> Replay:
    """A replay that meets identities of these generations, each with a manifest behind it."""
    replay = Replay(store)
    for number, generation in enumerate(generations, first):
        row = encode_identity(HERE._replace(generation=generation))
        changes = [(keys.IDENTITY_KEY, row), manifest(number)]
        replay.apply(changes, [2 * number, 2 * number + 1], 5)
    return replay


def test_a_replay_from_nothing_passes_over_a_recovery() -> None:
    replay = replayed(ScheduleStore(MemoryMap()), 0, 1, first=1)
    replay.finish(5)
    assert replay.identity == HERE._replace(generation=1)


def test_state_from_before_a_recovery_is_not_carried_on() -> None:
    """Its numbers leave no gap here; only the generation tells that rows were written anew."""
    store = ScheduleStore(MemoryMap())
    replayed(store, 0, first=1).finish(5)
    with pytest.raises(HoleInChangelog, match="was recovered"):
        replayed(store, 1, first=2)


def test_the_same_generation_again_is_carried_on() -> None:
    store = ScheduleStore(MemoryMap())
    replayed(store, 1, first=1).finish(5)
    replayed(store, 1, first=2).finish(5)


def test_a_field_of_another_type_is_told_as_such() -> None:
    text = '{"cluster":1,"changelog":"b","schedules":"c"}'
    with pytest.raises(UnknownFormat) as told:
        identity_of(text)
    assert str(told.value) == (
        f"What is kept as the identity of a partition is none, {text!r} (a field is of another"
        " type). Run the version that wrote it, or a newer one; where none did, docs/recovery.md"
        " has choices."
    )
