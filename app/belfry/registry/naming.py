"""The subject of a topic's schema: Confluent's strategies, by Confluent's names.

| strategy | subject of `io.belfry.ScheduleRequest` on `belfry.schedules` |
|---|---|
| `TOPIC` | `belfry.schedules-value` |
| `RECORD` | `io.belfry.ScheduleRequest` |
| `TOPIC_RECORD` | `belfry.schedules-io.belfry.ScheduleRequest` |

Readers go by the id in a record, so a strategy only matters to the process that registers.
"""

from __future__ import annotations

from typing import Final, Literal

from belfry.wire.catalogue import full_name

Strategy = Literal["TOPIC", "RECORD", "TOPIC_RECORD"]
TOPIC: Final = "TOPIC"


def subject_of(topic: str, name: str, strategy: Strategy = TOPIC) -> str:
    """Subject of a topic's values, which are belfry's records of this name."""
    if strategy == "RECORD":
        return full_name(name)
    if strategy == "TOPIC_RECORD":
        return f"{topic}-{full_name(name)}"
    return f"{topic}-value"
