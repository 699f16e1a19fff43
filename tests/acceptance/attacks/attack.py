"""What an attack is: a name, and a function that strikes and sees its right answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import Producer

from tests.acceptance.harness.hardened import MALLORY, USUAL, Hardened
from tests.acceptance.harness.site import wait_for

ANSWER_S: Final = 60.0


class Attack(NamedTuple):
    """`strike` returns when the attack is over and was answered as it has to be; else it raises.

    `settings` are the worker's where they are not the usual ones.
    """

    name: str
    strike: Callable[[Hardened], None]
    settings: Mapping[str, str] = USUAL


class Refusals:
    """Counts the requests that a worker refuses from now on."""

    def __init__(self, hardened: Hardened) -> None:
        self._worker = hardened.worker
        self._before = self._worker.refused()

    def wait(self, count: int, timeout_s: float = ANSWER_S) -> Counter[str]:
        """How many were refused by code, once there are so many."""

        def enough() -> Counter[str]:
            found = self._worker.refused() - self._before
            return found if found.total() >= count else Counter()

        return wait_for(f"{count} refusals", enough, timeout_s)


def sender(hardened: Hardened, **more: Any) -> Producer:
    """What the attacker writes with."""
    return hardened.producer(MALLORY, **{"queue.buffering.max.messages": 1_000_000, **more})


def send(hardened: Hardened, producer: Producer, value: bytes, **more: Any) -> None:
    """One record to the partition that the victim lives on."""
    producer.produce(hardened.topic, value, partition=hardened.home, **more)
    producer.poll(0)


def flushed(producer: Producer) -> None:
    """All that was sent is in Kafka."""
    assert producer.flush(ANSWER_S) == 0
