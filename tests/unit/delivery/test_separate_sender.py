"""A process that only posts: what it knows, what it says, and what happens when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from time import time
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from belfry.api.workers.host_breaks import HostBreak, HostBreaks
from belfry.delivery import confined, sender_input, separate_sender
from belfry.delivery.answers import Answer, End
from belfry.delivery.references import NOWHERE, References
from belfry.delivery.sender_process import read_frame, write_frame
from belfry.delivery.separate_sender import SeparateSender
from belfry.delivery.work import Work, WorkId
from belfry.policies.secrets import SecretPlaces
from belfry.schedules.target_kinds import place_of
from belfry.schedules.targets import HttpTarget
from belfry.settings import Settings
from belfry.tenants.deliveries import DeliveryState
from belfry.wire.fired import FiredEvent
from tests.acceptance.harness.receiver import Receiver
from tests.acceptance.harness.site import wait_for

WAIT_S = 30.0
MORE_THAN_A_PIPE = 200_000
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
Results = SimpleQueue[tuple[WorkId, Work, Answer]]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def results() -> Results:
    return SimpleQueue()


@pytest.fixture
def breaks() -> HostBreaks:
    return HostBreaks()


@pytest.fixture
def sender(
    results: Results, breaks: HostBreaks, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SeparateSender]:
    monkeypatch.setenv("BELFRY_KAFKA", '{"sasl.password": "of-kafka"}')
    monkeypatch.setenv("CLOUD_SECRET_KEY", "of-a-cloud")
    settings = Settings(webhook_private_networks=["127.0.0.0/8"], webhook_secrets={"main": SECRET})
    sender = SeparateSender(settings, NOWHERE, breaks, lambda *result: results.put(result))
    sender.start()
    yield sender
    sender.stop()


def work(url: str) -> Work:
    event = FiredEvent("demo", "a", "f", 1, 0, 0, 0, 0, payload=b"p")
    target = HttpTarget(url, secret_ref="main", timeout_ms=60_000)
    return Work(b"key", b"", event, [], DeliveryState((target,)))


def test_it_posts_and_tells_what_came_of_it(
    sender: SeparateSender, results: Results, receiver: Receiver
) -> None:
    work_id, given = WorkId(3, 1, 41), work(receiver.url("/ok"))
    sender.hand_in([(work_id, given)])
    assert results.get(timeout=WAIT_S) == (
        work_id,
        given,
        Answer(End.DELIVERED, receiver.url("/ok")),
    )
    (got,) = receiver.received
    assert (got.body, got.id) == (b"p", "f")
    assert got.headers["webhook-signature"].startswith("v1,")
    sender.hand_in([(work_id, work(receiver.url("/status/410")))])
    _, _, answer = results.get(timeout=WAIT_S)
    assert (answer.end, answer.code) == (End.FINAL, "http_status")


def test_it_has_no_credentials_and_no_settings(sender: SeparateSender) -> None:
    environment = Path(f"/proc/{sender._child.pid}/environ")
    names = wait_for("its environment", environment.read_bytes)
    kept = {each.partition(b"=")[0].decode() for each in names.split(b"\0") if each}
    assert kept <= set(confined.KEPT)
    assert b"of-kafka" not in names
    assert b"of-a-cloud" not in names


def test_when_it_ends_the_work_is_tried_again_and_no_attempt_counts(
    sender: SeparateSender, results: Results, receiver: Receiver
) -> None:
    sender.hand_in([(WorkId(1, 0, 7), work(receiver.url("/hang")))])
    wait_for("the post", lambda: receiver.received)
    os.kill(sender._child.pid, signal.SIGKILL)
    work_id, _, answer = results.get(timeout=WAIT_S)
    assert (work_id.offset, answer.end, answer.code) == (7, End.POSTPONED, "interrupted")
    sender.hand_in([(WorkId(1, 0, 8), work(receiver.url("/ok")))])
    work_id, _, answer = results.get(timeout=WAIT_S)
    assert (work_id.offset, answer.end) == (8, End.DELIVERED)


def test_what_is_amid_one_crash_after_the_other_may_be_their_cause(
    sender: SeparateSender, results: Results, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(separate_sender, "PAUSE_S", 0.05)
    hanging, found = work(receiver.url("/hang")), []
    for crash in range(1, separate_sender.SUSPECT + 1):
        sender.hand_in([(WorkId(1, 0, crash), hanging)])
        wait_for("the post", partial(posts, receiver, crash))
        os.kill(sender._child.pid, signal.SIGKILL)
        found.append(results.get(timeout=WAIT_S)[2].end)
    assert found == [End.POSTPONED, End.POSTPONED, End.AGAIN]
    # An answer of its own clears it of suspicion.
    receiver.released.set()
    sender.hand_in([(WorkId(1, 0, 9), hanging)])
    results.get(timeout=WAIT_S)
    assert not sender._crashes


def posts(receiver: Receiver, number: int) -> bool:
    return len(receiver.received) == number


def test_a_child_that_reads_nothing_holds_up_neither_work_nor_the_end(
    sender: SeparateSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(separate_sender, "STOP_S", 0.2)
    child = sender._child
    os.kill(child.pid, signal.SIGSTOP)
    large = replace(work("http://127.0.0.1:9/"), value=bytes(MORE_THAN_A_PIPE))
    telling = Thread(target=tell_and_stop, args=(sender, large), daemon=True)
    telling.start()
    telling.join(WAIT_S)
    assert not telling.is_alive()
    assert child.returncode == -signal.SIGKILL


def tell_and_stop(sender: SeparateSender, given: Work) -> None:
    for number in range(3):
        sender.hand_in([(WorkId(1, 0, number), given)])
    sender.drop()
    sender.stop()


def test_a_child_that_goes_on_reading_nothing_is_replaced(
    sender: SeparateSender, results: Results, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender.hand_in([(WorkId(1, 0, 1), work(receiver.url("/ok")))])
    assert results.get(timeout=WAIT_S)[2].end is End.DELIVERED
    monkeypatch.setattr(sender_input, "WEDGED_S", 0.2)
    wedged = sender._child
    os.kill(wedged.pid, signal.SIGSTOP)
    large = replace(work(receiver.url("/ok")), value=bytes(MORE_THAN_A_PIPE))
    sender.hand_in([(WorkId(1, 0, 2), large)])
    assert results.get(timeout=WAIT_S)[2].code == "interrupted"
    assert sender._child is not wedged
    monkeypatch.setattr(sender_input, "WEDGED_S", WAIT_S)
    sender.hand_in([(WorkId(1, 0, 3), large)])
    assert results.get(timeout=WAIT_S)[2].end is End.DELIVERED


def test_where_another_one_does_not_start_it_is_tried_again(
    sender: SeparateSender, results: Results, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen
    refused: list[Any] = []

    def popen(*given: Any, **more: Any) -> Any:
        if not refused:
            refused.append(given)
            raise OSError("too many open files")
        return start(*given, **more)

    monkeypatch.setattr(separate_sender, "PAUSE_S", 0.05)
    monkeypatch.setattr(subprocess, "Popen", popen)
    ended = sender._child
    ended.kill()
    wait_for("another one", lambda: sender._child is not ended)
    assert refused
    sender.hand_in([(WorkId(1, 0, 8), work(receiver.url("/ok")))])
    assert results.get(timeout=WAIT_S)[2].end is End.DELIVERED


def test_an_answer_without_measure_is_not_read() -> None:
    with pytest.raises(ValueError, match="at most 10 are read"):
        read_frame(BytesIO((1 << 31).to_bytes(4, "big")), 10)


def test_what_is_dropped_is_not_told(
    sender: SeparateSender, results: Results, receiver: Receiver
) -> None:
    sender.hand_in([(WorkId(1, 0, 7), work(receiver.url("/hang")))])
    wait_for("the post", lambda: receiver.received)
    sender.drop()
    receiver.released.set()
    sender.hand_in([(WorkId(2, 0, 9), work(receiver.url("/ok")))])
    assert results.get(timeout=WAIT_S)[0] == WorkId(2, 0, 9)
    assert results.empty()


def test_it_ends_with_who_started_it() -> None:
    orders = {"networks": [], "secrets": {}, "per_host": 1}
    with subprocess.Popen(
        [sys.executable, "-m", "belfry.delivery.sender_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None
        write_frame(child.stdin, orjson.dumps(orders))  # type: ignore[arg-type]  # it is binary
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(1.0)
        child.stdin.close()
        assert child.wait(WAIT_S) == 0


def test_it_posts_the_secrets_of_headers_that_its_parent_read(
    results: Results, receiver: Receiver, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("sk-0123456789abcdef")
    settings = Settings(webhook_private_networks=["127.0.0.0/8"])
    references = References(SecretPlaces(tmp_path), trusted=True)
    sender = SeparateSender(settings, references, HostBreaks(), lambda *result: results.put(result))
    sender.start()
    headers = (("authorization", "Bearer ${file:key}"),)
    target = HttpTarget(receiver.url("/ok"), headers=headers)
    state = DeliveryState((target,), hosts=(place_of(target),), refs=("file:key",))
    given = replace(work(""), state=state)
    try:
        sender.hand_in([(WorkId(0, 0, 1), given)])
        _, came_back, answer = results.get(timeout=WAIT_S)
    finally:
        sender.stop()
    assert answer.end is End.DELIVERED
    assert receiver.received[0].headers["authorization"] == "Bearer sk-0123456789abcdef"
    assert not came_back.secrets


def test_the_child_heeds_breaks_also_those_that_are_older_than_it(
    sender: SeparateSender, results: Results, receiver: Receiver, breaks: HostBreaks
) -> None:
    now_ms = int(time() * 1000)
    host = urlsplit(receiver.url("/ok")).netloc

    def code() -> str:
        sender.hand_in([(WorkId(0, 0, 1), work(receiver.url("/ok")))])
        return results.get(timeout=WAIT_S)[2].code

    breaks.open(HostBreak(host, now_ms, now_ms + 60_000, "ann", "maintenance"))
    assert code() == "host_broken"
    # What is given up is not told to the child any more, and breaks are.
    sender.drop()
    assert code() == "host_broken"
    killed = sender._child
    killed.kill()
    wait_for("another child", lambda: sender._child is not killed)
    assert code() == "host_broken"
    breaks.close(host, now_ms)
    assert code() == ""
