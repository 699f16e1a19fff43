"""No record ends a worker: whatever bytes and headers come, there is an answer."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import CODES, Rejection
from belfry.tenants.effective import Delivery, Level
from belfry.wire import catalogue, framing
from belfry.wire.accepted import whole
from belfry.wire.headers import PROTOCOL
from belfry.wire.lifecycle import encode_lifecycle
from belfry.wire.record import ORIGIN, Headers, SourceRecord
from belfry.wire.requests import RequestReader
from tests.property.mutations import ANY, BYTES, NOW, TEXTS, bodies
from tests.unit.engine.driver import HOUR, Driver

OWN: Final = 7  # A schema id whose writer's schema is ours.
OLDER: Final = 8  # One whose writer knew fewer fields.
GUID: Final = bytes(range(16))
FRAMES: Final = st.sampled_from(
    [b"", framing.single_object("ScheduleRequest"), framing.prefix(OWN), framing.prefix(OLDER)]
)
NAMES: Final = st.one_of(
    st.sampled_from([*sorted(PROTOCOL), *sorted(ORIGIN), framing.VALUE_SCHEMA_ID, "traceparent"]),
    TEXTS,
)
GIVEN: Final = st.one_of(
    st.sampled_from([b"demo", b"a", b"5m", b"PT5M", b"1800000000005", b"CANCEL", b"trigger"]),
    st.sampled_from([b"", b"first=5s attempts=9", b"attempts=1"]),
    st.sampled_from(
        [b"2027-01-15T08:00:00Z", b"9" * 19, b"9" * 40, b"-1", b"\xff", b"\x01" + GUID]
    ),
    BYTES,
)
VALUES: Final = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.builds(lambda frame, body: frame + body, FRAMES, bodies()),
)
KEYS: Final = st.one_of(st.none(), st.just(b"demo/a"), st.binary(max_size=8))
RECORDS: Final = st.tuples(
    st.sampled_from([NOW, NOW - 5, -1, 0, 2**63 - 1]),
    KEYS,
    VALUES,
    st.none() | st.lists(st.tuples(NAMES, st.none() | GIVEN), max_size=7),
)
BY_HEADERS: Final = st.lists(
    st.tuples(st.sampled_from(sorted(PROTOCOL)), GIVEN), min_size=1, max_size=5
).map(lambda more: [("belfry-tenant", b"demo"), ("belfry-id", b"a"), *more])


def older_schema() -> dict[str, Any]:
    schema = dict(catalogue.schema("ScheduleRequest"))
    schema["fields"] = schema["fields"][:6]
    return schema


def reader() -> RequestReader:
    known = RequestReader()
    known.learn(OWN, catalogue.schema("ScheduleRequest"))
    known.learn(OLDER, older_schema())
    known.learn(GUID, catalogue.schema("ScheduleRequest"))
    return known


READER: Final = reader()


def record(given: tuple[int, bytes | None, bytes | None, Headers | None]) -> SourceRecord:
    return (0, *given)


@given(RECORDS)
def test_every_record_is_a_request_or_a_rejection_with_a_code(given: Any) -> None:
    READER.unknown_schemas([record(given)])
    answer = READER.read_whole(record(given))
    if isinstance(answer, Rejection):
        assert answer.code in CODES
        assert answer.reason
    else:
        assert answer.keys() == catalogue_fields()


def catalogue_fields() -> set[str]:
    return {field["name"] for field in catalogue.schema("ScheduleRequest")["fields"]}


@given(ANY, st.sampled_from([OWN, GUID, None]))
def test_what_was_written_is_what_is_read(
    fields: dict[str, Any], reference: int | bytes | None
) -> None:
    body = catalogue.encode("ScheduleRequest", fields)
    headers: Headers | None = None
    if isinstance(reference, int):
        value = framing.prefix(reference) + body
    elif reference is None:
        value = framing.single_object("ScheduleRequest") + body
    else:
        value, headers = body, [(framing.VALUE_SCHEMA_ID, b"\x01" + reference)]
    read = READER.read_whole((0, NOW, None, value, headers))
    assert not isinstance(read, Rejection)
    whole: dict[str, Any] = catalogue.own_reader("ScheduleRequest").read(body)
    assert read == whole
    assert fields.items() <= {**whole, **_non_transactional(fields)}.items()


def _non_transactional(fields: dict[str, Any]) -> dict[str, Any]:
    """Targets come back with the defaults of their own fields."""
    return {name: fields[name] for name in ("http_targets",) if name in fields}


@given(st.lists(RECORDS | st.tuples(st.just(NOW), KEYS, VALUES, BY_HEADERS), max_size=8))
def test_no_record_ends_a_partition(given: list[Any]) -> None:
    driver = Driver(Level.ALL, Delivery.ENVELOPE, partitions=3)
    driver.engine._parts.batches._reader = READER
    for each in given:
        timestamp_ms, key, value, headers = each
        driver.send(value, key, headers, timestamp_ms)
    effects = driver.step(NOW).effects
    verdicts = sum(effects.outcomes.values()) + len(effects.rerouted)
    assert verdicts == len(given)
    assert len(effects.rejected) == effects.outcomes[Outcome.REJECTED] == effects.rejections.total()
    assert effects.rejections.keys() <= CODES.keys()
    driver.step(NOW + HOUR)
    for told in [*effects.lifecycle, *driver.step(NOW + 99 * HOUR).effects.lifecycle]:
        assert encode_lifecycle(whole(told))
