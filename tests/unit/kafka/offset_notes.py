"""Texts that are noted for each partition, as `belfry.kafka.offset_notes` keeps them in Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class OffsetNotes:
    """What was noted, by partition; `away` where the cluster does not answer.

    Partitions from `refused` on are refused.
    """

    def __init__(self, group: str = "belfry.notes", refused: int = 1_000) -> None:
        self.group = group
        self.refused = refused
        self.kept: dict[int, str] = {}
        self.writes = 0
        self.away = False

    def read(self, partitions: Iterable[int]) -> dict[int, str]:
        self._reach()
        return {number: self.kept[number] for number in partitions if number in self.kept}

    def write(self, texts: Mapping[int, str]) -> dict[int, str]:
        self._reach()
        self.writes += 1
        self.kept |= {number: text for number, text in texts.items() if number < self.refused}
        return {number: "no such partition" for number in texts if number >= self.refused}

    def _reach(self) -> None:
        if self.away:
            raise ConnectionError(f"group {self.group}: no answer")
