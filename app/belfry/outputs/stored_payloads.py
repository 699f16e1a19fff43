"""Large payloads as they lie in their store: listed, put aside, put back, removed.

    <folder>/shop/5f/5f0c…             the place where events of the tenant claim it
    <folder>/.swept/shop/5f/5f0c…      put aside: no event claims it (no tenant has this name)

An object is put aside by a copy and a removal, since stores cannot move an object. Just before the
removal its date is read again: an object that was stored anew meanwhile stays. Between that look
and the removal a worker may still store it anew. Even then nothing is lost: an object that is aside
can be put back.

Other files in the folder are not touched. Errors of a file system are raised as `StoreAway`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple
from uuid import uuid4

from belfry.host.errors import named
from belfry.host.object_store import modified_ms
from belfry.schedules.request import TENANT
from belfry.wire.claim_check import object_name

ASIDE: Final = ".swept"
_SHELF: Final = re.compile("[0-9a-f]{2}")
_DIGEST: Final = re.compile("[0-9a-f]{64}")


class StoreAway(Exception):
    """The store refuses, or does not answer; the message has the store's own words."""


class StoredPayload(NamedTuple):
    """An object of a tenant; `stored_ms` is by the store's clock, None if that is unknown."""

    tenant: str
    digest: str
    size: int
    stored_ms: float | None


class PayloadFolder:
    """Objects of all tenants below one folder."""

    def __init__(self, files: Any, path: str) -> None:
        """`files` is a file system of fsspec."""
        self._files = files
        self._path = path

    def all(self) -> Iterator[StoredPayload]:
        """All objects, some thousands at a time: those of a tenant that begin with two digits."""
        for tenant in self._names(self._path):
            if not TENANT.fullmatch(tenant):
                continue
            for shelf in self._names(f"{self._path}/{tenant}"):
                if _SHELF.fullmatch(shelf):
                    yield from self._on(tenant, shelf)

    def heads(self, tenant: str) -> Iterator[bytes]:
        """The first nine bytes of each object of a tenant, which say how that is encrypted."""
        for shelf in self._names(f"{self._path}/{tenant}"):
            for each in self._on(tenant, shelf) if _SHELF.fullmatch(shelf) else ():
                with suppress(FileNotFoundError):
                    yield self._head(tenant, each.digest)

    def _head(self, tenant: str, digest: str) -> bytes:
        with _asked():
            return bytes(self._files.cat_file(self._of(tenant, digest), start=0, end=9))

    def stored_ms(self, tenant: str, digest: str) -> float | None:
        """When an object was stored, as the store says now; None if there is no such object."""
        path = self._of(tenant, digest)
        self._files.invalidate_cache(path.rpartition("/")[0])
        with suppress(FileNotFoundError), _asked():
            return modified_ms(self._files.info(path))
        return None

    def take(self, other: PayloadFolder, tenant: str, digest: str) -> None:
        """Copy an object of another folder here; FileNotFoundError if that folder lacks it."""
        source, path = other._of(tenant, digest), self._of(tenant, digest)
        with _asked():
            # An object store copies by itself, and whole.
            if self._files.async_impl:
                self._files.cp_file(source, path)
                return
            # Other file systems show half of a file while it is written.
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            part = f"{path}.{uuid4().hex}"
            self._files.cp_file(source, part)
            self._files.mv(part, path)

    def remove(self, tenant: str, digest: str) -> None:
        """Remove an object; no error if another process has removed it before."""
        with suppress(FileNotFoundError), _asked():
            self._files.rm_file(self._of(tenant, digest))

    def _of(self, tenant: str, digest: str) -> str:
        return f"{self._path}/{tenant}/{object_name(digest)}"

    def _names(self, path: str) -> list[str]:
        """Folders below a folder."""
        return sorted(_last(each) for each in self._listed(path) if each.get("type") == "directory")

    def _on(self, tenant: str, shelf: str) -> Iterator[StoredPayload]:
        for each in self._listed(f"{self._path}/{tenant}/{shelf}"):
            digest = _last(each)
            if each.get("type") == "file" and digest[:2] == shelf and _DIGEST.fullmatch(digest):
                yield StoredPayload(tenant, digest, each.get("size") or 0, modified_ms(each))

    def _listed(self, path: str) -> list[dict[str, Any]]:
        """The entries of a folder; the file system does not cache them."""
        found: list[dict[str, Any]] = []
        self._files.invalidate_cache(path)
        with suppress(FileNotFoundError), _asked():
            found = self._files.ls(path, detail=True)
        self._files.invalidate_cache(path)
        return found


class SweptStore:
    """The folder of a store, and the objects that were put aside from it."""

    def __init__(self, files: Any, path: str) -> None:
        """`files` is a file system of fsspec, `path` the folder that workers store in."""
        self.there = PayloadFolder(files, path)
        self.aside = PayloadFolder(files, f"{path}/{ASIDE}")

    def put_aside(self, tenant: str, digest: str, before_ms: float) -> bool:
        """Put an object aside, if it was stored before an instant; returns whether it is aside."""
        if not self._is_old(tenant, digest, before_ms):
            return False
        try:
            self.aside.take(self.there, tenant, digest)
        except FileNotFoundError:
            return False
        if not self._is_old(tenant, digest, before_ms):
            self.aside.remove(tenant, digest)
            return False
        self.there.remove(tenant, digest)
        return True

    def put_back(self, tenant: str, digest: str) -> bool:
        """Put an object back where it is claimed; returns whether it was missing there."""
        missing = self.there.stored_ms(tenant, digest) is None
        if missing:
            try:
                self.there.take(self.aside, tenant, digest)
            except FileNotFoundError:
                raise StoreAway(
                    f"{digest} of tenant {tenant} is claimed, and neither in its place nor aside:"
                    " does another sweep run?"
                ) from None
        self.aside.remove(tenant, digest)
        return missing

    def _is_old(self, tenant: str, digest: str, before_ms: float) -> bool:
        at_ms = self.there.stored_ms(tenant, digest)
        return at_ms is not None and at_ms < before_ms


@contextmanager
def _asked() -> Iterator[None]:
    """Raise `StoreAway` for errors of all kinds, except FileNotFoundError, which is an answer."""
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:
        raise StoreAway(named(error)) from error


def _last(entry: dict[str, Any]) -> str:
    return str(entry["name"]).rstrip("/").rpartition("/")[2]
