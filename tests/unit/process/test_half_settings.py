"""A configuration that would leave open what somebody wanted closed is refused at start."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from belfry import assembly
from belfry.process.half_settings import half_settings
from belfry.settings import Settings
from tests.unit.registry.test_credentials import certificate

KEYS = '[{"name": "a", "sha256": "' + "0" * 64 + '", "tenants": ["a"]}]'
SECRET = "what all of the workers know"


@pytest.fixture(autouse=True)
def _no_file_no_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("BELFRY_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"http_api_keys": KEYS},
        {"http_api_keys": KEYS, "http_host": "::1"},
        {"http_api_keys": KEYS, "http_host": "0.0.0.0", "http_plaintext": "allowed"},
        {"claims": "signed", "http_worker_secret": SECRET},
        {"oidc_issuer": "https://id.example.com", "oidc_audience": "us"},
    ],
)
def test_a_whole_configuration_may_start(given: dict[str, Any]) -> None:
    assert half_settings(Settings(**given)) == ""


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"claims": "signed"}, "BELFRY_HTTP_WORKER_SECRET is not set"),
        ({"http_worker_secret_also": SECRET}, "BELFRY_HTTP_WORKER_SECRET is not"),
        ({"schema_registry_url": "http://u:a/b@registry"}, "write @ as %40"),
        ({"http_tls_certificate": Path("a.pem")}, "BELFRY_HTTP_TLS_KEY is not"),
        ({"http_tls_key": Path("a.pem")}, "BELFRY_HTTP_TLS_CERTIFICATE is not"),
        ({"http_api_keys": KEYS, "http_host": "0.0.0.0"}, "BELFRY_HTTP_PLAINTEXT=allowed"),
        ({"oidc_issuer": "https://id", "http_host": "10.0.0.1"}, "BELFRY_HTTP_PLAINTEXT=allowed"),
        ({"oidc_jwks_url": "https://id/keys"}, "BELFRY_OIDC_ISSUER is not"),
        ({"checkpoint_store": "nosuch://b"}, "BELFRY_CHECKPOINT_STORE cannot be used"),
        ({"key_group_moves": True}, "BELFRY_KEY_GROUP_MOVES is true, and"),
        ({"checkpoint_peers": "always"}, "BELFRY_CHECKPOINT_PEERS is always, and"),
        ({"payload_store": "nosuch://b"}, "BELFRY_PAYLOAD_STORE cannot be used"),
        ({"day_store": "nonsense"}, "BELFRY_DAY_STORE cannot be used: it is 'nonsense'"),
    ],
)
def test_half_of_one_may_not(given: dict[str, Any], names: str) -> None:
    assert names in half_settings(Settings(**given))


@pytest.mark.parametrize(
    "name",
    [
        "HTTP_API_KEYS",
        "HTTP_API_KEYS_FILE",
        "OIDC_ISSUER",
        "HTTP_TLS_CERTIFICATE",
        "HTTP_TLS_KEY",
        "SECRETS_DIR",
        "HTTP_TLS_AUTHORITIES",
        "CHECKPOINT_STORE",
    ],
)
@pytest.mark.parametrize("value", ["", "  "])
def test_a_secret_that_was_not_injected_opens_nothing(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"BELFRY_{name}", value)
    assert half_settings(Settings()).startswith(f"BELFRY_{name} is empty")


def test_all_that_is_wrong_is_said_at_once() -> None:
    said = half_settings(Settings(claims="signed", http_tls_key=Path("k.pem")))
    assert "BELFRY_HTTP_WORKER_SECRET" in said
    assert "BELFRY_HTTP_TLS_CERTIFICATE" in said


def test_a_certificate_is_tried(tmp_path: Path) -> None:
    chain, key = certificate(tmp_path)
    given: dict[str, Any] = {"http_tls_certificate": chain, "http_tls_key": key}
    assert half_settings(Settings(**given, http_host="0.0.0.0", http_api_keys=KEYS)) == ""
    both = tmp_path / "both.pem"
    both.write_bytes(chain.read_bytes() + key.read_bytes())
    assert half_settings(Settings(http_tls_certificate=both, http_tls_key=both)) == ""
    assert "cannot be used" in half_settings(Settings(**{**given, "http_tls_key": chain}))
    assert half_settings(Settings(http_tls_authorities=chain)) == ""
    said = half_settings(Settings(http_tls_authorities=key))
    assert said.startswith(f"BELFRY_HTTP_TLS_AUTHORITIES ({key}) cannot be used: ")
    missing: dict[str, Any] = {**given, "http_tls_key": tmp_path / "none.pem"}
    assert "No such file" in half_settings(Settings(**missing))


def test_the_worker_does_not_start_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("belfry.telemetry.logs.configure", lambda _: None)
    monkeypatch.setattr(assembly, "server_of", None)
    with capture_logs() as told:
        assert assembly.run_worker(Settings(claims="signed")) == 1
    assert [each["event"] for each in told] == ["refused to start"]
    assert "BELFRY_HTTP_WORKER_SECRET" in told[0]["reason"]
