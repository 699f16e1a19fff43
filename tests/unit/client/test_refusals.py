"""Records of belfry.rejected: whose they are, what can be sent again, and what marks them."""

from __future__ import annotations

import pytest

from belfry.client.refusals import (
    EVERYBODY,
    IS_CUT,
    IS_ELSEWHERE,
    RedriveRange,
    RefusedRequest,
    refused_request,
)
from belfry.wire.claims import proves, signature
from belfry.wire.record import ORIGIN_OFFSET, REDRIVEN_FROM, SIGNATURE, Headers
from belfry.wire.unread import CUT, NO_TEXT

PLACE = "belfry.rejected/3@41"


def kept(own: Headers, code: str = "bad_cron", **said: str) -> RefusedRequest:
    """A refusal as belfry writes it."""
    told = {"topic": "belfry.schedules", "partition": "0", "offset": "7", "tenant": "demo", **said}
    added: Headers = [("belfry-error-code", code.encode())]
    added += [(f"belfry-error-{name}", value.encode()) for name, value in told.items()]
    found = refused_request([*own, *added])
    assert found is not None
    return found


def asked(tenant: str = "demo", code: str | None = None) -> RedriveRange:
    return RedriveRange(tenant, 0, 1, code)


def test_the_headers_of_the_request_and_those_of_belfry_are_told_apart() -> None:
    forged: Headers = [("belfry-error-code", b"mine"), ("belfry-error-tenant", b"other")]
    found = kept([("a", b"1"), ("a", None), *forged])
    assert found.own == [("a", b"1"), ("a", None), *forged]
    assert (found.text("code"), found.text("tenant")) == ("bad_cron", "demo")
    assert refused_request([("a", b"1")]) is None


def test_tenant_and_code_choose() -> None:
    found = kept([])
    assert found.wanted(asked())
    assert found.wanted(asked(EVERYBODY, "bad_cron"))
    assert not found.wanted(asked("other"))
    assert not found.wanted(asked("demo", "bad_zone"))


def test_what_is_sent_again_has_its_own_headers_and_a_place() -> None:
    found = kept([("a", None), (ORIGIN_OFFSET, b"5"), (REDRIVEN_FROM, b"earlier"), ("a", b"2")])
    assert found.again(PLACE) == [("a", None), ("a", b"2"), (REDRIVEN_FROM, PLACE.encode())]


def test_a_signed_request_proves_whose_it_is_when_it_is_sent_again() -> None:
    own: Headers = [("belfry-id", b"x")]
    signed = [*own, (SIGNATURE, signature(b"secret", "demo", b"k", b"v", own))]
    assert proves([b"secret"], "demo", b"k", b"v", kept(signed).again(PLACE))


def test_a_mark_says_what_it_is_the_mark_of_and_is_no_refusal() -> None:
    found = kept([("a", b"1")])
    assert found.marked is None
    mark = refused_request(found.mark(PLACE, 41, "fixed"))
    assert mark is not None
    assert (mark.own, mark.marked, mark.text("tenant")) == ([], 41, "demo")
    assert mark.text("reason") == f"{PLACE} (bad_cron) was sent again: fixed"


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (kept([("a", b"1")]), None),
        (kept([], topic="belfry.schedules.demo"), None),
        (kept([], topic="belfry.schedules2"), IS_ELSEWHERE),
        (kept([], cut="cut from 1000000 bytes"), IS_CUT),
        (kept([(CUT, b"cut from 3000 headers")]), IS_CUT),
        (kept([NO_TEXT]), IS_CUT),
    ],
)
def test_what_is_not_whole_or_no_request_stays(found: RefusedRequest, why: str | None) -> None:
    assert found.hindrance("belfry.schedules") == why


@pytest.mark.parametrize("offset", ["\u00b2", "9" * 5_000, ""])
def test_what_is_no_offset_marks_no_refusal(offset: str) -> None:
    assert kept([], "redriven", redriven=offset).marked is None
