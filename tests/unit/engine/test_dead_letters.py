"""Dead letters: what was put back and is refused lies on a topic of its tenant's own as well."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.engine.dead_letters import WHY_BYTES
from belfry.engine.effects import Effects
from belfry.schedules.identity import Homes
from belfry.schedules.rejections import Rejection
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from belfry.wire.claims import signature
from belfry.wire.record import REDRIVEN_FROM, Headers
from tests.unit.engine.driver import HOUR, T0, Driver, Step

TOPIC: Final = "belfry.dead-letters.demo"
ROOM: Final = 1_000_000
FIRE: Final = b"0f" * 16
RETRY: Final = ("belfry-retry", b"first=5s attempts=3")
NAMES: Final[Headers] = [("belfry-fire-id", FIRE), ("belfry-schedule-tenant", b"demo")]
LAST: Final[Headers] = [*NAMES, ("mine", b"1"), ("retry-attempt", b"2"), RETRY]


def driver(partition: int = 0, partitions: int = 1, *tenants: str, room: int = ROOM) -> Driver:
    """An engine whose tenants have topics for dead letters."""
    found = Driver(partition=partition, partitions=partitions)
    names = tenants or ("demo",)
    found.tenants.topics.letters = {f"belfry.dead-letters.{name}": room for name in names}
    return found


def refused(step: Step) -> tuple[list[str], list[str], int]:
    """Codes and outcomes of a step, and how many letters it wrote."""
    return step.codes, step.outcomes, len(step.effects.letters)


def told(effects: Effects) -> dict[str, bytes | None]:
    (letter,) = effects.letters
    return dict(letter.headers)


def test_a_letter_has_key_value_and_headers_and_says_why_and_how_often_it_failed() -> None:
    of = driver()
    of.send(b"card 4711", b"4711", LAST)
    step = of.step(T0)
    assert refused(step) == (["retries_exhausted"], ["REJECTED"], 1)
    (letter,) = step.effects.letters
    assert (letter.topic, letter.key, letter.value) == (TOPIC, b"4711", b"card 4711")
    assert letter.headers[:5] == [*NAMES, ("mine", b"1"), RETRY, ("retry-attempt", b"3")]
    headers = dict(letter.headers)
    assert headers["belfry-error-code"] == b"retries_exhausted"
    assert b"failed 3 times" in (headers["belfry-error-reason"] or b"")
    place = [headers[f"belfry-error-{name}"] for name in ("topic", "partition", "offset", "tenant")]
    assert place == [b"belfry.schedules", b"0", b"0", b"demo"]
    # In the topic of refusals it lies as it was sent, so that a redrive finds it there.
    (kept,) = step.effects.rejected
    assert (kept.key, kept.value, kept.headers[: len(LAST)]) == (b"4711", b"card 4711", LAST)


def test_without_such_a_topic_it_is_refused_as_ever() -> None:
    of = driver(0, 1, "other")
    of.send(b"v", b"k", LAST)
    assert refused(of.step(T0)) == (["retries_exhausted"], ["REJECTED"], 0)


def test_a_step_that_is_rolled_back_writes_it_once() -> None:
    of = driver()
    of.send(b"v", b"k", LAST)
    first = of.step(T0, commit=False).effects.letters
    assert of.step(T0).effects.letters == first
    assert of.step(T0 + HOUR).effects.letters == []


def test_a_record_that_is_sent_back_twice_is_one_dead_letter() -> None:
    of = driver()
    of.send(b"v", b"k", LAST)
    of.send(b"v", b"k", LAST)
    step = of.step(T0)
    assert refused(step) == (["retries_exhausted"], ["REJECTED", "DUPLICATE"], 1)
    of.send(b"v", b"k", LAST)
    assert refused(of.step(T0 + HOUR - 1)) == ([], ["DUPLICATE"], 0)


def test_one_request_id_for_two_records_is_a_conflict_and_no_repeat() -> None:
    of = driver()
    for value in (b"one", b"two"):
        of.send(value, b"k", [*LAST, ("belfry-request-id", b"r")])
    step = of.step(T0)
    assert refused(step) == (["retries_exhausted"], ["REJECTED", "CONFLICT"], 1)
    # Without any id each is one by itself: a record of the consumer's own, after its only try.
    own: Headers = [
        ("belfry-tenant", b"demo"),
        ("belfry-id", b"x"),
        ("belfry-retry", b"attempts=1"),
    ]
    for _ in range(2):
        of.send(b"v", b"k", own)
    assert len(of.step(T0).effects.letters) == 2


def test_a_dead_letter_that_is_sent_with_tries_left_comes_again() -> None:
    """By a redrive, or by a tenant that takes the count off; whatever was refused before."""
    of = driver()
    of.send(b"v", b"k", LAST)
    assert of.step(T0).outcomes == ["REJECTED"]
    of.send(b"v", b"k", [each for each in LAST if each[0] != "retry-attempt"])
    assert of.step(T0 + 1).outcomes == ["ACCEPTED"]
    # A late copy of the dead letter is no second one.
    of.send(b"v", b"k", LAST)
    assert refused(of.step(T0 + 2)) == ([], ["CONFLICT"], 0)
    (shot,) = of.step(T0 + HOUR).shots
    assert shot.header("retry-attempt") == b"1"


def test_what_was_redriven_and_fails_again_is_a_dead_letter_again() -> None:
    of = driver()
    again = (REDRIVEN_FROM, b"belfry.rejected/0@0")
    once: Headers = [*NAMES, ("belfry-retry", b"attempts=1")]
    of.send(b"v", b"k", once)
    of.send(b"v", b"k", [*once, again])
    step = of.step(T0)
    assert refused(step) == (["retries_exhausted"] * 2, ["REJECTED"] * 2, 2)


def test_a_misrouted_one_is_refused_at_its_home() -> None:
    home = Homes(4).of("demo")
    of = driver(home ^ 1, 4)
    of.send(b"v", b"k", LAST, T0 - 9)
    step = of.step(T0)
    assert refused(step) == ([], [], 0)
    (sent,) = step.effects.rerouted
    assert (sent.partition, sent.key, sent.value) == (home, b"k", b"v")
    there = driver(home, 4)
    there.send(sent.value, sent.key, sent.headers, T0)
    there.send(b"v", b"k", LAST, T0)
    step = there.step(T0)
    assert refused(step) == (["retries_exhausted"], ["REJECTED", "DUPLICATE"], 1)
    headers = told(step.effects)
    assert headers["belfry-error-partition"] == b"%d" % (home ^ 1)
    assert not [name for name in headers if name.startswith("belfry-origin-")]


def test_nobody_writes_dead_letters_of_a_tenant_that_signs() -> None:
    of = driver()
    policy = TenantPolicy("demo", lifecycle="ALL", signing_secret_ref="env:X")
    of.tenants.follow(EffectivePolicy(policy, secrets=(b"secret",)))
    of.send(b"v", b"k", LAST)
    of.send(b"v", b"k", [*LAST, ("belfry-signature", b"00")])
    assert refused(of.step(T0)) == (["unsigned", "bad_signature"], ["REJECTED"] * 2, 0)
    shown = signature(b"secret", "demo", b"k", b"v", LAST)
    of.send(b"v", b"k", [*LAST, ("belfry-signature", shown)])
    assert refused(of.step(T0)) == (["retries_exhausted"], ["REJECTED"], 1)


def test_it_is_of_the_tenant_whose_topic_it_came_in_on() -> None:
    of = driver(0, 1, "demo", "own")
    of.send(b"v", b"k", [*LAST, ("belfry-tenant", b"demo"), ("belfry-origin-tenant", b"own")])
    (letter,) = of.step(T0).effects.letters
    assert (letter.topic, dict(letter.headers)["belfry-error-tenant"]) == (
        "belfry.dead-letters.own",
        b"own",
    )


def test_what_a_quota_refuses_is_a_dead_letter_too() -> None:
    """Its consumer has committed its offset, and nobody else has the record."""
    of = driver()
    of.apply(max_pending=0)
    of.send(b"v", b"k", [*NAMES, ("retry-attempt", b"1"), RETRY])
    step = of.step(T0)
    assert refused(step) == (["too_many_pending"], ["REJECTED"], 1)
    headers = told(step.effects)
    assert (headers["retry-attempt"], headers["belfry-error-code"]) == (b"2", b"too_many_pending")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        # What is no retry lies in the topic of refusals alone, and so does what cannot be read.
        ([("belfry-tenant", b"demo"), ("belfry-id", b"a")], "no_instant"),
        ([*NAMES, ("belfry-retry", b"attempts=0")], "bad_header"),
        ([*LAST, ("belfry-retri", b"")], "unknown_header"),
        ([("belfry-tenant", b"demo"), *LAST[2:]], "bad_schedule_id"),
        ([("belfry-tenant", b"../x"), *LAST], "bad_tenant"),
        ([("belfry-tenant", b""), *LAST], "no_tenant"),
        ([*LAST, ("belfry-request-id", b"x" * 256)], "bad_request_id"),
        ([*LAST, ("belfry-id", b"x" * 256)], "bad_schedule_id"),
    ],
    ids=str,
)
def test_what_is_not_known_to_be_a_retry_of_the_tenant_is_none(headers: Headers, code: str) -> None:
    of = driver()
    of.send(b"v", b"k", headers)
    assert refused(of.step(T0)) == ([code], ["REJECTED"], 0)


def test_a_request_that_is_no_retry_is_refused_without_a_letter() -> None:
    of = driver()
    of.apply(max_pending=0)
    of.ask(at=T0 + 5)
    assert refused(of.step(T0)) == (["too_many_pending"], ["REJECTED"], 0)


def test_a_tenant_that_was_removed_gets_none() -> None:
    of = driver()
    policy = TenantPolicy("demo", removed=True, lifecycle="ALL")
    of.tenants.follow(EffectivePolicy(policy, Rejection("tenant_removed", "It was removed.")))
    of.send(b"v", b"k", LAST)
    assert refused(of.step(T0)) == (["tenant_removed"], ["REJECTED"], 0)


def test_letters_stay_whole_where_refusals_are_cut() -> None:
    of = driver(room=2_000_000)
    for number in range(4):
        of.send(b"v" * 600_000, b"%d" % number, [*LAST[1:], ("belfry-id", b"%d" % number)])
    effects = of.step(T0).effects
    assert [len(each.value or b"") for each in effects.letters] == [600_000] * 4
    assert [len(each.value or b"") for each in effects.rejected][2:] == [3_333] * 2


def test_one_that_its_topic_does_not_take_is_cut_and_says_so() -> None:
    of = driver(room=WHY_BYTES + 9_000)
    of.send(b"v" * 10_000, b"k", LAST)
    step = of.step(T0)
    (letter,) = step.effects.letters
    assert letter.value == b"v" * 3_000
    assert (told(step.effects)["belfry-error-cut"] or b"").startswith(b"cut from 10")
    of = driver(room=WHY_BYTES)
    of.send(b"v", b"k", LAST)
    assert refused(of.step(T0)) == (["retries_exhausted"], ["REJECTED"], 0)
