"""The HTTP request: one POST, signed as Standard Webhooks says.

The body is the payload, byte for byte. `webhook-id` is the fire's id and the same for every
attempt; the time stamp is the attempt's. The headers of the user's record travel under the same
names if HTTP can carry them, CloudEvents as their HTTP binding says (``ce-id``).

    POST /hook HTTP/1.1
    webhook-id: 0b6e…                   deduplicate by it
    webhook-timestamp: 1796115600       seconds since 1970, of this attempt
    webhook-signature: v1,K5oZf…        HMAC-SHA256 over "id.timestamp.body", in base64
    belfry-attempt: 2

While a secret is changed there is a signature for each of the two, and a receiver takes any. The
scheme is standardwebhooks.com, version 1; HMAC is RFC 2104.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from binascii import Error as BinasciiError
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from belfry import __version__
from belfry.delivery.work import TOLD, Work
from belfry.schedules.instants import format_instant
from belfry.schedules.targets import HttpTarget, fit_header

SECRET_PREFIX: Final = "whsec_"  # noqa: S105  # what every secret begins with
# Bytes of the shortest secret that signs.
LEAST_SECRET_BYTES: Final = 16
# Characters of an id that a header shows as they are; all others are percent-encoded.
_SAFE: Final = "!#$&'()*+,-./:;=?@[]^_`{|}~ "
_HOP: Final = "belfry-"


class NoSecret(Exception):
    """A target asks for a secret that this process does not have, or that is malformed."""


@dataclass(frozen=True, slots=True)
class Post:
    """One HTTP request: header names in lower case, in order."""

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    timeout_ms: int


class Secrets:
    """Signing secrets by name; a name ``tenant/…`` is that tenant's alone.

    They are those of the operator's setting, and are held in memory for the life of the process.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        """Values are one or more ``whsec_…``, the newest first; ValueError for a malformed one."""
        self._keys = {name: tuple(map(_key, text.split())) for name, text in given.items()}

    def keys(self, tenant: str, name: str) -> tuple[bytes, ...]:
        """The keys to sign with; `NoSecret` if the tenant may use none of them."""
        owner, slash, _ = name.partition("/")
        keys = self._keys.get(name, ())
        if not keys or (slash and owner != tenant):
            raise NoSecret(
                f"no secret {name[:100]!r} is configured for tenant {tenant}: add it to"
                " BELFRY_WEBHOOK_SECRETS of the process that delivers"
            )
        return keys


def _key(text: str) -> bytes:
    """The bytes of a secret; ValueError says the form of a secret."""
    try:
        key = b64decode(text.removeprefix(SECRET_PREFIX) + "==")
    except (BinasciiError, ValueError):
        key = b""
    if not text.startswith(SECRET_PREFIX) or len(key) < LEAST_SECRET_BYTES:
        raise ValueError(
            f"a webhook secret is {SECRET_PREFIX} and at least {LEAST_SECRET_BYTES} bytes in"
            " base64, such as `openssl rand -base64 32` makes; several are separated by spaces"
        )
    return key


def signature(keys: Iterable[bytes], message_id: str, timestamp: str, body: bytes) -> str:
    """Signatures of all keys, as the header `webhook-signature` has them.

    `timestamp` is in seconds, as text; a receiver refuses one that is some minutes old.
    """
    signed = b"%b.%b.%b" % (message_id.encode(), timestamp.encode(), body)
    digests = (hmac.digest(key, signed, sha256) for key in keys)
    return " ".join(f"v1,{b64encode(digest).decode()}" for digest in digests)


Fill = Callable[[Work, str], str]


def _as_it_is(_work: Work, value: str) -> str:
    return value


def post_of(
    work: Work, target: HttpTarget, secrets: Secrets, now_ms: int, fill: Fill = _as_it_is
) -> Post:
    """The request for one attempt at a target; `NoSecret` where it cannot be signed.

    `fill` puts secrets in the place of references, in headers of the target alone: those of the
    event are its sender's words. Headers of the target win over the event's, and belfry's own over
    both. `now_ms` is the attempt's instant, epoch ms.
    """
    event = work.event
    body, timestamp = event.payload or b"", str(now_ms // 1000)
    headers = {name.lower(): value for name, value in _carried(work)}
    headers.setdefault("content-type", "application/octet-stream")
    headers |= {name.lower(): fill(work, value) for name, value in target.headers}
    headers |= {
        "user-agent": f"belfry/{__version__}",
        "webhook-id": event.fire_id,
        "webhook-timestamp": timestamp,
        "belfry-tenant": event.tenant,
        "belfry-schedule-id": quote(event.schedule_id, safe=_SAFE),
        "belfry-scheduled-at": format_instant(event.scheduled_at),
        "belfry-occurrence": str(event.occurrence),
        "belfry-attempt": str(work.state.attempt),
    }
    if event.event_type:
        headers["belfry-event-type"] = quote(event.event_type, safe=_SAFE)
    if event.missed:
        headers["belfry-missed"] = str(event.missed)
    headers |= {
        name: quote(value or b"", safe=_SAFE) for name, value in work.headers if name in TOLD
    }
    if target.secret_ref is not None:
        keys = secrets.keys(event.tenant, target.secret_ref)
        headers["webhook-signature"] = signature(keys, event.fire_id, timestamp, body)
    return Post(target.url, tuple(headers.items()), body, target.timeout_ms)


def _carried(work: Work) -> Iterable[tuple[str, str]]:
    """The user's headers that HTTP can carry."""
    for name, value in work.headers:
        if value is None or name.startswith(_HOP):
            continue
        field = "ce-" + name[3:] if name.startswith("ce_") else name
        text = value.decode("latin-1")
        if fit_header(field, text):
            yield field, text
