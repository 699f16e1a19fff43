"""What is wrong around a worker whose partitions fire: each thing has a sentence and a metric."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from belfry.delivery.answers import Answer, End
from belfry.delivery.silent_hosts import SilentHosts
from belfry.engine.stale import NONE_STALE, StaleSchedules
from belfry.host.disk import MIB, DataDisk
from belfry.process.concerns import Concerns, nearly_full, stale_sentence
from belfry.settings import Settings
from belfry.telemetry.metrics import Metrics


def now() -> float:
    return 0.0


def opener(lookups: Any, away: str = "") -> Any:
    return SimpleNamespace(lookups=lookups, payloads=SimpleNamespace(away=away))


def concerns(
    tmp_path: Path, silent: SilentHosts, why: str = "", reserve_mb: int = 1, away: str = ""
) -> Concerns:
    lookups = SimpleNamespace(doubt=lambda: why)
    settings = Settings(
        data_dir=tmp_path,
        disk_reserve_mb=reserve_mb,
        registry_wait_ms=2_500,
        schema_registry_url="http://me:secret@r:8081",  # pragma: allowlist secret
    )
    return Concerns(settings, opener(lookups, away), silent, DataDisk(tmp_path))


def silent_host() -> SilentHosts:
    found = SilentHosts(now, now)
    found.after(Answer(End.POSTPONED, "http://h:1/x", "host_silent", "silent"))
    return found


def test_nothing_is_wrong(tmp_path: Path) -> None:
    assert concerns(tmp_path, SilentHosts(now, now)).found() == []


def test_a_worker_without_a_registry_asks_none(tmp_path: Path) -> None:
    disk = DataDisk(tmp_path)
    settings = Settings(data_dir=tmp_path)
    assert Concerns(settings, opener(None), SilentHosts(now, now), disk).found() == []


def test_a_registry_that_does_not_answer(tmp_path: Path) -> None:
    (found,) = concerns(tmp_path, SilentHosts(now, now), "ConnectError: refused").found()
    assert found.startswith("the schema registry does not answer lookups at http://r:8081 ")
    assert "(ConnectError: refused): start it, or mend its address" in found
    assert "secret" not in found
    assert found.count("answer") == 1
    assert "2.5 s (BELFRY_REGISTRY_WAIT_MS)" in found


def test_a_store_of_large_payloads_that_does_not_answer(tmp_path: Path) -> None:
    (found,) = concerns(tmp_path, SilentHosts(now, now), away="PermissionError: no").found()
    assert "(BELFRY_PAYLOAD_STORE) does not take any: PermissionError: no. " in found


def test_a_host_that_does_not_answer(tmp_path: Path) -> None:
    (found,) = concerns(tmp_path, silent_host()).found()
    assert "webhook hosts do not answer: h:1" in found


def test_a_disk_is_told_of_before_its_reserve_is_gone() -> None:
    def told(free_bytes: int, reserve_mb: int) -> str:
        disk: Any = SimpleNamespace(folder="/data", free_bytes=free_bytes)
        return nearly_full(disk, reserve_mb)

    assert told(128 * MIB, 64) == ""
    found = told(128 * MIB - 1, 64)
    assert found.startswith("the disk of /data has 127 MiB left; below 64 MiB ")
    assert told(0, 0) == ""


def test_a_disk_without_room_is_seen(tmp_path: Path) -> None:
    (found,) = concerns(tmp_path, SilentHosts(now, now), reserve_mb=1_000_000).found()
    assert f"the disk of {tmp_path} has" in found


def test_a_folder_that_is_gone_is_a_warning_and_no_error(tmp_path: Path) -> None:
    """Probes and scrapes ask for this: they are to be answered whatever the file system does."""
    registry = CollectorRegistry()
    gone = concerns(tmp_path / "gone", SilentHosts(now, now))
    (found,) = gone.found()
    assert found.startswith(f"the disk of {tmp_path}/gone cannot be looked at: FileNotFoundError")
    gone.show(Metrics(registry))
    assert registry.get_sample_value("belfry_disk_free_bytes") == 0


def test_what_a_look_finds_is_told_until_the_next_one(tmp_path: Path) -> None:
    disk = DataDisk(tmp_path / "data")
    (tmp_path / "data").mkdir()
    assert (disk.free_bytes, disk.problem != "") == (0, True)
    disk.look()
    assert (disk.free_bytes > MIB, disk.problem) == (True, "")


def test_all_of_it_is_measured(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    concerns(tmp_path, silent_host()).show(Metrics(registry))
    assert (registry.get_sample_value("belfry_disk_free_bytes") or 0) > MIB
    assert registry.get_sample_value("belfry_disk_reserve_bytes") == MIB
    assert registry.get_sample_value("belfry_webhook_hosts_silent") == 1


def test_stale_schedules_are_told_with_the_oldest_of_all_partitions() -> None:
    assert stale_sentence([NONE_STALE]) == []
    here = StaleSchedules(2, 1_800_000_000_000, "demo/a")
    there = StaleSchedules(1, 1_700_000_000_000, "shop/each day")
    (found,) = stale_sentence([here, NONE_STALE, there])
    assert found.startswith("3 recurring schedules have not fired though the rule says so; ")
    assert "shop/each day should have at 2023-11-14T22:13:20" in found
    assert "belfry schedule why shop 'each day'" in found
    assert stale_sentence([there])[0].startswith("1 recurring schedule has not fired")
