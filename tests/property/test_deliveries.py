"""No record of the topic of deliveries ends the delivery of others, whatever its header says.

What a header's state is decoded to may be used by all that follows; what cannot be is refused.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from belfry.client.decoding import Decoder
from belfry.delivery.answers import Answer, End, step_after
from belfry.delivery.follow_ups import Places, follow_up
from belfry.delivery.http_requests import NoSecret, Secrets, post_of
from belfry.delivery.work import NotADelivery, Work, work_of
from belfry.schedules.target_kinds import is_allowed, problems_of
from belfry.schedules.target_kinds.http import _URL
from belfry.schedules.targets import HttpTarget
from belfry.tenants.deliveries import (
    HEADER,
    DeliveryState,
    UnknownDelivery,
    decode_state,
    encode_state,
)
from belfry.wire import framing
from belfry.wire.fired import FiredEvent, encode_fired
from tests.property.mutations import NOW

EVENT: Final = FiredEvent("demo", "a", "f" * 32, 1, 0, NOW, NOW, NOW, None, None, 0, b"x")
PLACES: Final = Places(
    "s", "l", "u", framing.single_object("ScheduleRequest"), b"", b"a key", b"another"
)
VALUE: Final = framing.single_object("FiredEvent") + encode_fired(EVENT)
TARGETS: Final = (
    HttpTarget("https://one.example.com/", 5, 2, "main", (("a", "b"),), "ROUND_ROBIN"),
    HttpTarget("http://[::1]:80/x", strategy="ROUND_ROBIN"),
)
FULL: Final = DeliveryState(TARGETS, "ROUND_ROBIN", 1, 3, 4, 5, 6, 7, ("h",), tell=True, acks=True)

URLS: Final = st.one_of(
    st.sampled_from(
        ["http://[", "http://[.]/", "http://[1.2.3.4]/", "http://[::1]/", "http://a/["]
    ),
    st.from_regex(_URL, fullmatch=True),
)
LEAVES: Final = st.one_of(
    st.sampled_from([None, True, False, 0, 1, -1, 1.5, 2**31, 2**62, 2**63 - 1, 2**63, 2**64 - 1]),
    st.sampled_from(["", "x", "ALL", "FIRST_AVAILABLE", "UNKNOWN", "tenant/x", "é"]),
    st.integers(-5, 10**13),
    st.text(max_size=3),
    URLS,
)
JSON: Final = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["url", "headers", "v", "targets", "x"]), inner),
    ),
    max_leaves=6,
)


@st.composite
def changed_states(draw: st.DrawFn) -> Any:
    """A state as belfry writes it, in which up to four things are something else."""
    record = copy.deepcopy(orjson.loads(encode_state(FULL)))
    for _ in range(draw(st.integers(0, 4))):
        within = draw(st.sampled_from([record, *_containers(record)]))
        if isinstance(within, dict):
            name = draw(st.sampled_from([*within, "strategy", "extra"]))
            within[name] = draw(JSON)
        elif within:
            within[draw(st.integers(0, len(within) - 1))] = draw(JSON)
    return record


def _containers(record: Any) -> list[Any]:
    """All lists and objects within one."""
    inner = record.values() if isinstance(record, dict) else record
    found = [each for each in inner if isinstance(each, dict | list)]
    return found + [deeper for each in found for deeper in _containers(each)]


def use(state: DeliveryState) -> None:
    """All that is done with a state on its way."""
    work = Work(b"k", VALUE, EVENT, [("a", b"b")], state)
    assert all(work.hosts)
    hash(work.ordering_key)
    for target in state.targets:
        is_allowed(target, state.hosts)
        with suppress(NoSecret):
            post_of(work, target, Secrets({}), NOW)
    for end in End:
        answer = Answer(end, "", "code", "reason", NOW + 5)
        step = step_after(state, EVENT, answer, NOW)
        follow_up(work, step, PLACES, NOW)
    assert decode_state(encode_state(state)) == state


@given(changed_states() | JSON)
@example({"v": 1, "targets": [{"url": "http://["}], "hosts": []})
@example({"v": 1, "targets": [{"url": "http://[.]/"}], "hosts": []})
@example({"v": 1, "targets": [{"url": "http://a/"}], "hosts": [], "attempts": "x"})
@example({"v": 1, "targets": [{"url": "http://a/"}], "hosts": [], "initial_ms": 2**63 - 1})
@example({"v": 1, "targets": [{"url": "http://a/"}], "hosts": "", "number": []})
def test_a_state_can_be_used_or_is_unknown(record: Any) -> None:
    header = orjson.dumps(record)
    try:
        state = decode_state(header)
    except UnknownDelivery:
        with pytest.raises(NotADelivery):
            work_of(b"k", VALUE, [(HEADER, header)], Decoder("FiredEvent", only=True))
        return
    use(state)


@given(st.binary(max_size=30))
def test_bytes_that_are_no_json_are_unknown(header: bytes) -> None:
    with suppress(UnknownDelivery):
        use(decode_state(header))


@given(URLS)
def test_an_address_that_is_taken_has_a_host(url: str) -> None:
    if not problems_of(HttpTarget(url)):
        assert urlsplit(url).netloc


def test_what_belfry_writes_is_never_unknown() -> None:
    most, longest = 2**31 - 1, 2**63 - 1
    wide = DeliveryState(TARGETS, "ALL", 0, most, most, longest, longest, longest)
    for state in (FULL, wide, DeliveryState((HttpTarget("http://a"),), initial_ms=0, max_ms=0)):
        use(state)
