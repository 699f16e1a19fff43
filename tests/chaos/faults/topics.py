"""The changelog is lost or cut off, the input is made anew; then somebody recovers.

Each strikes while no worker runs, amid events that have fired, are overdue, and wait.  What the
auditors of other scenes go by is in the topics that go here, so these are judged by what came out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka.admin import AdminClient

from tests.acceptance.harness.segments import batches
from tests.acceptance.harness.site import Site, wait_for
from tests.chaos.broker import READY_S, Brokers

ANSWER_S: Final = 20.0
PARTITIONS: Final = 4
KEPT: Final = 0.6
_LENGTH_AT: Final = 8
_HEAD: Final = 12

Strike = Callable[[Brokers, Site], None]


def lost(_brokers: Brokers, site: Site) -> None:
    """The changelog is deleted; the first worker to come makes a new one."""
    _delete(site, "changelog")


def made_anew(_brokers: Brokers, site: Site) -> None:
    """The input is deleted and made anew."""
    _delete(site, "schedules")
    site.schedules_topic()


def truncated(brokers: Brokers, site: Site) -> None:
    """The broker comes back without the end of the changelog, as after an unclean election."""
    node = brokers.nodes[0]
    node.stop()
    cut = [_cut(brokers, site.topic("changelog"), number) for number in range(PARTITIONS)]
    assert all(cut), cut
    for name in ("recovery-point-offset-checkpoint", ".kafka_cleanshutdown"):
        (brokers.log_dir / name).unlink(missing_ok=True)
    node.start().wait_ready(READY_S)


# What strikes, the code that every partition stops with, and what is chosen.
TOPIC_FAULTS: Final[Mapping[str, tuple[Strike, str, list[str]]]] = {
    "topic lost": (lost, "changelog_lost", ["--from", "local"]),
    "topic made anew": (made_anew, "input_anew", ["--accept-input"]),
    "log truncated": (truncated, "log_truncated", ["--from", "local"]),
}


def _delete(site: Site, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    topic = site.topic(name)
    admin.delete_topics([topic])[topic].result(ANSWER_S)
    wait_for("deletion", lambda: topic not in admin.list_topics(timeout=5).topics)


def _cut(brokers: Brokers, topic: str, partition: int) -> int:
    """Cut a partition's only segment off amid its batches; how many are gone."""
    folder = brokers.log_dir / f"{topic}-{partition}"
    (segment,) = sorted(folder.glob("*.log"))
    content = segment.read_bytes()
    there = len(batches(brokers.log_dir, topic, partition))
    at, kept = 0, int(there * KEPT)
    for _ in range(kept):
        at += _HEAD + int.from_bytes(content[at + _LENGTH_AT : at + _HEAD], "big")
    segment.write_bytes(content[:at])
    for index in (*folder.glob("*.index"), *folder.glob("*.timeindex"), *folder.glob("*.snapshot")):
        index.unlink()
    return there - kept
