"""What is wrong around a worker whose partitions fire: each thing has a sentence and a metric."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from belfry.delivery.answers import Answer, End
from belfry.delivery.silent_hosts import SilentHosts
from belfry.process.concerns import MIB, Concerns, nearly_full
from belfry.settings import Settings
from belfry.telemetry.metrics import Metrics


def concerns(tmp_path: Path, silent: SilentHosts, why: str = "", reserve_mb: int = 1) -> Concerns:
    lookups: Any = SimpleNamespace(doubt=lambda: why)
    settings = Settings(data_dir=tmp_path, disk_reserve_mb=reserve_mb, registry_wait_ms=2_500)
    return Concerns(settings, lookups, silent)


def silent_host() -> SilentHosts:
    found = SilentHosts()
    found.after(Answer(End.POSTPONED, "http://h:1/x", "host_silent", "silent"))
    return found


def test_nothing_is_wrong(tmp_path: Path) -> None:
    assert concerns(tmp_path, SilentHosts()).found() == []


def test_a_worker_without_a_registry_asks_none(tmp_path: Path) -> None:
    assert Concerns(Settings(data_dir=tmp_path), None, SilentHosts()).found() == []


def test_a_registry_that_does_not_answer(tmp_path: Path) -> None:
    (found,) = concerns(tmp_path, SilentHosts(), "ConnectError: refused").found()
    assert found.startswith("the schema registry does not answer: ConnectError: refused. ")
    assert "2.5 s (BELFRY_REGISTRY_WAIT_MS)" in found


def test_a_host_that_does_not_answer(tmp_path: Path) -> None:
    (found,) = concerns(tmp_path, silent_host()).found()
    assert "webhook hosts do not answer: h:1" in found


def test_a_disk_is_told_of_before_its_reserve_is_gone() -> None:
    assert nearly_full(Path("/data"), 128 * MIB, 64) == ""
    found = nearly_full(Path("/data"), 128 * MIB - 1, 64)
    assert found.startswith("the disk of /data has 127 MiB left; below 64 MiB ")
    assert nearly_full(Path("/data"), 0, 0) == ""


def test_a_disk_without_room_is_seen(tmp_path: Path) -> None:
    (found,) = concerns(tmp_path, SilentHosts(), reserve_mb=1_000_000).found()
    assert f"the disk of {tmp_path} has" in found


def test_all_of_it_is_measured(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    concerns(tmp_path, silent_host()).show(Metrics(registry))
    assert (registry.get_sample_value("belfry_disk_free_bytes") or 0) > MIB
    assert registry.get_sample_value("belfry_disk_reserve_bytes") == MIB
    assert registry.get_sample_value("belfry_webhook_hosts_silent") == 1
