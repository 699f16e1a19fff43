"""The quick way through reader and intake means the same as the general one."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

from belfry.schedules.rejections import Rejection
from belfry.schedules.request_digest import digest_of, digest_of_plain
from belfry.tenants.effective import Delivery, EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from belfry.wire import catalogue, framing
from belfry.wire.quick import expand, read_plain
from belfry.wire.requests import RequestReader
from tests.property.mutations import NOW, PLAIN, bodies
from tests.unit.engine.driver import HOUR, Driver

HEAD = framing.single_object("ScheduleRequest")


def body(**fields: Any) -> bytes:
    return catalogue.encode("ScheduleRequest", {"tenant": "demo", "schedule_id": "a", **fields})


@given(bodies())
@example(body(at=NOW, group="é"))
@example(body(at=NOW, payload=b"x" * 70_000))
@example(body(at=NOW) + b"\0")
@example(body(at=NOW)[:-1])
def test_a_plain_request_is_what_fastavro_reads(encoded: bytes) -> None:
    plain = read_plain(encoded, 0)
    whole = RequestReader().read_whole((0, NOW, None, HEAD + encoded, None))
    if plain is not None:
        expanded = expand(plain)
        assert expanded == (None if isinstance(whole, Rejection) else whole)


@given(bodies())
@example(body(at=NOW, group="", event_type="", key=b"", payload=b"", request_id="r"))
@example(body(at=NOW, group="g", event_type="t", key=b"k", payload=b"v", request_id="r"))
@example(body(at=NOW, key=b"k", payload=b"v", request_id="r"))
@example(body(at=NOW, key=b"", payload=b"", request_id="r"))
def test_a_plain_request_has_the_digest_of_the_whole_one(encoded: bytes) -> None:
    plain = read_plain(encoded, 0)
    whole = None if plain is None else expand(plain)
    if plain is not None and whole is not None:
        assert digest_of_plain(plain) == digest_of(whole)


@given(PLAIN)
def test_what_most_requests_look_like_is_plain(fields: dict[str, Any]) -> None:
    names = [fields["tenant"], fields["schedule_id"], fields.get("request_id", "")]
    if max(len(name.encode()) for name in names) < 64 and 2 * 10**10 <= fields["at"] < 2**41:
        assert read_plain(catalogue.encode("ScheduleRequest", fields), 0) is not None


def asked(schedule_id: str) -> bytes:
    """A request that has an id."""
    return body(at=NOW + 5, schedule_id=schedule_id, request_id="abc")


class Course(NamedTuple):
    """How requests come: milliseconds between batches, and what happens meanwhile."""

    fires: bool
    gap_ms: int = 1
    queued: bool = False
    rolls_back: bool = False


FIRING = Course(fires=True)
COURSES = st.builds(
    Course, st.booleans(), st.sampled_from([1, 1, HOUR]), st.booleans(), st.booleans()
)


def effects_of(batches: list[list[bytes]], course: Course, *, quick: bool) -> list[Any]:
    """What a partition does with these bodies, and what lies in its store at the end."""
    driver = Driver(Level.FAILURES, Delivery.ENVELOPE)
    if course.queued:
        driver.tenants.follow(EffectivePolicy(TenantPolicy("demo", priority=-1)))
    if not quick:
        reader = driver.engine._parts.batches._reader
        reader.read = reader.read_whole  # type: ignore[method-assign]
    did: list[Any] = []
    for number, batch in enumerate(batches):
        now_ms = NOW + number * course.gap_ms
        for encoded in batch:
            driver.send(HEAD + encoded, timestamp_ms=now_ms)
        if course.rolls_back:
            driver.step(now_ms, fire=course.fires, commit=False)
        effects = driver.step(now_ms, fire=course.fires).effects
        did += [effects, list(effects.rows)]
    did.append(driver.step(now_ms + HOUR).effects)
    return [*did, dict(driver.rows.scan(b"", b"\xff"))]


@given(st.lists(st.lists(bodies(), max_size=5), min_size=1, max_size=4), COURSES)
@example([[body(at=NOW + 5)], [body(at=NOW + 5, schedule_id="b", group="g" * 300)]], FIRING)
@example(
    [
        [body(at=NOW + 5)],
        [body(at=NOW + 5, schedule_id="b", group="abc").replace(b"abc", b"a\xffc")],
    ],
    FIRING,
)
@example(
    [
        [body(at=NOW + 5)],
        [body(at=NOW + 5, schedule_id="b", event_type="abc").replace(b"abc", b"a\xffc")],
    ],
    FIRING,
)
@example([[body(at=NOW + 5)], [body(at=10**12 - 1, schedule_id="b")]], Course(fires=False))
@example([[body(at=NOW + 5)], [asked("b"), asked("c")]], FIRING)
@example([[body(at=NOW + 5)], [asked("b")], [asked("c")]], FIRING)
@example([[body(at=NOW + 5)], [asked("b")], [asked("c")]], Course(fires=True, gap_ms=HOUR))
@example([[body(at=NOW + 5)], [asked("b").replace(b"abc", b"a\xffc")]], FIRING)
@example([[body(at=NOW + 5), asked("b")]], Course(fires=True, queued=True))
@example([[body(at=NOW + 5), asked("b")]], Course(fires=True, queued=True, rolls_back=True))
@example(
    [[body(at=NOW + 5)], [body(at=NOW + 5, payload=b"x" * 1_000_000, schedule_id="b")]], FIRING
)
def test_the_quick_way_has_the_same_effects(batches: list[list[bytes]], course: Course) -> None:
    assert effects_of(batches, course, quick=True) == effects_of(batches, course, quick=False)
