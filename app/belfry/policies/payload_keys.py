"""Keys for payloads, derived from the secrets that a policy's `payload_key_ref` names.

    payload_key_ref: file:shop/payload-keys      one secret in a line, of 32 bytes or more
                     └─► KeyRing                 the first line encrypts, each of them decrypts

`client/key_ring.py` derives the keys.
"""

from __future__ import annotations

from typing import Final

from belfry.client.key_ring import KeyRing
from belfry.policies.secrets import BadSecret, SecretPlaces
from belfry.tenants.policy import TenantPolicy

# The least length of a secret for keys, in bytes; `openssl rand -hex 32` writes 64.
LEAST_BYTES: Final = 32


def keys_of_policy(places: SecretPlaces, policy: TenantPolicy) -> KeyRing | None:
    """The keys that a policy names, None where it names none; raises `BadSecret`."""
    reference = policy.payload_key_ref
    if reference is None:
        return None
    # A half-written line would give a key as well, and that key would be lost later.
    secrets = places.read(reference, whole_lines=True)
    short = min(map(len, secrets))
    if short < LEAST_BYTES:
        raise BadSecret(
            f"a line of {reference} has {short} bytes; a key for payloads needs {LEAST_BYTES} or"
            " more: `openssl rand -hex 32` writes one."
        )
    return KeyRing(policy.tenant, secrets)
