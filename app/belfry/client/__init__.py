"""The library for users: write requests, get their verdicts, handle fired events.

    from belfry.client import Client

    with Client("localhost:9092") as belfry:
        belfry.schedule("demo", "hello", in_="5s", payload="hello, belfry")
        for event in belfry.events("demo"):
            print(event.schedule_id, event.payload)

| module | what for |
|---|---|
| `calls`, `asynchronous` | the client, and the same for asyncio |
| `asking` | calls that both of them and `belfry.testing` understand | | `handlers`, `subscriber`,
`seen` | events to functions by their type, each one once | | `bulk` | jobs on many schedules at
once | | `calendars` | days off, which schedules heed | | `backoff` | waits that grow, and
`retry_later` | | `claim_check` | payloads too large for Kafka | | `encryption` | payloads that only
a holder of their tenant's key can read | | `key_ring` | keys of workers for payloads at rest, for
large ones that consumers redeem | | `errors` | the tree of errors |

It imports nothing that only a worker needs: confluent-kafka with its extra
`schemaregistry`, fastavro, orjson, cronsim and tzdata are enough.
"""

from belfry.client.asking import Asking
from belfry.client.asynchronous import AsyncClient
from belfry.client.backoff import Backoff, attempt_of, retry_later
from belfry.client.bulk import BulkCount, BulkJob
from belfry.client.calendars import TenantCalendar
from belfry.client.calls import Client
from belfry.client.claim_check import ClaimCheck
from belfry.client.encryption import Encryption, KeyFolder
from belfry.client.errors import (
    BadProperty,
    BelfryError,
    ClaimBroken,
    Conflict,
    Exhausted,
    HandlerFailed,
    MissingTopic,
    NotDecrypted,
    NotFound,
    NoVerdict,
    Refused,
    Rejected,
    TooLate,
    Unavailable,
)
from belfry.client.fired_record import Claim, FiredRecord, RequestSource
from belfry.client.handlers import Handlers
from belfry.client.key_ring import KeyRing
from belfry.client.listing import Http
from belfry.client.scheduled import AckLock, Scheduled
from belfry.client.seen import Seen, SeenFile, SeenInMemory
from belfry.client.subscriber import Handling, Subscriber
from belfry.client.tail import Events
from belfry.client.verdict import Verdict

__all__ = [
    "AckLock",
    "Asking",
    "AsyncClient",
    "Backoff",
    "BadProperty",
    "BelfryError",
    "BulkCount",
    "BulkJob",
    "Claim",
    "ClaimBroken",
    "ClaimCheck",
    "Client",
    "Conflict",
    "Encryption",
    "Events",
    "Exhausted",
    "FiredRecord",
    "HandlerFailed",
    "Handlers",
    "Handling",
    "Http",
    "KeyFolder",
    "KeyRing",
    "MissingTopic",
    "NoVerdict",
    "NotDecrypted",
    "NotFound",
    "Refused",
    "Rejected",
    "RequestSource",
    "Scheduled",
    "Seen",
    "SeenFile",
    "SeenInMemory",
    "Subscriber",
    "TenantCalendar",
    "TooLate",
    "Unavailable",
    "Verdict",
    "attempt_of",
    "retry_later",
]
