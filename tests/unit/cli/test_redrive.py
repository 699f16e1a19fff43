"""`belfry redrive`: it counts first, asks, and tells what was sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Self

import pytest

from belfry.cli import redrive, redrive_http, redrive_kafka
from belfry.cli.entry import main
from belfry.cli.remote import WorkerRefusal
from belfry.cli.session import Session
from belfry.client.redrive_source import AnotherRedrive, RedriveCount
from belfry.tenants.policy import TenantPolicy

RANGE = ("--from", "2026-12-01T00:00:00Z", "--until", "2026-12-02T00:00:00Z")


class Sender:
    """Stands for the client; remembers what it was asked to send."""

    def __init__(self, places: int = 3) -> None:
        codes = Counter(bad_cron=1, bad_zone=places - 1) if places else Counter[str]()
        stuck = Counter(cut=2)
        self.found = RedriveCount(codes, 4, stuck, [(0, n) for n in range(places)])
        self.asked: list[Any] = []
        self.looked: Any = None
        self.ended_behind: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def redrive_preview(self, *given: Any, **_: Any) -> RedriveCount:
        self.looked = given
        return self.found

    def refire_preview(self, *given: Any) -> RedriveCount:
        self.looked = given
        return self.found

    def refire(self, *given: Any, **how: Any) -> RedriveCount:
        return self._sent(given, how)

    def redrive(self, *given: Any, **how: Any) -> RedriveCount:
        return self._sent(given, how)

    def _sent(self, given: Any, how: dict[str, Any]) -> RedriveCount:
        """Another redrive ends the first of them, each behind some records of its own."""
        told = how.pop("told")
        self.asked.append((given, how))
        if self.ended_behind:
            for sent in range(self.ended_behind.pop(0)):
                told(sent + 1)
            raise AnotherRedrive("Another redrive has begun, so this one ended.")
        return self.found if len(self.asked) == 1 else RedriveCount(Counter(), 7, Counter(), [])


class Policies:
    """Stands for the policies in Kafka: two tenants share a topic, one has its own."""

    def all(self) -> dict[str, TenantPolicy]:
        named = [TenantPolicy("own", output_topic="alone"), TenantPolicy("plain")]
        shared = [TenantPolicy(name, output_topic="messages") for name in ("mail", "sms")]
        return {each.tenant: each for each in [*named, *shared]}


@pytest.fixture
def sender(monkeypatch: pytest.MonkeyPatch) -> Sender:
    sender = Sender()
    monkeypatch.setattr(Session, "client", lambda _: sender)
    monkeypatch.setattr(redrive, "kafka_policies", lambda _: Policies())
    return sender


def test_a_dry_run_counts_by_code(sender: Sender, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redrive", "rejected", "demo", *RANGE, "--dry-run"]) == 0
    told = "3 requests would be sent (bad_cron: 1, bad_zone: 2), 4 were redriven before,"
    assert capsys.readouterr().out == f"{told} 2 cannot be (cut: 2)\n"
    assert main(["redrive", "rejected", "demo", *RANGE, "--dry", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "requests": 3,
        "codes": {"bad_cron": 1, "bad_zone": 2},
        "redriven": 4,
        "stuck": {"cut": 2},
    }
    assert not sender.asked


def test_it_sends_what_it_was_asked_for(sender: Sender, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--code", "bad_cron", "--per-second", "7", "--reason", "fixed", "--yes")
    assert main(["redrive", "rejected", "demo", *RANGE, *more]) == 0
    assert "3 requests were sent" in capsys.readouterr().out
    day = (1_796_083_200_000, 1_796_169_600_000)
    how = {"code": "bad_cron", "per_second": 7, "reason": "fixed"}
    assert sender.asked == [(("demo", *day), how)]


def test_nothing_is_sent_where_nobody_can_be_asked(sender: Sender) -> None:
    assert main(["redrive", "rejected", "demo", *RANGE]) == 2
    assert not sender.asked


def test_where_there_is_nothing_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    none = Sender(0)
    monkeypatch.setattr(Session, "client", lambda _: none)
    assert main(["redrive", "rejected", "demo", *RANGE]) == 0
    assert "0 requests would be sent" in capsys.readouterr().err
    assert main(["redrive", "rejected", "demo", *RANGE, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["requests"] == 0
    assert not none.asked


def test_programs_are_told_where_a_worker_finds_nothing(
    worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    worker.left = 0
    assert main(["redrive", "rejected", "demo", *RANGE, *WORKER, "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["found"], told["sent"], told["left"]) == (0, 0, 0)


@pytest.mark.parametrize("what", ["rejected", "fires"])
def test_one_that_another_redrive_has_ended_waits_and_goes_on(
    sender: Sender, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(redrive_kafka, "sleep", waited.append)
    sender.ended_behind = [1, 0]
    assert main(["redrive", what, "demo", *RANGE, "--yes"]) == 0
    out, error = capsys.readouterr()
    assert waited == [12.0, 12.0]
    assert error.count("Another redrive has begun: waiting for it.") == 2
    # All three, and not what the last turn alone has found.
    assert out.startswith("3 ")
    assert "4 were redriven before" in out


@pytest.mark.parametrize(("behind", "tries"), [(0, 11), (1, 21)])
def test_it_waits_two_minutes_for_others_behind_what_it_has_sent(
    sender: Sender, monkeypatch: pytest.MonkeyPatch, behind: int, tries: int
) -> None:
    now_s = 0.0

    def wait(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    monkeypatch.setattr(redrive_kafka, "monotonic", lambda: now_s)
    monkeypatch.setattr(redrive_kafka, "sleep", wait)
    sender.ended_behind = [*[0] * 10, behind, *[0] * 100]
    assert main(["redrive", "rejected", "demo", *RANGE, "--yes"]) == 1
    assert len(sender.asked) == tries


def test_events_are_counted_and_sent(sender: Sender, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redrive", "fires", "demo", *RANGE, "--prefix", "a/", "--dry-run"]) == 0
    told = "3 events of 2 schedules would be sent, 4 were redriven before"
    assert capsys.readouterr().out == f"{told}\n"
    day = (1_796_083_200_000, 1_796_169_600_000)
    assert sender.looked == ("belfry.fired.demo", (*day, None, "a/", "redrive", None))
    more = ("--id", "a", "--topic", "out", "--name", "monday", "--yes")
    assert main(["redrive", "fires", "demo", *RANGE, *more]) == 0
    asked = (*day, "a", "", "monday", None)
    assert sender.asked == [(("out", asked), {"per_second": 100})]


def test_no_event_is_sent_where_nobody_can_be_asked(sender: Sender) -> None:
    assert main(["redrive", "fires", "demo", *RANGE]) == 2
    assert not sender.asked


@pytest.mark.parametrize(
    ("tenant", "topic"), [("own", "alone"), ("plain", "belfry.fired.plain"), ("new", None)]
)
def test_events_are_looked_for_where_the_policy_has_them_come_out(
    sender: Sender, tenant: str, topic: str | None
) -> None:
    assert main(["redrive", "fires", tenant, *RANGE, "--dry-run", "-o", "json"]) == 0
    assert sender.looked[0] == (topic or f"belfry.fired.{tenant}")


def test_the_events_of_others_are_sent_again_only_where_that_is_said(
    sender: Sender, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["redrive", "fires", "mail", *RANGE, "--yes"]) == 2
    assert "messages has the events of sms too" in capsys.readouterr().err
    assert sender.looked is None
    assert main(["redrive", "fires", "mail", *RANGE, "--topic", "messages", "--yes"]) == 0
    assert sender.asked[0][0][0] == "messages"


def test_events_and_schedules_have_their_names_in_json(
    sender: Sender, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["redrive", "fires", "demo", *RANGE, "--dry-run", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "events": 3,
        "schedules": {"bad_cron": 1, "bad_zone": 2},
        "redriven": 4,
    }


BACK = ("--from", "2026-12-02T00:00:00Z", "--until", "2026-12-01T00:00:00Z")
SAME = ("--from", "2026-12-01T00:00:00Z", "--until", "2026-12-01T00:00:00Z")
AHEAD = ("--from", "2099-12-01T00:00:00Z")


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        (("demo", *BACK), "2026-12-02T00:00:00.000Z is not before --until 2026-12-01T"),
        (("demo", *BACK), "exchange them."),
        (("demo", *SAME), "give a later --until."),
        (("demo", *AHEAD), "--from 2099-12-01T00:00:00.000Z is not over yet"),
        (("no such", *RANGE), "Tenant 'no such' is not allowed"),
    ],
)
@pytest.mark.parametrize("what", ["rejected", "fires"])
def test_what_is_given_is_checked_first(
    sender: Sender,
    capsys: pytest.CaptureFixture[str],
    what: str,
    given: tuple[str, ...],
    wrong: str,
) -> None:
    assert main(["redrive", what, *given, "--dry-run"]) == 2
    assert wrong in capsys.readouterr().err
    assert sender.looked is None


def test_the_nearest_code_is_named(sender: Sender, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("redrive", "rejected", "demo", *RANGE, "--dry-run", "--code")
    assert main([*given, "too_many_pendig"]) == 2
    wrong = "--code 'too_many_pendig' is no code of a refusal: did you mean too_many_pending?"
    assert wrong in capsys.readouterr().err
    assert main([*given, "xyz"]) == 2
    assert "docs/rejections.md has all codes" in capsys.readouterr().err


def test_the_range_ends_now_unless_it_says_when(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belfry.cli.ranges.time", lambda: 1_796_169_600.0)
    assert main(["redrive", "fires", "demo", *RANGE[:2], "--dry-run"]) == 0
    assert sender.looked[1][:2] == (1_796_083_200_000, 1_796_169_600_000)


WORKER = ("--http-url", "http://127.0.0.1:8700")
TOLD: dict[str, Any] = {"what": "rejected", "by": {"bad_cron": 3}, "kinds": 1, "stuck": {"cut": 2}}
# Sent again before the first call.
BEFORE = 4


class Worker:
    """Stands for a worker that sends two with each call; remembers what it was asked."""

    def __init__(self, found: int = 3, **more: Any) -> None:
        self.found, self.left, self.more = found, found, more
        self.asked: list[tuple[str, Any]] = []
        # What the next calls are refused with, and how many each of these has sent.
        self.refusals: list[tuple[WorkerRefusal, int]] = []

    def ask(self, _method: str, path: str, body: Any) -> dict[str, Any]:
        self.asked.append((path, body))
        if self.refusals:
            refusal, sent = self.refusals.pop(0)
            self.left -= sent
            raise refusal
        before = BEFORE + self.found - self.left
        found, sent = self.left, 0 if path.endswith("dry=true") else min(2, self.left)
        self.left -= sent
        counts = {"found": found, "redriven": before, "sent": sent, "left": self.left}
        return {**TOLD, **self.more, **counts}


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, sender: Sender) -> Iterator[Worker]:
    found = Worker()
    monkeypatch.setattr(redrive_http, "Remote", lambda _: found)
    yield found
    # Kafka is left alone.
    assert sender.looked is None
    assert not sender.asked


def test_a_worker_is_asked_until_nothing_is_left(
    worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--code", "bad_cron", "--per-second", "7", "--reason", "fixed", "--yes")
    assert main(["redrive", "rejected", "demo", *RANGE, *more, *WORKER]) == 0
    path = "/v1/tenants/demo/redrives"
    assert [each for each, _ in worker.asked] == [f"{path}?dry=true", path, path]
    day = {"range_from": 1_796_083_200_000, "range_until": 1_796_169_600_000}
    how = {"code": "bad_cron", "per_second": 7, "reason": "fixed"}
    assert {json.dumps(body, sort_keys=True) for _, body in worker.asked} == {
        json.dumps({"what": "rejected", **day, **how}, sort_keys=True)
    }
    out, error = capsys.readouterr()
    behind = ", 4 were redriven before, 2 cannot be (cut: 2)"
    assert f"3 requests would be sent (bad_cron: 3){behind}" in error
    assert out == f"3 requests were sent (bad_cron: 3){behind}\n"


BUSY = WorkerRefusal("1 redrives are under way already: try again.", 503, "busy")
ANOTHER = WorkerRefusal("Another redrive has begun, so this one ended.", 409, "another_redrive")
SEND = ("redrive", "rejected", "demo", *RANGE, "--yes", *WORKER)


def test_the_command_waits_for_another_redrive_and_goes_on(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(redrive_http, "sleep", waited.append)
    # The count, then a call that is not begun, and one that is ended behind its first record.
    worker.refusals = [(BUSY, 0)]
    assert main([*SEND, "--dry-run"]) == 0
    assert "Another redrive is at work: waiting for it." in capsys.readouterr().err
    worker.asked.clear()
    ask = worker.ask

    def refused_then(method: str, path: str, body: Any) -> dict[str, Any]:
        if len(worker.asked) == 1:
            worker.refusals = [(BUSY, 0), (ANOTHER, 1)]
        return ask(method, path, body)

    monkeypatch.setattr(worker, "ask", refused_then)
    assert main(SEND) == 0
    assert len(worker.asked) == 4
    assert waited == [2.0, 2.0, 12.0]
    assert "3 requests were sent" in capsys.readouterr().out


@pytest.mark.parametrize(("refusal", "code"), [(BUSY, 1), (ANOTHER, 4)])
def test_the_command_does_not_wait_for_ever(
    worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    refusal: WorkerRefusal,
    code: int,
) -> None:
    now_s = 0.0

    def wait(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    monkeypatch.setattr(redrive_http, "monotonic", lambda: now_s)
    monkeypatch.setattr(redrive_http, "sleep", wait)
    worker.refusals = [(refusal, 0)] * 1_000
    assert main(SEND) == code
    assert now_s == redrive_http.LONGEST_WAIT_S
    assert str(refusal) in capsys.readouterr().err


def test_any_other_refusal_is_told_at_once(worker: Worker) -> None:
    worker.refusals = [(WorkerRefusal("Too much.", 422, "too_much"), 0)]
    assert main(SEND) == 1
    assert len(worker.asked) == 1


def test_a_worker_counts_and_sends_nothing_in_a_dry_run(
    worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    worker.more = {"what": "fires", "kinds": 2, "stuck": {}}
    given = ("--prefix", "a/", "--name", "monday", "--dry-run")
    assert main(["redrive", "fires", "demo", *RANGE, *given, *WORKER]) == 0
    ((path, body),) = worker.asked
    assert path == "/v1/tenants/demo/redrives?dry=true"
    assert (body["what"], body["prefix"], body["name"]) == ("fires", "a/", "monday")
    told = "3 events of 2 schedules would be sent, 4 were redriven before"
    assert capsys.readouterr().out == f"{told}\n"


def test_a_worker_is_asked_for_the_refusals_of_all(worker: Worker) -> None:
    assert main(["redrive", "rejected", "*", *RANGE, "--yes", *WORKER]) == 0
    assert {path.partition("?")[0] for path, _ in worker.asked} == {"/v1/redrives"}


def test_a_worker_sends_nothing_where_nobody_can_be_asked(worker: Worker) -> None:
    assert main(["redrive", "rejected", "demo", *RANGE, *WORKER]) == 2
    assert len(worker.asked) == 1
    given = ("redrive", "fires", "demo", *RANGE, "--topic", "out", "--yes", *WORKER)
    assert main(given) == 2
    assert len(worker.asked) == 1
