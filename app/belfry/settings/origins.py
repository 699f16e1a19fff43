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
# The rest of an address behind its scheme; several addresses have commas or blanks between them.
_ADDRESS: Final = re.compile(r"//((?:(?!,\w[\w+.-]*://)\S)+)")
# The characters that end the authority of an address (RFC 3986, 3.2).
_AUTHORITY: Final = re.compile(r"[^/?#]*")


class SettingOrigin(NamedTuple):
    """A setting, its value as plain data, and where that comes from."""

    name: str
    value: Any
    source: str


def origins(made: Sourced, options: Mapping[str, Any]) -> list[SettingOrigin]:
    """All settings of a process, in the order of their class; `options` are the typed ones."""
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
    """A value as JSON can have it; the credentials of addresses are not shown."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, bool | int | float | None):
        return value
    return _ADDRESS.sub(_without_credentials, str(value))


def _without_credentials(found: re.Match[str]) -> str:
    """An address behind its scheme, with a blot for user and password.

    A password that is not percent-encoded may hold `@` and `/`. Where an `@` stands behind the
    authority, the end of such a password is unknown, and all is blotted out.
    """
    read = _AUTHORITY.match(found[1])
    assert read is not None
    rest = found[1][read.end() :]
    if "@" in rest:
        return f"//{NOT_SHOWN}"
    _, at, host = read[0].rpartition("@")
    return f"//{NOT_SHOWN}@{host}{rest}" if at else found[0]
