"""The head of an envelope: the bytes that say which schema reads it, settled for each topic.

If the registry has no id to write with, or refuses belfry's schema, that tenant is held, and no
other. A registry that does not answer is not asked again for `SILENT_S`: the caller may be a
partition's thread, which would wait for a time-out for each of its tenants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belfry.host import machine
from belfry.registry.answers import RegistryError, RegistrySilentError
from belfry.registry.client import Registry
from belfry.registry.subjects import fired_event_id
from belfry.settings import Settings
from belfry.tenants.effective import Tenant
from belfry.wire import framing

SILENT_S: Final = 5.0


class Envelopes:
    """Knows the head of tenants' envelopes; the threads of all partitions use it.

    `registry` is None if belfry has no registry; `clock` gives monotonic seconds.
    """

    def __init__(
        self,
        settings: Settings,
        registry: Registry | None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._clock = clock or machine.monotonic
        self._silence = (0.0, "")

    def head(self, topic: str) -> tuple[bytes, str]:
        """The head of envelopes on a topic; or an empty head, and the reason.

        Without a registry the head is the ten bytes of single-object encoding, with a registry the
        five of Confluent's format. Waits for the registry for as long as its client's time-out.
        """
        if self._registry is None:
            return framing.single_object("FiredEvent"), ""
        until, reason = self._silence
        if self._clock() < until:
            return b"", reason
        try:
            schema_id = fired_event_id(self._registry, self._settings, topic)
        except RegistryError as error:
            if isinstance(error, RegistrySilentError):
                self._silence = (self._clock() + SILENT_S, str(error))
            return b"", str(error)
        if schema_id is None:
            return b"", f"the registry has no FiredEvent for {topic}: run `belfry schema register`"
        return framing.prefix(schema_id), ""


def is_framed(tenant: Tenant, topic: str) -> bool:
    """Whether the head of the tenant's envelopes on a topic is settled."""
    return bool(tenant.envelope_head) and tenant.topic == topic
