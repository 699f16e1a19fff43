"""What the removal of a tenant says of the secret that encrypted its payloads.

    $ belfry tenant remove clinic --cancel-pending
    removed  clinic: requests are refused, what is pending is cancelled
    The payloads of clinic are shredded once its secret is destroyed: delete file:clinic.keys …
    Then check: belfry payloads readable clinic --key-ref file:clinic.keys

Belfry has no copy of the secret and destroys none: it is the operator's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from belfry.tenants.shredding import KeyToDestroy


def with_key_left(
    tenant: str, left: KeyToDestroy | None, told: dict[str, Any], text: str
) -> tuple[dict[str, Any], str]:
    """The removal in words for programs and people, with the secret that is to be destroyed."""
    from belfry.tenants.shredding import check_command, destroy_advice

    if left is None:
        return {**told, "destroy": None}, text
    advice, check = destroy_advice(tenant, left), check_command(tenant, left)
    destroy = {
        "reference": left.reference,
        "shared_with": list(left.shared_with),
        "advice": advice,
        "check": check,
    }
    return {**told, "destroy": destroy}, f"{text}\n{advice}\nThen check: {check}"
