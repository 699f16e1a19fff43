"""``belfry payloads readable TENANT``: what can still be read of a tenant's payloads.

Crypto-shredding is a promise about what is left: ciphertext, and no key. This command looks:

    1  secrets     those of --key-ref and of the policy, where the command runs; what can be read
                   is used to decrypt
    2  workers     with --http-url: who uses keys of the tenant, or could read these secrets
    3  Kafka       all records of the changelog that are still in its log, requests, refusals,
                   events, deliveries
    4  the store   large payloads, by the key that their first bytes name

It ends with exit code 0 only if nothing can be read, nothing is unknown and no worker has a key. It
reads and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from belfry.cli.failures import CommandError, Exit
from belfry.cli.remote import Remote, tenant_path
from belfry.cli.session import Session

if TYPE_CHECKING:
    from belfry.cli.payload_traces import Look, PayloadTraces
    from belfry.client.key_ring import KeyRing

WORDS: Final = {
    "decrypted": "a secret here decrypts it",
    "as_sent": "as it was sent",
    "encrypted": "no secret here decrypts it",
    "by_client": "encrypted by a client",
    "unknown": "cannot be told",
}


class Secrets(NamedTuple):
    """The keys that can be made where the command runs, and of which references.

    `missing` says of each other reference why nothing was read; some of it may be there.
    """

    ring: KeyRing | None
    readable: dict[str, tuple[str, ...]]
    missing: dict[str, str]
    there: frozenset[str] = frozenset()


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
) -> int:
    """Count what can still be read of a tenant's payloads, and what no key reads any more.

    Run it after the tenant was removed and its secret destroyed, with the settings of the workers
    and with --http-url, which asks all workers for the keys that they have. Topics of requests and
    events hold payloads as they were sent, until their retention is over. Exit code 4 where
    anything can be read. Example:

    belfry payloads readable clinic --key-ref file:clinic.keys
    """
    from belfry.cli.payload_reading import read_all
    from belfry.cli.payload_traces import PayloadTraces

    policy, references = _references(session, tenant, key_ref or [])
    secrets = _secrets(session, tenant, references)
    traces = PayloadTraces(tenant, secrets.ring, _look(session), frozenset(key_id or []))
    workers = _workers(session, tenant, references)
    outputs = [policy.output_topic] if policy is not None and policy.output_topic else []
    read_all(session, tenant, [*outputs, *(topic or [])], traces)
    told = _told(tenant, secrets, traces, workers)
    session.printer.one(told, _text(told))
    return Exit.OK if told["shredded"] else Exit.CONFLICT


def _references(session: Session, tenant: str, given: list[str]) -> tuple[Any, list[str]]:
    """The tenant's policy, and all references that are looked at."""
    from belfry.cli.policies import kafka_policies

    policy = kafka_policies(session).all().get(tenant)
    named = [] if policy is None or policy.payload_key_ref is None else [policy.payload_key_ref]
    return policy, list(dict.fromkeys([*named, *given]))


def _secrets(session: Session, tenant: str, references: list[str]) -> Secrets:
    """What can be read of them here, as a worker with these settings would read it."""
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
    """What all workers have of the tenant's keys; None where none was to be asked."""
    if not session.asks_http:
        return None
    from urllib.parse import urlencode

    query = urlencode([("reference", each) for each in references])
    answer = Remote(session).ask("GET", f"{tenant_path(tenant)}/payload-keys?{query}")
    if not isinstance(answer, dict):
        raise CommandError("The worker gives no answer that says which keys it has.")
    return answer


def _told(
    tenant: str, secrets: Secrets, traces: PayloadTraces, workers: dict[str, Any] | None
) -> dict[str, Any]:
    from belfry.cli.payload_traces import READABLE, Left

    readable, unknown = traces.count(*READABLE), traces.count(Left.UNKNOWN)
    asked = workers or {"workers": [], "silent": []}
    having = [each for each in asked["workers"] if each["in_use"] or each["readable"]]
    # Ciphertext alone shows nothing: the secret may lie where nobody has looked.
    unnamed = bool(traces.count(Left.ENCRYPTED)) and not (secrets.readable or secrets.missing)
    held = bool(secrets.readable or secrets.there or having or asked["silent"])
    return {
        "tenant": tenant,
        "shredded": not (readable or unknown or unnamed or held),
        "readable": readable,
        "unknown": unknown,
        "secret_unnamed": unnamed,
        "secrets": [
            *(_secret(each, ids, there=True) for each, ids in secrets.readable.items()),
            *(
                _secret(each, (), why, there=each in secrets.there)
                for each, why in secrets.missing.items()
            ),
        ],
        "payloads": [
            {**trace._asdict(), "payloads": count, "readable": trace.left in READABLE}
            for trace, count in sorted(traces.found.items())
        ],
        "workers": None if workers is None else asked["workers"],
        "silent": asked["silent"],
    }


def _secret(
    reference: str, ids: tuple[str, ...], why: str | None = None, *, there: bool
) -> dict[str, Any]:
    return {"reference": reference, "there": there, "key_ids": list(ids), "problem": why}


def _text(told: dict[str, Any]) -> str:
    """The same for people."""
    secrets = [f"  secret {each['reference']} {_state(each)}" for each in told["secrets"]]
    lines = [_verdict(told), *secrets]
    if told["secret_unnamed"]:
        lines.append("  Which secret encrypted them is not known: name it with --key-ref.")
    for each in told["payloads"]:
        key = f"under key {each['key']}, " if each["key"] else ""
        lines.append(f"  {each['payloads']:>9,}  {each['where']}  {key}{WORDS[each['left']]}")
    if told["workers"] is None:
        lines.append("  Workers were not asked which keys they have: --http-url asks all of them.")
    for worker in told["workers"] or ():
        if worker["in_use"] or worker["readable"]:
            of = ", ".join(each["reference"] for each in worker["readable"]) or "its policy"
            lines.append(f"  worker {worker['worker_id']} still has keys of {of}")
    lines += [f"  worker {each} did not answer" for each in told["silent"]]
    return "\n".join(lines)


def _state(secret: dict[str, Any]) -> str:
    if not secret["there"]:
        return f"is not here: {secret['problem']}"
    if secret["key_ids"]:
        return f"can be read here (keys {', '.join(secret['key_ids'])}): destroy it"
    return f"is here, and is no good secret: destroy it. {secret['problem']}"


def _verdict(told: dict[str, Any]) -> str:
    tenant = told["tenant"]
    if told["shredded"]:
        return f"Nothing of {tenant} can be read: no payload, and no key."
    return (
        f"Not shredded: {told['readable']:,} payloads of {tenant} can be read, of"
        f" {told['unknown']:,} it cannot be told."
    )
