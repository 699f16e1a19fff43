"""librdkafka's security properties, as the group's client (aiokafka) wants them.

    librdkafka (readers, producers)  ◄── BELFRY_KAFKA__… ──►  aiokafka (membership, a few questions)

Both have to reach the same brokers with the same credentials. If a property decides which servers
are trusted, and the group's client has no counterpart for it, it is refused by name: to ignore it
could mean to trust a server that the user does not trust.

    property              librdkafka                        aiokafka
    ssl.ca.location       a file, a folder, or probe        SSLContext.load_verify_locations
    ssl.keystore.*        PKCS#12 (RFC 7292)                loaded as PEM
    sasl.mechanism        PLAIN, SCRAM, OAUTHBEARER,        the same; GSSAPI by a package
                          GSSAPI (its default)

It is called at start, and no message has the content of a file or the value of a secret.
"""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
from cryptography.x509 import load_pem_x509_certificates

from belfry.kafka.oauth_tokens import BadOAuth, OidcTokens

# Mechanisms that both clients speak.
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
# Properties of OpenSSL that Python's `ssl` cannot set for one connection.
_WITHOUT_COUNTERPART: Final = (
    "ssl.curves.list",
    "ssl.sigalgs.list",
    "ssl.engine.location",
    "ssl.engine.id",
    "ssl.providers",
    "ssl.ca.certificate.stores",
)
# Texts that mean false for librdkafka.
_FALSE: Final = ("false", "0", "f", "no")


class BadSecurity(ValueError):
    """Properties with which the group's client cannot connect like the others; the message names
    them.
    """


def group_client_security(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of an aiokafka client that equal these librdkafka properties.

        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "me", …}
        ─► {"security_protocol": "SASL_SSL", "ssl_context": …, "sasl_mechanism": "PLAIN", …}

    Reads the named files, so it blocks for a moment; raises `BadSecurity`.
    """
    protocol = str(properties.get("security.protocol", "PLAINTEXT")).upper()
    arguments: dict[str, Any] = {"security_protocol": protocol}
    # Both SSL and SASL_SSL; and both SASL_PLAINTEXT and SASL_SSL below.
    if "SSL" in protocol:
        arguments["ssl_context"] = _ssl_context(properties)
    if "SASL" in protocol:
        arguments.update(_sasl(properties))
    return arguments


def _sasl(properties: Mapping[str, Any]) -> dict[str, Any]:
    """aiokafka's arguments for the login."""
    given = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "GSSAPI"))
    mechanism = str(given).upper()
    if mechanism not in MECHANISMS:
        raise BadSecurity(f"sasl.mechanism is {given}: {', '.join(MECHANISMS)} are allowed.")
    arguments: dict[str, Any] = {"sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        try:
            arguments["sasl_oauth_token_provider"] = OidcTokens.of(properties)
        except BadOAuth as error:
            raise BadSecurity(str(error)) from None
    elif mechanism == "GSSAPI":
        if find_spec("gssapi") is None:
            raise BadSecurity(
                "sasl.mechanism is GSSAPI, which is librdkafka's default, and the package gssapi is"
                f" not installed, by which the group's client speaks it: set one of"
                f" {', '.join(MECHANISMS[:-1])}, or install that package."
            )
        arguments["sasl_kerberos_service_name"] = properties.get(
            "sasl.kerberos.service.name", "kafka"
        )
    else:
        name, password = properties.get("sasl.username"), properties.get("sasl.password")
        if not name or not password:
            raise BadSecurity(
                f"sasl.mechanism is {mechanism}: set sasl.username and sasl.password."
            )
        arguments["sasl_plain_username"], arguments["sasl_plain_password"] = name, password
    return arguments


# -- TLS -------------------------------------------------------------------------------------------


def _ssl_context(properties: Mapping[str, Any]) -> ssl.SSLContext:
    """Trust and certificate of the client; `BadSecurity` names the properties that cannot be
    used.
    """
    for name in _WITHOUT_COUNTERPART:
        if properties.get(name):
            raise BadSecurity(
                f"{name} is set, and the client that keeps the group's membership knows nothing"
                " like it: leave it out, or set it for the whole machine in OpenSSL's own"
                " configuration."
            )
    # The context checks certificates and host names unless a property says otherwise, as librdkafka
    # does.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for step in (_trust, _show, _restrict):
        try:
            step(context, properties)
        except (OSError, ValueError, TypeError) as error:
            if isinstance(error, BadSecurity):
                raise
            raise BadSecurity(
                f"The TLS properties of Kafka's clients ({_named(properties)}) cannot be used:"
                f" {_shown(error)}."
            ) from None
    return context


def _named(properties: Mapping[str, Any]) -> str:
    """The TLS properties that are set, and the values of those that are paths of files."""
    given = sorted((name, value) for name, value in properties.items() if name.startswith("ssl."))
    return ", ".join(
        f"{name}={value}" if name.endswith(".location") else name for name, value in given
    )


def _shown(error: Exception) -> str:
    """An error without the contents of a file or a property."""
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
        return str(error.strerror)
    text = str(error)
    return text if len(text) < 200 and "-----" not in text else type(error).__name__


def _trust(context: ssl.SSLContext, properties: Mapping[str, Any]) -> None:
    """Set the authorities that the client trusts."""
    place, text = properties.get("ssl.ca.location"), properties.get("ssl.ca.pem")
    if text:
        context.load_verify_locations(cadata=str(text))
    elif place and str(place) != "probe":
        kind = "capath" if Path(place).is_dir() else "cafile"
        context.load_verify_locations(**{kind: str(place)})
    else:
        context.load_default_certs()
    revoked = properties.get("ssl.crl.location")
    if revoked:
        context.load_verify_locations(cafile=str(revoked))
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    if str(properties.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
        context.check_hostname = False
    if str(properties.get("enable.ssl.certificate.verification", "true")).lower() in _FALSE:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE


def _show(context: ssl.SSLContext, properties: Mapping[str, Any]) -> None:
    """Set the certificate that the client shows a broker."""
    location = properties.get("ssl.certificate.location")
    password = properties.get("ssl.key.password")
    if properties.get("ssl.keystore.location"):
        _show_keystore(context, properties)
    elif properties.get("ssl.certificate.pem") or properties.get("ssl.key.pem"):
        _show_texts(context, properties, password)
    elif location:
        key = properties.get("ssl.key.location")
        context.load_cert_chain(location, key, lambda: _password(password))


def _password(given: Any) -> str:
    """The key's password; without one OpenSSL would ask for one at the terminal, and wait."""
    if not given:
        raise BadSecurity("The key of ssl.key.location is encrypted: set ssl.key.password.")
    return str(given)


def _show_keystore(context: ssl.SSLContext, properties: Mapping[str, Any]) -> None:
    """Show the certificate of a PKCS#12 file, with the others of its chain."""
    password = str(properties.get("ssl.keystore.password", "")).encode()
    store = load_pkcs12(Path(properties["ssl.keystore.location"]).read_bytes(), password or None)
    if store.cert is None or store.key is None:
        raise BadSecurity("ssl.keystore.location holds no certificate with its key.")
    chain = [store.cert.certificate, *(each.certificate for each in store.additional_certs)]
    _load(context, b"".join(each.public_bytes(Encoding.PEM) for each in chain), store.key)


def _show_texts(context: ssl.SSLContext, properties: Mapping[str, Any], password: Any) -> None:
    """Show a certificate and a key that are given as PEM texts."""
    chain, text = properties.get("ssl.certificate.pem"), properties.get("ssl.key.pem")
    if not chain or not text:
        raise BadSecurity("ssl.certificate.pem and ssl.key.pem belong together: set both.")
    certificates = load_pem_x509_certificates(str(chain).encode())
    key = load_pem_private_key(str(text).encode(), str(password).encode() if password else None)
    _load(context, b"".join(each.public_bytes(Encoding.PEM) for each in certificates), key)


def _load(context: ssl.SSLContext, chain: bytes, key: Any) -> None:
    """Load a chain and its key; they pass through a file, in which the key is encrypted."""
    # OpenSSL loads keys from files only; a reader of the file finds no open key in it.
    once = secrets.token_bytes(32).hex()
    form, locked = PrivateFormat.PKCS8, BestAvailableEncryption(once.encode())
    descriptor, path = tempfile.mkstemp(prefix="belfry-", suffix=".pem")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(chain + key.private_bytes(Encoding.PEM, form, locked))
        context.load_cert_chain(path, password=once)
    finally:
        Path(path).unlink()


def _restrict(context: ssl.SSLContext, properties: Mapping[str, Any]) -> None:
    """Leave only these cipher suites."""
    ciphers = properties.get("ssl.cipher.suites")
    if ciphers:
        context.set_ciphers(str(ciphers))
