"""belfry's Avro records in any of their frames to dictionaries, instants as epoch milliseconds.

A record names its writer's schema by a registry's id, a GUID or a fingerprint. If that name cannot
be looked up, today's own schema is tried, provided that the caller says that the topic holds no
other records; a user's payload must never be taken for a record of belfry's by chance.

Anybody may write to most topics, so a value that does not decode is None and never an error. A
schema of a stranger that could cost much to read is not used (`unsafe_reason`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from belfry.wire import catalogue
from belfry.wire.catalogue import MalformedError, RecordReader
from belfry.wire.framing import FrameKind, read_frame
from belfry.wire.record import Headers
from belfry.wire.safety import unsafe_reason

# The writer's schema behind a registry's id or GUID, or None where it is not known.
Look = Callable[[int | bytes], Any]
# Readers that a decoder keeps, of some kilobytes each. A topic has records of a few releases, and
# anybody may write unknown references into most topics, one after the other.
MOST_READERS: Final = 1_000


class Decoder:
    """Reads one kind of record; `only` says that the topic holds no other values.

    `name` is that of the schema, such as ``LifecycleEvent``. `look` finds a writer's schema by an
    id or a GUID and may ask a registry. Its answers are remembered for the last `MOST_READERS`
    references, also an unknown one, so a registry that was away for a moment is not asked again.
    """

    def __init__(self, name: str, look: Look | None = None, *, only: bool) -> None:
        self._name = name
        self._look = look or (lambda _: None)
        self._only = only
        self._reader = lru_cache(MOST_READERS)(self._found)

    def record(self, value: bytes, headers: Headers | None = None) -> dict[str, Any] | None:
        """The record in a value, or None if the value is not of this kind."""
        frame = read_frame(value, headers)
        if frame.kind is FrameKind.UNFRAMED:
            return None
        reader = self._reader(frame.kind, frame.reference)
        if reader is None:
            return None
        try:
            return reader.read(frame.body)
        except MalformedError:
            return None

    def own_body(self, value: bytes, headers: Headers | None = None) -> bytes | None:
        """The body in a value that is to be read with the schema of this release, else None."""
        frame = read_frame(value, headers)
        if frame.kind is FrameKind.UNFRAMED:
            return None
        reader = self._reader(frame.kind, frame.reference)
        return frame.body if reader is not None and reader.is_own else None

    def _found(self, kind: FrameKind, reference: int | bytes) -> RecordReader | None:
        """The reader for a writer's schema, or None."""
        writer = self._writer(kind, reference)
        known = writer is not None or self._only
        return RecordReader(self._name, writer) if known else None

    def _writer(self, kind: FrameKind, reference: int | bytes) -> Any:
        """The writer's schema, where it is known, harmless, and one of this kind of record."""
        if kind is FrameKind.SINGLE_OBJECT and isinstance(reference, bytes):
            writer: Any = catalogue.by_fingerprint(reference)
        else:
            writer = self._look(reference)
        if writer is None or unsafe_reason(writer) is not None:
            return None
        ours = f"{writer.get('namespace')}.{writer.get('name')}" == catalogue.full_name(self._name)
        return writer if ours else None
