"""The client of the library: many threads, long pauses, brokers that are not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

import pytest

from belfry.client import BadProperty, Client, NotFound, NoVerdict, Unavailable
from belfry.client import answers as answers_module
from tests.acceptance.harness.raw_headers import send_raw
from tests.acceptance.harness.site import wait_for
from tests.unit.client.fake_worker import FakeWorker, settings_for


@pytest.fixture
def worker(kafka: str, unique: Callable[[str], str]) -> Iterator[FakeWorker]:
    """A stand-in for a worker."""
    with FakeWorker(settings_for(kafka, unique("client") + ".")) as running:
        yield running


@pytest.fixture
def client(worker: FakeWorker) -> Iterator[Client]:
    """A client of the same belfry."""
    prefix = worker.settings.cluster.topic_prefix
    with Client(worker.settings.bootstrap_servers, topic_prefix=prefix) as made:
        yield made


def test_many_threads_get_their_own_verdicts(client: Client) -> None:
    names = [f"s{number}" for number in range(200)]

    def ask(name: str) -> str:
        verdict = client.schedule("demo", name, in_="1h", payload=name, timeout_s=60)
        assert verdict.outcome == "ACCEPTED"
        return verdict.schedule_id

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, names)) == names


def test_after_a_pause_the_reading_begins_anew(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers_module, "LINGER_S", 0.2)
    for _ in range(3):
        with pytest.raises(NotFound):
            client.cancel("demo", "nothing")
        sleep(0.6)


def test_a_refusal_carries_its_verdict(client: Client) -> None:
    with pytest.raises(NotFound) as caught:
        client.cancel("demo", "nothing", request_id="mine")
    verdict = caught.value.verdict
    assert (verdict.outcome, verdict.request_id) == ("NOT_FOUND", "mine")
    assert verdict.source_offset == 0


def test_a_verdict_that_does_not_come_names_the_request(client: Client, worker: FakeWorker) -> None:
    worker.silent = True
    with pytest.raises(NoVerdict, match="offset 0") as caught:
        client.cancel("demo", "hello", timeout_s=0.3)
    wait_for("the request at the worker", lambda: worker.seen)
    assert worker.seen[0]["request_id"] == caught.value.request_id


def test_without_waiting_the_place_in_the_log_is_known(client: Client, worker: FakeWorker) -> None:
    sent = client.schedule("demo", "hello", in_="1h", wait=False)
    assert sent.outcome is None
    assert sent.source_topic == worker.settings.topic("schedules")
    assert sent.source_offset == 0


@pytest.mark.parametrize("wait", [True, False])
def test_a_broker_that_is_not_there_is_told_within_seconds(wait: bool) -> None:
    began = monotonic()
    with Client("127.0.0.1:1") as client, pytest.raises(Unavailable, match="Connection refused"):
        client.schedule("demo", "hello", in_="1h", wait=wait)
    assert monotonic() - began < 8


def test_a_property_that_does_not_exist_is_told(kafka: str) -> None:
    with (
        Client(kafka, properties={"no.such": 1}) as client,
        pytest.raises(BadProperty, match=r"no\.such"),
    ):
        client.cancel("demo", "hello")


def test_a_header_name_that_is_no_text_ends_no_reader(client: Client, worker: FakeWorker) -> None:
    topic = worker.ready_for("demo")
    with client.events("demo", from_beginning=True) as events:
        send_raw(worker.settings.bootstrap_servers, topic, 1)
        worker.fire("demo", "hello", b"after it")
        found = [events.next_within(20) for _ in range(2)]
    values = {each.value: each.headers for each in found if each is not None}
    assert values.keys() == {b"v", b"after it"}
    assert [name for name, _ in values[b"v"]] == ["belfry-unreadable"]


def test_a_strangers_record_among_the_verdicts_ends_no_reader(
    client: Client, worker: FakeWorker
) -> None:
    lifecycle = worker.settings.topic("lifecycle")
    # The stranger's value holds what is waited for, so its headers are looked at.
    with client._answers.expecting("v"):
        send_raw(worker.settings.bootstrap_servers, lifecycle, 2)
        assert client.schedule("demo", "after", in_="1h").outcome == "ACCEPTED"
