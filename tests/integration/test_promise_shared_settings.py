"""Workers that differ in what they share say so with both values, or do not start."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from belfry.cli.entry import main
from tests.acceptance.harness.failover import divided, owned
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker

pytestmark = pytest.mark.slow

OLD = "the old secret of the workers"
NEW = "the new secret of the workers"
DIFFERS = "BELFRY_LIFECYCLE is ALL here, and was kept as FAILURES"


@pytest.fixture
def site(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> Site:
    """A belfry without workers."""
    return Site(kafka, unique("shared"), tmp_path)


def doctor(site: Site, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    """What `belfry doctor` says of settings, without the address of a worker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BELFRY_BOOTSTRAP_SERVERS", site.bootstrap)
        patch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", site.prefix)
        patch.setenv("BELFRY_CLUSTER__APP_ID", site.name)
        capsys.readouterr()
        main(["doctor", "-o", "jsonl"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if line["check"] == "settings"]


def said_of_settings(worker: Worker) -> list[str]:
    """The differences in a worker's whole log."""
    lines = worker.log.read_text("utf-8").splitlines()
    told = [json.loads(line) for line in lines if "a setting differs" in line]
    return [line["told"] for line in told]


def agreed(site: Site, capsys: pytest.CaptureFixture[str]) -> bool:
    """Whether owners of all partitions have said the same."""
    return [line["status"] for line in doctor(site, capsys)] == ["ok"] and (
        "4 of 4" in doctor(site, capsys)[0]["detail"]
    )


def told_apart(
    site: Site, capsys: pytest.CaptureFixture[str], first: Worker, second: Worker
) -> bool:
    """Whether the doctor says of each partition what its owner, who may just have changed, has."""
    risks = [line["detail"] for line in doctor(site, capsys) if line["status"] == "risk"]
    kept = {"FAILURES": owned(first), "ALL": owned(second)}
    wanted = [f"{value} at {_partitions(of)}" for value, of in kept.items()]
    return len(risks) == 1 and all(each in risks[0] for each in wanted)


def _partitions(of: set[int]) -> str:
    return f"partition{'s' if len(of) > 1 else ''} {', '.join(map(str, sorted(of)))}"


@pytest.mark.timeout(240)
def test_a_rolling_restart_is_said_by_each_worker_and_shown_until_it_is_over(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    with site:
        first = site.worker().start().wait_ready()
        wait_for("all to be said", lambda: agreed(site, capsys))
        second = site.worker(LIFECYCLE="ALL").start()
        wait_for("both to have a share", lambda: divided([first, second]), 60)
        # At start, and not once more for each of the two partitions.
        assert said_of_settings(second).count(DIFFERS) in (1, 2)
        assert set(said_of_settings(second)) == {DIFFERS}
        assert said_of_settings(first) == []
        wait_for("doctor to name the owners", lambda: told_apart(site, capsys, first, second))
        assert first.stop() == 0
        first.settings["BELFRY_LIFECYCLE"] = "ALL"
        first.start()
        wait_for("both to have a share", lambda: divided([first, second]), 60)
        wait_for("all to be the same", lambda: agreed(site, capsys))
        site.ask("t", "x", at=now_ms(), payload=b"1")
        assert len(site.wait_fired("t", 1)) == 1


@pytest.mark.timeout(240)
def test_another_secret_is_refused_beside_others_and_changed_in_rounds(site: Site) -> None:
    with site:
        first = site.worker(HTTP_WORKER_SECRET=OLD).start().wait_ready()
        stranger = site.worker(HTTP_WORKER_SECRET=NEW)
        wait_for("a start that is refused", lambda: refused(stranger), 60)
        said = stranger.said()
        assert "BELFRY_HTTP_WORKER_SECRET is a secret of digest" in said
        assert "here, and was kept as a secret of digest" in said
        assert "three rounds" not in said
        assert "docs/workers.md" in said
        assert OLD not in said
        assert NEW not in said
        assert "Traceback" not in said
        first.wait_ready()
        assert owned(first) == {0, 1, 2, 3}
        # In rounds, it is changed beside the one that runs.
        stranger.settings["BELFRY_HTTP_WORKER_SECRET"] = OLD
        stranger.settings["BELFRY_HTTP_WORKER_SECRET_ALSO"] = NEW
        stranger.start()
        wait_for("both to have a share", lambda: divided([first, stranger]), 60)
        assert first.stop() == 0
        wait_for("it to own all", lambda: owned(stranger) == {0, 1, 2, 3}, 60)
        # Where nobody runs any more, any secret is taken.
        assert stranger.stop() == 0
        first.settings["BELFRY_HTTP_WORKER_SECRET"] = "a third secret of the workers"
        first.start().wait_ready()
        site.ask("t", "x", at=now_ms(), payload=b"1")
        assert len(site.wait_fired("t", 1)) == 1


def refused(worker: Worker) -> bool:
    """Start a worker; whether it ended by itself. The first owner may not have said all yet."""
    worker.start()
    wait_for("an end or a share", lambda: worker.child.exit_code() is not None or worker.ready, 60)
    if worker.child.exit_code() is None:
        worker.stop()
        return False
    assert worker.child.exit_code() == 1
    return True


def test_a_name_that_nobody_knows_ends_a_worker_with_code_2(site: Site) -> None:
    with site:
        worker = site.worker(BATCH_RECORD="5", KAFKA__LINGER_MSS="5").start()
        assert worker.wait_end() == 2
        said = worker.said()
        assert "BELFRY_BATCH_RECORD is no setting" in said
        assert "did you mean BELFRY_BATCH_RECORDS?" in said
        assert "did you mean BELFRY_KAFKA__LINGER_MS?" in said
        assert "Traceback" not in said
