"""A batch waits until a registry has settled what its requests refer to, and no longer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

import pytest

from belfry.engine.claims import lane_of
from belfry.partitions.resolver import MOST_AT_ONCE, SHORT_S, Resolver
from belfry.registry.answers import Missing, RegistryUnreachable, Unusable, WriterSchema
from belfry.registry.lookups import Lookups
from belfry.schedules.rejections import PASSING, Rejection
from belfry.store.layout.aside import Waits
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, EffectivePolicy, Level, Signing
from belfry.tenants.policy import TenantPolicy
from belfry.wire import catalogue, framing
from belfry.wire.claims import signature
from belfry.wire.record import ORIGIN_TENANT, Headers, SourceRecord
from belfry.wire.requests import RequestReader

OURS = catalogue.schema("ScheduleRequest")
OTHER = {"type": "record", "name": "Other", "fields": [{"name": "x", "type": "int"}]}
FIELDS = {"tenant": "t", "schedule_id": "s", "at": 1_000, "key": b"k", "payload": b"p"}
BODY = catalogue.encode("ScheduleRequest", FIELDS)
PLAIN = (0, 0, b"t", b"text", None)


def asking(schema_id: int, headers: Headers | None = None, key: bytes = b"t") -> SourceRecord:
    """A request that refers to a schema."""
    return (0, 0, key, framing.prefix(schema_id) + BODY, headers)


SEVEN = asking(7)


class Registry:
    """Answers with what it is told to, at once or when it may; tells who was asked for."""

    def __init__(self, answer: WriterSchema, takes_s: float = 0) -> None:
        self.answers: dict[int, WriterSchema] = {}
        self.answer = answer
        self.takes_s = takes_s
        self.asked: list[int] = []
        self.may = Event()
        self.may.set()

    def writer_schema(self, schema_id: int) -> WriterSchema:
        """The schema of an id."""
        self.asked.append(schema_id)
        self.may.wait()
        time.sleep(self.takes_s)
        return self.answers.get(schema_id, self.answer)

    def writer_schema_by_guid(self, guid: bytes) -> WriterSchema:
        """The schema of a GUID."""
        raise AssertionError(guid)


@dataclass
class Site:
    """A resolver with the reader that it settles references for."""

    resolver: Resolver
    reader: RequestReader
    tenants: Tenants
    lookups: Any

    def ready(self, *records: SourceRecord) -> float:
        """Wait until a batch of these is ready; for how many seconds."""
        batch, began = list(records), time.monotonic()
        soon(lambda: self.resolver.ready(batch))
        return time.monotonic() - began

    def answered(self, record: SourceRecord) -> bool:
        """Whether a batch that begins now finds the schema of a record."""
        self.resolver.taken()
        return self.resolver.ready([record]) and not self.code(record)

    def settled(self, *records: SourceRecord) -> float:
        """The same, and until nothing of these waits any more, as if they were set aside."""
        began = time.monotonic()
        self.ready(*records)
        soon(lambda: not self.waiting(*records))
        return time.monotonic() - began

    def waiting(self, *records: SourceRecord) -> bool:
        """Look after records that were set aside; whether one of them waits."""
        lanes = [(lane_of(record, self.tenants), record) for record in records]
        heads = [Waits(lane, each, False) for lane, each in lanes if isinstance(lane, bytes)]
        self.resolver.look_after(heads)
        return bool(self.resolver.deferred.needs)

    def code(self, record: SourceRecord) -> str:
        """Why a record is refused, or nothing."""
        lane, reference = lane_of(record, self.tenants), self.reader.unknown_schema(record)
        if isinstance(lane, Rejection):
            return lane.code
        refused = self.resolver.refused or self.resolver.deferred.refused
        known = None if reference is None else refused.get((lane, reference))
        found = known or self.reader.read(record)
        return found.code if isinstance(found, Rejection) else ""


@contextmanager
def resolving(
    registry: Any,
    wait_s: float = 60.0,
    per_minute: int = 60,
    at: list[float] | None = None,
    forwards: bool = False,
) -> Iterator[Site]:
    """A resolver whose clock is real, or stands at what `at` holds."""
    tenants = Tenants("fired.", Delivery.PAYLOAD, Level.OUTCOMES)
    reader = RequestReader()
    clock: Callable[[], float] = time.monotonic if at is None else lambda: at[0]
    lookups = None if registry is None else Lookups(registry, wait_s, clock=clock).start()
    limits = wait_s, per_minute
    resolver = Resolver(reader, lookups, tenants, limits, clock, forwards=forwards)
    try:
        yield Site(resolver, reader, tenants, lookups)
    finally:
        if lookups is not None:
            registry.may.set()
            lookups.close()


def soon(true: Callable[[], bool]) -> None:
    """Wait until this holds; the test's time-out is its limit."""
    while not true():
        time.sleep(0.001)


def test_what_refers_to_nothing_is_ready_and_nobody_is_asked() -> None:
    registry = Registry(OURS)
    with resolving(registry) as site:
        assert site.resolver.ready([PLAIN])
        assert site.resolver.ready([])
        assert site.resolver.knows([PLAIN])
        assert not site.resolver.knows([SEVEN])
    assert not registry.asked


def test_a_schema_is_asked_for_once_and_then_known() -> None:
    registry = Registry(OURS)
    with resolving(registry) as site:
        site.ready(SEVEN, PLAIN)
        site.resolver.taken()
        assert site.resolver.ready([SEVEN])
        assert not site.code(SEVEN)
    assert registry.asked == [7]


def test_without_a_registry_it_is_refused_at_once() -> None:
    with resolving(None) as site:
        assert site.resolver.ready([SEVEN])
        assert site.code(SEVEN) == "unknown_schema_id"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Missing("not there"), "unknown_schema_id"),
        (Unusable("recursive"), "schema_unsafe"),
        (OTHER, "schema_not_a_request"),
    ],
    ids=["missing", "unusable", "another record"],
)
def test_a_registrys_no_settles_it(answer: WriterSchema, code: str) -> None:
    with resolving(Registry(answer)) as site:
        site.ready(SEVEN)
        assert site.code(SEVEN) == code


def test_a_refusal_holds_until_the_batch_is_taken_in() -> None:
    """A step that is rolled back decides the same; a later batch asks anew."""
    at = [100.0]
    with resolving(Registry(Missing("not there")), at=at) as site:
        batch = [SEVEN]
        soon(lambda: site.resolver.ready(batch))
        at[0] += 3_600
        assert site.resolver.ready(batch)
        assert site.code(SEVEN) == "unknown_schema_id"
        site.resolver.taken()
        assert not site.resolver.knows([SEVEN])


def test_what_is_left_of_a_batch_is_refused_as_its_first_half_was() -> None:
    """A batch may take several steps, each of which is given the records that are left."""
    at = [1_000.0]
    registry = Registry(Missing("not there"))
    with resolving(registry, per_minute=1, at=at) as site:
        batch = [asking(1), asking(2), asking(1), asking(2)]
        site.ready(*batch)
        left = batch[2:]
        at[0] += 3_600
        assert site.resolver.ready(left)
        codes = [site.code(each) for each in left]
        assert codes == ["unknown_schema_id", "schema_unavailable"]
    assert registry.asked == [1]


def test_a_silent_registry_holds_a_batch_up_for_a_moment_and_no_request_for_long() -> None:
    """Five stray records, and everybody behind them waited for ever."""
    registry = Registry(RegistryUnreachable("nothing there"))
    with resolving(registry, wait_s=0.5) as site:
        strays = [asking(900 + number) for number in range(5)]
        assert site.ready(*strays, PLAIN) < 0.3
        site.resolver.taken()
        assert 0.3 < site.settled(*strays) < 3
        assert {site.code(each) for each in strays} == {"schema_unavailable"}
    assert "schema_unavailable" in PASSING


def test_what_is_answered_is_never_refused_beside_ids_that_are_not() -> None:
    """Strangers' ids without an answer have used up all the time for which anybody may wait."""
    registry = Registry(RegistryUnreachable("no answer"), takes_s=0.02)
    with resolving(registry, wait_s=0.3) as site:
        for number in range(6):
            registry.answers[number] = OURS
            site.ready(asking(900 + number, key=b"%d" % number))
            site.resolver.taken()
            known = asking(number, key=b"other-%d" % number)
            site.settled(known)
            assert not site.code(known)
            site.resolver.taken()


def test_what_one_asker_is_refused_another_one_is_not() -> None:
    """The same id beyond the budget of strangers is within that of a tenant."""
    registry = Registry(Missing("not there"))
    with resolving(registry, per_minute=1) as site:
        site.tenants.follow(EffectivePolicy(TenantPolicy("known", delivery="ENVELOPE")))
        strays = [asking(1), asking(2)]
        own = asking(2, [(ORIGIN_TENANT, b"known")])
        registry.answers[2] = OURS
        site.settled(*strays)
        site.resolver.taken()
        site.settled(own)
        assert not site.code(own)


def test_ids_beyond_the_budget_are_refused_and_do_not_wait() -> None:
    """As many unknown ids as a step looks at; waiting for each would hold up everybody."""
    registry = Registry(Missing("not there"), takes_s=0.02)
    with resolving(registry, per_minute=8) as site:
        strays = [asking(1_000 + number) for number in range(MOST_AT_ONCE)]
        assert site.settled(*strays) < 2
        codes = [site.code(each) for each in strays]
        assert codes.count("unknown_schema_id") == len(registry.asked) == 8
        assert codes.count("schema_unavailable") == MOST_AT_ONCE - 8


def test_what_finds_schemas_of_requests_costs_nothing() -> None:
    """A worker that starts anew asks for those of all tenants."""
    with resolving(Registry(OURS), per_minute=2) as site:
        honest = [asking(number) for number in range(100)]
        site.settled(*honest)
        assert not any(map(site.code, honest))


def test_the_budget_comes_back_with_time() -> None:
    at = [1_000.0]
    registry = Registry(Missing("not there"))
    with resolving(registry, per_minute=2, at=at) as site:
        for number, expected in ((0, 2), (0, 2), (30, 3), (600, 5)):
            at[0] += number
            start = int(at[0]) * 10 + len(registry.asked)
            site.resolver.taken()
            site.ready(*(asking(start + each) for each in range(5)))
            assert len(registry.asked) == expected


def test_a_tenant_has_a_budget_of_its_own_and_a_made_up_one_has_not() -> None:
    """Beside the budget of all strangers, each lane of theirs has one lookup in reserve."""
    registry = Registry(Missing("not there"))
    with resolving(registry, per_minute=2) as site:
        policy = TenantPolicy("known", delivery="ENVELOPE")
        site.tenants.follow(EffectivePolicy(policy))
        site.tenants.of("met")
        strays = [asking(number) for number in range(10)]
        for number, name in enumerate((b"met", b"made up", b"made up too")):
            strays.append(asking(10 + number, [(ORIGIN_TENANT, name)]))
        own = [asking(20 + number, [(ORIGIN_TENANT, b"known")]) for number in range(3)]
        site.ready(*strays, *own)
        assert len([each for each in registry.asked if each < 20]) == 2 + 3
        assert len([each for each in registry.asked if each >= 20]) == 2


def test_who_signs_and_gives_its_name_as_key_has_a_budget_of_its_own() -> None:
    registry = Registry(Missing("not there"))

    def signed(schema_id: int, key: bytes, secret: bytes) -> SourceRecord:
        record = asking(schema_id, key=key)
        proof = signature(secret, "signs", key, record[3], None)
        return (*record[:4], [("belfry-signature", proof)])

    with resolving(registry, per_minute=2) as site:
        policy = TenantPolicy("signs", signing_secret_ref="env:SECRET")
        site.tenants.follow(EffectivePolicy(policy, secrets=(b"right",)))
        strays = [asking(number) for number in range(10)]
        strays += [signed(10 + number, b"signs", b"wrong") for number in range(3)]
        own = [signed(20, b"signs", b"right"), signed(21, b"signs/1", b"right")]
        site.ready(*strays, *own)
        assert sorted(each for each in registry.asked if each >= 20) == [20, 21]
        assert len(registry.asked) == 4 + 1, "each lane of strangers has one in reserve"


def test_what_would_be_refused_anyway_costs_no_lookup() -> None:
    registry = Registry(OURS)
    with resolving(registry) as site:
        site.tenants.signing = Signing(everybody=True)
        site.tenants.follow(
            EffectivePolicy(
                TenantPolicy("gone"), refused=Rejection("tenant_removed", "It was removed.")
            )
        )
        stamped = asking(8, [(ORIGIN_TENANT, b"gone"), ("belfry-signature", b"no")])
        batch = [SEVEN, stamped]
        assert site.resolver.ready(batch)
        assert [site.code(each) for each in batch] == ["unsigned", "bad_signature"]
    assert not registry.asked


def test_batches_wait_a_tenth_of_the_time_for_a_registry_that_is_slow() -> None:
    """For a moment at a stretch; then what needs the schema is set aside, and nothing refused."""
    at = [1_000.0]
    registry = Registry(OURS)
    registry.may.clear()
    with resolving(registry, wait_s=10, per_minute=1_000, at=at) as site:
        began_s, waited_s = at[0], 0.0
        for number in range(100):
            batch = [asking(number, key=b"%d" % number)]
            since_s = at[0]
            while not site.resolver.ready(batch):
                at[0] += 0.01
            assert at[0] - since_s <= SHORT_S + 0.011
            waited_s += at[0] - since_s
            assert not site.resolver.refused
            site.resolver.taken()
            at[0] += 0.05
        assert waited_s <= SHORT_S + 0.2 * (at[0] - began_s)


def test_a_partition_that_only_forwards_waits_for_nothing() -> None:
    """Whoever asks; what it has learned meanwhile it reads the next time."""
    registry = Registry(OURS)
    registry.may.clear()
    with resolving(registry, forwards=True, per_minute=3) as site:
        for number in range(100):
            batch = [asking(1_000 + 3 * number + each) for each in range(3)]
            assert site.resolver.ready(batch)
            assert not site.resolver.refused
            site.resolver.taken()
            site.resolver.look_after([])
        registry.may.set()

        def learned() -> bool:
            site.resolver.look_after([])
            return site.resolver.knows([asking(1_000)])

        soon(learned)
