"""Payloads that are encrypted at rest, decrypted before an import sends them.

    line of an export   "payload_encrypted_base64": "AXk…"
    policy there        payload_key_ref: file:shop/payload-keys     below BELFRY_SECRETS_DIR, here
    request             payload: as it was sent the first time

The keys are those of the tenant's policy in the cluster of the import. They are read on the machine
where the command runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

from belfry.cli.failures import CommandError
from belfry.cli.policies import kafka_policies

if TYPE_CHECKING:
    from belfry.cli.session import Session
    from belfry.tenants.payload_keys import PayloadKeys
    from belfry.wire.quick_writing import Ready

# Fields of a request, or one of which the bytes are ready: these are never encrypted.
R = TypeVar("R", bound="dict[str, Any] | Ready")


def decrypting(session: Session, requests: Iterable[R]) -> Iterator[R]:
    """The same requests with payloads as they were sent; raises `CommandError`.

    Policies are read from Kafka with the first payload that is encrypted.
    """
    from belfry.store.layout.pending import Encrypted

    rings: dict[str, PayloadKeys] = {}
    for fields in requests:
        if not isinstance(fields, dict) or type(fields.get("payload")) is not Encrypted:
            yield fields
            continue
        tenant = fields["tenant"]
        if tenant not in rings:
            rings[tenant] = _ring(session, tenant)
        yield cast("R", {**fields, "payload": _decrypted(rings[tenant], fields)})


def _ring(session: Session, tenant: str) -> PayloadKeys:
    from belfry.policies.payload_keys import keys_of_policy
    from belfry.policies.secrets import BadSecret, SecretPlaces

    policy = kafka_policies(session).all().get(tenant)
    places = SecretPlaces(session.settings.secrets_dir)
    try:
        found = None if policy is None else keys_of_policy(places, policy)
    except BadSecret as error:
        raise CommandError(f"Payloads of {tenant} are encrypted: {error}") from None
    if found is None:
        raise CommandError(
            f"Payloads of {tenant} are encrypted, and its policy here has no payload_key_ref: set"
            " it, and put the keys there; this command reads them too (BELFRY_SECRETS_DIR)."
        )
    return found


def _decrypted(keys: PayloadKeys, fields: dict[str, Any]) -> bytes:
    from belfry.tenants.payload_keys import Undecryptable

    name = f"{fields['tenant']}/{fields['schedule_id']}"
    try:
        return keys.decrypt(name.encode(), fields["payload"])
    except Undecryptable as error:
        raise CommandError(
            f"{name} is not imported: {error}. What stands above it was; leave its line out, or"
            " find the key, and run the same again."
        ) from None
