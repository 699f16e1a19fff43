"""Credentials and certificates reach the registry's server as they were given."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import ssl
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from belfry.client.errors import BadProperty
from belfry.client.schemas import RegisteredSchemas
from belfry.host.file_watch import LOOK_S
from belfry.registry.addresses import shown
from belfry.registry.answers import RegistryAddressError, RegistryUnreachable
from belfry.registry.client import Registry
from belfry.registry.subjects import open_registry
from belfry.settings import Settings
from belfry.wire import catalogue

EXPECTED = "Basic " + b64encode(b"belfry:s3cret").decode()


class Guarded(BaseHTTPRequestHandler):
    """Knows schema 1, and tells it to those who have the password."""

    def do_GET(self) -> None:
        allowed = self.headers.get("Authorization") == EXPECTED
        body = json.dumps({"schema": catalogue.text("FiredEvent")} if allowed else {"error": "no"})
        self.send_response(200 if allowed else 401)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate that signs itself, for the loopback address, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "registry")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return paths


def test_a_password_is_passed_through(
    server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("BELFRY_SCHEMA_REGISTRY_URL", url)
    without = open_registry(Settings())
    assert without is not None
    assert isinstance(without.writer_schema(1), RegistryUnreachable)
    without.close()
    monkeypatch.setenv("BELFRY_REGISTRY__BASIC_AUTH_USER_INFO", "belfry:s3cret")
    registry = open_registry(Settings())
    assert registry is not None
    assert registry.writer_schema(1) == catalogue.schema("FiredEvent")
    registry.close()


def test_a_password_in_the_address_is_not_shown() -> None:
    registry = Registry("http://belfry:s3cret@127.0.0.1:1")
    answer = registry.writer_schema(1)
    assert isinstance(answer, RegistryUnreachable)
    assert "s3cret" not in registry.url + answer.reason
    registry.close()


@pytest.mark.parametrize("written", ["s@cret", "s%40cret", "s3%2Fcret,b", "%2Fs3cret"])
def test_nothing_of_a_password_is_shown_wherever_its_marks_stand(written: str) -> None:
    address = f"http://belfry:{written}@127.0.0.1:1/ccompat"
    if "," in written:
        assert "cret" not in shown(address)
        return
    registry = Registry(f"{address},https://other:{written}@h/x")
    assert registry.url == "http://127.0.0.1:1/ccompat,https://h/x"
    registry.close()


@pytest.mark.parametrize(
    "address",
    [
        "http://belfry:s3/cret@registry",
        "http://belfry:80/s3cret@registry",
        "http://belfry:s3#cret@registry",
        "http://belfry:s3?cret@registry",
        "http://belfry:s3,cret@registry",
        "belfry:s3cret@registry:8081",
        "http://:s3cret@",
    ],
)
def test_an_address_that_a_password_takes_apart_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(RegistryAddressError, match="write @ as %40") as refused:
        Registry(address)
    with pytest.raises(BadProperty) as told:
        RegisteredSchemas(address)
    for said in (str(refused.value), str(told.value), shown(address)):
        assert "s3" not in said
        assert "cret@" not in said


def test_a_certificate_is_checked_against_the_given_authority(
    server: ThreadingHTTPServer, tmp_path: Path
) -> None:
    cert, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = f"https://127.0.0.1:{server.server_port}"
    password = {"basic.auth.user.info": "belfry:s3cret"}
    stranger = Registry(url, password)
    assert isinstance(stranger.writer_schema(1), RegistryUnreachable)
    stranger.close()
    friend = Registry(url, {**password, "ssl.ca.location": str(cert)})
    assert friend.writer_schema(1) == catalogue.schema("FiredEvent")
    friend.close()


def test_an_authority_that_is_renewed_counts_without_a_restart(
    server: ThreadingHTTPServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(tmp_path))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    authority, now_s = tmp_path / "authority.pem", [0.0]
    (tmp_path / "earlier").mkdir()
    authority.write_bytes(certificate(tmp_path / "earlier")[0].read_bytes())
    properties = {"basic.auth.user.info": "belfry:s3cret", "ssl.ca.location": str(authority)}
    url = f"https://127.0.0.1:{server.server_port}"
    registry = Registry(url, properties, lambda: now_s[0])
    assert isinstance(registry.writer_schema(1), RegistryUnreachable)
    for content, expected in (
        (b"half of it", RegistryUnreachable),
        ((tmp_path / "cert.pem").read_bytes(), dict),
    ):
        authority.write_bytes(content)
        assert isinstance(registry.writer_schema(1), RegistryUnreachable)
        now_s[0] += LOOK_S
        assert isinstance(registry.writer_schema(1), expected)
    assert [str(authority) in each.getMessage() for each in caplog.records] == [True]
    registry.close()
