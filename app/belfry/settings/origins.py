"""Where each setting of a process has its value from: an option, a variable, the file, or nowhere.

    cluster.partitions   16       BELFRY_CLUSTER__PARTITIONS
    standbys             2        belfry.toml
    batch_records        8000     default

A setting that is a table counts key by key, as its keys may come from several places.  Values that
may be secrets are never told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from pydantic import BaseModel
from pydantic_settings import EnvSettingsSource

from belfry.settings.sources import (
    NOT_SHOWN,
    Sourced,
    config_file,
    file_values,
    is_secret,
    variable,
)

OPTION: Final = "option"
DEFAULT: Final = "default"
# User and password of an address (RFC 3986, 3.2.1).
_CREDENTIALS: Final = re.compile(r"//[^/@\s]+@")


class SettingOrigin(NamedTuple):
    """A setting, its value as plain data, and where that comes from."""

    name: str
    value: Any
    source: str


def origins(made: Sourced, options: Mapping[str, Any]) -> list[SettingOrigin]:
    """All settings of a process, in the order of their class; `options` are what was typed."""
    kind = type(made)
    places = (
        (OPTION, options),
        ("", EnvSettingsSource(kind)()),
        (str(config_file()), file_values(kind)),
    )
    found = []
    for name, info in kind.model_fields.items():
        value = getattr(made, name)
        for key, each in _parts(value):
            path = (name, key) if key else (name,)
            shown = NOT_SHOWN if is_secret(info) and each else _plain(each)
            found.append(SettingOrigin(".".join(path), shown, _source(path, places)))
    return found


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The keys of a table with their values; anything else is one part without a key."""
    if isinstance(value, BaseModel):
        yield from ((name, getattr(value, name)) for name in type(value).model_fields)
    elif isinstance(value, dict) and value:
        yield from value.items()
    else:
        yield "", value


def _source(path: tuple[str, ...], places: tuple[tuple[str, Mapping[str, Any]], ...]) -> str:
    for source, given in places:
        at: Any = given
        for key in path:
            at = at.get(key) if isinstance(at, Mapping) else None
        if at not in (None, {}):
            return source or variable(".".join(path))
    return DEFAULT


def _plain(value: Any) -> Any:
    """A value as JSON can have it; the credentials of an address are not shown."""
    if isinstance(value, bool | int | float | list | None):
        return value
    return _CREDENTIALS.sub(f"//{NOT_SHOWN}@", str(value))
