"""A worker that must not run says so in a sentence, and ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from tests.acceptance.harness.site import Site, now_ms

pytestmark = pytest.mark.slow


@pytest.fixture
def site(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> Site:
    """A belfry without workers."""
    return Site(kafka, unique("refused"), tmp_path)


def test_a_data_directory_that_is_in_use(site: Site) -> None:
    with site:
        first = site.worker().start().wait_ready()
        second = site.worker(DATA_DIR=str(first.data_dir)).start()
        assert second.wait_end() == 1
        said = second.said()
        assert f"{first.data_dir} is in use by process {first.child.pid}" in said
        assert "BELFRY_DATA_DIR" in said
        assert "Traceback" not in said
        site.ask("t", "x", at=now_ms(), payload=b"1")
        assert len(site.wait_fired("t", 1)) == 1


def test_cluster_settings_that_differ(site: Site) -> None:
    """The second worker ends, and the first one goes on as if nothing had been."""
    with site:
        first = site.worker().start().wait_ready()
        second = site.worker(CLUSTER__PARTITIONS="8").start()
        assert second.wait_end() == 1
        said = second.said()
        assert "cluster settings differ" in said
        assert "BELFRY_CLUSTER__PARTITIONS is 8" in said
        assert "Traceback" not in said
        first.wait_ready()
        site.ask("t", "x", at=now_ms(), payload=b"1")
        assert len(site.wait_fired("t", 1)) == 1


def test_topics_that_are_missing(site: Site) -> None:
    with site:
        worker = site.worker(CREATE_TOPICS="false").start()
        assert worker.wait_end() == 1
        said = worker.said()
        for name in ("schedules", "rejected", "lifecycle", "changelog"):
            assert site.topic(name) in said
        assert "Traceback" not in said


def test_a_request_topic_whose_clock_is_the_producers(site: Site) -> None:
    with site:
        site.create_topics([site.topic("schedules")], {"message.timestamp.type": "CreateTime"})
        worker = site.worker().start()
        assert worker.wait_end() == 1
        assert "message.timestamp.type is CreateTime" in worker.said()


def test_a_changelog_that_was_given_more_partitions(site: Site) -> None:
    """Homes are found by the number of its partitions: schedules would be looked for elsewhere."""
    with site:
        site.worker().start().wait_ready().stop()
        admin = AdminClient({"bootstrap.servers": site.bootstrap})
        more = [NewPartitions(site.topic("changelog"), 6)]
        for future in admin.create_partitions(more).values():
            future.result(10)
        worker = site.worker().start()
        assert worker.wait_end() == 1
        assert "changelog has 6 partitions" in worker.said()
        assert "Traceback" not in worker.said()


def test_a_changelog_that_forgets(site: Site) -> None:
    with site:
        stamped = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete"}
        site.create_topics([site.topic("changelog")], stamped)
        worker = site.worker().start()
        assert worker.wait_end() == 1
        assert "cleanup.policy is delete; it has to be compact" in worker.said()
