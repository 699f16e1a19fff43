"""What `belfry replay` prints, and how requests are read beside the changelog."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.cli.entry import main
from belfry.cli.replay_run import (
    Bounds,
    PartitionPlayed,
    VirtualSide,
    played,
    played_virtually,
)
from belfry.cli.replay_shown import contrast_lines, contrast_shown, line, shown
from belfry.cli.replay_topics import ReplayTopics, RequestStream
from belfry.cli.replay_world import ReplayWorld
from belfry.client.decoding import Decoder
from belfry.placement.partition_count import PartitionCount
from belfry.playback.comparing import StepDifference
from belfry.playback.contrast import MovedEvent, TenantContrast
from belfry.playback.logged import Unplayable
from belfry.playback.played import PlayedCounts
from belfry.settings import CommandSettings

COUNTS = PlayedCounts(steps=1_284, requests=20_417, fires=9, rows=30, owners=2)


def test_the_same_bytes_are_told_with_how_much_was_played() -> None:
    told = line(PartitionPlayed(0, COUNTS, 9, None))
    assert told == (
        "partition 0: 1,284 transactions of 2 owners, 20,417 requests, 9 fires, 30 rows,"
        " 9 events compared: the same bytes."
    )
    assert shown(PartitionPlayed(0, COUNTS, 9, None))["same"] is True


def test_a_difference_is_told_with_its_place() -> None:
    found = StepDifference("row", 57, 812, "demo/\x1b[2J", "no row", "a tombstone")
    told = line(PartitionPlayed(3, COUNTS, 9, found))
    assert told.endswith(
        "DIFFERS in transaction 57, offset 812 of the changelog, row demo/\\x1b[2J: there is no"
        " row; played: a tombstone"
    )
    assert shown(PartitionPlayed(3, COUNTS, 9, found))["difference"]["offset"] == 812


def test_what_would_have_been_is_told_with_examples() -> None:
    moved = [
        MovedEvent("a", "2026-12-01T08:00:00.000Z", 1_000, 2_500),
        MovedEvent("b", "…", 1, None),
    ]
    found = TenantContrast(
        fires=4, would_fire=3, later=1, most_later_ms=1_500, missing=1, would_refuse=2,
        examples=moved,
    )  # fmt: skip
    assert found.differs
    first, *examples = contrast_lines("demo", found)
    assert first == (
        "demo: 4 fires, 3 would be; 1 later, by 1s500ms at most; 1 not by then; 0 requests refused,"
        " 2 would be"
    )
    assert examples == [
        "  a, due 2026-12-01T08:00:00.000Z: 1970-01-01T00:00:01.000Z → 1970-01-01T00:00:02.500Z",
        "  b, due …: 1970-01-01T00:00:00.001Z → not by then",
    ]
    assert contrast_shown(found)["examples"][1]["would_fire_at"] is None


class Read:
    """A record as the client hands it out."""

    def __init__(self, offset: int, ms: int, kind: int = 2) -> None:
        self._given = offset, ms, kind

    def offset(self) -> int:
        return self._given[0]

    def timestamp(self) -> tuple[int, int]:
        return self._given[2], self._given[1]

    def __getattr__(self, _name: str) -> Any:
        return lambda: None


def stream(*batches: list[Any], monkeypatch: pytest.MonkeyPatch) -> RequestStream:
    monkeypatch.setattr(
        "belfry.cli.replay_topics.headers_of", lambda messages: [None] * len(messages)
    )
    return RequestStream(iter(batches))


def test_requests_are_read_up_to_where_a_step_read(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [Read(0, 5), Read(1, 5)], [Read(4, 6, kind=1), Read(7, 9)]
    found = stream(*batches, monkeypatch=monkeypatch)
    taken = [([each[0] for each in found.up_to(end)], found.appended) for end in (1, 5, 5)]
    assert taken == [([0], True), ([1, 4], False), ([], True)]
    assert [each[0] for each in found.up_to(99)] == [7]
    assert found.up_to(99) == []


def test_requests_of_one_instant_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [Read(0, 5), Read(1, 5)], [Read(4, 5), Read(7, 9)]
    found = stream(*batches, monkeypatch=monkeypatch).rest()
    assert [[each[0] for each in some] for some, _ in found] == [[0, 1, 4], [7]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--zone-data", "."], "there is no package tzdata"),
        (["--events", "--zone-data", "."], "leave --zone-data out"),
        (["--with", "no-such-file"], "--with no-such-file cannot be read: No such file"),
        (["--until", "yesterday"], "--until"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_asked(
    given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", *given]) == 2
    assert said in capsys.readouterr().err


def test_a_file_without_a_policy_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "none.json"
    file.write_text("[]")
    assert main(["replay", "--with", str(file)]) == 2
    assert "no policy is in it" in capsys.readouterr().err


def world_without_registry(refused: set[int]) -> ReplayWorld:
    """One request that names a schema of a registry; offsets of those that workers refused."""
    framed = (0, 1, b"demo", b"\0\0\0\0\1rest", None)
    topics: Any = SimpleNamespace(
        rows=lambda *_: iter(()),
        span=lambda _: None,
        requests=lambda *_: (0, SimpleNamespace(rest=lambda: iter([([framed], True)]))),
        refused_schemas=lambda _: refused,
    )
    judge_of: Any = lambda _: None  # noqa: E731
    counted: Any = lambda each, _: each  # noqa: E731
    settings = CommandSettings()
    return ReplayWorld(topics, settings, [], PartitionCount(1), None, judge_of, 100, counted)


def test_requests_with_schemas_of_a_registry_are_not_played_without_one() -> None:
    with pytest.raises(Unplayable, match="--schema-registry-url"):
        played_virtually(world_without_registry({7}), 0, 10, [VirtualSide({}, lambda _: None)])


def test_what_workers_without_a_registry_refused_is_played() -> None:
    sides = [VirtualSide({}, lambda _: None), VirtualSide({}, lambda _: None)]
    assert played_virtually(world_without_registry({0}), 0, 10, sides)[0] == 1


def test_refusals_for_a_schema_are_those_of_belfry_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusal(partition: bytes, offset: bytes, code: bytes = b"unknown_schema_id") -> Any:
        place = [("topic", b"b.schedules"), ("partition", partition), ("offset", offset)]
        said = [("code", code), *place]
        # The first one is the sender's own.
        return [("belfry-error-offset", b"9"), *((f"belfry-error-{name}", x) for name, x in said)]

    found = [
        *(refusal(b"0", b"4"), refusal(b"1", b"5"), refusal(b"0", b"6", b"not_a_request")),
        *(refusal(b"0", b"x"), None),
    ]
    monkeypatch.setattr(ReplayTopics, "__init__", lambda self: None)
    topics = ReplayTopics()  # type: ignore[call-arg]
    topics._schedules, topics._rejected = "b.schedules", "b.rejected"
    monkeypatch.setattr(ReplayTopics, "_all_of", lambda _self, _names: iter(found))
    monkeypatch.setattr("belfry.cli.replay_topics.headers_of", lambda each: each)
    assert topics.refused_schemas(0) == {4}


def test_a_long_playback_says_how_far_it_is() -> None:
    told: list[str] = []

    def counted(each: Any, what: str) -> Any:
        told.append(what)
        return each

    topics: Any = SimpleNamespace(
        rows=lambda *_: iter(()),
        span=lambda _: None,
        requests=lambda *_: (0, SimpleNamespace(rest=lambda: iter(()))),
    )
    settings = CommandSettings()
    judge_of: Any = lambda _: None  # noqa: E731
    world = ReplayWorld(topics, settings, [], PartitionCount(1), None, judge_of, 100, counted)
    nothing: Any = None
    played(world, 0, nothing, Bounds(), nothing)
    played_virtually(world, 0, 1, [])
    assert told == ["records of partition 0 played", "batches of partition 0 played"]


def test_what_cannot_be_judged_is_told_with_its_reason_and_how_much_it_is() -> None:
    found = StepDifference("row", 57, 812, "demo/a", "no row", "a tombstone", "something waited")
    result = PartitionPlayed(3, COUNTS, 9, found, 64)
    told = line(result)
    assert "DIFFERS" not in told
    assert told.endswith(
        "the same bytes up to transaction 57, offset 812 of the changelog. From there on 64 of"
        " 1,348 transactions CANNOT BE JUDGED: something waited."
    )
    fields = shown(result)
    assert (fields["same"], fields["difference"]) == (None, None)
    assert fields["not_judged"] == {
        "transaction": 57,
        "offset": 812,
        "transactions": 64,
        "reason": "something waited",
    }


@pytest.mark.parametrize(
    ("offsets", "compacted"), [([0, 1, 2], False), ([1, 2], True), ([0, 2], True)]
)
def test_policies_that_compaction_has_removed_are_noticed(
    offsets: list[int], compacted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def message(offset: int) -> Any:
        said = {
            "partition": 0, "offset": offset, "key": b"demo", "value": None,
            "headers": None, "timestamp": (1, 5),
        }  # fmt: skip
        return SimpleNamespace(**{name: lambda value=value: value for name, value in said.items()})

    reader = SimpleNamespace(
        topics=lambda: {"tenants": [0]},
        spans=lambda _: {"tenants": {0: SimpleNamespace(low=0, end=3)}},
        read=lambda *_: [[message(each) for each in offsets]],
    )
    monkeypatch.setattr("belfry.cli.replay_topics.TopicReader", lambda _: reader)
    monkeypatch.setattr("belfry.cli.replay_topics.headers_of", lambda some: [None for _ in some])
    cluster: Any = None
    topics = ReplayTopics(cluster, str)
    assert len(topics.policies(Decoder("TenantPolicy", None, only=True), None)) == len(offsets)
    assert topics.policies_compacted is compacted
