"""Requests as strangers send them: valid ones, and valid ones that were damaged."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from belfry.wire import catalogue

NOW: Final = 1_800_000_000_000
TEXTS: Final = st.one_of(
    st.sampled_from(["a", "demo", "g", "", "é", "x" * 63, "x" * 64, "y" * 255, "z" * 300, "\n"]),
    st.text(max_size=6),
)
INSTANTS: Final = st.one_of(
    st.sampled_from([0, -1, 10**12 - 1, 10**12, 2**41, 2**41 - 1, 2**63 - 1, -(2**63)]),
    st.integers(-20, 20).map(lambda delta: NOW + delta),
    st.integers(2 * 10**10, 4 * 10**12),
)
BYTES: Final = st.one_of(st.binary(max_size=9), st.sampled_from([b"p" * 200, b"\xff"]))

LETTERS: Final = "abcdefghijklmnopqrst"

PLAIN: Final = st.fixed_dictionaries(
    {
        "tenant": st.one_of(st.just("demo"), TEXTS),
        "schedule_id": st.one_of(st.sampled_from("abc"), st.sampled_from(LETTERS), TEXTS),
        "at": INSTANTS,
    },
    optional={
        "key": BYTES,
        "payload": BYTES,
        "group": TEXTS,
        "event_type": TEXTS,
        "request_id": st.one_of(st.sampled_from("rs"), st.sampled_from(LETTERS), TEXTS),
    },
)
ANY: Final = st.fixed_dictionaries(
    {"tenant": TEXTS, "schedule_id": TEXTS},
    optional={
        "action": st.sampled_from(
            ["UNKNOWN", "UPSERT", "CREATE", "CANCEL", "PAUSE", "RESUME", "TRIGGER", "ACK"]
        ),
        "kind": st.sampled_from(["UNKNOWN", "AT", "AFTER", "EVERY", "CRON"]),
        "at": INSTANTS,
        "delay_ms": INSTANTS,
        "jitter_ms": st.one_of(st.integers(-3, 60_000), st.just(2**63 - 1)),
        "interval_ms": INSTANTS,
        "max_fires": INSTANTS,
        "misfire": st.sampled_from(["UNKNOWN", "SKIP"]),
        "group": TEXTS,
        "event_type": TEXTS,
        "key": BYTES,
        "payload": BYTES,
        "headers": st.lists(
            st.fixed_dictionaries({"name": TEXTS, "value": st.none() | BYTES}), max_size=3
        ),
        "expected_version": st.sampled_from([-1, 0, 1, 2**40]),
        "request_id": TEXTS,
        "reason": TEXTS,
        "http_targets": st.lists(st.fixed_dictionaries({"url": TEXTS}), max_size=1),
    },
)


@st.composite
def bodies(draw: st.DrawFn, requests: st.SearchStrategy[dict[str, Any]] = PLAIN | ANY) -> bytes:
    """The Avro body of a request, whole or damaged in up to three places."""
    body = bytearray(catalogue.encode("ScheduleRequest", draw(requests)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(body)))
        what = draw(st.sampled_from(["change", "change", "insert", "delete", "cut"]))
        if what == "insert":
            body[at:at] = draw(st.binary(min_size=1, max_size=3))
        elif what == "delete":
            del body[at : at + draw(st.integers(1, 3))]
        elif what == "cut":
            del body[at:]
        else:
            body[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
    return bytes(body)
