"""Holes in a changelog, judged for `belfry verify`: places without records, or with rows gone."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from belfry.client.errors import Unavailable
from belfry.kafka.void_offsets import VoidOffsets

if TYPE_CHECKING:
    from belfry.cli.session import Session


class LogHoles:
    """Asks the brokers about holes in partitions of a topic; closed after use."""

    def __init__(self, session: Session) -> None:
        self._void = VoidOffsets(session.settings.kafka_properties())

    def is_void(self, topic: str, partition: int, start: int, end: int) -> bool:
        """Whether no row ever lay from one offset up to before another; raises `Unavailable`."""
        try:
            # Messages of the client on its connections must not mix with output for programs.
            with redirect_stdout(sys.stderr):
                return self._void.all_void((topic, partition), start, end)
        except ConnectionError as error:
            raise Unavailable(str(error)) from error

    def close(self) -> None:
        """Close the connections."""
        self._void.close()
