"""A direct producer, whole, against a scripted broker: what a step does, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from operator import gt
from typing import Any, Final

import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from structlog.testing import capture_logs

from belfry.engine.effects import Effects, Letter, Rerouted
from belfry.engine.rejected_record import RejectedRecord
from belfry.kafka.outcome import Aborted, Fenced, Unknown
from belfry.kafka.row_signing import RowSigner
from belfry.kafka.step_records import (
    delivery_records,
    fired_records,
    letter_records,
    outcome_records,
    told_records,
)
from belfry.store.signatures import RowKeys
from belfry.transactions.opening import CONNECT_S
from belfry.transactions.produce import ProduceAnswer
from belfry.transactions.requests import EndTxn, EndTxnWithEpoch, InitProducerId
from belfry.transactions.writer import END_S, WRITE_S
from belfry.wire.accepted import PlainAccepted
from tests.unit.transactions.scripted import LOST, told
from tests.unit.transactions.scripted_producer import CHANGELOG, Made

MANIFEST: Final = {b"row": b"1", b"\0m": b"manifest"}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """Where all goes well."""
    return Made(monkeypatch)


def effects(**given: Any) -> Effects:
    return Effects(rows=dict(MANIFEST), **given)


def names(requests: Iterable[Any], kind: Any) -> list[str]:
    """The transactional ids of these requests, in order."""
    return [each._fields[0] for each in requests if isinstance(each, kind)]


def commits(made: Made) -> list[bool]:
    """What the ends have asked for, in order."""
    return [each._fields[3] for each in made.cluster.sent if isinstance(each, EndTxnWithEpoch)]


def seen(request: Any) -> set[Any]:
    return {each.where for each in request.batches}


# -- a step ----------------------------------------------------------------------------------------


def test_a_step_is_written_and_committed_before_its_receipt(made: Made) -> None:
    direct = made.opened()
    direct.lease.wanted = True
    fired: Any = [("fired", b"k", b"group", b"v", [])]
    receipt = direct.commit(effects(fired=fired, letters=[Letter("dead", b"k", b"v", [])]))
    assert made.reached == ["S1", "S2", "S3", "S4", "S5", "S7"]
    assert made.cluster.kinds[-1] == "end"
    assert commits(made) == [True]
    # A loop that hangs is told from brokers that take their time.
    assert [*map(gt, made.loop.seconds[-2:], (WRITE_S, END_S))] == [True, True]
    produced = [each for each in made.cluster.sent if hasattr(each, "batches")]
    assert {topic for each in produced for topic, _ in seen(each)} == {"fired", "dead", CHANGELOG}
    assert (CHANGELOG, 1) in {where for each in produced for where in seen(each)}
    # Two rows from 100 on; the broker says no append time, so that of sending stands for it.
    assert receipt.next_offset == 102
    assert (receipt.sent_ms, receipt.appended_ms) == (5_002.0, 5_002)
    assert (receipt.acknowledged_ms, receipt.acknowledged_at_ms) == (6_000.0, 80.0)
    assert not direct.lease.wanted, "this commit serves whoever has asked"
    assert not direct.lease.settled, "it may be visible, and is not in the store yet"
    assert direct.lease._sent_ms == 77.0


def test_all_that_a_step_tells_is_written_with_keys_and_values(made: Made) -> None:
    """The very records that the other writer writes."""
    name, asked = b"demo/a", (b"demo", b"a", b"r")
    effects_of_all = effects(
        fired=[("fired", b"k1", None, b"v1", [("h", b"1")])],
        letters=[Letter("dead", b"k2", b"v2", [])],
        deliveries=[(b"k3", b"v3", [])],
        rejected=[RejectedRecord(b"k4", b"v4", [])],
        rerouted=[Rerouted(1, b"k5", b"v5", [])],
        lifecycle=[PlainAccepted(name, asked, 7, 0, 5, ("schedules", 1), 9)],
    )
    made.opened().commit(effects_of_all)
    written = {
        batch.where[0]: [
            (each.key, each.value, each.headers) for each in DefaultRecordBatch(batch.data)
        ]
        for request in made.cluster.sent
        for batch in getattr(request, "batches", ())
    }
    topics = made.topics
    wanted = [
        *fired_records(effects_of_all.fired, topics), *letter_records(effects_of_all),
        *delivery_records(effects_of_all, topics), *outcome_records(effects_of_all, topics),
        *told_records(effects_of_all, topics),
    ]  # fmt: skip
    assert len(wanted) == 6
    rows: list[Any] = [(key, row, []) for key, row in MANIFEST.items()]
    assert written == {CHANGELOG: rows} | {
        topic: [(key, value, headers)] for topic, _, key, value, headers in wanted
    }


def test_a_broker_that_says_when_it_appended_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def appended(request: Any) -> Any:
        answers = [(*each[:4], 4_321) for each in told({})(request).answers]
        return ProduceAnswer(answers, 0)

    made = Made(monkeypatch, produce=[appended])
    assert made.opened().commit(effects()).appended_ms == 4_321


@pytest.mark.parametrize("own_epochs", [False, True], ids=["v1", "v2"])
def test_a_fence_is_of_both_ids_and_steps_take_turns(made: Made, own_epochs: bool) -> None:
    made.cluster.own_epochs = own_epochs
    # Kafka's own default, where nobody sets another one.
    made.properties.pop("transaction.timeout.ms")
    made.producer._properties.pop("transaction.timeout.ms")
    made.producer.open()
    assert made.reached == ["R1"]
    assert names(made.cluster.sent, InitProducerId) == ["belfry.1", "belfry.1.b"]
    assert {each._fields[1] for each in made.cluster.sent} == {60_000}
    for _ in range(3):
        made.producer.commit(effects())
    kind = EndTxnWithEpoch if own_epochs else EndTxn
    assert names(made.cluster.sent, kind) == ["belfry.1", "belfry.1.b", "belfry.1"]


def test_records_without_key_or_place_go_to_another_partition_with_each_step(made: Made) -> None:
    direct = made.opened()
    for _ in range(2):
        direct.commit(effects(letters=[Letter("dead", None, b"v", [])]))
    produced = [each for each in made.cluster.sent if hasattr(each, "batches")]
    places = [where for each in produced for where in seen(each) if where[0] == "dead"]
    assert places == [("dead", 1), ("dead", 0)]


def test_what_is_sent_at_least_once_is_acknowledged_before_the_commit(made: Made) -> None:
    direct = made.opened()
    fired: Any = [("a", b"k", None, b"v", []), ("b", b"k", None, b"v", [])]
    direct.commit(effects(fired=fired, non_transactional={"a"}))
    assert made.beside.sent == fired[:1]
    assert made.reached == ["S1", "S2", "S3", "S4", "settled", "S5", "S7"]
    produced = [each for each in made.cluster.sent if hasattr(each, "batches")]
    assert {topic for each in produced for topic, _ in seen(each)} == {"b", CHANGELOG}
    direct.serve()
    assert made.reached[-1] == "served"


# -- ends ------------------------------------------------------------------------------------------


def test_what_is_refused_is_rolled_back_with_its_topic_and_the_next_step_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Made(monkeypatch, produce=[told({"fired": 87})])
    direct = made.opened()
    fired: Any = [("fired", b"k", b"group", b"v", [])]
    with pytest.raises(Aborted, match="INVALID_RECORD") as ended:
        direct.commit(effects(fired=fired))
    assert [*ended.value.topics] == ["fired"]
    assert not ended.value.blocked
    assert commits(made) == [False]
    assert made.reached == ["S1", "S2", "S3", "S4", "started over"]
    assert direct.lease.settled, "nothing of it was ever visible"
    assert direct.commit(effects()).next_offset == 102


def test_a_tenant_that_is_refused_beside_the_transaction_is_named(made: Made) -> None:
    direct = made.opened()
    made.beside.fails, made.beside.refused = True, {"a": "it is full"}
    fired: Any = [("a", b"k", None, b"v", [])]
    with pytest.raises(Aborted, match="not acknowledged in time") as ended:
        direct.commit(effects(fired=fired, non_transactional={"a"}))
    assert ended.value.topics == {"a": "it is full"}
    assert not ended.value.blocked
    assert commits(made) == [False], "the open transaction is rolled back"


def test_a_topic_that_is_gone_is_named(made: Made) -> None:
    made.cluster.missing = {"dead"}
    with pytest.raises(Aborted, match="dead is not there any more") as ended:
        made.opened().commit(effects(letters=[Letter("dead", b"k", b"v", [])]))
    assert ended.value.topics == {"dead": "dead is not there any more"}
    assert not ended.value.blocked
    assert made.cluster.kinds == [], "nothing was begun, so nothing is to be rolled back"


def test_a_topic_that_nobody_tells_of_is_not_named(made: Made) -> None:
    """The step is done again: its tenant is not held, for its topic may well be there."""
    opened = made.opened()
    made.cluster.missing, made.cluster.silent = {"fired"}, True
    with pytest.raises(Aborted, match="no broker tells of fired") as ended:
        opened.commit(effects(letters=[Letter("fired", b"k", b"v", [])]))
    assert (ended.value.topics, ended.value.blocked) == ({}, False)
    assert made.cluster.kinds == [], "nothing was begun, so nothing is to be rolled back"


def test_where_nobody_tells_of_topics_for_long_brokers_are_looked_for_anew(made: Made) -> None:
    """They may have other addresses now, which these connections would never learn."""
    opened, step = made.opened(), effects(letters=[Letter("fired", b"k", b"v", [])])

    def end(*, silent: bool) -> type[Exception]:
        made.cluster.missing, made.cluster.silent = {"fired"}, silent
        with pytest.raises((Aborted, Unknown)) as ended:
            opened.commit(step)
        return ended.type

    assert end(silent=True) is Aborted
    assert end(silent=False) is Aborted, "the topic is gone: a broker has said so"
    assert end(silent=True) is Aborted
    opened.commit(effects())
    assert end(silent=True) is Aborted
    assert end(silent=True) is Unknown


def test_a_fence_amid_a_step_is_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch, produce=[90])
    with pytest.raises(Fenced):
        made.opened().commit(effects())


@pytest.mark.parametrize(("code", "outcome"), [(90, Fenced), (49, Unknown)])
def test_a_roll_back_that_fails_tells_first_why_there_was_one(
    monkeypatch: pytest.MonkeyPatch, code: int, outcome: type[Exception]
) -> None:
    made = Made(monkeypatch, produce=[29], end=[code])
    with pytest.raises(outcome, match=r"TOPIC_AUTHORIZATION_FAILED.*; roll-back: ") as ended:
        made.opened().commit(effects())
    if isinstance(ended.value, Unknown):
        assert ended.value.blocked, "a topic that may not be written to is why it began"


@pytest.mark.parametrize("code", [29, 87])
def test_a_roll_back_that_hangs_leaves_nobody_certain(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    made = Made(monkeypatch, produce=[code])
    direct = made.opened()
    made.loop.passes = 1
    with pytest.raises(Unknown, match=r".+; roll-back: nothing came of it within 9 s") as ended:
        direct.commit(effects())
    assert ended.value.blocked is (code == 29)


@pytest.mark.parametrize("passes", [0, 1], ids=["records", "end"])
def test_a_loop_that_hangs_leaves_nobody_certain(made: Made, passes: int) -> None:
    direct = made.opened()
    made.loop.passes = passes
    # Two hand-overs, of which the first or the second hangs.
    made.stops_at = "S5"
    with pytest.raises(Unknown, match="a transaction: nothing came of it within 9 s"):
        direct.commit(effects())


def test_a_commit_without_an_answer_is_unknown_and_never_rolled_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Made(monkeypatch, end=[LOST])
    made.cluster.own_epochs = False
    direct = made.opened()
    with pytest.raises(Unknown, match="NO_ANSWER"):
        direct.commit(effects())
    assert made.cluster.kinds.count("end") == 1
    assert not direct.lease.settled, "it may be visible"


# -- signed rows -----------------------------------------------------------------------------------


@pytest.fixture
def signer() -> RowSigner:
    """Signs rows that are expected from offset 100 on."""
    return RowSigner(RowKeys(bytes(32), "topic", 1), 100, lambda: 200)


def test_signed_rows_are_written_by_one_id(made: Made, signer: RowSigner) -> None:
    direct = made.opened()
    direct.signer = signer
    assert direct.commit(effects()).next_offset == 102
    made.cluster.offset = 103
    assert direct.commit(effects()).next_offset == 105
    assert names(made.cluster.sent, EndTxnWithEpoch) == ["belfry.1", "belfry.1"]


def test_signed_rows_that_lie_elsewhere_are_rolled_back_and_signed_by_what_is_in_them(
    made: Made, signer: RowSigner
) -> None:
    direct = made.opened()
    direct.signer = signer
    made.cluster.offset = 101
    with pytest.raises(Aborted, match="the manifest lies at offset 102, where it was not expected"):
        direct.commit(effects())
    assert "S5" not in made.reached, "no row is committed where its signature does not hold"
    # Somebody else's records lie before it; so much is allowed for.
    made.cluster.offset = 203
    receipt = direct.commit(effects())
    assert signer.fillers > 3
    assert receipt.next_offset == 205, "behind the manifest, and before the fillers"
    assert names(made.cluster.sent, EndTxnWithEpoch) == ["belfry.1", "belfry.1"]


# -- beginning and closing -------------------------------------------------------------------------


def test_who_connects_ahead_of_time_does_so_once_and_knows_the_changelog(made: Made) -> None:
    made.producer.connect()
    assert made.cluster.knew == [([CHANGELOG], CONNECT_S)]
    assert made.cluster.kinds == [], "nobody is fenced by it"
    cluster = made.producer._cluster
    made.producer.open()
    assert made.producer._cluster is cluster


def test_a_connection_that_hangs_or_finds_no_changelog_names_it(made: Made) -> None:
    made.loop.passes = 0
    with pytest.raises(ConnectionError, match="changelog: nothing came of it"):
        made.producer.connect()
    made.loop.passes, made.cluster.missing = inf, {CHANGELOG}
    with pytest.raises(ConnectionError, match="changelog: it is not there"):
        made.producer.connect()


@pytest.mark.parametrize(("code", "outcome"), [(90, Fenced), (53, Unknown)])
def test_a_fence_that_is_refused_says_why(
    monkeypatch: pytest.MonkeyPatch, code: int, outcome: type[Exception]
) -> None:
    with pytest.raises(outcome, match=r"^fence: .*(FENCED|FAILED)") as ended:
        Made(monkeypatch, init=[code]).producer.open()
    assert not getattr(ended.value, "blocked", False)


def test_a_fence_that_nobody_answers_is_unknown(made: Made) -> None:
    made.cluster.away = ConnectionError("no broker")
    with pytest.raises(Unknown, match="fence: no broker"):
        made.producer.open()
    made.loop.passes = 0
    with pytest.raises(Unknown, match="fence: nothing came of it"):
        made.producer.open()


def test_a_producer_is_closed_once_with_all_that_it_holds(made: Made) -> None:
    direct = made.opened()
    assert made.loop.users == 1
    for _ in range(2):
        direct.close()
    assert (made.cluster.closed, made.loop.users) == (1, 0)
    assert made.reached == ["closed"]


@pytest.mark.parametrize("away", [ConnectionError("gone"), TimeoutError()])
def test_a_connection_that_does_not_close_keeps_no_loop(made: Made, away: Exception) -> None:
    direct = made.opened()
    made.cluster.away = away
    with capture_logs() as told_of:
        direct.close()
    assert made.loop.users == 0
    assert [(each["event"], each["partition"]) for each in told_of] == [
        ("connections not closed in order", 1)
    ]


def test_a_producer_that_never_connected_is_closed(made: Made) -> None:
    made.producer.close()
    assert (made.cluster.closed, made.loop.users) == (0, 0)
