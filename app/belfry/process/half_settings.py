"""Half a configuration: settings that were meant to protect something, and would not.

If a secret was not injected, or a certificate has no key, a worker that starts anyway is open where
its operator wanted protection, and nobody notices. So the worker refuses, and names all problems at
once. No message holds the value of a secret.

    BELFRY_HTTP_API_KEYS=                     empty: perhaps a secret was not injected
    BELFRY_CLAIMS=signed, no worker secret    workers could not sign their own requests
    BELFRY_OIDC_AUDIENCE, no issuer           no token would be asked for
    certificate without key                   the port would speak plain HTTP
    keys, 0.0.0.0 and no certificate          keys would travel in plain text

These are contradictions between settings. `belfry.settings` declares each setting and checks its
value by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from belfry.api.server.hosts import is_loopback
from belfry.api.server.own_address import is_everywhere
from belfry.host.object_store import NoStore
from belfry.host.tls_files import believed, shown
from belfry.kafka.security import BadSecurity, group_client_security
from belfry.outputs.day_store import day_store
from belfry.outputs.payload_store import payload_files
from belfry.recovery.checkpoint_store import checkpoint_store
from belfry.registry.addresses import UNREADABLE, is_readable
from belfry.settings import DeliverySettings, Settings

# Settings that may be absent, but not empty.
_NEVER_EMPTY: Final = (
    "http_api_keys",
    "http_api_keys_file",
    "oidc_issuer",
    "http_tls_certificate",
    "http_tls_key",
    "http_tls_authorities",
    "secrets_dir",
    "checkpoint_store",
    "payload_store",
    "day_store",
)
_SHARED: Final = (
    "Give all workers the same secret of 16 characters or more, such as `openssl rand -base64 32`"
    " makes."
)
# They only have a meaning together with an issuer.
_OIDC: Final = ("oidc_audience", "oidc_jwks_url", "oidc_tenants_claim", "oidc_roles_claim")


class HalfConfigured(ValueError):
    """A worker must not start with its settings; the message says why."""


def refuse_half_settings(settings: DeliverySettings) -> None:
    """Let whole configurations pass; raises `HalfConfigured` with all problems.

    It is called before the port opens and before Kafka is asked, so a worker that refuses has
    changed nothing.
    """
    why = half_settings(settings)
    if why:
        raise HalfConfigured(why)


def half_settings(settings: DeliverySettings) -> str:
    """All reasons why a worker must not start with these settings; empty if it may.

    Reads the certificates and keys that are named, if there are any. Nothing else is opened.
    """
    empty = list(_empty(settings))
    if empty:
        # Settings that depend on an empty one look wrong as well, so they are not checked.
        return " ".join(empty)
    found = (
        *_kafka(settings),
        *_registry(settings),
        *_signing(settings),
        *_callers(settings),
        *_advertised(settings),
        *_certificates(settings),
        *_stores(settings),
    )
    return " ".join(found)


def _empty(settings: DeliverySettings) -> Iterator[str]:
    """Settings that are given, but empty."""
    for name in _NEVER_EMPTY:
        value: Any = getattr(settings, name, None)
        if isinstance(value, SecretStr):
            value = value.get_secret_value()
        # An empty path is the working directory.
        if value is not None and str(value).strip() in ("", str(Path())):
            yield (
                f"{_variable(name)} is empty: give it its value, or leave it out where you do not"
                " want it. Perhaps a secret was not injected."
            )


def _kafka(settings: DeliverySettings) -> Iterator[str]:
    """Properties of security for librdkafka that aiokafka, which carries the group, cannot use."""
    try:
        group_client_security(settings.kafka_properties())
    except BadSecurity as error:
        yield f"{error} Properties of Kafka's clients are given as BELFRY_KAFKA__<PROPERTY>."


def _registry(settings: DeliverySettings) -> Iterator[str]:
    """An address that cannot be read; it is not shown, since it may hold a password."""
    if settings.schema_registry_url is not None and not is_readable(settings.schema_registry_url):
        yield UNREADABLE


def _signing(settings: DeliverySettings) -> Iterator[str]:
    """Settings that ask for signatures, without a secret to sign with.

    Workers sign the records that they write for one another and for themselves, so the secret is
    needed as soon as one of these settings asks for signatures.
    """
    if settings.http_worker_secret_also and not settings.http_worker_secret:
        yield (
            "BELFRY_HTTP_WORKER_SECRET_ALSO is set, and BELFRY_HTTP_WORKER_SECRET is not: the first"
            " is a second secret, for a change of secrets. Set the one that workers sign with."
        )
    if isinstance(settings, Settings) and not settings.http_worker_secret:
        if settings.claims == "signed":
            yield (
                "BELFRY_CLAIMS is signed, and BELFRY_HTTP_WORKER_SECRET is not set: workers write"
                " requests themselves (retries of deliveries, requests over HTTP), and have to"
                f" sign them as well. {_SHARED}"
            )
        if settings.key_group_moves:
            yield (
                "BELFRY_KEY_GROUP_MOVES is true, and BELFRY_HTTP_WORKER_SECRET is not set: workers"
                f" sign the records by which key groups move. {_SHARED}"
            )
    for name in ("changelog", "policies"):
        given = getattr(settings, name)
        if given != "trusted" and not settings.http_worker_secret:
            yield (
                f"{_variable(name)} is {given}, and BELFRY_HTTP_WORKER_SECRET is not set, which"
                f" would sign. {_SHARED}"
            )


def _callers(settings: DeliverySettings) -> Iterator[str]:
    """Callers that would not be checked, or whose keys others could read.

    A proxy in front may end TLS, which belfry cannot see; so `http_plaintext` has to say it.
    """
    given = [name for name in _OIDC if name in settings.model_fields_set]
    if given and not settings.oidc_issuer:
        yield (
            f"{', '.join(map(_variable, given))} is set, and BELFRY_OIDC_ISSUER is not, so no token"
            " would be asked for: set the issuer, or leave the others out."
        )
    keys = settings.http_api_keys or settings.http_api_keys_file or settings.oidc_issuer
    plain = not (settings.http_tls_certificate or settings.http_tls_key)
    refused = settings.http_plaintext == "refused"
    if keys and plain and refused and not is_loopback(settings.http_host):
        yield (
            f"BELFRY_HTTP_HOST is {settings.http_host}, which other machines reach, and there is no"
            " certificate: callers would send their keys and tokens in plain text. Set"
            " BELFRY_HTTP_TLS_CERTIFICATE and BELFRY_HTTP_TLS_KEY; or, where a proxy in front ends"
            " TLS, say so with BELFRY_HTTP_PLAINTEXT=allowed."
        )


def _advertised(settings: DeliverySettings) -> Iterator[str]:
    """An address that leads nowhere: 0.0.0.0 or ::, which a worker may listen on, but which no
    client can call.
    """
    given = settings.http_advertised_url
    if given is not None and is_everywhere(urlsplit(given).hostname or ""):
        yield (
            f"BELFRY_HTTP_ADVERTISED_URL is {given}, which stands for all addresses, so no other"
            " worker can call it: give the address of this machine, or leave it out."
        )


def _certificates(settings: DeliverySettings) -> Iterator[str]:
    """A certificate without its key, or files that cannot be used: they are loaded to find out."""
    certificate, key = settings.http_tls_certificate, settings.http_tls_key
    if (certificate is None) != (key is None):
        given = "http_tls_certificate" if key is None else "http_tls_key"
        other = "http_tls_key" if key is None else "http_tls_certificate"
        yield (
            f"{_variable(given)} is set, and {_variable(other)} is not, so the port would speak"
            " plain HTTP: set both, to the same file where one holds both, or neither."
        )
    elif certificate is not None and key is not None:
        try:
            shown(certificate, key)
        except (OSError, ValueError) as error:
            yield (
                f"BELFRY_HTTP_TLS_CERTIFICATE ({certificate}) and BELFRY_HTTP_TLS_KEY ({key})"
                f" cannot be used: {error}. They are PEM files, the key is that of the certificate"
                " and is not encrypted."
            )
    authorities = settings.http_tls_authorities
    if authorities is not None:
        try:
            believed(authorities)
        except (OSError, ValueError) as error:
            yield (
                f"BELFRY_HTTP_TLS_AUTHORITIES ({authorities}) cannot be used: {error}. It is a PEM"
                " file with at least one certificate of an authority."
            )


def _stores(settings: DeliverySettings) -> Iterator[str]:
    """Stores elsewhere that cannot be used, by their settings; the stores are not asked."""
    if not isinstance(settings, Settings):
        return
    for open_store in (checkpoint_store, payload_files, day_store):
        try:
            open_store(settings)
        except NoStore as error:
            yield str(error)
    if settings.checkpoint_peers == "always" and not settings.http_worker_secret:
        yield (
            "BELFRY_CHECKPOINT_PEERS is always, and BELFRY_HTTP_WORKER_SECRET is not set, by which"
            f" workers know one another. {_SHARED} Or leave BELFRY_CHECKPOINT_PEERS out."
        )


def _variable(name: str) -> str:
    """A setting's name as a variable."""
    return "BELFRY_" + name.upper()
