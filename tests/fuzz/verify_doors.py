"""Doors of `belfry verify`, which reads topics that others may write to.

logs       records of a changelog: findings, and the verification goes on
outputs    headers of records in output topics and in that of refusals: taken, or passed over

Both remember in SQLite, as the command does: a number that does not fit is a fault, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from confluent_kafka import Message

from belfry.cli.verify_memory import MemoryOnDisk
from belfry.cli.verify_outputs import OutputFeed
from belfry.cli.verify_state import StateFile
from belfry.client.decoding import Decoder
from belfry.verification.coverage import Coverage
from belfry.verification.findings import CheckCounts, Spot
from belfry.verification.outputs import OutputVerifier
from belfry.verification.overdue import OverdueSchedules
from belfry.verification.partition import PartitionVerifier
from belfry.verification.rows import Logged
from belfry.verification.standing import Standing
from tests.fuzz.inputs import Parts
from tests.unit.engine.driver import FIRED, T0

Input = Callable[[bytes], None]
TOPIC: Final = "belfry.changelog"
COVERAGE: Final = Coverage(FIRED, {f"{FIRED}demo": -1})
# Records of one input, and inputs after which a verification begins anew.
MOST: Final = 12
LOT: Final = 200


def logs() -> Input:
    """Keys and values, one after the other, each with its length in two bytes."""
    return Lots(Changelog)


def outputs() -> Input:
    """Names and values of headers; its first byte says of which topic the record is."""
    return Lots(Outputs)


class Lots:
    """Gives a lot of inputs to one verification, and then begins another one."""

    def __init__(self, make: Callable[[], Changelog | Outputs]) -> None:
        self._make = make
        self._made, self._taken = make(), 0

    def __call__(self, data: bytes) -> None:
        """One input."""
        self._made.take(data)
        self._taken += 1
        if self._taken == LOT:
            self._made.end()
            self._made, self._taken = self._make(), 0


class Changelog:
    """A partition that is verified round by round; each input is a round."""

    def __init__(self) -> None:
        self._file = StateFile(None, "fuzz")
        counts = CheckCounts()
        memory = MemoryOnDisk(self._file)
        self._standing = Standing()
        self._verifier = PartitionVerifier(Spot(TOPIC, 0, 0), memory, counts, self._standing)
        self._verifier.move_among(3)
        self._overdue = OverdueSchedules(memory, counts)
        self._offset = 0

    def take(self, data: bytes) -> None:
        """A round of some records; a bit of the first byte leaves an offset out."""
        parts = Parts(data)
        self._offset += parts.shape & 1
        records: list[Logged] = []
        while parts.left and len(records) < MOST:
            key, value = parts.take(), parts.take()
            records.append(Logged(self._offset, T0 + self._offset, key, value or None))
            self._offset += 1
        self._verifier.begin(COVERAGE)
        self._verifier.feed(records)
        assert self._verifier.go_on(final=True)
        self._verifier.end()
        for found in self._verifier.findings:
            assert str(found)
        self._verifier.findings.clear()

    def end(self) -> None:
        """Look for what is overdue, and keep what is remembered."""
        suspects = self._overdue.suspects([0], T0 + (1 << 41), COVERAGE)
        self._overdue.tell(TOPIC, self._overdue.still(suspects, COVERAGE))
        self._file.save()
        self._file.close()


class Outputs:
    """What takes records of outputs and of refusals."""

    def __init__(self) -> None:
        self._file = StateFile(None, "fuzz")
        self._verifier = OutputVerifier(MemoryOnDisk(self._file), CheckCounts())
        decoder = Decoder("LifecycleEvent", only=True)
        self._feed = OutputFeed(None, self._file, None, decoder, self._verifier)  # type: ignore[arg-type]
        self._offset = 0

    def take(self, data: bytes) -> None:
        """A record with these headers, of one of three topics; behind a mirror with a bit more."""
        self._verifier.elsewhere_until_ms = 0 if data and data[0] & 4 else -1
        parts = data[1:].split(b"\0")
        named = zip(parts[::2], parts[1::2], strict=False)
        headers: list[tuple[str, str | bytes | None]] = [
            (name.decode(errors="replace"), value) for name, value in named
        ]
        self._offset += 1
        takes = (self._feed._take_fired, self._feed._take_refused, self._feed._take_told)
        which = (data[0] if data else 0) & 3
        message = Message(headers=headers, value=data[1:])
        takes[min(which, 2)](message, Spot(f"{FIRED}demo", 0, self._offset), T0)

    def end(self) -> None:
        """Judge what belongs to nothing."""
        self._verifier.begin(COVERAGE)
        self._verifier.begin(COVERAGE)
        self._verifier.end(0, self._verifier.round - 1)
        self._file.save()
        self._file.close()
