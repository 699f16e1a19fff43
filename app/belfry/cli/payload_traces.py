"""Traces of a tenant's payloads, counted by where they lie and who could read them.

    row of the changelog    encrypted by key 3f2a…     ─► a secret here makes that key?  decrypt it
    request, refusal        as its sender wrote it     ─► readable, unless a client encrypted it
    event, delivery, retry  as it fired                ─► the same
    stored object           its first nine bytes       ─► name a key that is known, or none

It answers one question: can anybody read this payload who has all data of Kafka and of the store,
and the given secrets? So a payload counts as unreadable only if that is shown. An undecided case,
such as a request in an unknown schema, is `UNKNOWN` and never passed over.

A record without the tenant's name does not belong to the tenant, for a name lies in Avro and in
headers in plain bytes. So others' records are not decoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, NamedTuple

from belfry.client.encryption import KEY, is_key_of
from belfry.client.fired_record import FiredRecord
from belfry.client.key_ring import FORMAT, KeyRing
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.store.layout.aside import ASIDE_PREFIX, decode_aside
from belfry.store.layout.groups import HELD_PREFIX, decode_held
from belfry.store.layout.pending import Encrypted, decode_headers, decode_pending
from belfry.store.layout.records import PENDING, UnknownFormat, check_format
from belfry.tenants.deliveries import RETRIES
from belfry.tenants.payload_keys import Undecryptable, key_id_of
from belfry.wire.claim_check import CLAIM
from belfry.wire.headers import TENANT, asked_by
from belfry.wire.readings import Reference
from belfry.wire.record import Headers, SourceRecord, stamp_of
from belfry.wire.requests import RequestReader

# Bytes that say how an object is encrypted: the format, and the id of the key.
HEAD_BYTES: Final = 9
Look = Callable[[Reference], Any]
# Retries of deliveries are schedules of this tenant, and hold the events of others.
_RETRIES: Final = RETRIES.encode()


class Left(StrEnum):
    """Who could read a payload that is left."""

    DECRYPTED = "decrypted"
    AS_SENT = "as_sent"
    ENCRYPTED = "encrypted"
    BY_CLIENT = "by_client"
    UNKNOWN = "unknown"


READABLE: Final = frozenset({Left.DECRYPTED, Left.AS_SENT})


class Trace(NamedTuple):
    """A sort of payloads that are left; `key` is the id of the key at rest, empty for none."""

    where: str
    left: Left
    key: str


class PayloadTraces:
    """Counts what is left of one tenant's payloads; `found` has it by sort."""

    def __init__(
        self, tenant: str, keys: KeyRing | None, look: Look, ids: frozenset[str] = frozenset()
    ) -> None:
        """`keys` are made of the secrets that can be read here.

        `look` gives a writer's schema of requests, or None. `ids` are keys that the tenant had.
        """
        self._tenant = tenant
        self._name = tenant.encode()
        self._keys = keys
        self._look = look
        self._reader = RequestReader()
        self._ids = {*ids, *(() if keys is None else keys.ids)}
        self.found: Counter[Trace] = Counter()
        # Events, rows and requests whose payload lies elsewhere, and whether a store was read.
        self._claims = 0
        self.store_read = False

    def row(self, where: str, key: bytes, value: bytes | None) -> None:
        """A row of the changelog, also one that was replaced since."""
        if value is None:
            return
        if key.startswith(ASIDE_PREFIX):
            self.request(where, decode_aside(key, value).record)
        elif key.startswith(HELD_PREFIX):
            self.request(where, decode_held(key, value).record)
        elif (name := key.partition(b"/")[0]) in (self._name, _RETRIES):
            self._schedule(where, value, retry=name == _RETRIES)

    def _schedule(self, where: str, value: bytes, *, retry: bool) -> None:
        try:
            if check_format(value) != PENDING:
                return
            row = decode_pending(value)
        except UnknownFormat:
            self._add(where, Left.UNKNOWN)
            return
        if retry and not self._delivers(row.key):
            return
        if type(row.payload) is Encrypted:
            self._encrypted(where, row.name, row.payload)
        else:
            self._written(where, row.payload, decode_headers(row.headers))

    def _encrypted(self, where: str, name: bytes, payload: bytes) -> None:
        key = key_id_of(payload)
        self._ids.add(key)
        try:
            left = Left.ENCRYPTED
            if self._keys is not None:
                self._keys.decrypt(name, payload)
                left = Left.DECRYPTED
        except Undecryptable:
            pass
        self._add(where, left, key)

    def request(self, where: str, record: SourceRecord, *, own: bool = False) -> None:
        """A request, or one that was refused; `own`: it lies in the tenant's own topic."""
        _, _, key, value, headers = record
        if not value or not (own or self._shows(key, value, headers)):
            return
        reference = self._reader.unknown_schema(record)
        writer = None if reference is None else self._look(reference)
        if reference is not None and writer is not None:
            self._reader.learn(reference, writer)
        asked = self._reader.read_whole(record)
        if isinstance(asked, Rejection):
            named = asked_by(record)
            if named is None:
                self._add(where, Left.UNKNOWN)
            elif own or named["tenant"] == self._tenant:
                self._written(where, value, headers or [])
        elif own or self._is_for(asked):
            given = [(each["name"], each["value"]) for each in asked["headers"]]
            self._written(where, asked["payload"], given)

    def event(self, record: FiredRecord) -> None:
        """A record of an output topic: by the topic's name or by belfry's header.

        A policy may name any topic, so one whose name looks like another tenant's may be its own.
        """
        if self._tenant in (record.tenant, record.header(TENANT)):
            self._written(record.topic, record.value, record.headers)

    def delivery(self, record: FiredRecord) -> None:
        """A record of the topics of deliveries, whose keys begin with the tenant."""
        if self._delivers(record.key):
            self._written(record.topic, record.value, record.headers)

    def _is_for(self, asked: Request) -> bool:
        """Whether a request is the tenant's, or the retry of a delivery of one of its events."""
        if asked["tenant"] == RETRIES:
            return self._delivers(asked["key"])
        return asked["tenant"] == self._tenant

    def _delivers(self, key: bytes | None) -> bool:
        """Whether the key of a delivery is one of the tenant's events; its retries keep it."""
        return (key or b"").partition(b"/")[0] == self._name

    def stored(self, where: str, head: bytes) -> None:
        """An object of the tenant, by its first bytes; after all rows, which name its keys."""
        key = key_id_of(head)
        if head[:1] != FORMAT:
            self._add(where, Left.AS_SENT)
        elif key not in self._ids:
            # A plain payload may begin like this as well.
            self._add(where, Left.UNKNOWN)
        elif self._keys is not None and key in self._keys.ids:
            self._add(where, Left.DECRYPTED, key)
        else:
            self._add(where, Left.ENCRYPTED, key)

    def _written(self, where: str, payload: bytes | None, headers: Headers) -> None:
        """A payload as somebody wrote it, with its headers; empty where it lies elsewhere.

        If a header names no key of the tenant, its clients have not written that header.
        """
        keys = [value.decode(errors="replace") for name, value in headers if name == KEY and value]
        sealed = bool(keys) and is_key_of(self._tenant, keys[-1])
        if payload:
            self._add(where, Left.BY_CLIENT if sealed else Left.AS_SENT)
        elif not sealed and any(name == CLAIM for name, _ in headers):
            self._claims += 1

    def no_store(self, where: str) -> None:
        """Count the claims as unknown, for no store can be read; call it last."""
        if self._claims:
            self.found[Trace(where, Left.UNKNOWN, "")] += self._claims

    def _add(self, where: str, left: Left, key: str = "") -> None:
        self.found[Trace(where, left, key)] += 1

    def _shows(self, key: bytes | None, value: bytes, headers: Headers | None) -> bool:
        """Whether the tenant's name is anywhere in a record."""
        if stamp_of(headers) == self._tenant:
            return True
        parts = (key or b"", value, *(given or b"" for _, given in headers or ()))
        return any(self._name in each for each in parts)

    def count(self, *sorts: Left) -> int:
        """How many there are of some sorts."""
        return sum(count for trace, count in self.found.items() if trace.left in sorts)
