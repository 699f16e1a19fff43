"""Keys for payloads: made of secrets by tenant, the first encrypts, each of them decrypts."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from belfry.client.key_ring import KeyRing
from belfry.policies.payload_keys import keys_of_policy
from belfry.policies.secrets import BadSecret, SecretPlaces
from belfry.policies.stored_policies import StoredPolicies
from belfry.schedules.targets import HttpTarget
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from belfry.tenants.payload_keys import ENCRYPTION_BYTES, Undecryptable
from belfry.tenants.policy import TenantPolicy, problems
from belfry.wire import framing
from belfry.wire.policies import encode_policy
from tests.unit.engine.driver import HOUR, T0, Driver

OLD, NEW = b"0" * 32, b"1" * 32
NAME = b"shop/card"


def test_the_bytes_are_those_that_are_specified() -> None:
    """Frozen: they lie in changelogs.  Format, id of the key, AES-SIV of key and name."""
    sealed = KeyRing("shop", [OLD]).encrypt(NAME, b"4711")
    assert len(sealed) == 4 + ENCRYPTION_BYTES
    assert sealed.hex() == FROZEN


FROZEN = "01be87f4e33461a5ff5bfed5114297b7fa2182f3d68c5f3f417510b933"  # pragma: allowlist secret


def test_the_first_key_encrypts_and_each_decrypts() -> None:
    old, both, new = KeyRing("shop", [OLD]), KeyRing("shop", [NEW, OLD]), KeyRing("shop", [NEW])
    before, after = old.encrypt(NAME, b"4711"), both.encrypt(NAME, b"4711")
    assert before != after == new.encrypt(NAME, b"4711")
    assert both.decrypt(NAME, before) == both.decrypt(NAME, after) == b"4711"
    with pytest.raises(Undecryptable, match=f"the key {before[1:9].hex()} .* put its line back"):
        new.decrypt(NAME, before)
    digests = both.digests(b"d" * 16)
    assert digests == (*new.digests(b"d" * 16), *old.digests(b"d" * 16))


def test_a_payload_counts_for_its_schedule_and_as_it_was_made() -> None:
    ring = KeyRing("shop", [OLD])
    sealed = ring.encrypt(NAME, b"4711")
    with pytest.raises(Undecryptable, match="the row was changed"):
        ring.decrypt(b"shop/other", sealed)
    for at in (9, len(sealed) - 1):
        changed = bytearray(sealed)
        changed[at] ^= 1
        with pytest.raises(Undecryptable, match="the row was changed"):
            ring.decrypt(NAME, bytes(changed))
    for short in (b"", sealed[:5], sealed[:9], sealed[:20]):
        with pytest.raises(Undecryptable):
            ring.decrypt(NAME, short)


def test_two_tenants_of_one_secret_have_keys_of_their_own() -> None:
    shop, mail = KeyRing("shop", [OLD]), KeyRing("mail", [OLD])
    assert shop.encrypt(NAME, b"4711") != mail.encrypt(NAME, b"4711")
    with pytest.raises(Undecryptable, match="none of those"):
        mail.decrypt(NAME, shop.encrypt(NAME, b"4711"))


def test_a_policy_leads_to_its_keys(tmp_path: Path) -> None:
    places = SecretPlaces(tmp_path)
    assert keys_of_policy(places, TenantPolicy("shop")) is None
    policy = TenantPolicy("shop", payload_key_ref="file:keys")
    with pytest.raises(BadSecret, match="cannot be read"):
        keys_of_policy(places, policy)
    (tmp_path / "keys").write_bytes(NEW + b"\n" + OLD + b"\n")
    ring = keys_of_policy(places, policy)
    assert ring is not None
    assert ring.decrypt(NAME, KeyRing("shop", [OLD]).encrypt(NAME, b"4711")) == b"4711"
    (tmp_path / "keys").write_bytes(NEW + b"\n" + b"x" * 31 + b"\n")
    with pytest.raises(BadSecret, match="31 bytes; a key for payloads needs 32"):
        keys_of_policy(places, policy)


@pytest.mark.parametrize(
    "text", [NEW + b"\n" + OLD, NEW * 2, NEW + b"\n" + OLD + b" "], ids=["second", "only", "space"]
)
def test_a_line_that_may_be_half_written_is_no_key(tmp_path: Path, text: bytes) -> None:
    places = SecretPlaces(tmp_path)
    policy = TenantPolicy("shop", payload_key_ref="file:keys")
    (tmp_path / "keys").write_bytes(text)
    with pytest.raises(BadSecret, match="last line of file:keys does not end with a newline"):
        keys_of_policy(places, policy)
    (tmp_path / "keys").write_bytes(text + b"\n")
    assert keys_of_policy(places, policy) is not None


def test_a_variable_needs_no_newline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELFRY_SECRET_SHOP", OLD.decode())
    policy = TenantPolicy("shop", payload_key_ref="env:BELFRY_SECRET_SHOP")
    assert keys_of_policy(SecretPlaces(tmp_path), policy) is not None


def test_a_tenant_waits_for_its_keys_and_goes_on_with_them(tmp_path: Path) -> None:
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.ALL)
    stored = StoredPolicies(Settings(secrets_dir=tmp_path), tenants, None)
    policy = TenantPolicy("shop", payload_key_ref="file:keys")
    stored.put({"shop": (framing.single_object("TenantPolicy") + encode_policy(policy), None)})
    without = stored.effective_of("shop")
    assert without is not None
    tenant = tenants.follow(without)
    assert tenant.lacks_key
    assert tenant.stopped.startswith("the keys of its payloads cannot be read: file:keys")
    assert not tenant.simple
    assert stored.found_keys() == set()
    (tmp_path / "keys").write_bytes(OLD + b"\n")
    assert stored.found_keys() == {"shop"}
    found = stored.effective_of("shop")
    assert found is not None
    assert stored.found_keys() == set()
    tenant = tenants.follow(found)
    assert (tenant.lacks_key, tenant.stopped, tenant.simple) == (False, "", False)
    assert tenant.payload_keys is not None


ODD = {
    "targets": TenantPolicy(
        "shop", payload_key_ref="file:keys", http_targets=(HttpTarget("https://example.org"),)
    ),
    "reference": TenantPolicy("shop", payload_key_ref="my secret"),
    "out of range": TenantPolicy("shop", payload_key_ref="file:keys", max_pending=-1),
    "reserved topic": TenantPolicy(
        "shop", payload_key_ref="file:keys", output_topic="belfry.schedules"
    ),
    "another's": TenantPolicy("mail", payload_key_ref="file:keys"),
}


@pytest.mark.parametrize("policy", ODD.values(), ids=ODD)
def test_a_policy_that_cannot_be_carried_out_leaves_nothing_readable(
    tmp_path: Path, policy: TenantPolicy
) -> None:
    """The key is there; only the policy is odd.  Its tenant is treated by defaults otherwise."""
    (tmp_path / "keys").write_bytes(OLD + b"\n")
    driver = Driver()
    stored = StoredPolicies(Settings(secrets_dir=tmp_path), driver.tenants, None)
    stored.put({"shop": (framing.single_object("TenantPolicy") + encode_policy(policy), None)})
    driver.tenants.effective_of = stored.effective_of
    tenant = driver.tenants.of("shop")
    assert (tenant.lacks_key, tenant.simple, tenant.payload_keys) == (True, False, None)
    assert tenant.stopped.startswith("its policy cannot be carried out")
    assert stored.policy("shop") == tenant.effective.policy
    driver.ask(tenant="shop", payload=b"card 4711", at=T0 + HOUR)
    step = driver.step(T0)
    assert (step.outcomes, step.codes) == (["REJECTED"], ["payload_key_missing"])
    assert stored.found_keys() == set()


def test_a_policy_that_cannot_be_carried_out_still_asks_for_signatures(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"s" * 32)
    policy = TenantPolicy("shop", signing_secret_ref="file:secret", max_pending=-1)
    driver = Driver()
    stored = StoredPolicies(Settings(secrets_dir=tmp_path), driver.tenants, None)
    stored.put({"shop": (framing.single_object("TenantPolicy") + encode_policy(policy), None)})
    driver.tenants.effective_of = stored.effective_of
    driver.ask(tenant="shop", at=T0 + HOUR)
    step = driver.step(T0)
    assert (step.outcomes, step.codes) == (["REJECTED"], ["unsigned"])
    found = stored.effective_of("shop")
    assert found is not None
    assert found.secrets == (b"s" * 32,)


def test_a_copy_of_a_partition_has_the_same_keys() -> None:
    """A playback copies its engine where it may go on in two ways."""
    ring = KeyRing("shop", [OLD])
    assert deepcopy(ring) is ring


def test_neither_secrets_nor_keys_show_themselves() -> None:
    assert OLD.decode() not in repr(KeyRing("shop", [OLD]))


def test_a_policy_does_not_deliver_what_it_encrypts() -> None:
    target = HttpTarget("https://example.org")
    assert not problems(TenantPolicy("shop", payload_key_ref="file:keys"))
    (why,) = problems(TenantPolicy("shop", payload_key_ref="file:keys", http_targets=(target,)))
    assert "leave out one of the two" in why
    (why,) = problems(TenantPolicy("shop", payload_key_ref="my secret"))
    assert why.startswith("payload_key_ref, 9 characters, names no place")
    assert "my secret" not in why


def test_a_tenant_that_was_removed_has_no_keys_though_its_secret_is_there(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(OLD + b"\n")
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.ALL)
    stored = StoredPolicies(Settings(secrets_dir=tmp_path), tenants, None)
    policy = TenantPolicy("shop", payload_key_ref="file:keys")
    frame = framing.single_object("TenantPolicy")
    stored.put({"shop": (frame + encode_policy(policy), None)})
    used = stored.effective_of("shop")
    assert used is not None
    assert tenants.follow(used).payload_keys is not None
    stored.put({"shop": (frame + encode_policy(replace(policy, removed=True)), None)})
    gone = stored.effective_of("shop")
    assert gone is not None
    assert tenants.follow(gone).payload_keys is None


def test_policies_that_mention_a_secret_are_found(tmp_path: Path) -> None:
    tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.ALL)
    stored = StoredPolicies(Settings(secrets_dir=tmp_path), tenants, None)
    frame = framing.single_object("TenantPolicy")
    policies = [
        TenantPolicy("a", payload_key_ref="file:x/shop.keys"),
        TenantPolicy("b", signing_secret_ref="file:shop.keys"),
        TenantPolicy("c", payload_key_ref="file:other.keys"),
    ]
    stored.put({each.tenant: (frame + encode_policy(each), None) for each in policies})
    assert stored.mentioning(b"shop.keys") == policies[:2]
