"""The group's client trusts, shows and says what librdkafka's properties say."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from belfry.kafka.security import BadSecurity, group_client_security

PEM = serialization.Encoding.PEM
SECRET = "hunter2hunter2"


@dataclass(frozen=True)
class Signed:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(PEM).decode()

    def key_pem(self, password: str = "") -> str:
        locked: Any = serialization.NoEncryption()
        if password:
            locked = serialization.BestAvailableEncryption(password.encode())
        form = serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(PEM, form, locked).decode()


def signed(name: str, by: Signed | None = None, address: str = "127.0.0.1") -> Signed:
    """A certificate for an address, by an authority or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
        .add_extension(place, critical=False)
        .sign(by.key if by else key, hashes.SHA256())
    )
    return Signed(made, key)


@pytest.fixture(scope="module")
def authority() -> Signed:
    return signed("authority")


@pytest.fixture(scope="module")
def user(authority: Signed) -> Signed:
    return signed("user", authority)


def context_of(**given: object) -> ssl.SSLContext:
    properties = {name.replace("_", "."): value for name, value in given.items()}
    found = group_client_security({"security.protocol": "SSL", **properties})
    context: ssl.SSLContext = found["ssl_context"]
    return context


def shake_hands(client: ssl.SSLContext, broker: ssl.SSLContext, host: str = "127.0.0.1") -> str:
    """Whom the broker sees after a handshake in memory; ssl.SSLError where there is none."""
    to_broker, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_broker, server_hostname=host)
    theirs = broker.wrap_bio(to_broker, to_client, server_side=True)
    for _ in range(4):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    # With TLS 1.3 a client is done before the broker has judged its certificate.
    shown: Any = theirs.getpeercert() or {}
    names = dict(pair for (pair,) in shown.get("subject", ()))
    return str(names.get("commonName", ""))


@pytest.fixture
def broker(authority: Signed, tmp_path: Path) -> ssl.SSLContext:
    """What a broker has that asks for a certificate."""
    own = signed("broker", authority)
    place = tmp_path / "broker.pem"
    place.write_text(own.pem + own.key_pem())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place)
    context.load_verify_locations(cadata=authority.pem)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


@pytest.fixture(params=["pem", "location"])
def trust(request: pytest.FixtureRequest, authority: Signed, tmp_path: Path) -> dict[str, str]:
    if request.param == "pem":
        return {"ssl_ca_pem": authority.pem}
    place = tmp_path / "ca.pem"
    place.write_text(authority.pem)
    return {"ssl_ca_location": str(place)}


def test_who_is_trusted_is_believed(broker: ssl.SSLContext, trust: dict[str, str]) -> None:
    assert shake_hands(context_of(**trust), broker) == ""


def test_who_is_not_trusted_is_not(broker: ssl.SSLContext) -> None:
    stranger = signed("stranger")
    for given in ({"ssl_ca_pem": stranger.pem}, {}):
        with pytest.raises(ssl.SSLError, match="verify failed"):
            shake_hands(context_of(**given), broker)


def test_a_name_is_looked_at_unless_it_is_not_to_be(
    broker: ssl.SSLContext, authority: Signed
) -> None:
    trusting = {"ssl_ca_pem": authority.pem}
    with pytest.raises(ssl.SSLError, match="match"):
        shake_hands(context_of(**trusting), broker, "127.0.0.2")
    unnamed = {**trusting, "ssl_endpoint_identification_algorithm": "none"}
    assert shake_hands(context_of(**unnamed), broker, "127.0.0.2") == ""


@pytest.mark.parametrize("given", ["false", "False", False])
def test_verification_can_be_left_out(broker: ssl.SSLContext, given: object) -> None:
    context = context_of(enable_ssl_certificate_verification=given)
    assert shake_hands(context, broker, "127.0.0.2") == ""


@pytest.mark.parametrize("form", ["texts", "locked texts", "files", "locked files", "keystore"])
def test_what_is_shown_is_whose_it_is(
    form: str, broker: ssl.SSLContext, authority: Signed, user: Signed, tmp_path: Path
) -> None:
    password = SECRET if "locked" in form else ""
    given: dict[str, object] = {"ssl_ca_pem": authority.pem}
    if password:
        given["ssl_key_password"] = password
    if "texts" in form:
        given |= {"ssl_certificate_pem": user.pem, "ssl_key_pem": user.key_pem(password)}
    elif "files" in form:
        chain, key = tmp_path / "user.pem", tmp_path / "user.key"
        chain.write_text(user.pem)
        key.write_text(user.key_pem(password))
        given |= {"ssl_certificate_location": chain, "ssl_key_location": key}
    else:
        locked = serialization.BestAvailableEncryption(SECRET.encode())
        place = tmp_path / "user.p12"
        place.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"user", user.key, user.certificate, [authority.certificate], locked
            )
        )
        given |= {"ssl_keystore_location": place, "ssl_keystore_password": SECRET}
    assert shake_hands(context_of(**given), broker) == "user"


def test_a_key_leaves_nothing_behind(
    user: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    context_of(ssl_certificate_pem=user.pem, ssl_key_pem=user.key_pem())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"ssl_ca_location": "/none/ca"},
            "ssl.ca.location=/none/ca) cannot be used: No such",
        ),
        ({"ssl_ca_pem": "no certificate"}, "ssl.ca.pem"),
        ({"ssl_keystore_location": "/none/u.p12"}, "No such file"),
        ({"ssl_certificate_pem": "x"}, "set both"),
        ({"ssl_certificate_pem": "x", "ssl_key_pem": SECRET}, "cannot be used"),
        ({"ssl_cipher_suites": "of-my-own"}, "ssl.cipher.suites"),
        ({"ssl_providers": "legacy"}, "ssl.providers is set"),
        ({"ssl_curves_list": "X25519"}, "ssl.curves.list is set"),
    ],
)
def test_what_cannot_be_used_is_named_and_not_shown(given: dict[str, str], says: str) -> None:
    with pytest.raises(BadSecurity) as refused:
        context_of(**given)
    assert says in str(refused.value)
    assert SECRET not in str(refused.value)


def test_wrong_passwords_are_told(user: Signed, tmp_path: Path) -> None:
    place = tmp_path / "user.p12"
    locked = serialization.BestAvailableEncryption(SECRET.encode())
    place.write_bytes(
        pkcs12.serialize_key_and_certificates(b"user", user.key, user.certificate, None, locked)
    )
    with pytest.raises(BadSecurity, match="assword"):
        context_of(ssl_keystore_location=place, ssl_keystore_password="another")
    chain, key = tmp_path / "user.pem", tmp_path / "user.key"
    chain.write_text(user.pem)
    key.write_text(user.key_pem(SECRET))
    with pytest.raises(BadSecurity, match=r"set ssl\.key\.password"):
        context_of(ssl_certificate_location=chain, ssl_key_location=key)


def sasl(**given: str) -> dict[str, Any]:
    properties = {name.replace("_", "."): value for name, value in given.items()}
    return group_client_security({"security.protocol": "SASL_PLAINTEXT", **properties})


def test_a_user_and_a_password_are_passed_on() -> None:
    found = sasl(sasl_mechanism="scram-sha-512", sasl_username="u", sasl_password="p")
    assert found == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "u",
        "sasl_plain_password": "p",
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sasl_mechanism": "PLAIN", "sasl_password": SECRET}, "set sasl.username"),
        ({"sasl_mechanism": "MAGIC"}, "SCRAM-SHA-512"),
        ({}, "librdkafka's default"),
        ({"sasl_mechanism": "OAUTHBEARER"}, "sasl.oauthbearer.method=oidc"),
        (
            {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_method": "oidc"},
            "sasl.oauthbearer.client.secret is not set",
        ),
    ],
)
def test_half_of_a_login_is_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(BadSecurity) as refused:
        sasl(**given)
    assert says in str(refused.value)
    assert SECRET not in str(refused.value)


class Provider(BaseHTTPRequestHandler):
    """Gives a new token each time to who knows the secret."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["content-length"])).decode()
        known = self.headers["authorization"] == "Basic YmVsZnJ5Omh1bnRlcjJodW50ZXIy"
        self.asked.append(form)
        token = {"access_token": f"token {len(self.asked)}", "expires_in": 100}
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(orjson.dumps(token if known else {"access_token": "none"}))

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal of the tests."""


@pytest.fixture
def provider() -> Iterator[str]:
    Provider.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/token"
        running.shutdown()
        thread.join()


def tokens(url: str, secret: str = SECRET, **more: str) -> Any:
    return sasl(
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_method="oidc",
        sasl_oauthbearer_token_endpoint_url=url,
        sasl_oauthbearer_client_id="belfry",
        sasl_oauthbearer_client_secret=secret,
        sasl_oauthbearer_scope="kafka",
        **more,
    )["sasl_oauth_token_provider"]


def test_a_token_is_fetched_and_used_for_most_of_its_life(provider: str) -> None:
    given = tokens(provider, sasl_oauthbearer_extensions="cluster=a,pool=b")
    now = 1_000.0
    given.clock = lambda: now
    assert asyncio.run(given.token()) == "token 1"
    now += 79
    assert asyncio.run(given.token()) == "token 1"
    now += 2
    assert asyncio.run(given.token()) == "token 2"
    assert Provider.asked == ["grant_type=client_credentials&scope=kafka"] * 2
    assert given.extensions() == {"cluster": "a", "pool": "b"}


def test_a_provider_that_gives_none_is_named_and_no_secret_shown(provider: str) -> None:
    for url, secret in ((provider, "another"), ("http://127.0.0.1:1/token", SECRET)):
        with pytest.raises(ConnectionError, match="gave no token for Kafka") as refused:
            asyncio.run(tokens(url, secret).token())
        assert secret not in str(refused.value)
