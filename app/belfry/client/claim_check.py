"""Payloads too large for Kafka: stored elsewhere, and a claim to them scheduled instead.

    claims = ClaimCheck("s3://bucket/belfry")            any file system that fsspec knows
    belfry.schedule("shop", "report", in_="1h", **claims.deposit(pdf))
    ...
    pdf = claims.redeem(event)                           checked against its digest

A worker stores payloads in the same way if the policy of their tenant says so
(`claim_check_over_bytes`), below the folder of its setting: `ClaimCheck("s3://bucket/belfry/shop")`
redeems payloads that it has stored for the tenant `shop`.

A file is named by its content, so the same payload is stored once and a repeat changes nothing.
Small payloads travel in the event as ever.  This class deletes no file: `belfry payloads sweep`
does that in the folder of the workers.  Give any other folder a rule that lets files go some time
after the last schedule that could need them is due.
"""

from __future__ import annotations

import re
from time import time
from typing import Any, Final, NotRequired, TypedDict

from belfry.client.errors import BelfryError, ClaimBroken, NotDecrypted
from belfry.client.fired_record import FiredRecord
from belfry.tenants.payload_keys import PayloadKeys, Undecryptable
from belfry.wire.claim_check import CLAIM, ENCRYPTED, SIZE, claims_of, digest_of, object_name

ABOVE_BYTES: Final = 500_000
# An object that was stored so long ago is stored anew: sweeps leave alone objects younger than a
# day.
FRESH_S: Final = 3600.0
_HEX: Final = re.compile("[0-9a-f]{64}")


class Deposit(TypedDict):
    """The payload and headers to schedule: the payload itself, or the claim to it."""

    payload: bytes
    headers: NotRequired[list[tuple[str, str | bytes | None]]]


class ClaimCheck:
    """A folder of payloads; `storage_options` are those of fsspec, credentials for instance.

    Payloads of more than `above_bytes` bytes are stored; the default leaves room below Kafka's
    limit of 1 MB for a record. Raises `BelfryError` where the extra claim-check is not installed.
    The pattern is known as claim check (Enterprise Integration Patterns).
    """

    def __init__(
        self,
        folder: str,
        above_bytes: int = ABOVE_BYTES,
        keys: PayloadKeys | None = None,
        **storage_options: Any,
    ) -> None:
        """`keys` are the tenant's, if workers encrypt stored payloads (`KeyRing`)."""
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise BelfryError(
                "Claims need the extra claim-check: pip install 'belfry-scheduler[claim-check]'."
            ) from None
        self._files, self._folder = url_to_fs(folder, **storage_options)
        self._above_bytes = above_bytes
        self._keys = keys

    def deposit(
        self, payload: bytes, headers: list[tuple[str, str | bytes | None]] | None = None
    ) -> Deposit:
        """Store a payload that is large; options for `schedule`, with these headers and its own.

        Store first and schedule then: then an event never fires with a claim to a missing payload.
        To store the same payload again changes nothing. Errors of the file system are raised as
        they are.
        """
        own = list(headers or ())
        if len(payload) <= self._above_bytes:
            return Deposit(payload=payload, headers=own)
        digest = digest_of(payload)
        self._store(digest, payload)
        return Deposit(payload=b"", headers=[*own, *claims_of(payload)])

    def redeem(self, event: FiredRecord) -> bytes | None:
        """The payload of an event: stored, or in the event; raises `ClaimBroken`.

        Raises `NotDecrypted` if a worker has encrypted it with a key that `keys` lack.
        """
        digest = event.header(CLAIM)
        if digest is None:
            return event.payload
        if not _HEX.fullmatch(digest):
            raise ClaimBroken(f"{digest!r} of {event.schedule_id} is no claim: 64 hex digits are.")
        path = self._path(digest)
        try:
            found: bytes = self._files.cat_file(path)
        except FileNotFoundError:
            raise ClaimBroken(
                f"The payload of {event.schedule_id} is not at {path}: it was deleted, or stored in"
                " another folder."
            ) from None
        if digest_of(found) != digest:
            raise ClaimBroken(
                f"The payload of {event.schedule_id} at {path} has {len(found)} of"
                f" {event.header(SIZE)} bytes and another digest: it was changed or cut short."
            )
        return self._decrypted(event, found)

    def _decrypted(self, event: FiredRecord, found: bytes) -> bytes:
        """The payload in a stored object, which a worker may have encrypted."""
        name = event.header(ENCRYPTED)
        if name is None:
            return found
        if self._keys is None:
            raise NotDecrypted(
                f"The payload of {event.schedule_id} was encrypted by a worker: give ClaimCheck the"
                " keys of its tenant (keys=KeyRing(tenant, lines of its file))."
            )
        try:
            return self._keys.decrypt(name.encode(), found)
        except Undecryptable as error:
            raise NotDecrypted(f"{event.schedule_id}: {error}.") from None

    def _store(self, digest: str, payload: bytes) -> None:
        """Write a payload under its digest, unless it was written lately.

        An older file may be one that a sweep is about to put aside: written anew, it is young.
        """
        path = self._path(digest)
        if self._is_fresh(path, len(payload)):
            return
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        # A transaction of fsspec writes aside and moves: nobody reads half a file.
        with self._files.transaction, self._files.open(path, "wb") as file:
            file.write(payload)

    def _is_fresh(self, path: str, size: int) -> bool:
        """Whether a file of this size is there, and was stored lately."""
        self._files.invalidate_cache(path.rpartition("/")[0])
        try:
            age_s = time() - self._files.modified(path).timestamp()
            return bool(self._files.size(path) == size and abs(age_s) < FRESH_S)
        except (FileNotFoundError, NotImplementedError):
            return False

    def _path(self, digest: str) -> str:
        """Where a payload lies."""
        return f"{self._folder}/{object_name(digest)}"
