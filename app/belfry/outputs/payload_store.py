"""Large payloads stored elsewhere, before the step that claims them is committed.

    step ─► begin(objects) ─┬─ all are stored                  ─► the transaction, which claims them
                            └─ one is not, in half a second    ─► rolled back

    away ─► such requests are refused (`payload_not_stored`) ─► what failed is tried again, each
            second, by a thread of its own ─► stored: they are taken again

A try that never ends, for its connection is gone and nobody says so, is left behind after a while,
and the next one begins with a connection of its own.

No partition fires later for it (`partitions/early_payloads.py`), and the tenants that use it get an
answer soon, whatever the store does.  What was stored within the last minute counts as stored: a
request that is sent again after a refusal finds its payload there.

An object is named by its content and lies in its tenant's folder.  A worker that stores it again
changes nothing but its date.  Where a step is rolled back, or its worker ends, the object stays:
the step that is done again names the same.  Nothing is removed here.

An object store takes an object whole or not at all.  In other file systems it is written aside and
moved, so that nobody reads half of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import structlog

from belfry.host import machine, object_store
from belfry.host.background import END, Background
from belfry.host.errors import named
from belfry.kafka.outcome import Aborted
from belfry.outputs.payload_writing import Name, Writing
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.wire.claim_check import object_name

# For so long a step waits for the store: less than what one tenant may cost others.
PUT_S: Final = 0.5
AGAIN_S: Final = 1.0
# For so long another try is waited for, and so many that have not ended are left behind at most.
TRY_S: Final = 30.0
MOST_LEFT: Final = 8
# For so long what was stored is not stored again, and of so many at most.
FRESH_S: Final = 60.0
MOST_FRESH: Final = 10_000
NOT_SET: Final = "this belfry has no store for them (BELFRY_PAYLOAD_STORE is not set)"
AWAY: Final = "the store for them does not take any at the moment"
_NAMES: Final = ("BELFRY_PAYLOAD_STORE", "BELFRY_PAYLOAD_STORE_OPTIONS")

log = structlog.get_logger(__name__)


class PayloadStore:
    """Where the payloads of all partitions of a worker go; any thread may call it.

    `counted` is told what became of objects, by outcome (``stored``, ``failed``).
    """

    def __init__(
        self,
        files: Any,
        path: str,
        tenants: Tenants,
        counted: Callable[[str, int], object],
    ) -> None:
        """`files` is a file system of fsspec, None where no store is set."""
        self._files = files
        self._path = path
        self._tenants = tenants
        self._counted = counted
        self._lock = machine.Lock()
        self._fresh: dict[Name, float] = {}
        self._failed: dict[Name, bytes] = {}
        self._thread: Background | None = None
        # Tries of its thread that have not ended in time.
        self._left: list[Writing] = []
        # Why nothing can be stored, for operators; empty where it can, and where no store is set.
        self.away = ""
        if files is None:
            tenants.store_problem = NOT_SET

    def put(self, objects: Mapping[Name, bytes]) -> None:
        """Store what is not there yet; raises Aborted where it is not within `PUT_S`."""
        writing = self.begin(objects)
        if writing is not None:
            writing.wait()
            if (error := self.end(writing)) is not None:
                raise Aborted(f"large payloads were not stored: {_said(error)}") from error

    def begin(self, objects: Mapping[Name, bytes]) -> Writing | None:
        """Begin to store what is not there yet; None where all of it is."""
        wanted = {name: objects[name] for name in objects if not self._is_fresh(name)}
        return Writing(self._write, wanted, PUT_S) if wanted else None

    def end(self, writing: Writing) -> Exception | None:
        """Take note of what became of it, which is over; why it was not stored, if it was not."""
        if writing.error is not None:
            self._away(writing.objects, writing.error)
        return writing.error

    def stop(self) -> None:
        """Try nothing again any more."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.stop(AGAIN_S)

    def _is_fresh(self, name: Name) -> bool:
        with self._lock:
            return machine.monotonic() - self._fresh.get(name, -FRESH_S) < FRESH_S

    def _write(self, objects: Mapping[Name, bytes]) -> None:
        """Store all of these, even where nobody waits for it still."""
        if self._files is None:
            raise FileNotFoundError(NOT_SET)
        paths = {f"{self._path}/{of}/{object_name(digest)}": (of, digest) for of, digest in objects}
        if self._files.async_impl:
            self._files.pipe({path: objects[name] for path, name in paths.items()})
        else:
            for path, name in paths.items():
                object_store.put_whole(self._files, path, objects[name])
        now_s = machine.monotonic()
        with self._lock:
            if len(self._fresh) + len(objects) > MOST_FRESH:
                self._fresh.clear()
            self._fresh.update(dict.fromkeys(objects, now_s))
        self._counted("stored", len(objects))

    def _away(self, objects: Mapping[Name, bytes], error: Exception) -> None:
        """Let large payloads be refused, and try again what failed until it is stored."""
        self._counted("failed", len(objects))
        with self._lock:
            self._failed.update(objects)
            began, self._tenants.store_problem = self._thread is None, AWAY
            self.away = _said(error)
            if self._thread is None:
                self._thread = Background("payloads", self._again, log, "payloads not stored")
        if began:
            log.error(
                "large payloads cannot be stored: requests with one are refused",
                setting=_NAMES[0], reason=_said(error),
            )  # fmt: skip
            self._thread.start()

    def _again(self) -> object:
        """Try what failed; the last turn is the one in which nothing is left."""
        with self._lock:
            failed = self._failed.copy()
        assert self._thread is not None
        self._thread.stopping.wait(AGAIN_S)
        self._left = [each for each in self._left if not each.ended]
        if len(self._left) >= MOST_LEFT:
            self._counted("failed", len(failed))
            return None
        writing = Writing(self._write, failed, TRY_S)
        writing.wait()
        if writing.error is not None:
            self._left += [] if writing.ended else [writing]
            self._counted("failed", len(failed))
            log.debug("large payloads cannot be stored yet", reason=_said(writing.error))
            return None
        with self._lock:
            for name in failed:
                self._failed.pop(name, None)
            if self._failed:
                return None
            self._thread, self._tenants.store_problem, self.away = None, "", ""
        log.info("large payloads can be stored again")
        return END


def _said(error: Exception) -> str:
    """An error of a file system, for operators."""
    return named(error)[:300]


def payload_files(settings: Settings) -> tuple[Any, str]:
    """The file system and the folder that are set, None where none is; raises `NoStore`."""
    if settings.payload_store is None:
        return None, ""
    return object_store.opened(settings.payload_store, settings.payload_store_options, _NAMES)


def payload_store(
    settings: Settings, tenants: Tenants, counted: Callable[[str, int], object]
) -> PayloadStore:
    """The store of a worker's payloads, by its settings; raises `NoStore`."""
    files, path = payload_files(settings)
    if files is not None and files.async_impl:
        machine.Thread(
            target=_reached, args=(files, path), name="belfry-payload-store", daemon=True
        ).start()
    return PayloadStore(files, path, tenants, counted)


def _reached(files: Any, path: str) -> None:
    """Ask a store for the first time, which takes it a second of credentials and certificates.

    A step would not wait for that, and the first large payload would be refused.  What is wrong is
    told where somebody stores.
    """
    with suppress(Exception):
        files.exists(path)
