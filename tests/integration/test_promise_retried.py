"""A consumer that puts back what it could not handle gets it again, counted, until it is given up.

It has a producer and no library of belfry's, and its worker is killed in between.  What is given up
is in a topic of its tenant's own, where there is one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient

from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.site import Site

pytestmark = pytest.mark.slow

RECORDS: Final = 30
LETTERS: Final = "dead-letters"
RETRY: Final = ("belfry-retry", b"first=300ms factor=2 attempts=3 jitter=20%")


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A belfry with one worker."""
    name = f"retried-{uuid.uuid4().hex[:8]}"
    with Site(kafka, name, tmp_path_factory.mktemp("retried")) as site:
        site.create_topics([site.topic(f"{LETTERS}.retried")], {})
        site.worker().start().wait_ready()
        yield site


def put_back(site: Site, record: Record) -> None:
    """What the consumer does: all as it came, and one header more."""
    headers = [*record.headers, RETRY]
    site.send(record.value, key=record.key, headers=headers)


def test_each_record_is_tried_as_often_as_its_header_says_and_is_a_dead_letter_then(
    site: Site,
) -> None:
    for number in range(RECORDS):
        name = f"charges/0/{number}".encode()
        names = [("belfry-tenant", b"retried"), ("belfry-id", name), ("mine", b"1")]
        site.send(b"card %d" % number, key=b"%d" % number, headers=[*names, RETRY])
    first = site.wait_fired("retried", RECORDS)
    site.workers[0].kill()
    for record in first:
        # Twice: the consumer died before it had committed its offset.
        put_back(site, record)
        put_back(site, record)
    site.worker().start().wait_ready()
    second = site.wait_fired("retried", 2 * RECORDS)
    for record in (each for each in second if each.header("retry-attempt") == b"2"):
        put_back(site, record)
        put_back(site, record)
    letters = site.wait_read(
        "dead letters", "rejected", lambda found: found if len(found) >= RECORDS else []
    )
    assert {each.header("belfry-error-code") for each in letters} == {b"retries_exhausted"}
    assert {each.header("belfry-error-tenant") for each in letters} == {b"retried"}
    expected = sorted((b"%d" % number, b"card %d" % number) for number in range(RECORDS))
    assert sorted((each.key, each.value) for each in letters) == expected
    own = site.read(site.topic(f"{LETTERS}.retried"))
    assert sorted((each.key, each.value) for each in own) == expected
    assert {each.header("retry-attempt") for each in own} == {b"3"}
    assert {each.header("belfry-error-code") for each in own} == {b"retries_exhausted"}
    assert {each.header("mine") for each in own} == {b"1"}
    fired = site.fired("retried")
    for count in (b"1", b"2"):
        found = [each for each in fired if each.header("retry-attempt") == count]
        assert sorted((each.key, each.value) for each in found) == expected
        assert {each.header("mine") for each in found} == {b"1"}
    assert len(fired) == 2 * RECORDS


def once(site: Site, number: int) -> None:
    """A record of tenant `gone` that has no try left from the first one on."""
    names = [("belfry-tenant", b"gone"), ("belfry-id", b"%d" % number)]
    site.send(b"%d" % number, key=b"k", headers=[*names, ("belfry-retry", b"attempts=1")])


def test_a_topic_of_dead_letters_that_goes_costs_no_record_and_one_that_comes_is_found(
    site: Site,
) -> None:
    topic = site.topic(f"{LETTERS}.gone")

    def refused(number: int) -> list[Record]:
        """The refusals of tenant `gone`, once there are so many."""

        def enough(found: list[Record]) -> list[Record]:
            mine = [each for each in found if each.header("belfry-error-tenant") == b"gone"]
            return mine if len(mine) >= number else []

        return site.wait_read("refusals", "rejected", enough)

    once(site, 0)
    assert [each.value for each in refused(1)] == [b"0"]
    site.create_topics([topic], {})
    sent = 1
    while not site.read(topic):
        once(site, sent)
        sent += 1
        assert len(refused(sent)) == sent
    first = [each.value for each in site.read(topic)]
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    admin.delete_topics([topic])[topic].result(20)
    for _ in range(3):
        once(site, sent)
        sent += 1
    # Each has its outcome, and in their order, whatever became of the topic.
    values = [each.value for each in refused(sent)]
    assert values == [b"%d" % number for number in range(sent)]
    assert set(first) <= set(values)
