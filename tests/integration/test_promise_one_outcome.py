"""Each request ends in exactly one verdict, and no bytes end a worker.

All sorts of poison go in at once, between good requests on each partition; then every record is
looked for in the rejected topic and among the lifecycle records, and has to be found once.
"""

from __future__ import annotations

import json
import random
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from belfry.devstack import Stack
from tests.acceptance.harness.raw_headers import send_raw as send_raw_headers
from tests.acceptance.harness.reading import Headers, Record
from tests.acceptance.harness.requests import request, request_body
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker

pytestmark = pytest.mark.slow

PARTITIONS: Final = 4
TENANTS: Final = tuple(f"good-{number}" for number in range(8))
FAR: Final = 32_503_680_000_000 // 10  # Year 2073: accepted, and never due here.
BOMB: Final = {
    "type": "record",
    "name": "ScheduleRequest",
    "fields": [{"name": "bomb", "type": {"type": "array", "items": "null"}}],
}
DEEP: Final = {
    "type": "record",
    "name": "ScheduleRequest",
    "fields": [{"name": "next", "type": ["null", "ScheduleRequest"]}],
}


@dataclass
class Case:
    """One record to send; `code` is what it has to be refused with, None where it may pass."""

    name: str
    value: bytes | None = None
    key: bytes | None = None
    headers: Headers = field(default_factory=list)
    code: str | None = None
    request_id: str = ""


@pytest.fixture(scope="module")
def site(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A belfry with one worker."""
    name = f"poison-{uuid.uuid4().hex[:8]}"
    home = tmp_path_factory.mktemp("poison")
    registry = stack.schema_registry_url
    with Site(stack.bootstrap_servers, name, home, SCHEMA_REGISTRY_URL=registry) as site:
        site.fired_topics(["small"], **{"max.message.bytes": "20000"})
        site.worker().start().wait_ready()
        yield site


def asked(name: str, code: str | None = None, **fields: Any) -> Case:
    """A request with an id, so that its verdict is told."""
    given = {"tenant": "good-0", "schedule_id": name, "at": FAR, "request_id": name, **fields}
    return Case(name, request(**given), code=code, request_id=name)


def by_headers(name: str, code: str | None = None, **headers: bytes | None) -> Case:
    """A request in headers; underscores stand for hyphens."""
    given: Headers = [("belfry-tenant", b"good-0"), ("belfry-id", name.encode())]
    given += [(f"belfry-{key.replace('_', '-')}", value) for key, value in headers.items()]
    return Case(name, b"value", headers=given, code=code)


def bytes_of_all_sorts() -> Iterator[Case]:
    """Values that are no request."""
    chance = random.Random(5)
    for number in range(40):
        value = chance.randbytes(chance.choice((1, 2, 9, 100, 10_000)))
        yield Case(f"random-{number}", b"\x7f" + value, code="not_a_request")
    for number in range(20):
        yield Case(f"single-{number}", b"\xc3\x01" + chance.randbytes(40))
    whole = request("good-0", "cut", at=FAR, payload=b"p" * 40)
    for cut in range(0, len(whole) - 60, 3):
        yield Case(f"cut-{cut}", whole[:cut], code="truncated" if cut > 10 else "not_a_request")
    yield Case("empty", b"")
    yield Case("prefix alone", b"\0\0\0\0\1")
    yield Case("nothing at all", code="not_a_request")
    yield Case("cancel without a slash", key=b"nobody", code="not_a_request")
    yield Case("cancel, no UTF-8", key=b"\xff/\xff", code="not_a_request")
    yield Case("cancel, bad tenant", key=b" /x", code="bad_tenant")


def fields_of_all_sorts() -> Iterator[Case]:
    """Requests that decode, with fields at and beyond their limits."""
    largest, least = 2**63 - 1, -(2**63)
    yield asked("seconds", "instant_in_seconds", at=1_700_000_000)
    yield asked("far", "instant_too_far", at=largest)
    yield asked("before time", "instant_in_seconds", at=least)
    yield asked("no instant", "no_instant", at=None)
    yield asked("delay back", "bad_delay", kind="AFTER", delay_ms=least)
    yield asked("delay on", "bad_delay", kind="AFTER", delay_ms=largest)
    for jitter in (largest, least, -1, 10**16):
        yield asked(f"jitter {jitter}", jitter_ms=jitter)
    yield asked("bad tenant", "bad_tenant", tenant="a/b")
    yield asked("two dots", "bad_tenant", tenant="a..b")
    yield asked("no tenant", "no_tenant", tenant="")
    yield asked("no id", "bad_schedule_id", schedule_id="")
    yield asked("control", "bad_schedule_id", schedule_id="a\0b")
    yield asked("surrogate", schedule_id="\U0001f600" * 64)
    yield asked("unknown action", "unknown_action", action="UNKNOWN")
    yield asked("unknown kind", "unknown_kind", kind="UNKNOWN")
    yield asked("group", "bad_fields", group="g" * 256)
    yield asked("group of nothing", "bad_fields", group="")
    yield asked("group of zeros", group="\0")
    yield asked("headers", "bad_fields", headers=[{"name": "n", "value": None}] * 257)
    yield asked("zero in a name", headers=[{"name": "a\0b", "value": b"1"}])
    yield asked("name of nothing", headers=[{"name": "", "value": None}])
    yield asked("version", "wrong_version", action="UPSERT", expected_version=least)
    yield asked("limits", start_at=least, end_at=largest, max_fires=least, max_lateness_ms=least)
    yield asked("many headers", headers=[{"name": "", "value": None}] * 150_000, code="bad_fields")


def headers_of_all_sorts() -> Iterator[Case]:
    """The header protocol, misspoken."""
    yield by_headers("h-nothing", "no_instant")
    yield by_headers("h-twice", "several_instants", at=b"1796115600000", **{"in": b"5m"})
    yield by_headers("h-local", "bad_header", at=b"2026-12-01T09:00:00")
    yield by_headers("h-text", "bad_header", at=b"\xff\xfe")
    yield by_headers("h-null", "no_instant", at=None)
    yield by_headers("h-months", "bad_header", **{"in": b"P1M"})
    yield by_headers("h-back", "bad_header", **{"in": b"-5m"})
    yield by_headers("h-long", "bad_header", **{"in": b"9" * 5_000})
    yield by_headers("h-action", "unknown_action", action=b"EXPLODE", **{"in": b"5m"})
    yield by_headers("h-id", "bad_header", request_id=b"\xff", **{"in": b"5m"})
    yield by_headers("h-zone", "unknown_header", tz=b"Europe/Paris", cron=b"@daily")
    for case in refused_with_an_id():
        yield case
    yield Case("h-alone", b"v", headers=[("belfry-in", b"5m")], code="no_tenant")
    forged = {"topic": b"t", "partition": b"0", "offset": b"0", "timestamp": b"0"}
    for name in ("partition", "offset", "timestamp"):
        for value in (b"9" * 40, b"-" + b"9" * 18, b"99999999999999999", b"x", b""):
            pairs: Headers = [
                (f"belfry-origin-{key}", given) for key, given in {**forged, name: value}.items()
            ]
            case = asked(f"forged {name} {value[:20]!r}", kind="AFTER", delay_ms=FAR, at=None)
            case.headers = pairs
            yield case
    case = asked("forged topic", kind="AFTER", delay_ms=FAR, at=None)
    case.headers = [(f"belfry-origin-{key}", value) for key, value in forged.items()]
    case.headers[0] = ("belfry-origin-topic", b"\xff" * 100_000)
    yield case


def refused_with_an_id() -> Iterator[Case]:
    """Headers that are refused, and of which the id can be read all the same."""
    yield by_headers("told-when", "bad_header", request_id=b"told-when", at=b"tomorrow")
    yield by_headers("told-never", "no_instant", request_id=b"told-never")
    yield by_headers("told-zone", "unknown_header", tz=b"UTC", request_id=b"told-zone", at=b"1")
    headers: Headers = [("belfry-request-id", b"told-alone"), ("belfry-in", b"5m")]
    yield Case("told-alone", b"v", headers=headers, code="no_tenant")


def large_of_all_sorts() -> Iterator[Case]:
    """What the source topic takes, and the way out may not."""
    most = 1_048_588 - 300
    yield asked("small-fits", tenant="small", payload=b"p" * 15_000)
    yield asked("small-not", "payload_too_large", tenant="small", payload=b"p" * 30_000)
    for size in (990_000, 999_300, 1_000_000, 1_020_000, most):
        yield asked(f"payload-{size}", payload=b"p" * (size - 200))
        yield Case(f"key-{size}", key=b"k" * size, code="not_a_request")
        yield Case(f"value-{size}", b"\x7f" * size, code="not_a_request")
        headers: Headers = [("h", b"h" * (size // 10)) for _ in range(10)]
        yield Case(f"headers-{size}", b"\x7f", headers=headers, code="not_a_request")
        yield Case(f"id-{size}", request("good-0", "i" * size, at=FAR), code="bad_schedule_id")
        yield Case(f"tenant-{size}", request("t" * size, "i", at=FAR), code="bad_tenant")
        yield asked(f"reason-{size}", reason="r" * (size - 200))


def of_the_registry(stack: Stack) -> Iterator[Case]:
    """Values with a registry's prefix: ids that mean nothing, or a bomb.

    They show a name of their own.  Under that of the others, large requests would come behind what
    waits for the registry, and be refused for want of room there if the registry is slow.
    """
    name = f"bomb-{uuid.uuid4().hex[:8]}"
    with SchemaRegistryClient({"url": stack.schema_registry_url}) as client:
        known = client.register_schema(f"{name}-0", Schema(json.dumps(BOMB), "AVRO"))
        deep = client.register_schema(f"{name}-1", Schema(json.dumps(DEEP), "AVRO"))
    many = b"\x80" * 8 + b"\x01"
    yield of_asker("bomb", _prefix(known) + many + b"\0", "schema_unsafe")
    yield of_asker("bomb of 200 KB", _prefix(known) + many * 22_000 + b"\0", "schema_unsafe")
    yield of_asker("deep", _prefix(deep) + b"\x02" * 200_000 + b"\0", "schema_unsafe")
    for number in range(20):
        unknown = _prefix(900_000 + number) + request_body("good-0", "x", at=FAR)
        yield of_asker(f"unknown-{number}", unknown, "unknown_schema_id")
    yield of_asker("largest id", _prefix(2**32 - 1) + b"12345", "unknown_schema_id")


def of_asker(name: str, value: bytes, code: str) -> Case:
    """A request that shows the name `asker`."""
    return Case(name, value, key=b"asker/x", code=code)


def _prefix(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big")


def send_all(site: Site, cases: list[Case]) -> dict[tuple[int, int], Case]:
    """Send each case to each partition in turn; where each landed."""
    landed: dict[tuple[int, int], Case] = {}
    for number, case in enumerate(cases):
        more: dict[str, Any] = {"headers": case.headers} if case.headers else {}
        at = site.send(case.value, key=case.key, partition=number % PARTITIONS, **more)
        landed[at.partition(), at.offset()] = case
    return landed


def send_raw(site: Site) -> dict[tuple[int, int], Case]:
    """Records whose header names are no UTF-8, which librdkafka's clients cannot send."""
    places = send_raw_headers(site.bootstrap, site.topic("schedules"), PARTITIONS)
    return {(p, o): Case(f"raw {p}", code="not_a_request") for p, o in places}


def place_of(record: Record) -> tuple[int, int]:
    """Where a rejected record was first received."""
    partition, offset = (record.header(f"belfry-error-{n}") for n in ("partition", "offset"))
    return int(partition or -1), int(offset or -1)


def answers(site: Site, landed: dict[tuple[int, int], Case]) -> dict[tuple[int, int], list[str]]:
    """Codes and outcomes by place: rejected records, and accepted requests that have an id."""
    found: dict[tuple[int, int], list[str]] = {place: [] for place in landed}
    for record in site.rejected():
        code = (record.header("belfry-error-code") or b"").decode()
        found.setdefault(place_of(record), []).append(code)
    ids = {case.request_id: place for place, case in landed.items() if case.request_id}
    for request_id, events in site.outcomes().items():
        if request_id in ids:
            told = [e["code"] or e["outcome"] for e in events if e["outcome"] != "REJECTED"]
            found[ids[request_id]] += told
    return found


def test_every_request_has_exactly_one_verdict(site: Site, stack: Stack) -> None:
    worker, pid = site.workers[0], site.workers[0].child.pid
    for tenant in TENANTS:
        site.ask(tenant, "before", at=now_ms(), payload=b"before")
    cases = [
        *bytes_of_all_sorts(),
        *fields_of_all_sorts(),
        *headers_of_all_sorts(),
        *of_the_registry(stack),
        *large_of_all_sorts(),
    ]
    landed = send_all(site, cases) | send_raw(site)
    for tenant in TENANTS:
        site.ask(tenant, "after", at=now_ms(), payload=b"after")
    for tenant in TENANTS:
        values = {record.value for record in site.wait_fired(tenant, 2, timeout_s=40)}
        assert {b"before", b"after"} <= values
    told = wait_for_all(site, landed)
    wrong = {
        landed[place].name: codes
        for place, codes in told.items()
        if len(codes) != 1 or landed[place].code not in (None, codes[0])
    }
    assert not wrong
    outcomes = site.outcomes()
    for case in refused_with_an_id():
        (event,) = outcomes[case.name]
        assert (event["outcome"], event["code"]) == ("REJECTED", case.code)
    assert worker.child.pid == pid
    assert worker.child.exit_code() is None
    assert "starts over" not in worker.log.read_text("utf-8")
    assert counted(worker) == len(landed) + 2 * len(TENANTS)


def wait_for_all(
    site: Site, landed: dict[tuple[int, int], Case]
) -> dict[tuple[int, int], list[str]]:
    """Answers, once each place has one; else those that there are."""
    try:
        wait_for("verdicts", lambda: all(answers(site, landed).values()), timeout_s=15)
    except AssertionError:
        return answers(site, landed)
    return answers(site, landed)


def counted(worker: Worker) -> int:
    """Requests by the worker's own count."""
    _, text = worker.get("/metrics")
    lines = re.findall(r"^belfry_requests_total\{.*\} (.+)$", text, re.MULTILINE)
    return sum(int(float(number)) for number in lines)
