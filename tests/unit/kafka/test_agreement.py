"""Workers compare the settings that they share: at start, and with each partition."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from belfry.kafka.agreement import (
    Agreement,
    OwnershipRefused,
    Statements,
    compare_at_start,
    kept_statements,
)
from belfry.settings import ClusterSettings, Settings
from belfry.store.layout.statements import unsigned_until
from tests.unit.kafka.offset_notes import OffsetNotes

OLD = "the old secret of the workers"
NEW = "the new secret of the workers"
HERE = "input", 0
HOMES = 2


class Cluster(OffsetNotes):
    """Notes of a group without members, and the workers' group."""

    def __init__(self) -> None:
        super().__init__()
        self.members: list[str] = []
        self.hidden = False

    def list_topics(self, timeout: float) -> Any:
        changelog = SimpleNamespace(partitions=dict.fromkeys(range(HOMES)))
        return SimpleNamespace(topics={"belfry.changelog": changelog})

    def describe_consumer_groups(self, names: list[str], **_: Any) -> dict[str, Future[Any]]:
        assert names == ["belfry"]
        future: Future[Any] = Future()
        members = [SimpleNamespace(group_instance_id=each) for each in self.members]
        future.set_result(SimpleNamespace(members=members))
        if self.hidden:
            future = Future()
            future.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT, "hidden")))
        return {"belfry": future}


@pytest.fixture
def admin() -> Any:
    return Cluster()


def keep(admin: Any, *partitions: int, **given: Any) -> None:
    """An owner of these partitions with these settings has said so."""
    Statements(admin, Settings(**given)).keep(partitions)


def started(admin: Any, **given: Any) -> tuple[str, list[Any]]:
    """Why a worker with these settings must not start, and what it says."""
    with capture_logs() as said:
        refusal = compare_at_start(admin, admin, Settings(**given))
    return refusal, [each.get("told") or each["event"] for each in said]


def test_a_worker_that_agrees_says_nothing(admin: Any) -> None:
    assert started(admin) == ("", [])
    keep(admin, 0, 1)
    assert started(admin, http_port=1) == ("", [])


def test_what_a_rolling_restart_may_change_is_said_once_with_both_values(admin: Any) -> None:
    keep(admin, 0, 1)
    admin.members = ["one"]
    refusal, said = started(admin, lifecycle="ALL", standbys=2)
    assert refusal == ""
    assert said == [
        "BELFRY_LIFECYCLE is ALL here, and was kept as FAILURES",
        "BELFRY_STANDBYS is 2 here, and was kept as 1",
    ]


def test_another_secret_is_refused_beside_others(admin: Any) -> None:
    keep(admin, 0, 1, http_worker_secret=OLD)
    admin.members = ["one", "other"]
    refusal, said = started(admin, http_worker_secret=NEW, lifecycle="ALL")
    assert refusal.startswith("settings differ: BELFRY_HTTP_WORKER_SECRET is a secret of digest ")
    assert "and 2 run" in refusal
    assert OLD not in refusal
    assert NEW not in refusal
    assert said == ["BELFRY_LIFECYCLE is ALL here, and was kept as FAILURES"]


def test_another_secret_is_taken_where_nobody_runs(admin: Any) -> None:
    keep(admin, 0, 1, http_worker_secret=OLD)
    refusal, said = started(admin, http_worker_secret=NEW)
    assert refusal == ""
    assert len(said) == 1
    # What is left of its own former run is not another worker.
    admin.members = ["me"]
    assert started(admin, http_worker_secret=NEW, group_instance_id="me")[0] == ""
    assert started(admin, http_worker_secret=NEW, group_instance_id="you")[0] != ""


def test_a_secret_is_changed_in_rounds_beside_others(admin: Any) -> None:
    admin.members = ["other"]
    rounds = [(OLD, None), (OLD, NEW), (NEW, OLD), (NEW, None)]
    for first, also in rounds:
        given = {"http_worker_secret": first, "http_worker_secret_also": also}
        assert started(admin, **given) == ("", [])
        keep(admin, 0, **given)
        assert started(admin, **given) == ("", [])
        keep(admin, 1, **given)


def test_what_is_not_known_is_said_and_stops_nobody(admin: Any) -> None:
    keep(admin, 0, http_worker_secret=OLD)
    admin.hidden = True
    refusal, said = started(admin)
    assert refusal == ""
    assert "it is not known whether other workers run" in said
    admin.away = True
    refusal, said = started(admin)
    assert refusal == ""
    assert said == ["the settings of other workers are not known"]


def test_a_statement_that_is_not_kept_is_said_once(admin: Any) -> None:
    statements = Statements(admin, Settings())
    admin.away = True
    with capture_logs() as said:
        statements.keep([0])
        statements.keep([1])
    assert len(said) == 1
    admin.away = False
    with capture_logs() as said:
        statements.keep([0])
    assert said == []
    assert kept_statements(admin, range(HOMES))[0]["lifecycle"] == "FAILURES"


def test_a_take_over_says_each_difference_once_and_keeps_its_own() -> None:
    first = Agreement(Settings())
    row = first.statement(None, HERE)
    assert row is not None
    assert row[:2] == b"\1\7"
    assert first.statement(row, HERE) is None
    other = Agreement(Settings(lifecycle="ALL"))
    with capture_logs() as said:
        kept = [other.statement(row, HERE) for _ in range(3)]
    assert [each["told"] for each in said] == [
        "BELFRY_LIFECYCLE is ALL here, and was kept as FAILURES"
    ]
    assert kept[0] not in (None, row)
    assert other.statement(kept[0], HERE) is None


def test_what_was_sent_on_before_there_was_a_secret_is_bounded_by_the_end_of_the_input() -> None:
    """Later owners keep the bound, and it is no difference that anybody is told of."""
    none, first = Agreement(Settings()), Agreement(Settings(http_worker_secret=OLD))
    begun = none.statement(None, ("input", 0))
    assert unsigned_until(begun) == 0
    row = first.statement(begun, ("input", 900))
    assert unsigned_until(row) == 900
    with capture_logs() as said:
        assert first.statement(row, ("input", 7_000)) is None
        more = Settings(http_worker_secret=OLD, http_worker_secret_also=NEW)
        assert unsigned_until(Agreement(more).statement(row, ("input", 7_000))) == 900
        anew = first.statement(row, ("another input", 7_000))
    assert said == []
    assert anew is not None
    assert unsigned_until(anew) == 0
    # All workers were stopped and given another secret, which believes none of the first.
    other = Agreement(Settings(http_worker_secret=NEW)).statement(row, ("input", 8_200))
    assert unsigned_until(other) == 8_200
    # Without a secret everything counts, and a new partition has had no other owner.
    assert unsigned_until(none.statement(row, ("input", 9_000))) == 0
    assert unsigned_until(first.statement(None, ("input", 9_000))) == 0


@pytest.mark.parametrize("said", ["{}", '{"unsigned_until":5}', "[]", "{", '{"lifecycle":"ALL"}'])
def test_a_row_that_tells_of_no_secret_counts_as_one_without(said: str) -> None:
    first = Agreement(Settings(http_worker_secret=OLD))
    row = b"\1\7" + said.encode()
    assert unsigned_until(row) == 0
    assert unsigned_until(first.statement(row, ("input", 900))) == 900


def test_a_release_that_says_more_is_no_difference() -> None:
    with capture_logs() as said:
        assert Agreement(Settings()).statement(b'\1\7{"later":1}', HERE) is not None
    assert said == []


def test_fixed_settings_refuse_with_name_and_values() -> None:
    eight = Agreement(Settings(cluster=ClusterSettings(partitions=8)))
    four = Settings().cluster_fingerprint()
    with pytest.raises(
        OwnershipRefused, match="BELFRY_CLUSTER__PARTITIONS is 8 here, and was kept as 4"
    ):
        eight.cluster(four)
    assert Agreement(Settings()).cluster(four) is None
    assert Agreement(Settings()).cluster(None) == four
    # State of a release that had fewer of them.
    assert Agreement(Settings()).cluster(b'{"partitions":4}') == four
