"""Which secret is to be destroyed, and whom that would harm."""

from __future__ import annotations

import pytest

from belfry.tenants.policy import TenantPolicy
from belfry.tenants.shredding import check_command, destroy_advice, key_to_destroy, may_be_same

CLINIC = TenantPolicy("clinic", payload_key_ref="file:clinic.keys")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("file:clinic.keys", "file:clinic.keys", True),
        ("file:clinic.keys", "file:/etc/belfry/clinic.keys", True),
        ("file:/etc/belfry/clinic.keys", "file:belfry/./clinic.keys", True),
        ("file:a/../clinic.keys", "file:clinic.keys", True),
        ("file:clinic.keys", "file:other-clinic.keys", False),
        ("file:/a/clinic.keys", "file:/b/clinic.keys", False),
        ("env:BELFRY_SECRET_A", "env:BELFRY_SECRET_A", True),
        ("env:BELFRY_SECRET_A", "env:BELFRY_SECRET_AB", False),
        ("env:BELFRY_SECRET_A", "file:BELFRY_SECRET_A", False),
        # A file may be called so.
        ("env:BELFRY_SECRET_A", "file:env:BELFRY_SECRET_A", False),
    ],
)
def test_two_references_that_may_lead_to_one_secret(one: str, other: str, same: bool) -> None:
    assert may_be_same(one, other) is may_be_same(other, one) is same


@pytest.mark.parametrize(
    "other",
    [
        TenantPolicy("other", payload_key_ref="file:/etc/belfry/clinic.keys"),
        TenantPolicy("other", signing_secret_ref="file:clinic.keys"),
        TenantPolicy("other", secret_refs=("file:else", "file:clinic.keys")),
    ],
)
def test_other_users_of_the_secret_are_named(other: TenantPolicy) -> None:
    key = key_to_destroy(CLINIC, [CLINIC, other, TenantPolicy("free")])
    assert key is not None
    assert (key.reference, key.shared_with) == ("file:clinic.keys", ("other",))


def test_a_secret_that_others_need_is_not_to_be_destroyed_yet() -> None:
    others = [TenantPolicy(name, payload_key_ref="file:clinic.keys") for name in ("b", "a")]
    key = key_to_destroy(CLINIC, others)
    assert key is not None
    assert destroy_advice("clinic", key) == (
        "The payloads of clinic are not shredded: file:clinic.keys is named by policies of a, b as"
        " well, and its holders can still read them. Give a, b another secret (belfry bulk"
        " rekey), then destroy this one."
    )


def test_a_tenant_that_was_removed_needs_no_secret() -> None:
    gone = TenantPolicy("gone", payload_key_ref="file:clinic.keys", removed=True)
    key = key_to_destroy(CLINIC, [gone])
    assert key is not None
    assert key.shared_with == ()


@pytest.mark.parametrize(
    ("reference", "do"),
    [
        ("file:clinic.keys", "delete file:clinic.keys on each worker"),
        ("env:BELFRY_SECRET_A", "unset env:BELFRY_SECRET_A on each worker and restart it"),
    ],
)
def test_the_operator_is_told_what_to_do(reference: str, do: str) -> None:
    key = key_to_destroy(TenantPolicy("clinic", payload_key_ref=reference), [CLINIC])
    assert key is not None
    assert destroy_advice("clinic", key) == (
        f"The payloads of clinic are shredded once its secret is destroyed: {do}, and destroy each"
        " copy, in backups and with consumers that redeem large payloads."
    )
    command = f"belfry payloads readable clinic --key-ref {reference}"
    assert check_command("clinic", key) == command


def test_a_shell_takes_a_reference_as_it_is() -> None:
    spaced = key_to_destroy(TenantPolicy("a", payload_key_ref="file:my keys; ls"), [])
    assert spaced is not None
    assert check_command("a", spaced).endswith("--key-ref 'file:my keys; ls'")


def test_without_keys_there_is_nothing_to_destroy() -> None:
    assert key_to_destroy(None, [CLINIC]) is None
    assert key_to_destroy(TenantPolicy("clinic"), [CLINIC]) is None
