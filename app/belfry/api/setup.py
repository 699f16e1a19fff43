"""Setting the HTTP port up: its authenticator, its limits, and its server.

Settings become the objects that `routes/` and `server/` work with, so neither of them reads a
setting. It opens no connection, and starts no thread.

    ServerSettings ─┬─ gate_of     keys and provider        ─► callers are known, or all may ask
                    ├─ limits_of   names, sizes, rates      ─► the guard in front of the routes
                    ├─ believed_of authorities              ─► whom it believes of other workers
                    ├─ server_of   address, TLS, proxies    ─► the server, which is started later
                    └─ shared_breaks_of                     ─► breaks of hosts, kept in Kafka
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI

from belfry.api.auth.access import Gate, TokenVerifier
from belfry.api.auth.keys import ApiKeys
from belfry.api.auth.oidc import Provider, Tokens
from belfry.api.server.limits import PortLimits
from belfry.api.server.room import Connections
from belfry.api.server.server import HttpServer, Manner
from belfry.api.workers.host_breaks import HostBreaks
from belfry.api.workers.shared_breaks import SharedBreaks
from belfry.host.tls_files import RenewedContext, believed, shown
from belfry.kafka.offset_notes import OffsetNotes
from belfry.settings import ServerSettings


def gate_of(settings: ServerSettings, now_ms: Callable[[], float]) -> Gate:
    """The authenticator of callers; one that admits all if nothing is configured.

    Keys are asked before a provider's tokens, for they need no network. `now_ms` is the clock, in
    epoch ms. Raises `BadKeys` for a list that cannot be read.
    """
    verifiers: list[TokenVerifier] = []
    keys = None
    if settings.http_api_keys or settings.http_api_keys_file:
        given = settings.http_api_keys
        listed = None if given is None else given.get_secret_value()
        keys = ApiKeys(listed, settings.http_api_keys_file, now_ms)
        verifiers.append(keys)
    if settings.oidc_issuer:
        provider = Provider(
            settings.oidc_issuer,
            settings.oidc_audience,
            settings.oidc_jwks_url,
            settings.oidc_tenants_claim,
            settings.oidc_roles_claim,
        )
        verifiers.append(Tokens(provider))
    return Gate(verifiers, keys)


def limits_of(settings: ServerSettings, reached: str) -> PortLimits:
    """Limits of the port: names that it answers to (`reached` among them), sizes in bytes, rates.

    `reached` is the host of the address under which other workers reach this one.
    """
    return PortLimits(
        hosts=frozenset(name.lower() for name in (reached, *settings.http_allowed_hosts)),
        origins=frozenset(settings.http_allowed_origins),
        body_bytes=settings.http_body_bytes,
        bulk_bytes=settings.http_bulk_bytes,
        bodies_bytes=settings.http_bodies_bytes,
        under_way=settings.http_under_way,
        per_second=settings.http_requests_per_second,
        failures_per_second=settings.http_failures_per_second,
    )


def believed_of(settings: ServerSettings) -> RenewedContext | None:
    """Whose certificates count at other workers; None: whom the machine trusts."""
    given = settings.http_tls_authorities
    return None if given is None else believed(given)


def server_of(app: FastAPI, settings: ServerSettings, *, guarded: bool) -> HttpServer:
    """The server of the port, not started; `guarded` says that callers need a key."""
    certificate, key = settings.http_tls_certificate, settings.http_tls_key
    tls = shown(certificate, key) if certificate and key else None
    proxies = settings.http_proxies
    room = Connections(settings.http_connections, settings.http_connections_per_address, proxies)
    return HttpServer(
        app,
        settings.http_host,
        settings.http_port,
        tls=tls,
        guarded=guarded,
        manner=Manner(proxies, room),
    )


def shared_breaks_of(
    settings: ServerSettings, breaks: HostBreaks, now_ms: Callable[[], float]
) -> SharedBreaks:
    """The breaks of a belfry, not started; `now_ms` is the clock, in epoch ms."""
    group = f"{settings.cluster.app_id}.host-breaks"
    notes = OffsetNotes(settings, group, settings.topic("changelog"))
    return SharedBreaks(breaks, notes, settings.cluster.partitions, now_ms)
