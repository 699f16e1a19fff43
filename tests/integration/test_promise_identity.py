"""A topic that was lost or made anew stops its partitions; what has fired stays fired."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from belfry.cli.entry import main
from belfry.kafka.anchors import anchors_of
from tests.acceptance.harness.failover import owned
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker
from tests.architecture.tree import ROOT

pytestmark = pytest.mark.slow

FIRED = 19
WAITING = 20
PAGE = ROOT / "docs" / "recovery.md"
TENANTS = tuple(f"t{number}" for number in range(8))


def command(site: Site, *arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BELFRY_BOOTSTRAP_SERVERS", site.bootstrap)
        patch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", site.prefix)
        patch.setenv("BELFRY_CLUSTER__APP_ID", site.name)
        return main(list(arguments))


def delete(site: Site, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    admin.delete_topics([site.topic(name)])[site.topic(name)].result(20)
    wait_for("deletion", lambda: site.topic(name) not in admin.list_topics(timeout=5).topics)


def ask(site: Site, stem: str, count: int, at_ms: int) -> None:
    """Requests of several tenants, so that each partition has some."""
    for number in range(count):
        tenant, name = TENANTS[number % len(TENANTS)], f"{stem}-{number}"
        value = request(tenant, name, at=at_ms, payload=name.encode())
        site.producer.produce(site.topic("schedules"), value, key=tenant.encode())
    site.producer.flush()


def fired(site: Site) -> Counter[str]:
    """How often each event came out, by stem and number."""
    return Counter((record.value or b"").decode() for record in site.fired(*TENANTS))


def all_of(stem: str, count: int) -> dict[str, int]:
    return {f"{stem}-{number}": 1 for number in range(count)}


def waiting(worker: Worker) -> int:
    _, page = worker.get("/metrics")
    return sum(
        int(float(line.rpartition(" ")[2]))
        for line in page.splitlines()
        if line.startswith("belfry_pending_schedules{")
    )


def settled(site: Site, worker: Worker) -> str:
    """What it says once it fires, or has stopped all of its partitions."""

    def answer() -> str:
        status, page = worker.get("/healthz/ready")
        done = status == 200 or page.count("Nothing is fired until") == 4
        return page if done else ""

    page = wait_for("a worker that fires or says why not", answer, 60)
    assert fired(site) == all_of("now", FIRED)
    return page


def begun(site: Site) -> Worker:
    """A worker that has fired some and keeps others, stopped in order."""
    site.fired_topics(TENANTS)
    worker = site.worker().start().wait_ready()
    ask(site, "now", FIRED, now_ms())
    ask(site, "later", WAITING, now_ms() + 3_600_000)
    wait_for("what is due", lambda: sum(fired(site).values()) == FIRED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", site.prefix)
        patch.setenv("BELFRY_CLUSTER__APP_ID", site.name)
        from belfry.settings import Settings

        anchors = anchors_of(Settings(bootstrap_servers=site.bootstrap))
    wait_for("anchors", lambda: all(anchors.read(number) for number in range(4)))
    assert worker.stop() == 0
    return worker


@pytest.mark.timeout(240)
def test_a_changelog_that_was_deleted_is_recovered_from_local_state(
    kafka: str, tmp_path: Path, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    with Site(kafka, unique("lost"), tmp_path) as site:
        worker = begun(site)
        delete(site, "changelog")
        stranger = site.worker().start()
        # This one has no local state: only the anchor tells it.
        assert settled(site, stranger).count("changelog_lost") == 4
        assert stranger.stop() == 0
        command(site, "doctor")
        assert capsys.readouterr().out.count("changelog_lost") == 4
        worker.start()
        assert settled(site, worker).count("changelog_lost") == 4
        from_local = ("recover", "--from", "local", "--data-dir", str(worker.data_dir))
        assert command(site, *from_local, "--apply") == 1
        assert "stop that one first" in capsys.readouterr().err
        assert worker.stop() == 0
        assert command(site, *from_local) == 1
        assert capsys.readouterr().out.count("would do") == 8
        stranger.start()
        assert settled(site, stranger).count("changelog_lost") == 4
        assert command(site, *from_local, "--apply") == 0
        assert capsys.readouterr().out.count("schedules wait, requests from") == 4
        # It looks again by itself, and needs no restart.
        stranger.wait_ready()
        assert waiting(stranger) == WAITING
        ask(site, "then", FIRED, now_ms())
        both = {**all_of("now", FIRED), **all_of("then", FIRED)}
        wait_for("new events", lambda: fired(site) == both)
        # The copy of before is set aside, not believed, by who has it.
        worker.start()
        wait_for("a share", lambda: len(owned(worker)) == 2, 60)
        assert command(site, "recover") == 0
        assert stranger.stop() == 0
        worker.wait_ready()
        assert waiting(worker) == WAITING
        assert fired(site) == both


@pytest.mark.timeout(240)
def test_an_input_that_was_made_anew_or_lost_requests_goes_on_where_somebody_says(
    kafka: str, tmp_path: Path, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    with Site(kafka, unique("anew"), tmp_path) as site:
        worker = begun(site)
        delete(site, "schedules")
        site.schedules_topic()
        # As many as would hide the old positions in the new topic.
        ask(site, "then", 50, now_ms())
        worker.start()
        assert settled(site, worker).count("input_anew") == 4
        assert command(site, "recover", "--apply") == 1
        assert "--accept-input" in capsys.readouterr().out
        assert command(site, "recover", "--accept-input", "--apply") == 0
        worker.wait_ready()
        both = {**all_of("now", FIRED), **all_of("then", 50)}
        wait_for("all that was asked for in the new topic", lambda: fired(site) == both)
        assert waiting(worker) == WAITING
        assert worker.stop() == 0
        ask(site, "gone", 40, now_ms())
        admin = AdminClient({"bootstrap.servers": site.bootstrap})
        places = [TopicPartition(site.topic("schedules"), number, -1) for number in range(4)]
        for answer in admin.delete_records(places).values():
            answer.result(20)
        capsys.readouterr()
        assert command(site, "recover") == 1
        ranges = set(re.findall(r"--accept-lost (\d+:\d+-\d+)", capsys.readouterr().out))
        assert ranges
        accepted = [word for each in ranges for word in ("--accept-lost", each)]
        assert command(site, "recover", *accepted, "--apply") == 0
        worker.start().wait_ready()
        assert fired(site) == both
        assert waiting(worker) == WAITING
        from_backup(site, worker, tmp_path / "belfry.jsonl")
        assert fired(site) == both
        commands_of_the_page(site, worker, tmp_path / "belfry.jsonl")


def from_backup(site: Site, worker: Worker, backup: Path) -> None:
    """The changelog is lost, and no local state is used."""
    assert command(site, "backup", str(backup)) == 0
    assert worker.stop() == 0
    delete(site, "changelog")
    assert command(site, "topics", "create") == 0
    assert command(site, "recover", "--backup", str(backup), "--apply") == 0
    worker.start().wait_ready()
    assert waiting(worker) == 0
    assert command(site, "restore", str(backup)) == 0
    assert waiting(worker) == WAITING


def commands_of_the_page(site: Site, worker: Worker, backup: Path) -> None:
    """Every command of the page is understood; where all is well, it changes nothing."""
    assert worker.stop() == 0
    words = {"DIR": str(worker.data_dir), "belfry.jsonl": str(backup)}
    commands = re.findall(r"^belfry (recover.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) == 8
    for line in commands:
        assert command(site, *(words.get(word, word) for word in line.split())) == 0, line
