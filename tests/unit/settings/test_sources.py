"""Settings: where they come from, which source wins, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from pydantic import BaseModel, ValidationError
from pydantic_settings import SettingsError

from belfry.cli.failures import tell
from belfry.settings import (
    ClusterSettings,
    CommandSettings,
    DeliverySettings,
    Settings,
    plain,
    property_name,
)
from belfry.settings.cluster import AgreedSettings


@pytest.fixture(autouse=True)
def _no_file_no_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("BELFRY_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_defaults_reach_a_local_broker() -> None:
    settings = Settings()
    assert settings.bootstrap_servers == "127.0.0.1:9092"
    assert settings.http_host == "127.0.0.1"
    assert settings.http_port == 8700
    assert settings.topic("schedules") == "belfry.schedules"


def test_variables_win_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "belfry.toml").write_text(
        "http_port = 1234\nfire_chunk = 7\n[cluster]\npartitions = 3"
    )
    monkeypatch.setenv("BELFRY_HTTP_PORT", "4321")
    settings = Settings()
    assert (settings.http_port, settings.fire_chunk, settings.cluster.partitions) == (4321, 7, 3)


def test_the_file_may_lie_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("http_port = 1")
    monkeypatch.setenv("BELFRY_CONFIG_FILE", str(tmp_path / "other.toml"))
    assert Settings().http_port == 1


def test_arguments_win_over_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELFRY_HTTP_PORT", "4321")
    assert Settings(http_port=5).http_port == 5


def test_any_librdkafka_property_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELFRY_BOOTSTRAP_SERVERS", "kafka:9092")
    monkeypatch.setenv("BELFRY_KAFKA__SECURITY_PROTOCOL", "SASL_SSL")
    assert Settings().kafka_properties() == {
        "bootstrap.servers": "kafka:9092",
        "reconnect.backoff.max.ms": 500,
        "security.protocol": "SASL_SSL",
    }


def test_a_broker_that_is_back_is_used_within_half_a_second_unless_an_operator_says_otherwise() -> (
    None
):
    """librdkafka's own limit is 10 s: a restart would last as much longer for each client."""
    backoff = "reconnect.backoff.max.ms"
    assert Settings().kafka_properties()[backoff] == 500
    assert Settings(kafka={backoff: 2_000}).kafka_properties()[backoff] == 2_000


@pytest.mark.parametrize("given", [{"RECONNECT_BACKOFF_MS": "2000"}, {"reconnect.backoff.ms": 100}])
def test_a_client_takes_an_operators_first_wait_for_a_broker(given: dict[str, Any]) -> None:
    """librdkafka refuses one that is longer than the longest."""
    AdminClient(Settings(kafka=given).kafka_properties())
    longest = {"reconnect.backoff.max.ms": 9_000}
    found = Settings(kafka=given | longest).kafka_properties()
    assert found["reconnect.backoff.max.ms"] == 9_000


def test_a_property_may_keep_its_own_name() -> None:
    assert Settings(kafka={"linger.ms": 5}).kafka_properties()["linger.ms"] == 5
    assert property_name("SASL_MECHANISM") == "sasl.mechanism"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BELFRY_HTTP_PORT", "65536"),
        ("BELFRY_SESSION_TIMEOUT_MS", "999"),
        ("BELFRY_LOG_LEVEL", "loud"),
        ("BELFRY_CLUSTER__TOPIC_PREFIX", "no spaces"),
        ("BELFRY_CLUSTER__PARTITIONS", "0"),
    ],
)
def test_values_out_of_bounds_are_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError) as refused:
        Settings()
    assert value in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTP_WORKER_SECRET", "hunter2"),
        ("HTTP_WORKER_SECRET_ALSO", "hunter2"),
        ("WEBHOOK_SECRETS", '["hunter2"]'),
        ("WEBHOOK_SECRETS", '{"a": ["hunter2"]}'),
        ("WEBHOOK_SECRETS", '"hunter2"'),
        ("WEBHOOK_SECRETS", "hunter2"),
        ("SECRETS", '{"mail": 7, "hunter2": 7}'),
        ("KAFKA", '["hunter2"]'),
        ("REGISTRY", '{"BASIC_AUTH_USER_INFO": ["hunter2"]}'),
    ],
)
def test_a_secret_that_is_not_accepted_is_not_shown(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(f"BELFRY_{name}", value)
    kind = CommandSettings if name == "SECRETS" else Settings
    with pytest.raises((ValidationError, SettingsError)) as refused:
        kind()
    assert tell(refused.value) == 2
    said = capsys.readouterr().err
    assert f"BELFRY_{name}" in said
    if name != "SECRETS":
        assert "hunter2" not in said + str(refused.value) + repr(refused.value)


def test_what_is_wrong_with_a_secret_is_said_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BELFRY_HTTP_WORKER_SECRET", "hunter2")
    with pytest.raises(ValidationError) as refused:
        Settings()
    tell(refused.value)
    assert capsys.readouterr().err == (
        "belfry: setting http_worker_secret (BELFRY_HTTP_WORKER_SECRET) is a value that is not"
        " shown: it has 7 characters; 16 or more are needed.\n"
    )


def test_settings_show_no_secret() -> None:
    secret = "hunter2hunter2hunter2"
    settings = Settings(
        http_worker_secret=secret,
        http_worker_secret_also=secret,
        http_api_keys=secret,
        webhook_secrets={"mail": secret},
        kafka={"sasl.password": secret},
        registry={"basic.auth.user.info": f"u:{secret}"},
        schema_registry_url=f"http://u:{secret}@registry",
    )
    command = CommandSettings(http_token=secret, secrets={"mail": secret})
    assert "hunter2" not in f"{settings!r} {settings} {[settings]} {command!r} {command}"
    assert plain(command.secrets) == {"mail": secret}


def test_a_process_reads_what_concerns_it_from_what_all_of_them_share(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "belfry.toml").write_text('fire_chunk = 7\nhttp_url = "http://w"\n')
    monkeypatch.setenv("BELFRY_BATCH_RECORDS", "no number")
    monkeypatch.setenv("BELFRY_OWN_TOPICS", "true")
    command = CommandSettings()
    assert (command.http_url, command.own_topics) == ("http://w", True)
    assert not hasattr(command, "fire_chunk")
    assert not hasattr(DeliverySettings(), "batch_records")
    with pytest.raises(ValidationError, match="batch_records"):
        Settings()


def test_an_argument_that_a_process_does_not_have_is_refused() -> None:
    of_a_command: dict[str, Any] = {"http_url": "http://w"}
    with pytest.raises(ValidationError, match="http_url"):
        Settings(**of_a_command)


def test_settings_are_values() -> None:
    settings = Settings()
    with pytest.raises(ValidationError):
        settings.http_port = 1  # type: ignore[misc]


def test_the_fingerprint_knows_every_cluster_setting() -> None:
    plain = Settings().cluster_fingerprint()
    assert Settings(cluster=ClusterSettings()).cluster_fingerprint() == plain
    assert Settings(cluster=ClusterSettings(partitions=5)).cluster_fingerprint() != plain
    assert Settings(http_port=1).cluster_fingerprint() == plain


@pytest.mark.parametrize("settings", [Settings, CommandSettings, AgreedSettings, ClusterSettings])
def test_every_setting_has_a_sentence(settings: type[BaseModel]) -> None:
    for name, info in settings.model_fields.items():
        if name != "cluster":
            assert info.description, name
            assert info.description.endswith("."), name
