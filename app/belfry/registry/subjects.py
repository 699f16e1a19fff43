"""The topics of belfry's schemas, and the subjects of these (`naming`).

Fired events of envelope tenants have a subject per tenant topic; it is registered when the tenant
first fires, because the tenants are not known before.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from belfry.registry.answers import RegistryUnreachable, RegistryUnreachableError
from belfry.registry.client import Registry
from belfry.registry.naming import subject_of
from belfry.settings import SharedSettings, property_name

Look = Callable[[int | bytes], Any]

CARRIED: Final = {
    "schedules": "ScheduleRequest",
    "lifecycle": "LifecycleEvent",
    "tenants": "TenantPolicy",
    "audit": "AuditEvent",
    "deliveries": "FiredEvent",
}


def subject_for(settings: SharedSettings, short: str, name: str) -> str:
    """Subject of one of belfry's topics by the strategy of the settings."""
    return subject_of(settings.topic(short), name, settings.registry_subjects)


def subjects(settings: SharedSettings) -> dict[str, str]:
    """Subjects that a belfry of these settings needs, and the name of the schema of each."""
    return {subject_for(settings, short, name): name for short, name in CARRIED.items()}


def open_registry(settings: SharedSettings) -> Registry | None:
    """The configured registry, or None without one."""
    if settings.schema_registry_url is None:
        return None
    properties = {property_name(key): value for key, value in settings.registry.items()}
    return Registry(settings.schema_registry_url, properties)


def publish_all(registry: Registry, settings: SharedSettings) -> dict[str, int]:
    """Register all of belfry's schemas; returns the id of each subject.

    Raises `RegistryError` at the first subject that could not be registered.
    """
    return {
        subject: registry.publish(subject, name) for subject, name in subjects(settings).items()
    }


def check_all(registry: Registry, settings: SharedSettings) -> list[str]:
    """What is wrong with the registry's subjects, as sentences; empty if all are in order."""
    return [
        problem
        for subject, name in subjects(settings).items()
        for problem in registry.check(subject, name)
    ]


def fired_event_id(registry: Registry, settings: SharedSettings, topic: str) -> int | None:
    """The schema id to write `FiredEvent` with, on an envelope tenant's topic.

    If belfry may not register, and this topic has no schema yet, the id of the deliveries topic is
    used: readers only go by the id. None if neither is registered.
    """
    name = CARRIED["deliveries"]
    wanted = registry.id_for_writing(
        subject_of(topic, name, settings.registry_subjects),
        name,
        may_register=settings.registry_auto_register,
    )
    if wanted is not None:
        return wanted
    general = subject_for(settings, "deliveries", name)
    return registry.id_for_writing(general, name, may_register=False)


def look_in(registry: Registry | None) -> Look | None:
    """Writers' schemas by id or GUID, as a decoder asks for them; None without a registry.

    It is for callers that can go on without: a registry that does not answer counts as one without
    such a schema.
    """
    ask = ask_in(registry)
    if ask is None:
        return None

    def look(reference: int | bytes) -> Any:
        with suppress(RegistryUnreachableError):
            return ask(reference)
        return None

    return look


def ask_in(registry: Registry | None) -> Look | None:
    """The same for callers that have to know if the registry does not answer.

    The function raises `RegistryUnreachableError` then, with the address of the registry.
    """
    if registry is None:
        return None

    def ask(reference: int | bytes) -> Any:
        if isinstance(reference, int):
            found = registry.writer_schema(reference)
        else:
            found = registry.writer_schema_by_guid(reference)
        if isinstance(found, RegistryUnreachable):
            raise RegistryUnreachableError(
                f"The schema registry at {registry.url} does not tell the schema"
                f" ({found.reason}): check that it runs, its address and its credentials."
            )
        return found if isinstance(found, dict) else None

    return ask
