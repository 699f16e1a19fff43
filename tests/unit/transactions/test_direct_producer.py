"""A partition's direct producer, whole, against a scripted broker: what a step does, and its ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, Final

import pytest

from belfry.engine.effects import Effects, Letter
from belfry.kafka.outcome import Aborted, Fenced, Unknown
from belfry.kafka.row_signing import RowSigner
from belfry.kafka.step_producer import ProducerSurroundings
from belfry.kafka.step_records import OutputTopics
from belfry.store.signatures import RowKeys
from belfry.transactions import brokers
from belfry.transactions.produce import ProduceAnswer
from belfry.transactions.producer import DirectProducer
from belfry.transactions.requests import EndTxn, EndTxnWithEpoch, InitProducerId
from tests.unit.transactions.scripted import LOST, Script, told

CHANGELOG: Final = "changelog"
MANIFEST: Final = {b"row": b"1", b"\0m": b"manifest"}
PROPERTIES: Final = {"transactional.id": "belfry.1", "transaction.timeout.ms": 10_000}


class Connections(Script):
    """A scripted cluster as a producer holds it: begun, asked of its features, closed."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(**answers)
        self.started = self.closed = 0
        self.own_epochs = True
        self.away: Exception | None = None
        self.knew: list[list[str]] = []

    async def start(self) -> None:
        """Connect, or say why not."""
        self.started += 1
        if self.away is not None:
            raise self.away

    async def close(self) -> None:
        """Close, or say why not."""
        self.closed += 1
        if self.away is not None:
            raise self.away

    async def know(self, topics: Iterable[str], _within_s: float = 1.0) -> None:
        """Learn of topics."""
        self.knew.append([*topics])

    async def gives_own_epochs(self) -> bool:
        """Whether it speaks protocol v2."""
        return self.own_epochs


class Loop:
    """Runs what is asked for at once; `users` are those that have entered and not left."""

    def __init__(self) -> None:
        self.users = 0
        self.hangs = ""

    def enter(self) -> None:
        """Use it."""
        self.users += 1

    def leave(self) -> None:
        """Use it no more."""
        self.users -= 1

    def run(self, work: Any, _most_s: float) -> Any:
        """What comes of it, or TimeoutError for the one that hangs, by its name."""
        if self.hangs and work.cr_code.co_name == self.hangs:
            work.close()
            raise TimeoutError("nothing came of it within 9 s")
        return asyncio.run(work)


class Beside:
    """What is sent at least once, beside the transaction."""

    def __init__(self, said: list[str]) -> None:
        self.said = said
        self.sent: list[Any] = []
        self.refused: dict[str, str] = {}
        self.fails = False

    def send(self, fired: Iterable[Any]) -> None:
        """Send records."""
        self.sent += fired

    def settle(self) -> None:
        """Wait until all are acknowledged."""
        self.said.append("settled")
        if self.fails:
            raise BufferError("2 records were not acknowledged in time")

    def start_over(self) -> None:
        """Forget what is under way."""
        self.said.append("started over")

    def serve(self) -> None:
        """Tell figures."""
        self.said.append("served")

    def close(self) -> None:
        """Give up."""
        self.said.append("closed")


class Made:
    """A producer of partition 1 with all that it touches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
        self.cluster = Connections(**answers)
        self.loop = Loop()
        self.reached: list[str] = []
        self.now_ms = 5_000.0
        monkeypatch.setattr(brokers, "BrokerConnections", lambda given: self._connections(given))
        clock: Any = SimpleNamespace(
            wall_ms=self._wall, monotonic_ms=lambda: 77.0, both_ms=lambda: (6_000.0, 80.0)
        )
        failpoints: Any = SimpleNamespace(reach=self.reached.append)
        topics = OutputTopics(
            CHANGELOG, "schedules", "rejected", "lifecycle", b"", "d", b"", lambda _topic: 2
        )
        around = ProducerSurroundings(topics, clock, failpoints)
        loop: Any = self.loop
        self.producer = DirectProducer(PROPERTIES, 1, around, loop, 2)
        self.beside = self.producer._non_transactional = Beside(self.reached)  # type: ignore[assignment]

    def opened(self) -> DirectProducer:
        """The producer, once it has fenced; what was asked so far is forgotten."""
        self.producer.open()
        self.reached.clear()
        self.cluster.asked.clear()
        self.cluster.sent.clear()
        return self.producer

    def _connections(self, given: Any) -> Connections:
        assert given == PROPERTIES
        return self.cluster

    def _wall(self) -> float:
        self.now_ms += 1
        return self.now_ms


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """Where all goes well."""
    return Made(monkeypatch)


def effects(**given: Any) -> Effects:
    return Effects(rows=dict(MANIFEST), **given)


def names(requests: Iterable[Any], kind: Any) -> list[str]:
    """The transactional ids of these requests, in order."""
    return [each._fields[0] for each in requests if isinstance(each, kind)]


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


def test_a_broker_that_says_when_it_appended_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def appended(request: Any) -> Any:
        answers = [(*each[:4], 4_321) for each in told({})(request).answers]
        return ProduceAnswer(answers, 0)

    made = Made(monkeypatch, produce=[appended])
    assert made.opened().commit(effects()).appended_ms == 4_321


@pytest.mark.parametrize("own_epochs", [False, True], ids=["v1", "v2"])
def test_a_fence_is_of_both_ids_and_steps_take_turns(made: Made, own_epochs: bool) -> None:
    made.cluster.own_epochs = own_epochs
    made.producer.open()
    assert made.reached == ["R1"]
    assert names(made.cluster.sent, InitProducerId) == ["belfry.1", "belfry.1.b"]
    assert {each._fields[1] for each in made.cluster.sent} == {10_000}
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
    assert [each._fields[3] for each in made.cluster.sent if isinstance(each, EndTxnWithEpoch)] == [
        False
    ]
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
    assert made.cluster.kinds[-1] == "end", "the open transaction is rolled back"


def test_a_topic_that_is_gone_is_named(made: Made) -> None:
    made.cluster.missing = {"dead"}
    with pytest.raises(Aborted, match="dead is not there any more") as ended:
        made.opened().commit(effects(letters=[Letter("dead", b"k", b"v", [])]))
    assert ended.value.topics == {"dead": "dead is not there any more"}
    assert made.cluster.kinds == [], "nothing was begun, so nothing is to be rolled back"


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
    made.loop.hangs = "end"
    with pytest.raises(Unknown, match=r".+; roll-back: nothing came of it within 9 s") as ended:
        direct.commit(effects())
    assert ended.value.blocked is (code == 29)


@pytest.mark.parametrize("hangs", ["_write", "end"])
def test_a_loop_that_hangs_leaves_nobody_certain(made: Made, hangs: str) -> None:
    direct = made.opened()
    made.loop.hangs = hangs
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
    made.cluster.offset = 200
    receipt = direct.commit(effects())
    assert signer.fillers > 0
    assert receipt.next_offset == 202, "behind the manifest, and before the fillers"
    assert names(made.cluster.sent, EndTxnWithEpoch) == ["belfry.1", "belfry.1"]


# -- beginning and closing -------------------------------------------------------------------------


def test_who_connects_ahead_of_time_does_so_once_and_knows_the_changelog(made: Made) -> None:
    made.producer.connect()
    assert made.cluster.knew == [[CHANGELOG]]
    assert made.cluster.kinds == [], "nobody is fenced by it"
    cluster = made.producer._cluster
    made.producer.open()
    assert made.producer._cluster is cluster


def test_a_connection_that_hangs_or_finds_no_changelog_names_it(made: Made) -> None:
    made.loop.hangs = "_connect"
    with pytest.raises(ConnectionError, match="changelog: nothing came of it"):
        made.producer.connect()
    made.loop.hangs, made.cluster.missing = "", {CHANGELOG}
    with pytest.raises(ConnectionError, match="changelog: it is not there"):
        made.producer.connect()


@pytest.mark.parametrize(("code", "outcome"), [(90, Fenced), (53, Unknown)])
def test_a_fence_that_is_refused_says_why(
    monkeypatch: pytest.MonkeyPatch, code: int, outcome: type[Exception]
) -> None:
    with pytest.raises(outcome, match="fence: .*(FENCED|FAILED)"):
        Made(monkeypatch, init=[code]).producer.open()


def test_a_fence_that_nobody_answers_is_unknown(made: Made) -> None:
    made.cluster.away = ConnectionError("no broker")
    with pytest.raises(Unknown, match="fence: no broker"):
        made.producer.open()
    made.loop.hangs = "_begin"
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
    direct.close()
    assert made.loop.users == 0


def test_a_producer_that_never_connected_is_closed(made: Made) -> None:
    made.producer.close()
    assert (made.cluster.closed, made.loop.users) == (0, 0)
