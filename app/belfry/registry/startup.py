"""A worker's use of the registry before it begins: it publishes schemas, or checks them.

If workers may register, they publish belfry's schemas, and wait for a registry that is still
starting. If they may not, they compare and report problems, and begin anyway: only readers of
prefixed requests wait for a registry that is away.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from belfry.registry.answers import RegistryError, RegistryUnreachableError
from belfry.registry.client import AskedAnew, Registry
from belfry.registry.lookups import Lookups
from belfry.registry.subjects import CARRIED, check_all, publish_all, subject_for
from belfry.settings import ServerSettings
from belfry.wire import catalogue, framing
from belfry.wire.readings import Reading, Reference, reading_of

AGAIN_S: Final = 1.0
Tell = Callable[[str], object]


class Frames(NamedTuple):
    """The heads of records that a worker writes: the registry's id, or a fingerprint."""

    request: bytes
    lifecycle: bytes
    deliveries: bytes
    audit: bytes = framing.single_object("AuditEvent")


WRITTEN: Final = ("schedules", "lifecycle", "deliveries", "audit")
WITHOUT: Final = Frames(
    framing.single_object("ScheduleRequest"),
    framing.single_object("LifecycleEvent"),
    framing.single_object("FiredEvent"),
    framing.single_object("AuditEvent"),
)


def frames(
    registry: Registry,
    settings: ServerSettings,
    tell: Tell,
    sleep: Callable[[float], object] = time.sleep,
) -> Frames:
    """Frames for a worker's records; single-object ones if the registry has no id for them.

    `tell` gets each problem as a sentence. Raises `RegistryError` if a worker may register and the
    registry refuses, or does not answer for as long as the settings wait.
    """
    wanted = {short: CARRIED[short] for short in WRITTEN}
    subjects = {short: subject_for(settings, short, name) for short, name in wanted.items()}
    if settings.registry_auto_register:
        ids = _published(registry, settings, tell, sleep)
        return Frames(*(framing.prefix(ids[subject]) for subject in subjects.values()))
    try:
        for problem in check_all(registry, settings):
            tell(problem)
        found = [registry.id_of(subjects[short], name) for short, name in wanted.items()]
    except RegistryError as error:
        tell(str(error))
        return WITHOUT
    made = zip(found, WITHOUT, strict=True)
    return Frames(*(bare if each is None else framing.prefix(each) for each, bare in made))


def lookups(
    registry: Registry | None,
    settings: ServerSettings,
    written: Frames,
    told: Callable[[str], object] = str,
) -> Lookups | None:
    """The lookups of requests' schemas; the schema that workers write with needs no lookup.

    `told` is called for each lookup.
    """
    if registry is None:
        return None
    frame = framing.read_frame(written.request + b"any body")
    known: dict[Reference, Reading] = {}
    if frame.kind is framing.FrameKind.PREFIX:
        known[frame.reference] = reading_of(catalogue.schema("ScheduleRequest"))
    wait_s = settings.registry_wait_ms / 1000
    return Lookups(AskedAnew(registry), wait_s, known, told=told).start()


def _published(
    registry: Registry, settings: ServerSettings, tell: Tell, sleep: Callable[[float], object]
) -> dict[str, int]:
    tries = max(1, int(settings.registry_wait_ms / 1000 / AGAIN_S))
    for _ in range(tries - 1):
        try:
            return publish_all(registry, settings)
        except RegistryUnreachableError as error:
            tell(str(error))
            sleep(AGAIN_S)
    return publish_all(registry, settings)
