"""The state of a delivery: its bytes, how long it waits, and what a dispatcher does not act on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import orjson
import pytest

from belfry.schedules.targets import HttpTarget, Strategy
from belfry.tenants.deliveries import (
    DeliveryState,
    UnknownDelivery,
    decode_state,
    encode_state,
    first_states,
    retry_policy,
)
from belfry.tenants.policy import TenantPolicy

A, B, C = (HttpTarget(f"https://{name}.example/") for name in "abc")
PLAIN: Final = DeliveryState((A,))
WRITTEN: Final = (
    b'{"v":1,"targets":[{"url":"https://a.example/"}],"strategy":"ALL","number":0,"attempt":1,'
    b'"attempts":10,"initial_ms":1000,"max_ms":3600000,"age_ms":86400000,"hosts":[],"tell":false}'
)
DAY: Final = 86_400_000


def test_a_state_is_written_so_and_read_back() -> None:
    assert encode_state(PLAIN) == WRITTEN
    assert decode_state(WRITTEN) == PLAIN
    whole = DeliveryState(
        (A, replace(B, strategy="ALL")), "ALL", 3, 4, 5, 6, 7, 8, ("a.example",), True, True,
        ("env:BELFRY_SECRET_A",),
    )  # fmt: skip
    assert decode_state(encode_state(whole)) == whole
    assert orjson.loads(encode_state(whole))["refs"] == ["env:BELFRY_SECRET_A"]


INT, LONG = 2**31 - 1, 2**63 - 1


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("number", 0, INT),
        ("attempt", 1, INT),
        ("attempts", 1, INT),
        ("initial_ms", 0, LONG),
        ("max_ms", 0, LONG),
        ("age_ms", 0, LONG),
    ],
)
def test_a_number_is_believed_from_its_least_to_its_most(name: str, least: int, most: int) -> None:
    known: dict[str, Any] = orjson.loads(WRITTEN)
    wrong: tuple[object, ...] = (least - 1, most + 1, str(least), True, None)
    for value in (least, most):
        assert getattr(decode_state(orjson.dumps(known | {name: value})), name) == value
    for given in wrong:
        with pytest.raises(UnknownDelivery, match=f"{name} is no number from {least} to {most}"):
            decode_state(orjson.dumps(known | {name: given}))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"v": 2}, "another format"),
        ({"hosts": "a.example"}, "hosts or refs are no list of texts"),
        ({"hosts": ["a", 1]}, "hosts or refs are no list of texts"),
        ({"refs": {"a": 1}}, "hosts or refs are no list of texts"),
        ({"tell": 1}, "tell or acks is neither true nor false"),
        ({"acks": "yes"}, "tell or acks is neither true nor false"),
        ({"targets": []}, "0 targets instead of 1 to 16"),
        ({"targets": [{"url": "https://a.example/"}] * 17}, "17 targets instead of 1 to 16"),
        ({"strategy": "NEWEST"}, "an unknown strategy"),
        ({"targets": [{"url": "https://a.example/", "strategy": "NEWEST"}]}, "an unknown strategy"),
        ({"targets": [{"url": "https://a.example/", "timeout_ms": "5"}]},
         "a target with a field of another type"),
        ({"later": 1}, "DeliveryState.__init__() got an unexpected keyword argument 'later'"),
    ],
)  # fmt: skip
def test_what_a_dispatcher_cannot_act_on_says_why(change: dict[str, Any], why: str) -> None:
    encoded = orjson.dumps(orjson.loads(WRITTEN) | change)
    with pytest.raises(UnknownDelivery) as caught:
        decode_state(encoded)
    assert str(caught.value) == f"belfry-delivery is no delivery's: {encoded[:60]!r} ({why})"


def test_a_target_that_no_request_may_have_is_none_that_a_dispatcher_calls() -> None:
    elsewhere = replace(PLAIN, targets=(HttpTarget("ftp://a"),))
    with pytest.raises(UnknownDelivery, match="url 'ftp://a' of a target is no absolute http"):
        decode_state(encode_state(elsewhere))


@pytest.mark.parametrize("encoded", [b"", b"{}", b"[]", b"7", b'{"v":1}'])
def test_bytes_that_are_no_state_are_unknown(encoded: bytes) -> None:
    with pytest.raises(UnknownDelivery, match=r"^belfry-delivery is no delivery's: "):
        decode_state(encoded)


def test_each_strategy_is_believed() -> None:
    each = DeliveryState((A, *of("ROUND_ROBIN", B), *of("FIRST_AVAILABLE", C)))
    assert decode_state(encode_state(each)) == each


def test_sixteen_targets_are_believed() -> None:
    assert len(decode_state(encode_state(DeliveryState((A,) * 16))).targets) == 16


@pytest.mark.parametrize(
    ("state", "least", "most"),
    [
        (PLAIN, 1_000, 1_250),
        (replace(PLAIN, attempt=2), 2_000, 2_500),
        (replace(PLAIN, attempt=4), 8_000, 10_000),
        (replace(PLAIN, attempt=12), 2_048_000, 2_560_000),
        (replace(PLAIN, attempt=13), 3_600_000, 4_500_000),
        (replace(PLAIN, attempt=2**31 - 1), 3_600_000, 4_500_000),
        # A first wait that is longer than the longest one counts.
        (replace(PLAIN, initial_ms=5_000_000), 5_000_000, 6_250_000),
        (replace(PLAIN, initial_ms=0, attempt=9), 0, 0),
        (replace(PLAIN, initial_ms=2**63 - 1), 366 * DAY, 366 * DAY * 5 // 4),
    ],
)
def test_a_wait_is_doubled_and_up_to_a_quarter_is_added(
    state: DeliveryState, least: int, most: int
) -> None:
    waits = [state.wait_ms(f"fire {n}") for n in range(200)]
    assert all(least <= each <= most for each in waits)
    if most > least:
        assert max(waits) - min(waits) > (most - least) * 0.9


def test_a_quarter_of_a_few_milliseconds_is_met_whole() -> None:
    few = replace(PLAIN, initial_ms=8, max_ms=8)
    assert {few.wait_ms(f"fire {n}") for n in range(200)} == {8, 9, 10}


def test_a_wait_is_the_same_on_every_machine_and_another_one_for_each_attempt() -> None:
    """Another release must not wait otherwise amid a delivery, nor together with the others."""
    frozen = (
        PLAIN,
        replace(PLAIN, number=1),
        PLAIN.next_attempt(),
        replace(PLAIN, initial_ms=1_003),
    )
    assert [each.wait_ms("f") for each in frozen] == [1_014, 1_206, 2_234, 1_017]
    apart = {replace(PLAIN, number=n).wait_ms("f") for n in range(40)}
    assert len(apart) > 30


def test_turns_begin_with_the_next_target_for_each_occurrence_and_go_on_at_a_retry() -> None:
    state = DeliveryState((A, B, C), "ROUND_ROBIN")
    turns = [state.order("s", occurrence) for occurrence in range(3)]
    # Where a schedule begins stays so: another release goes on amid its turns.
    assert turns == [(B,), (C,), (A,)]
    assert state.next_attempt().order("s", 0) == state.order("s", 1)
    assert state.order("s", 3) == state.order("s", 0)
    begins = {state.order(f"s{n}", 0) for n in range(30)}
    assert len(begins) == 3
    assert DeliveryState((A, B)).order("s", 1) == (A, B)
    assert DeliveryState((A, B), "FIRST_AVAILABLE").next_attempt().order("s", 0) == (A, B)


def of(strategy: Strategy, *targets: HttpTarget) -> list[HttpTarget]:
    return [replace(each, strategy=strategy) for each in targets]


def test_targets_of_all_have_a_delivery_each_and_the_others_one_together() -> None:
    turns, first, alone = of("ROUND_ROBIN", A, B), of("FIRST_AVAILABLE", C, A), of("ALL", B, C)
    policy = TenantPolicy("shop")
    mixed = [turns[0], first[0], alone[0], first[1], turns[1], alone[1]]
    found = [decode_state(each) for each in first_states(mixed, policy, tell=True)]
    assert [each.targets for each in found] == [
        (alone[0],),
        (alone[1],),
        tuple(first),
        tuple(turns),
    ]
    assert [each.strategy for each in found] == ["ALL", "ALL", "FIRST_AVAILABLE", "ROUND_ROBIN"]
    assert [each.number for each in found] == [0, 1, 2, 3]
    assert all(each.tell and not each.acks and each.attempt == 1 for each in found)
    (acked,) = first_states([A], policy, tell=False, acks=True)
    assert decode_state(acked) == replace(PLAIN, acks=True)
    assert first_states([], policy, tell=True) == ()


def test_a_delivery_has_the_bounds_of_its_policy_and_the_most_attempts_of_its_targets() -> None:
    policy = TenantPolicy(
        "shop", retry_max_attempts=3, retry_initial_ms=0, retry_max_ms=5, retry_max_age_ms=7,
        allowed_hosts=("*.example",), secret_refs=("env:BELFRY_SECRET_A", "env:BELFRY_SECRET_B"),
    )  # fmt: skip
    header = ("authorization", "${env:BELFRY_SECRET_A} ${env:BELFRY_SECRET_C}")
    targets = of("FIRST_AVAILABLE", replace(A, max_attempts=2), replace(B, headers=(header,)))
    (found,) = (decode_state(each) for each in first_states(targets, policy, tell=False))
    assert (found.attempts, found.initial_ms, found.max_ms, found.age_ms) == (3, 0, 5, 7)
    assert (found.hosts, found.refs) == (("*.example",), ("env:BELFRY_SECRET_A",))
    (more,) = first_states([replace(A, max_attempts=20)], policy, tell=False)
    assert decode_state(more).attempts == 20
    (usual,) = first_states([A], TenantPolicy("shop"), tell=False)
    assert decode_state(usual) == PLAIN


def test_the_tenant_of_retries_is_spread_and_remembers_nothing() -> None:
    assert retry_policy("belfry.deliveries") == TenantPolicy(
        "belfry-deliveries", output_topic="belfry.deliveries", spread=64, remember_ms=0
    )
