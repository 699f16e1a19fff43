"""Batches on their way through Faust: from a reader's thread to an agent, in one hop.

    reader's thread ── hand_over ──► event loop: the conductor ──► the agent's queue ──► the agent
                                                                            pass_on ──► the owner

A Faust message is one batch of one partition here.  Faust's own way from the fetcher to a stream
drops messages in a rebalance in four places: its flow control clears the queues, its fetcher
cancels a hand-over, its conductor only knows assigned partitions, and streams skip messages of an
earlier generation. An owner goes on until it is fenced, also after the group has revoked its
partition, so belfry avoids all four:

    SteadyFlow        is never suspended, and clears no queue
    BatchConductor    takes batches from readers' threads, and goes by topic, not by assignment
    Batch             is always of the present generation

The readers bound the batches under way (`AHEAD` small batches for each partition).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from faust.transport.conductor import Conductor
from faust.types import Message
from mode.utils.queues import FlowControlEvent

PassOn = Callable[[], None]


class SteadyFlow(FlowControlEvent):
    """Faust's flow control of all streams, which is not suspended by a rebalance."""

    def __init__(self) -> None:
        super().__init__(initially_suspended=False)

    def suspend(self) -> None:
        """Does nothing: the group's client does not fetch."""

    def resume(self) -> None:
        """Does nothing: flow was not suspended, and no queue is cleared."""

    def clear(self) -> None:
        """Does nothing: an owner decides whether the batches in a queue count."""


class Batch(Message):
    """A fetched batch as Faust's message: its value passes it on."""

    __slots__ = ("_app", "pass_on")

    def __init__(self, app: Any, topic: str, partition: int, offset: int, pass_on: PassOn) -> None:
        self._app = app
        self.pass_on = pass_on
        value: Any = pass_on
        super().__init__(topic, partition, offset, 0.0, 0, None, None, value, None)

    @property
    def generation_id(self) -> Any:
        """The group's present generation: terms of ownership decide which owner takes a batch."""
        return self._app.consumer_generation_id

    @generation_id.setter
    def generation_id(self, _: Any) -> None:
        pass


class BatchConductor(Conductor):
    """Faust's conductor, which takes batches in from other threads."""

    def hand_over(self, batch: Batch, topic: str) -> None:
        """Put a batch into the queue of the agent of a topic; on the event loop."""
        channels = [each for each in self._topics if topic in each.topics]
        if not channels:
            raise LookupError(f"no agent takes batches of {topic}: {batch.tp} is not taken in")
        batch.incref(len(channels))
        self.app.sensors.on_message_in(batch.tp, batch.offset, batch)
        for channel in channels:
            event = self.app.create_event(None, batch.value, None, batch)
            channel.queue.force_put_nowait(event)

    def forget(self, topic: str) -> None:
        """Drop the queues of a topic's agent, before it is started again."""
        for each in [each for each in self._topics if topic in each.topics]:
            self.discard(each)

    async def _update_indices(self) -> Iterable[str]:
        """The group only shares the topic of requests: all other topics follow its partitions."""
        app: Any = self.app
        return [each for each in await super()._update_indices() if each == app.shared_topic]
