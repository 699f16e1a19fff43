"""Names that no process of belfry knows: all of them are found at start, with the nearest ones.

    BELFRY_BATCH_RECORD=500      a variable       did you mean BELFRY_BATCH_RECORDS?
    [cluster] partition = 4      a key            did you mean cluster.partitions?
    -X sasl.usrname=me           a property       did you mean sasl.username?

Processes share environments and files, so a name that another process knows is fine.  A setting
that is misspelt and passed over leaves its default in force, and nobody notices.  No message shows
a value, which may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, get_origin

import orjson
from pydantic.fields import FieldInfo

from belfry.settings.cluster import ClusterSettings
from belfry.settings.commands import CommandSettings
from belfry.settings.delivery import DeliverySettings
from belfry.settings.properties import (
    REGISTRY_PROPERTIES,
    is_kafka_property,
    kafka_properties,
    property_name,
)
from belfry.settings.sources import CONFIG_FILE, NESTED, PREFIX, is_secret, variable
from belfry.settings.worker import WorkerSettings

# Each class has the settings of one kind of process; together they have all names.
PROCESSES: Final = (WorkerSettings, DeliverySettings, CommandSettings)
# Former names of settings, and their present names.  A name stays here for good.
RENAMED: Final[dict[str, str]] = {}
# Variables that are not settings: the place of the file, and variables of tests and benchmarks.
OTHERS: Final = frozenset(
    {CONFIG_FILE, "BELFRY_CACHE_DIR", "BELFRY_FAILPOINT", "BELFRY_BENCH_LOG_LEVEL"}
)
# Policies name variables that begin so, and only they know these names.
OF_POLICIES: Final = "BELFRY_SECRET_"
# Variables that Kubernetes sets in each container for a service named belfry, or belfry-something.
_OF_KUBERNETES: Final = re.compile(
    r"_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$"
)
_ADDRESS: Final = re.compile(r"(tcp|udp|sctp)://")
_ALLOWED: Final = (
    "Allowed are the settings of docs/settings.md, and behind BELFRY_KAFKA__ and -X the properties"
    " of librdkafka. Correct each name, or leave it out."
)


def known_settings() -> dict[str, FieldInfo]:
    """The settings of all processes, by name."""
    return {name: info for each in PROCESSES for name, info in each.model_fields.items()}


def may_hold_secrets(name: str) -> bool:
    """Whether a setting's value is kept secret, in whole or in part."""
    return is_secret(known_settings().get(name))


def unknown_names(
    environment: Mapping[str, str], file: Mapping[str, Any], options: Iterable[str]
) -> str:
    """All that is wrong with the names, and what to do; empty if each is known.

    `environment` is that of the process, of which names that begin with ``BELFRY_`` count, in any
    case. `file` is the parsed TOML file; `options` are the names of properties given by ``-X``.
    Values are looked into only where they hold names of their own, such as a table as JSON.
    """
    # All of them at once: a person who corrects names one by one starts the process again each
    # time.
    found = [
        *_variables(environment),
        *_keys(file),
        *(told for name in options if (told := _property(f"-X {name}", name))),
    ]
    return " ".join([*found, _ALLOWED]) if found else ""


def _variables(environment: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with variables, in the order of their names."""
    known = known_settings()
    for given, value in sorted(environment.items()):
        name = given.upper()
        if not name.startswith(PREFIX) or _is_of_others(name, value):
            continue
        setting, nested, key = name.removeprefix(PREFIX).lower().partition(NESTED)
        told = ""
        if setting not in known or (nested and not _has_keys(known[setting], setting)):
            told = _unknown(given, name, _all_variables(), PREFIX)
        elif nested:
            told = _nested(given, setting, key)
        elif setting in ("cluster", "kafka", "registry"):
            yield from _in_table(given, setting, _parsed(value))
        if told:
            yield told


def _is_of_others(name: str, value: str) -> bool:
    """Whether a variable is no setting: belfry's own switch, a secret, or one of Kubernetes."""
    if name in OTHERS or name.startswith(OF_POLICIES) or _OF_KUBERNETES.search(name):
        return True
    return name.endswith("_PORT") and _ADDRESS.match(value) is not None


def _keys(file: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the keys of the file."""
    known = known_settings()
    for given, value in file.items():
        if given not in known:
            yield _unknown(f"{given} in the settings file", given, known, "")
        elif given in ("cluster", "kafka", "registry"):
            yield from _in_table(f"{given} in the settings file", given, value)


def _in_table(given: str, setting: str, table: Any) -> Iterator[str]:
    """What is wrong with the keys of a table, if the value is a table."""
    if isinstance(table, Mapping):
        for key in table:
            told = _nested(f"{key} of {given}", setting, str(key))
            if told:
                yield told


def _nested(given: str, setting: str, key: str) -> str:
    """What is wrong with a key below a setting; below some, any name may stand."""
    if setting == "cluster" and key not in ClusterSettings.model_fields:
        if _is_variable(given):
            return _unknown(given, given.upper(), _all_variables(), PREFIX)
        return _unknown(given, key, ClusterSettings.model_fields, "")
    if setting == "kafka":
        return _property(given, key)
    if setting == "registry" and property_name(key) not in REGISTRY_PROPERTIES:
        near = _near_property(given, key, REGISTRY_PROPERTIES)
        return f"{given} is no property of the schema registry's client: {near}"
    return ""


def _is_variable(given: str) -> bool:
    """Whether a name was given as a variable, and not as a key of the file or by ``-X``."""
    return given.upper().startswith(PREFIX)


def _property(given: str, key: str) -> str:
    """What is wrong with a property of librdkafka; empty if nothing is."""
    if is_kafka_property(property_name(key)):
        return ""
    return f"{given} is no property of librdkafka: {_near_property(given, key, kafka_properties())}"


def _near_property(given: str, key: str, known: Iterable[str]) -> str:
    """The nearest property, written as the given one is."""
    if not _is_variable(given):
        return _near(property_name(key), known)
    # The part of the variable that names the table stays as it was given.
    before = given[: -len(key)]
    return _near(given, [before + name.replace(".", "_").upper() for name in known])


def _unknown(given: str, name: str, known: Iterable[str], prefix: str) -> str:
    """The advice for an unknown name: its new name, or the nearest one."""
    former = name.removeprefix(prefix).lower().replace(NESTED, ".")
    if former in RENAMED:
        now = RENAMED[former]
        return f"{given} is called {variable(now) if prefix else now} now."
    return f"{given} is no setting of belfry's: {_near(name, known)}"


def _near(name: str, known: Iterable[str]) -> str:
    """A guess, in words."""
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else "nothing known is called alike."


def _has_keys(info: FieldInfo, setting: str) -> bool:
    """Whether names may stand below a setting."""
    return setting == "cluster" or get_origin(info.annotation) is dict


def _all_variables() -> list[str]:
    """All variables that are known, to guess from."""
    below = [f"cluster.{name}" for name in ClusterSettings.model_fields]
    return [*map(variable, [*known_settings(), *below]), *sorted(OTHERS)]


def _parsed(value: str) -> Any:
    """A variable that holds a table as JSON; any other text is refused where it is read."""
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
