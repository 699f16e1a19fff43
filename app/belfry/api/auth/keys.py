"""API keys: long random texts, of which belfry keeps only the SHA-256.

    [{"name": "orders", "sha256": "9f86…", "tenants": ["orders", "payments.*"], "role": "schedule",
      "expires": "2027-01-01T00:00:00Z", "requests_per_second": 100}]

The list is a JSON file that is looked at again when it changes, or a setting.  To rotate a key, add
the new one beside the old one under the same name, move the callers, and take the old one out.  A
key has 256 random bits, so a plain hash is enough: nobody can guess a key, and the time of a lookup
reveals only other digests.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import Annotated, Final

import structlog
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from belfry.api.auth.key_uses import KeyRow, KeyUses, id_of
from belfry.api.auth.principal import Principal, Role
from belfry.schedules.instants import parse_instant

PREFIX: Final = "belfry_"
# How often the file is looked at, and the ends of keys.
LOOK_MS: Final = 1_000
WARN_MS: Final = 3_600_000

log = structlog.get_logger(__name__)


class KeyEntry(BaseModel):
    """One key as it is kept: its name, its role, its tenants and its end."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    tenants: list[str] = Field(min_length=1)
    role: Role = Role.READ
    # RFC 3339; the key is good before this instant. None: it has no end.
    expires: str | None = None
    # None: the rate of the port's settings.
    requests_per_second: float | None = Field(None, ge=1, le=1_000_000)

    def principal(self) -> Principal:
        """The caller that the key stands for."""
        rate = self.requests_per_second
        return Principal(self.name, tuple(self.tenants), self.role, rate, self.sha256)

    def expires_ms(self) -> int | None:
        """When it ends, epoch ms."""
        return None if self.expires is None else parse_instant(self.expires)


class BadKeys(Exception):
    """The list of keys cannot be used; the message says why."""


_ENTRIES: Final = TypeAdapter(list[KeyEntry])
_Known = dict[str, tuple[Principal, int | None]]


def new_key() -> str:
    """A new key."""
    return PREFIX + token_urlsafe(32)


def digest(key: str) -> str:
    """The digest that is kept of a key."""
    return sha256(key.encode(errors="replace")).hexdigest()


def read_keys(text: str | bytes, source: str) -> _Known:
    """Principals by digest; raises `BadKeys`."""
    try:
        entries = _ENTRIES.validate_json(text)
        return {entry.sha256: (entry.principal(), entry.expires_ms()) for entry in entries}
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise BadKeys(f"{source}: {where}: {first['msg']}") from None
    except ValueError as error:
        raise BadKeys(f"{source}: {error}") from None


class ApiKeys:
    """Verifies API keys; a file is read again when it has changed.

    It belongs to the port's event loop. If the file cannot be read any more, the present keys stay
    good, so that a slip of an editor locks nobody out.
    """

    def __init__(self, given: str | None, path: Path | None, now_ms: Callable[[], float]) -> None:
        """`given` is a list as text, `path` a file that holds one; raises `BadKeys`."""
        self._given = read_keys(given, "BELFRY_HTTP_API_KEYS") if given else {}
        self._path = path
        self._now_ms = now_ms
        self._looked_ms = 0.0
        self._stamp: tuple[int, int] | None = None
        self._filed: _Known = {}
        self._warned_ms: float | None = None
        self.uses = KeyUses()
        if path is not None:
            self._read(path)
        self._warn()

    async def principal(self, token: str) -> Principal | None:
        """The caller of a key, or None: for a text without the prefix, an unknown key, or an ended
        one.

        A token without the prefix is left to the next verifier, and costs no hash.
        """
        if not token.startswith(PREFIX):
            return None
        self._look()
        self._warn()
        found = self._filed.get(wanted := digest(token)) or self._given.get(wanted)
        if found is None:
            return None
        principal, expires_ms = found
        if expires_ms is None or self._now_ms() < expires_ms:
            return principal
        self.uses.refused(wanted)
        return None

    def used(self, principal: Principal, address: str) -> None:
        """A caller was admitted from this address by its key or token."""
        if principal.key is not None:
            self.uses.used(principal.key, address, self._now_ms())

    def rows(self) -> list[KeyRow]:
        """All keys of the list, with how each was used on this worker; quick."""
        known = {**self._given, **self._filed}
        return [
            self.uses.row(each, _row(each, principal, expires_ms))
            for each, (principal, expires_ms) in known.items()
        ]

    def _warn(self) -> None:
        """Look now and then whether a key ends soon."""
        now_ms = self._now_ms()
        if self._warned_ms is None or not 0 <= now_ms - self._warned_ms < WARN_MS:
            self._warned_ms = now_ms
            self.uses.warn(self.rows(), now_ms)

    def _look(self) -> None:
        """Read the file again where it has changed, at most once a second."""
        if self._path is None or self._now_ms() - self._looked_ms < LOOK_MS:
            return
        self._looked_ms = self._now_ms()
        try:
            self._read(self._path)
        except BadKeys as error:
            # Half written, or spoilt: the keys that were good stay good until it is mended.
            log.warning("API keys not read again", reason=str(error))

    def _read(self, path: Path) -> None:
        """Read the file where its time or size is another one; raises `BadKeys`."""
        try:
            state = path.stat()
            stamp = (state.st_mtime_ns, state.st_size)
            if stamp != self._stamp:
                self._filed = read_keys(path.read_bytes(), str(path))
                self._stamp = stamp
                self.uses.keep({*self._given, *self._filed})
                self._warned_ms = None
        except OSError as error:
            raise BadKeys(f"{path} cannot be read: {error.strerror}") from None


def _row(digest_: str, principal: Principal, expires_ms: int | None) -> KeyRow:
    """A key of the list before its uses are added; its id is the beginning of its digest."""
    name, role, tenants = principal.name, str(principal.role), principal.tenants
    return KeyRow(id_of(digest_), name, role, tenants, expires_ms)
