"""Events of output topics, and whether a played step gives the same ones.

    output topic    id 7f…: topic, key, value, headers  ─► a digest
    played step     id 7f…: topic, key, value, headers  ─► the same digest?   id 81…: not there

The fired events of a step are in no changelog: they lie in the topics of tenants, and retention may
have ended some of them.  So an event is compared where it is still there, by its id.  An event that
is not there tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Final

from belfry.engine.effects import Effects, Fired
from belfry.playback.comparing import StepDifference
from belfry.playback.logged import LoggedStep
from belfry.wire.record import Headers

# Frames before the body of an envelope: how each begins, and its length in bytes.
_FRAMES: Final = ((b"\xc3\x01", 10), (b"\0", 5))
_EXTRA: Final = ("belfry-occurrence", b"-1")
_SCHEDULED: Final = "belfry-scheduled-at"


class WrittenEvents:
    """Events as they lie in output topics, by their ids: a digest of each, some 150 bytes.

    An event that came twice, as one of an `AT_LEAST_ONCE` tenant may, counts once.
    """

    def __init__(self) -> None:
        self._digests: dict[bytes, tuple[bytes, ...]] = {}
        self.count = 0

    def add(
        self, identity: bytes, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> None:
        """Note a record of an output topic."""
        bodies = [value, *(_unframed(value))]
        found = tuple(_digest(topic, key, body, headers) for body in bodies)
        self._digests.setdefault(identity, found)
        self.count += 1

    def differing(
        self, step: LoggedStep, effects: Effects, enveloped: Callable[[str], bool]
    ) -> Iterator[StepDifference | None]:
        """For each event of a played step that is there: None, or its differences.

        An envelope begins with a frame that the registry has given, so it counts without.
        `enveloped` tells of a topic whether its values are envelopes.
        """
        for identity, fired in zip(effects.fire_ids, effects.fired, strict=True):
            known = self._digests.get(identity)
            if known is None:
                continue
            topic, key, _, value, headers = fired
            digests = known if enveloped(topic) else known[:1]
            if _digest(topic, key, value, headers) in digests:
                yield None
                continue
            yield StepDifference(
                "event", step.manifest.txn_seq, step.last, identity.decode(),
                f"an event in {topic} with other bytes", _event_in_words(fired),
            )  # fmt: skip


def _event_in_words(fired: Fired) -> str:
    _, key, _, value, headers = fired
    names: Sequence[str] = [name for name, _ in headers]
    size = "null" if value is None else f"{len(value)} bytes"
    return f"key {key!r:.80}, value {size}, headers {', '.join(names)}"


def _unframed(value: bytes | None) -> Iterator[bytes]:
    for head, size in _FRAMES:
        if value is not None and value.startswith(head):
            yield value[size:]


def _digest(topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    """A digest of an event.

    An extra event is due when its step looked at the clock, which is not always known.
    """
    if _EXTRA in headers:
        headers = [each for each in headers if each[0] != _SCHEDULED]
    parts = repr((topic, key, value, [tuple(each) for each in headers])).encode()
    return blake2b(parts, digest_size=12).digest()
