"""Which function handles which event: by event type, exact, by prefix, or all.

    handlers = Handlers()

    @handlers.on("order.expired")        this type
    def expire(event: FiredRecord) -> None: ...

    @handlers.on("order.*")              all types that begin so, unless a longer pattern fits
    @handlers.on("*")                    all other events, also those without a type

One event goes to one handler: the one with the most specific pattern.  A handler may be a coroutine
function where the events are read by `Subscriber.run_async`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from belfry.client.fired_record import FiredRecord

Handler = Callable[[FiredRecord], Awaitable[Any] | Any]
ALL: Final = "*"


class Handlers:
    """A table of handlers."""

    def __init__(self) -> None:
        self._exact: dict[str, Handler] = {}
        self._prefixes: dict[str, Handler] = {}

    def on(self, pattern: str) -> Callable[[Handler], Handler]:
        """Decorate the handler of a pattern: ``order.expired``, ``order.*`` or ``*``."""

        def add(handler: Handler) -> Handler:
            self.add(pattern, handler)
            return handler

        return add

    def add(self, pattern: str, handler: Handler) -> None:
        """Let a handler have the events of a pattern; ValueError where it has one already."""
        prefix, star, rest = pattern.partition(ALL)
        if rest or not pattern:
            raise ValueError(
                f"{pattern!r} is no pattern: a star stands at the end, such as 'order.*', or alone."
            )
        table = self._prefixes if star else self._exact
        if prefix in table:
            raise ValueError(f"{pattern!r} has a handler already: one event goes to one handler.")
        table[prefix] = handler

    def find(self, event_type: str | None) -> Handler | None:
        """The handler of a type, or None where no pattern fits."""
        found = self._exact.get(event_type) if event_type is not None else None
        if found is not None:
            return found
        name = event_type or ""
        fitting = [prefix for prefix in self._prefixes if name.startswith(prefix)]
        return self._prefixes[max(fitting, key=len)] if fitting else None
