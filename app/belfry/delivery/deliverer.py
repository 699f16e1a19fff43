"""All work of a process for deliveries: attempts, and the end of those whose retry was refused."""

from __future__ import annotations

from typing import NamedTuple

from belfry.delivery.dispatcher import Dispatcher
from belfry.delivery.settling import Settling
from belfry.delivery.silent_hosts import SilentHosts


class Deliverer(NamedTuple):
    """A dispatcher, and a `Settling` for deliveries whose retries were refused."""

    dispatcher: Dispatcher
    settling: Settling

    def start(self) -> None:
        """Begin to deliver; returns at once."""
        self.dispatcher.start()
        self.settling.start()

    def stop(self) -> None:
        """Finish the work under way, for a few seconds, and leave."""
        # Both wait for records, each for up to a second: at the same time.
        self.settling.told_to_stop()
        self.dispatcher.stop()
        self.settling.stop()

    @property
    def alive(self) -> bool:
        """Whether both run, or were not started yet."""
        return self.dispatcher.alive and self.settling.alive

    @property
    def ready(self) -> bool:
        """Whether the group has given the dispatcher its share."""
        return self.dispatcher.ready

    @property
    def silent(self) -> SilentHosts:
        """Hosts that do not answer."""
        return self.dispatcher.silent
