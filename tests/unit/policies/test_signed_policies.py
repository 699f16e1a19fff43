"""Where policies are signed, those that one of us wrote where they lie are carried out, no others.

What a stranger writes changes nothing about what is in force, and is told of.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from belfry.policies.follower import Policies
from belfry.policies.policy_topic import PolicyBatch
from belfry.policies.stored_policies import UNSIGNED
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from belfry.wire import framing
from belfry.wire.policies import encode_policy
from belfry.wire.policy_signatures import POLICY_SIGNATURE, RecordLocation, policy_signature
from belfry.wire.record import Headers
from belfry.wire.worker_keys import Purpose, keys_of

FIRST, SECOND, OTHER = (f"secret number {each} of the workers" for each in (1, 2, 3))
TOPIC = "belfry.tenants"
RUNS, PAUSED = TenantPolicy("acme"), TenantPolicy("acme", paused=True)


class Message(NamedTuple):
    """A record of a partition."""

    key_: bytes
    value_: bytes | None
    headers_: Headers | None
    offset_: int
    partition_: int = 0

    def batch(self) -> PolicyBatch:
        record = self.offset_, 0, self.key_, self.value_, self.headers_
        return PolicyBatch(self.partition_, [record], self.offset_ + 1)


class Treated:
    """Applies effective."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants

    def apply(self, effective: EffectivePolicy) -> None:
        self._tenants.follow(effective)


class Site:
    """A worker that follows policies, and a tenant that it knows."""

    def __init__(self, **settings: Any) -> None:
        given = Settings(http_worker_secret=FIRST, http_worker_secret_also=SECOND, **settings)
        self.tenants = Tenants("belfry.fired.", Delivery.PAYLOAD, Level.FAILURES)
        self.foreign: list[tuple[str, int]] = []
        treated: Any = Treated(self.tenants)
        self.policies = Policies(
            given, self.tenants, treated, None, lambda *told: self.foreign.append(told)
        )
        self.policies._topic.positions = {0: 0, 1: 0}
        self.tenants.of("acme")

    def _count(self, topic: str, records: int) -> None:
        self.foreign.append((topic, records))

    def read(self, *records: Message) -> None:
        """Read these, each partition's in one round."""
        topic: Any = self.policies._topic
        for partition in sorted({each.partition_ for each in records}):
            batches = [each.batch() for each in records if each.partition_ == partition]
            read = [record for batch in batches for record in batch.records]
            topic.read = lambda read=read, last=batches[-1]: last._replace(records=read)
            self.policies._read()

    @property
    def is_paused(self) -> bool:
        """Whether the kill switch of the tenant is thrown."""
        return self.tenants.of("acme").paused

    @property
    def stopped(self) -> str:
        """Why the tenant's events wait."""
        return self.tenants.of("acme").stopped


@pytest.fixture
def site() -> Site:
    return Site(policies="signed")


def key_of(secret: str, purpose: Purpose) -> bytes:
    return keys_of([secret.encode()], purpose)[0]


def value_of(policy: TenantPolicy | None) -> bytes | None:
    if policy is None:
        return None
    return framing.single_object("TenantPolicy") + encode_policy(policy)


def plain(policy: TenantPolicy | None, offset: int) -> Message:
    return Message(b"acme", value_of(policy), None, offset)


def signed(policy: TenantPolicy | None, offset: int, secret: str = FIRST) -> Message:
    """A record as one who has the secret writes it; None: a tombstone."""
    value, key = value_of(policy), key_of(secret, Purpose.POLICIES)
    headers = policy_signature(key, RecordLocation(TOPIC, 0, offset), b"acme", value)
    return Message(b"acme", value, headers, offset)


TRUE = signed(PAUSED, 7)
NAMED = POLICY_SIGNATURE
WRONG: dict[str, Message] = {
    "not signed": plain(PAUSED, 7),
    "signed with another secret": signed(PAUSED, 7, OTHER),
    "signed for another purpose": TRUE._replace(
        headers_=policy_signature(
            key_of(FIRST, Purpose.CHANGELOG), RecordLocation(TOPIC, 0, 7), b"acme", value_of(PAUSED)
        )
    ),
    "copied to a later offset": TRUE._replace(offset_=8),
    "copied to another partition": TRUE._replace(partition_=1),
    "another tenant's": TRUE._replace(key_=b"acme2"),
    "of another topic": TRUE._replace(
        headers_=policy_signature(
            key_of(FIRST, Purpose.POLICIES),
            RecordLocation("b.tenants", 0, 7),
            b"acme",
            value_of(PAUSED),
        )
    ),
    "tampered with": TRUE._replace(value_=value_of(TenantPolicy("acme", paused=True, spread=4))),
    "a policy made a tombstone": TRUE._replace(value_=None),
    "a tombstone made a policy": signed(None, 7)._replace(value_=value_of(PAUSED)),
    "a tombstone that is not signed": plain(None, 7),
    "an empty signature": TRUE._replace(headers_=[(NAMED, b"")]),
    "a signature that is null": TRUE._replace(headers_=[(NAMED, None)]),
    "signed twice": TRUE._replace(headers_=[*(TRUE.headers_ or ()), (NAMED, b"0" * 64)]),
    "a signature that is no text": TRUE._replace(headers_=[(NAMED, b"\xff" * 64)]),
}


@pytest.mark.parametrize("secret", [FIRST, SECOND])
def test_what_is_signed_with_either_secret_is_carried_out(site: Site, secret: str) -> None:
    site.read(signed(PAUSED, 0, secret))
    assert site.is_paused
    assert (site.policies.stored.policy("acme"), site.policies.stored.problem("acme")) == (
        PAUSED,
        "",
    )
    assert not site.foreign


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_no_one_of_us_wrote_there_changes_nothing_and_is_told_of(
    site: Site, wrong: Message
) -> None:
    site.read(signed(RUNS, 0))
    site.read(wrong)
    assert (site.is_paused, site.stopped) == (False, "")
    assert (site.policies.stored.policy("acme"), site.policies.stored.problem("acme")) == (RUNS, "")
    assert site.foreign == [(TOPIC, 1)]
    assert site.policies._topic.positions[wrong.partition_] == wrong.offset_ + 1


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_it_changes_nothing_in_the_same_round_either(site: Site, wrong: Message) -> None:
    site.read(signed(RUNS, 0), wrong)
    assert (site.is_paused, site.stopped) == (False, "")
    assert site.policies.stored.policy("acme") == RUNS
    assert site.foreign == [(TOPIC, 1)]


def test_an_old_record_that_is_written_again_brings_no_policy_back(site: Site) -> None:
    old = signed(PAUSED, 0)
    site.read(old, signed(RUNS, 1), old._replace(offset_=2))
    assert not site.is_paused
    assert site.foreign == [(TOPIC, 1)]


@pytest.mark.parametrize("record", [plain(RUNS, 0), plain(None, 0), signed(RUNS, 0, OTHER)])
def test_of_whom_nothing_else_is_known_the_events_wait(site: Site, record: Message) -> None:
    """Compaction may have removed what was in force, so the defaults may be wrong as well."""
    site.read(record)
    assert site.stopped == UNSIGNED
    assert (site.policies.stored.policy("acme"), site.policies.stored.problem("acme")) == (
        None,
        UNSIGNED,
    )
    assert site.foreign == [(TOPIC, 1)]


@pytest.mark.parametrize("follows", [signed(PAUSED, 1), signed(None, 1)])
def test_a_signed_record_ends_that(site: Site, follows: Message) -> None:
    site.read(plain(RUNS, 0))
    site.read(follows)
    assert site.policies.stored.problem("acme") == ""
    paused = follows.value_ is not None
    assert (site.is_paused, site.stopped) == (paused, "its policy pauses it" if paused else "")


def test_a_signed_tombstone_leaves_the_defaults(site: Site) -> None:
    site.read(signed(PAUSED, 0))
    site.read(signed(None, 1))
    assert (site.is_paused, site.stopped, site.policies.stored.names()) == (False, "", [])
    assert not site.foreign


def test_where_all_are_trusted_all_are_carried_out() -> None:
    site = Site(policies="trusted")
    for wrong in (plain(PAUSED, 0), signed(PAUSED, 2, OTHER), signed(PAUSED, 4)):
        site.read(wrong)
        assert site.is_paused
        site.read(plain(None, wrong.offset_ + 1))
        assert not site.is_paused
    assert not site.foreign


def test_rounds_that_are_cut_otherwise_lead_to_the_same(site: Site) -> None:
    """A policy that was removed is none: what a stranger writes behind that holds the tenant."""
    records = signed(RUNS, 0), signed(None, 1), plain(PAUSED, 2)
    site.read(*records)
    apart = Site(policies="signed")
    for record in records:
        apart.read(record)
    assert site.stopped == apart.stopped == UNSIGNED


KEYED = TenantPolicy("acme", payload_key_ref="file:acme.keys")


def test_an_unsigned_policy_with_keys_leaves_nothing_readable(site: Site) -> None:
    """So it is for a tenant that had keys before policies had to be signed."""
    site.read(plain(KEYED, 0))
    tenant = site.tenants.of("acme")
    assert (tenant.lacks_key, tenant.simple, tenant.stopped) == (True, False, UNSIGNED)
    site.read(signed(RUNS, 1))
    assert (site.tenants.of("acme").lacks_key, site.stopped) == (False, "")


@pytest.mark.parametrize("record", [plain(RUNS, 0), plain(None, 0)])
def test_an_unsigned_policy_without_keys_refuses_nothing(site: Site, record: Message) -> None:
    site.read(record)
    assert not site.tenants.of("acme").lacks_key
    site.read(signed(RUNS, 1), plain(KEYED, 2))
    assert (site.tenants.of("acme").lacks_key, site.stopped) == (False, "")
