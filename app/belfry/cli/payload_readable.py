"""``belfry payloads readable TENANT``: which of a tenant's payloads can still be read.

Crypto-shredding is a promise about what is left: ciphertext, and no key. This command looks:

    1  secrets     those of --key-ref, of the policy and of those before it that are still in their
                   topic, where the command runs; those that can be read decrypt the rest
    2  workers     with --http-url: who uses keys of the tenant, or could read these secrets
    3  Kafka       all records of the changelog that are still in its log, requests, refusals,
                   events, deliveries
    4  the store   large payloads, by the key that their first bytes name

It ends with exit code 0 only if no payload is readable or unknown and no worker has a key. So
workers have to be asked, unless --no-workers says that there are none. It changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from belfry.cli import log_lines
from belfry.cli.failures import CommandError, Exit
from belfry.cli.remote import Remote, tenant_path
from belfry.cli.session import Session

if TYPE_CHECKING:
    from belfry.cli.payload_traces import Look
    from belfry.cli.payload_verdict import Secrets


def readable(
    session: Session,
    tenant: Annotated[
        str, typer.Argument(metavar="TENANT", help="The tenant.", show_default=False)
    ],
    *,
    key_ref: Annotated[
        list[str] | None,
        typer.Option(
            "--key-ref",
            metavar="REFERENCE",
            help="A secret that encrypted its payloads, as its policy named it; repeatable.",
        ),
    ] = None,
    key_id: Annotated[
        list[str] | None,
        typer.Option(
            "--key-id",
            metavar="ID",
            help="A key that the tenant had, by which stored objects are told; repeatable.",
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            help="Another topic that events of the tenant went to; repeatable.",
        ),
    ] = None,
    no_workers: Annotated[
        bool, typer.Option("--no-workers", help="No worker runs any more, so none is asked.")
    ] = False,
) -> int:
    """Count a tenant's payloads: those that are still readable, and those without a key.

    Run it after the tenant was removed and its secret destroyed, with the settings of the workers
    and with --http-url, which asks all workers for the keys that they have. Without it nothing
    counts as shredded, unless --no-workers says that none runs. Topics of requests and
    events hold payloads as they were sent, until their retention is over. Exit code 4 if any
    payload can be read. Example:

    belfry payloads readable clinic --key-ref file:clinic.keys
    """
    from belfry.cli.payload_reading import read_all
    from belfry.cli.payload_traces import PayloadTraces
    from belfry.cli.payload_verdict import NO_WORKERS, text_of, told_of

    log_lines.to_stderr()
    references, outputs = _formerly(session, tenant, key_ref or [])
    secrets = _secrets(session, tenant, references)
    traces = PayloadTraces(tenant, secrets.ring, _look(session), frozenset(key_id or []))
    workers = NO_WORKERS if no_workers else _workers(session, tenant, references)
    read_all(session, tenant, topic or [], outputs, traces)
    told = told_of(tenant, secrets, traces, workers)
    session.printer.one(told, text_of(told))
    return Exit.OK if told["shredded"] else Exit.CONFLICT


def _formerly(session: Session, tenant: str, given: list[str]) -> tuple[list[str], list[str]]:
    """All references that are looked at, and topics that policies named.

    A policy that was replaced or removed still says where keys and events were, for a while.
    """
    from belfry.cli.policies import kafka_policies

    policies = kafka_policies(session).history(tenant)
    keys = [each.payload_key_ref for each in policies if each.payload_key_ref is not None]
    topics = {each.output_topic for each in policies if each.output_topic is not None}
    return list(dict.fromkeys([*keys, *given])), sorted(topics)


def _secrets(session: Session, tenant: str, references: list[str]) -> Secrets:
    """The secrets that can be read here, as a worker with these settings would read them."""
    from belfry.cli.payload_verdict import Secrets
    from belfry.client.key_ring import KeyRing
    from belfry.policies.secrets import BadSecret, SecretPlaces

    places = SecretPlaces(session.settings.secrets_dir)
    lines: list[bytes] = []
    found: dict[str, tuple[str, ...]] = {}
    missing: dict[str, str] = {}
    for each in references:
        try:
            # A file without an end of its last line, or with a short one, is a secret all the same.
            read = places.read(each)
        except BadSecret as error:
            missing[each] = str(error)
            continue
        found[each] = KeyRing(tenant, read).ids
        lines += read
    there = frozenset(each for each in missing if places.is_there(each))
    return Secrets(KeyRing(tenant, lines) if lines else None, found, missing, there)


def _look(session: Session) -> Look:
    """The writers' schemas of requests, from the registry of the settings."""
    from belfry.client.schemas import RegisteredSchemas
    from belfry.settings import property_name

    settings = session.settings
    if settings.schema_registry_url is None:
        return lambda _: None
    properties = {property_name(key): value for key, value in settings.registry.items()}
    return RegisteredSchemas(settings.schema_registry_url, properties).writer


def _workers(session: Session, tenant: str, references: list[str]) -> dict[str, Any] | None:
    """The tenant's keys that all workers have; None if no worker was to be asked."""
    if not session.asks_http:
        return None
    from urllib.parse import urlencode

    query = urlencode([("reference", each) for each in references])
    answer = Remote(session).ask("GET", f"{tenant_path(tenant)}/payload-keys?{query}")
    if not isinstance(answer, dict):
        raise CommandError("The worker gives no answer that says which keys it has.")
    return answer
