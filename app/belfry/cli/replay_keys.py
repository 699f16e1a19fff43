"""The keys of payloads that a replay needs to make the same bytes, read where the command runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belfry.playback.logged import Unplayable
from belfry.policies.payload_keys import keys_of_policy
from belfry.policies.secrets import BadSecret, SecretPlaces

if TYPE_CHECKING:
    from belfry.playback.treatment import KeysOf
    from belfry.tenants.payload_keys import PayloadKeys
    from belfry.tenants.policy import TenantPolicy


def keys_by(places: SecretPlaces) -> KeysOf:
    """A function for the keys that a policy names; it raises `Unplayable` for a bad secret.

    A playback that branches is copied with all that it holds, and a function holds no client.
    """

    def keys_of(policy: TenantPolicy) -> PayloadKeys | None:
        try:
            return keys_of_policy(places, policy)
        except BadSecret as error:
            raise Unplayable(
                f"Payloads of {policy.tenant} are encrypted at rest, and the playback has to make"
                f" the same bytes: {error}"
            ) from None

    return keys_of
