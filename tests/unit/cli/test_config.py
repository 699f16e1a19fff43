"""`belfry config show`: each setting, and the place that it comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from belfry.cli.entry import main
from belfry.settings.sources import CONFIG_FILE, NOT_SHOWN


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file and variables that say something, in part of the same settings."""
    file = tmp_path / "b.toml"
    file.write_text('standbys = 2\nhttp_port = 9\n[cluster]\napp_id = "filed"\npartitions = 8\n')
    monkeypatch.setenv(CONFIG_FILE, str(file))
    monkeypatch.setenv("BELFRY_CLUSTER__PARTITIONS", "12")
    monkeypatch.setenv("BELFRY_HTTP_PORT", "8800")
    monkeypatch.setenv("BELFRY_HTTP_WORKER_SECRET", "a secret of the workers")
    monkeypatch.setenv("BELFRY_KAFKA__SASL_PASSWORD", "another secret")


def shown(capsys: pytest.CaptureFixture[str], *given: str) -> dict[str, tuple[Any, str]]:
    assert main(["config", "show", "-o", "json", *given]) == 0
    told = json.loads(capsys.readouterr().out)
    return {each["name"]: (each["value"], each["source"]) for each in told}


def test_each_value_has_its_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = str(tmp_path / "b.toml")
    found = shown(capsys, "--bootstrap-servers", "k:1", "-X", "client.rack=here")
    assert found == {
        "bootstrap_servers": ("k:1", "option"),
        "kafka.client_rack": (NOT_SHOWN, "option"),
        "kafka.sasl_password": (NOT_SHOWN, "BELFRY_KAFKA__SASL_PASSWORD"),
        "cluster.app_id": ("filed", file),
        "cluster.partitions": (12, "BELFRY_CLUSTER__PARTITIONS"),
        "http_port": (8800, "BELFRY_HTTP_PORT"),
        "http_worker_secret": (NOT_SHOWN, "BELFRY_HTTP_WORKER_SECRET"),
        "standbys": (2, file),
    }


def test_all_are_those_of_the_process(capsys: pytest.CaptureFixture[str]) -> None:
    worker, commands = (shown(capsys, "--all", "--of", of) for of in ("worker", "commands"))
    assert worker["batch_records"] == (8_000, "default")
    assert "batch_records" not in commands
    assert commands["http_url"] == ("http://127.0.0.1:8700", "default")


def test_people_get_a_heading_and_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "--all"]) == 0
    told = capsys.readouterr()
    assert told.err.split() == ["setting", "value", "from"]
    assert "secret of the workers" not in told.out
    assert "another secret" not in told.out
    (line,) = [each for each in told.out.splitlines() if each.startswith("cluster.partitions ")]
    assert line.split() == ["cluster.partitions", "12", "BELFRY_CLUSTER__PARTITIONS"]


def test_nothing_given_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(CONFIG_FILE, str(tmp_path / "none.toml"))
    for name in ("CLUSTER__PARTITIONS", "HTTP_PORT", "HTTP_WORKER_SECRET", "KAFKA__SASL_PASSWORD"):
        monkeypatch.delenv(f"BELFRY_{name}")
    assert main(["config", "show"]) == 0
    assert "as by default" in capsys.readouterr().err


def test_the_password_of_an_address_is_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELFRY_OTLP_URL", "https://me:word@otlp.example.com/v1")
    assert shown(capsys)["otlp_url"][0] == f"https://{NOT_SHOWN}@otlp.example.com/v1"
