"""A record that its consumer could not handle and sends back to be tried again later.

The consumer writes it unchanged, with its key, value and headers, and one more header:

    belfry-retry: first=5s factor=2 attempts=8        belfry-fire-id: 5f0c…  (as it came)
                                                      belfry-schedule-tenant: shop
                                                      retry-attempt: 1
      ─► AFTER 10s of tenant shop, with the id retry/5f0c… and the header retry-attempt: 2

The record's headers about the fire that wrote it name the new schedule, so two copies of one record
are one retry. A record from another topic needs `belfry-tenant` and `belfry-id`, which win in any
case.  The clients' retriers make the same schedules, and count in the same header.

After the last try the record is refused (`retries_exhausted`), so it lies in `belfry.rejected` with
its key, value and headers. A dead letter that a redrive sends again begins anew: it counts as
failed once, and waits for the first wait.

A header without a value is ignored, here as in the protocol: the one before it counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from belfry.schedules.rejections import Rejection
from belfry.schedules.request import KEEPING, Header
from belfry.schedules.retry_rule import HEADER, RetryRule
from belfry.wire.record import Headers, SourceRecord, is_redriven, without_origin

# Why a record without a try left is refused.
EXHAUSTED: Final = "retries_exhausted"
# The number of failures of a record. The name is like a user's, so that it comes out with the
# event.
ATTEMPT: Final = "retry-attempt"
# Attributes of a CloudEvent that belfry makes anew for each fire.
_MADE: Final = frozenset({"ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time"})
_COUNT: Final = re.compile(rb"[0-9]{1,9}")
_OURS: Final = "belfry-"


class FiredBefore(NamedTuple):
    """Belfry's headers about the fire that wrote a record; None for each that is missing."""

    tenant: bytes | None
    fire_id: bytes | None
    redriven: bytes | None
    event_type: bytes | None
    group: bytes | None


def is_put_back(headers: Iterable[tuple[str, bytes | None]] | None) -> bool:
    """Whether a record was sent back to be tried again."""
    return any(name == HEADER and given is not None for name, given in headers or ())


def letter_headers(headers: Headers | None) -> Headers:
    """The headers of a record that was put back, for its dead letter: with all failures counted.

    It has failed once more than its header says; a header that is not a count stays as it is.
    Headers that belfry added on the way to the owning partition are left out.
    """
    found = without_origin(headers)
    failed = _failed_after([value for name, value in found if name == ATTEMPT])
    if failed is None:
        return found
    return [*(each for each in found if each[0] != ATTEMPT), (ATTEMPT, b"%d" % failed)]


def name_after(fields: dict[str, Any], before: FiredBefore, errors: str = "strict") -> None:
    """Name the tenant, the schedule and the request after the fire, unless headers name them.

    A request id is made of the fire alone: a consumer may give one id to many records. An event
    that a redrive has sent again gets another id, so that it is tried again as well.
    UnicodeDecodeError for bytes that are not UTF-8, unless `errors` says otherwise.
    """
    if before.tenant and "tenant" not in fields:
        fields["tenant"] = before.tenant.decode(errors=errors)
    if before.fire_id:
        fire = [b"retry", before.fire_id, *([before.redriven] if before.redriven else [])]
        name = b"/".join(fire).decode(errors=errors)
        fields.setdefault("schedule_id", name)
        if fields["request_id"] is None:
            fields["request_id"] = name


def put_back(
    fields: dict[str, Any], rule: RetryRule, before: FiredBefore, record: SourceRecord
) -> Rejection | None:
    """Complete the fields of a request that puts a record back, or refuse it.

    If a redrive sends a record that has no try left, the record begins anew.
    """
    if fields["action"].upper() not in KEEPING:
        return _bad(
            f"it puts a record back, and belfry-action is {fields['action']!r:.40}: leave one out."
        )
    if rule.jitter_percent and fields["jitter_ms"] is not None:
        return _bad("it has a jitter, and belfry-jitter is another one: keep one of them.")
    failed = _failed(fields["headers"])
    if failed is None:
        return Rejection(
            "bad_header",
            f"Header {ATTEMPT} is no count of failed tries, such as 3: send it back as it came, and"
            " leave it out the first time.",
        )
    wait_ms = rule.wait_ms(failed)
    if wait_ms is None and is_redriven(record):
        failed = 1
        wait_ms = rule.wait_ms(failed)
    if wait_ms is None:
        return _exhausted(failed, rule)
    try:
        name_after(fields, before)
        for name, given in (("event_type", before.event_type), ("group", before.group)):
            if given and fields[name] is None:
                fields[name] = given.decode()
    except UnicodeDecodeError as error:
        return _bad(f"a header belfry-schedule-… of the record is no UTF-8: {error.object!r:.80}.")
    fields["delay_ms"] = wait_ms
    if rule.jitter_percent:
        fields["jitter_ms"] = rule.jitter_ms(wait_ms)
    counted: Header = {"name": ATTEMPT, "value": b"%d" % failed}
    fields["headers"] = [*_own(fields["headers"], before.fire_id), counted]
    return None


def _failed(headers: list[Header]) -> int | None:
    """The number of failures by now; None if the header is not a number."""
    return _failed_after([each["value"] for each in headers if each["name"] == ATTEMPT])


def _failed_after(counts: Iterable[bytes | None]) -> int | None:
    """The last of these counts plus one failure; None if it is not a number."""
    given = [each for each in counts if each is not None]
    if not given:
        return 1
    return int(given[-1]) + 1 if _COUNT.fullmatch(given[-1]) else None


def _own(headers: list[Header], fire_id: bytes | None) -> list[Header]:
    """The user's headers: without the count, belfry's own, and the CloudEvent that belfry made."""
    ids = [each["value"] for each in headers if each["name"] == "ce_id"]
    made = fire_id is not None and ids[-1:] == [fire_id]
    return [
        each
        for each in headers
        if each["name"] != ATTEMPT
        and not each["name"].startswith(_OURS)
        and not (made and each["name"] in _MADE)
    ]


def _bad(why: str) -> Rejection:
    return Rejection("bad_header", f"Header {HEADER}: {why}")


def _exhausted(failed: int, rule: RetryRule) -> Rejection:
    times = {1: "once", 2: "twice"}.get(failed, f"{failed} times")
    return Rejection(
        EXHAUSTED,
        f"The record failed {times}, and {HEADER} allows {rule.attempts}: it is a dead letter now."
        " `belfry redrive rejected` has it tried anew.",
    )
