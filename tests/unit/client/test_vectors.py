"""``clients/vectors.json`` is what belfry's own code says; the clients' tests hold them to it.

Where a tenant is at home, what a signature is, how a verdict and an event read, how long a retry
waits and what it asks for: each client writes that anew in its language.  To make the file anew
after a change, run this module:

    python -m tests.unit.client.test_vectors > clients/vectors.json
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, cast

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from belfry.client import Backoff, Encryption, FiredRecord, KeyFolder, retry_later
from belfry.client.asking import Asking
from belfry.client.encryption import KEY
from belfry.client.errors import BelfryError
from belfry.schedules.identity import partition_of
from belfry.schedules.outcomes import Outcome
from belfry.wire import framing
from belfry.wire.claims import signature
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle
from belfry.wire.record import Headers
from tests.architecture.tree import ROOT

FILE: Final = ROOT / "clients" / "vectors.json"
TENANTS: Final = ("a", "demo", "shop", "payments.eu", "tenant-0042", "T_17", "x" * 100)
SIGNED: Final[list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]]] = [
    (b"4711", b'{"order": 4711}', [("belfry-tenant", b"demo"), ("belfry-id", b"order/4711")]),
    (None, None, [("belfry-tenant", b"demo"), ("belfry-action", b"CANCEL")]),
    (b"", b"", []),
    (
        b"\xff\x00",
        "grüße".encode(),
        [("empty", b""), ("null", None), ("twice", b"1"), ("twice", b"2")],
    ),
]
VERDICTS: Final = [
    LifecycleEvent(
        tenant="demo",
        schedule_id="hello",
        outcome=Outcome.ACCEPTED,
        request_id="request-1",
        version=1,
        at=1_796_115_600_000,
        due_at=1_796_115_600_250,
        source_topic="belfry.schedules",
        source_partition=3,
        source_offset=5_000_000_000,
    ),
    LifecycleEvent(
        tenant="demo",
        schedule_id="grüße/1",
        outcome=Outcome.REJECTED,
        request_id="request-2",
        at=1,
        code="bad_header",
        reason="Header belfry-in: no duration",
    ),
    LifecycleEvent(
        tenant="demo",
        schedule_id="hook",
        outcome=Outcome.FAILED,
        fire_id="f",
        version=300,
        at=1_796_115_600_000,
        target="https://example.com",
        attempt=7,
    ),
]
# Headers that each event has.
OF_EACH: Final[list[tuple[str, bytes | None]]] = [
    ("belfry-fire-id", b"f1"),
    ("belfry-schedule-id", b"order/1"),
    ("belfry-scheduled-at", b"2026-12-01T09:00:00.250Z"),
    ("belfry-occurrence", b"-1"),
]
_DIGEST: Final = b"5f0c" * 16
# Headers of events besides those that each has.
EVENTS: Final[list[list[tuple[str, bytes | None]]]] = [
    [],
    [
        ("belfry-schedule-tenant", b"demo"),
        ("belfry-schedule-version", b"7"),
        ("belfry-schedule-group", "grüße".encode()),
        ("belfry-schedule-type", b"order.expired"),
        ("belfry-missed", b"3"),
    ],
    [("event-type", b"own"), ("belfry-schedule-type", b"own")],
    [("ce_type", b"of a CloudEvent"), ("event-type", b"own"), ("belfry-schedule-type", b"own")],
    [("belfry-source", b"belfry.schedules/3/5000000000")],
    [("belfry-source", b"theirs/1/2"), ("belfry-source", b"belfry.schedules/0/0")],
    *[
        [("belfry-source", place)]
        for place in (None, b"", b"t", b"t/1", b"t/1/", b"/1/2", b"t/1/2/3", b"t/-1/2", b"t/1/x")
    ],
    [("belfry-backfill", b"job-1")],
    [("belfry-redriven", b"redrive@41")],
    [("claim-check-sha256", _DIGEST), ("claim-check-bytes", b"1048576")],
    [
        ("claim-check-sha256", _DIGEST),
        ("claim-check-bytes", b"0"),
        ("claim-check-encrypted", b"demo/order/1"),
    ],
    [("claim-check-sha256", _DIGEST)],
    [("claim-check-sha256", _DIGEST[1:]), ("claim-check-bytes", b"1")],
    [("claim-check-sha256", _DIGEST.upper()), ("claim-check-bytes", b"1")],
    [("claim-check-sha256", _DIGEST), ("claim-check-bytes", b"-1")],
    [("claim-check-sha256", _DIGEST), ("claim-check-bytes", b"many")],
]
# A key that tells its halves apart, and payloads around the size of a block.
ENCRYPTION_KEY: Final = bytes(range(64))
ENCRYPTED: Final = [
    *(bytes(range(1, size + 1)) for size in (1, 15, 16, 17, 31, 32, 33, 100)),
    b"\x80" * 16,
    b"\0" * 16,
    "grüße, 4711".encode(),
]
WAITS: Final = [
    Backoff(first=1_000, factor=2, most=60_000, attempts=9),
    Backoff(first=500, factor=1.5, most=2_000, attempts=4),
    Backoff(first=1_000, factor=1, most=1_000, attempts=1),
    Backoff(first=1_000, factor=10, most=3_600_000, attempts=400),
]

_SHOPS: Final[list[tuple[str, bytes | None]]] = [("belfry-schedule-tenant", b"shop")]
_REDRIVEN: Final[tuple[str, bytes | None]] = ("belfry-redriven", b"redrive@41")
# Fired records that their consumer could not handle: topic, key, and headers besides those of each.
RETRIES: Final[list[tuple[str, bytes | None, list[tuple[str, bytes | None]]]]] = [
    # On the output that many share, the key has its tenant before it.
    ("belfry.fired", b"shop/4711", _SHOPS),
    ("belfry.fired", b"shop/shop/4711", _SHOPS),
    ("belfry.fired", b"shop/", _SHOPS),
    ("belfry.fired", b"shop/\xff\x00", _SHOPS),
    ("belfry.fired", b"shop", _SHOPS),
    ("belfry.fired", b"shopping/4711", _SHOPS),
    ("belfry.fired", b"mail/4711", _SHOPS),
    ("belfry.fired", None, _SHOPS),
    ("other-fired", b"shop/4711", _SHOPS),
    # Elsewhere it is the user's own, whatever it begins with.
    ("belfry.fired.shop", b"shop/4711", _SHOPS),
    ("belfry.fired.misfired", b"misfired/4711", [("belfry-schedule-tenant", b"misfired")]),
    ("messages", b"shop/4711", _SHOPS),
    # What a redrive has sent again is another record to try again.
    ("belfry.fired.shop", b"4711", [*_SHOPS, _REDRIVEN]),
    ("belfry.fired", b"shop/4711", [*_SHOPS, _REDRIVEN]),
    ("belfry.fired.shop", b"4711", [*_SHOPS, _REDRIVEN, ("retry-attempt", b"3")]),
    ("belfry.fired.shop", b"4711", [*_SHOPS, ("belfry-redriven", b"")]),
]


def spaced(given: bytes | None) -> str | None:
    """Bytes as hexadecimal digits, four by four."""
    return None if given is None else given.hex(" ", -2)


def event(more: list[tuple[str, bytes | None]]) -> dict[str, Any]:
    """Headers of a fired record, and what they say."""
    headers = [*more, *OF_EACH]
    # The topic names no tenant, so that the headers have to.
    read = FiredRecord("belfry.fired", 0, 0, None, None, None, headers)
    texts = ("fire_id", "schedule_id", "tenant", "group", "event_type", "backfill", "redriven")
    numbers = ("scheduled_at_ms", "occurrence", "missed", "version")
    said = {name: getattr(read, name) for name in (*texts, *numbers)}
    source = None if read.source is None else read.source._asdict()
    claim = None if read.claim is None else read.claim._asdict()
    return {
        "headers": [[name, spaced(given)] for name, given in headers],
        "event": {**said, "source": source, "claim": claim},
    }


class Asked:
    """Stands for a client, and keeps what it was asked for."""

    def schedule(self, tenant: str, schedule_id: str, **definition: Any) -> None:
        self.asked = {"tenant": tenant, "id": schedule_id, **definition}


def retry(topic: str, key: bytes | None, more: list[tuple[str, bytes | None]]) -> dict[str, Any]:
    """A fired record, and the schedule that puts it back."""
    headers, client = [*more, *OF_EACH], Asked()
    retry_later(cast("Asking", client), FiredRecord(topic, 0, 0, None, key, b"v", headers))
    asked = client.asked
    return {
        "topic": topic,
        "key": spaced(key),
        "headers": [[name, spaced(given)] for name, given in headers],
        "retry": {
            "tenant": asked["tenant"],
            "id": asked["id"],
            "request_id": asked["request_id"],
            "key": spaced(asked["key"]),
            "headers": [list(each) for each in asked["headers"]],
        },
    }


def encrypted() -> Iterator[dict[str, Any]]:
    """Payloads under a key, as `Encryption.seal` has them; a null payload cannot be decrypted."""
    for reference, tenant in (("shop/k1", "shop"), ("payments.eu/k12", "payments.eu")):
        cipher = AESSIV(ENCRYPTION_KEY)
        sealed = [cipher.encrypt(payload, [reference.encode()]) for payload in ENCRYPTED]
        for payload, each in zip(ENCRYPTED, sealed, strict=True):
            yield sealed_vector(reference, tenant, each, payload)
        last = sealed[-1]
        for wrong in (last[:-1], last[:15], last[:-1] + b"\0", b"\0" + last[1:], last + b"\0"):
            yield sealed_vector(reference, tenant, wrong, None)
        # Another key's name, another tenant's, one that is a path.
        for names in (f"{tenant}/k13", f"other/{reference}", "other/k1", f"../{reference}"):
            yield {**sealed_vector(reference, tenant, last, None), "names": names}


def sealed_vector(
    reference: str, tenant: str, sealed: bytes, payload: bytes | None
) -> dict[str, Any]:
    return {
        "key": spaced(ENCRYPTION_KEY),
        "reference": reference,
        "names": reference,
        "tenant": tenant,
        "payload": spaced(payload),
        "sealed": spaced(sealed),
    }


def vectors() -> dict[str, Any]:
    """All that has to be the same in every language."""
    secret = "what tenant demo shares with belfry"
    return {
        "about": "Made by tests/unit/client/test_vectors.py; bytes as hexadecimal digits.",
        "partitions": [
            {
                "tenant": tenant,
                "partitions": count,
                "partition": partition_of(tenant.encode(), count),
            }
            for tenant in TENANTS
            for count in (1, 4, 12, 100)
        ],
        "signatures": [
            {
                "secret": secret,
                "tenant": "demo",
                "key": spaced(key),
                "value": spaced(value),
                "headers": [[name, spaced(given)] for name, given in headers],
                "signature": spaced(
                    bytes.fromhex(signature(secret.encode(), "demo", key, value, headers).decode())
                ),
            }
            for key, value, headers in SIGNED
        ],
        "verdicts": [
            {"value": spaced(frame + encode_lifecycle(event)), "verdict": asdict(event)}
            for event in VERDICTS
            for frame in (framing.single_object("LifecycleEvent"), framing.prefix(4_711))
        ],
        "events": [event(more) for more in EVENTS],
        "encrypted": list(encrypted()),
        "retries": [retry(*failed) for failed in RETRIES],
        "waits": [
            {
                "first_ms": wait.first,
                "factor": wait.factor,
                "most_ms": wait.most,
                "attempts": wait.attempts,
                "failed": failed,
                "delay_ms": wait.delay_ms(failed),
            }
            for wait in WAITS
            for failed in (1, 2, 3, 4, 9, 399)
        ],
    }


def text() -> str:
    """The file as it has to be: one vector a line."""
    lines = []
    for name, found in vectors().items():
        if isinstance(found, str):
            lines.append(f"  {json.dumps(name)}: {json.dumps(found)}")
            continue
        each = ",\n".join(f"    {json.dumps(one, ensure_ascii=False)}" for one in found)
        lines.append(f"  {json.dumps(name)}: [\n{each}\n  ]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def test_the_file_says_what_belfry_does() -> None:
    assert FILE.read_text("utf-8") == text()


@pytest.mark.parametrize(
    "name", ["partitions", "signatures", "verdicts", "events", "encrypted", "retries", "waits"]
)
def test_every_client_is_held_to_it(name: str) -> None:
    for tests in (
        "go/vectors_test.go",
        "typescript/test/vectors.test.ts",
        "java/src/test/java/io/belfry/client/VectorsTest.java",
    ):
        code = (FILE.parent / tests).read_text("utf-8").replace("'", '"')
        assert f'"{name}"' in code, tests


@pytest.mark.parametrize("vector", [*encrypted()])
def test_python_encrypts_and_decrypts_so(vector: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / vector["reference"]
    file.parent.mkdir()
    file.write_bytes(ENCRYPTION_KEY)
    encryption = Encryption(KeyFolder(tmp_path))
    payload, sealed = (
        None if each is None else bytes.fromhex(each)
        for each in (vector["payload"], vector["sealed"])
    )
    headers: Headers = [
        (KEY, vector["names"].encode()), ("belfry-schedule-tenant", vector["tenant"].encode()),
    ]  # fmt: skip
    event = FiredRecord("belfry.fired", 0, 0, None, None, sealed, headers)
    if payload is None:
        with pytest.raises(BelfryError):
            encryption.open(event)
        return
    assert encryption.open(event) == payload
    told = {"payload": sealed, "headers": [(KEY, vector["reference"])]}
    assert encryption.seal(vector["tenant"], payload) == told


if __name__ == "__main__":
    print(text(), end="")  # noqa: T201  # the file
