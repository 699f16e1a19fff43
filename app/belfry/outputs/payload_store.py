"""Large payloads stored elsewhere, before the step that claims them is committed.

    step ─► begin(objects) ─┬─ all are stored                  ─► the transaction, which claims them
                            └─ one is not after half a second  ─► rolled back

    away ─► such requests are refused (`payload_not_stored`) ─► failed objects are tried again, each
            second, by a thread of its own ─► stored: they are taken again

A try may never end, because its connection was lost without an error. Such a try is left behind
after a while, and the next one begins with a connection of its own.

No partition fires later because of the store (`partitions/early_payloads.py`), and the tenants that
use the store get an answer soon, whatever the store does. An object that was stored within the last
minute counts as stored: a request that is sent again after a refusal finds its payload there.

An object is named by its content and lies in its tenant's folder. A worker that stores it again
changes only its date. If a step is rolled back, or its worker ends, the object stays: the step that
is done again names the same object. Nothing is removed here.

An object store takes an object whole or not at all.  In other file systems the object is written
aside and moved, so that no reader sees half of it.
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

# A step waits this long for the store: less than the delay that one tenant may cause others.
PUT_S: Final = 0.5
AGAIN_S: Final = 1.0
# A later try is waited for this long, and at most this many that have not ended are left behind.
TRY_S: Final = 30.0
MOST_LEFT: Final = 8
# An object that was stored is not stored again for this long; at most this many are remembered.
FRESH_S: Final = 60.0
MOST_FRESH: Final = 10_000
NOT_SET: Final = "this belfry has no store for them (BELFRY_PAYLOAD_STORE is not set)"
AWAY: Final = "the store for them does not take any at the moment"
_NAMES: Final = ("BELFRY_PAYLOAD_STORE", "BELFRY_PAYLOAD_STORE_OPTIONS")

log = structlog.get_logger(__name__)


class PayloadStore:
    """The store for payloads of all partitions of a worker; any thread may call it.

    `counted` is told the number of objects, by outcome (``stored``, ``failed``).
    """

    def __init__(
        self,
        files: Any,
        path: str,
        tenants: Tenants,
        counted: Callable[[str, int], object],
    ) -> None:
        """`files` is a file system of fsspec, None if no store is set."""
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
        # Why nothing can be stored, for operators; empty if it can, and if no store is set.
        self.away = ""
        if files is None:
            tenants.store_problem = NOT_SET

    def put(self, objects: Mapping[Name, bytes]) -> None:
        """Store the objects that are missing; raises Aborted if that takes longer than `PUT_S`."""
        writing = self.begin(objects)
        if writing is not None:
            writing.wait()
            if (error := self.end(writing)) is not None:
                raise Aborted(f"large payloads were not stored: {_words_of(error)}") from error

    def begin(self, objects: Mapping[Name, bytes]) -> Writing | None:
        """Begin to store the objects that are not there yet; None if all are there."""
        wanted = {name: objects[name] for name in objects if not self._is_fresh(name)}
        return Writing(self._write, wanted, PUT_S) if wanted else None

    def end(self, writing: Writing) -> Exception | None:
        """Take note of a writing that is over; returns the error if it failed."""
        if writing.error is not None:
            self._away(writing.objects, writing.error)
        return writing.error

    def stop(self) -> None:
        """Stop trying failed objects again."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.stop(AGAIN_S)

    def _is_fresh(self, name: Name) -> bool:
        with self._lock:
            return machine.monotonic() - self._fresh.get(name, -FRESH_S) < FRESH_S

    def _write(self, objects: Mapping[Name, bytes]) -> None:
        """Store all of these, even if no step waits for them any more."""
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
        """Let large payloads be refused, and try the failed objects again until they are stored."""
        self._counted("failed", len(objects))
        with self._lock:
            self._failed.update(objects)
            began, self._tenants.store_problem = self._thread is None, AWAY
            self.away = _words_of(error)
            if self._thread is None:
                self._thread = Background("payloads", self._again, log, "payloads not stored")
        if began:
            log.error(
                "large payloads cannot be stored: requests with one are refused",
                setting=_NAMES[0], reason=_words_of(error),
            )  # fmt: skip
            self._thread.start()

    def _again(self) -> object:
        """Try the failed objects; returns END once none is left."""
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
            log.debug("large payloads cannot be stored yet", reason=_words_of(writing.error))
            return None
        with self._lock:
            for name in failed:
                self._failed.pop(name, None)
            if self._failed:
                return None
            self._thread, self._tenants.store_problem, self.away = None, "", ""
        log.info("large payloads can be stored again")
        return END


def _words_of(error: Exception) -> str:
    """An error of a file system, for operators."""
    return named(error)[:300]


def payload_files(settings: Settings) -> tuple[Any, str]:
    """The file system and the folder that are set, None if no store is set; raises `NoStore`."""
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
    """Ask a store for the first time: credentials and certificates take about a second then.

    A step would not wait that long, so the first large payload would be refused. An error is not
    told here but with the first payload that is stored.
    """
    with suppress(Exception):
        files.exists(path)
