"""Where settings come from: arguments, ``BELFRY_…`` variables and one TOML file, in this order.

Each kind of process has a class of its own below `Sourced`, and reads only its own settings: all of
them may share one environment and one file.  A name that no process knows is refused at start
(`names.py`), not here, so that a message can list all of them at once.

A value that is not accepted may be a secret, so no error shows one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

PREFIX: Final = "BELFRY_"
NESTED: Final = "__"
CONFIG_FILE: Final = "BELFRY_CONFIG_FILE"
NOT_SHOWN: Final = "**********"


def config_file() -> Path:
    """The TOML file that is read; it need not be there.

    It is ``belfry.toml`` in the working directory unless BELFRY_CONFIG_FILE names another.
    """
    return Path(os.environ.get(CONFIG_FILE, "belfry.toml")).expanduser()


def file_that_is_missing() -> str:
    """A sentence where BELFRY_CONFIG_FILE names a file that is not there; else empty.

    Nobody would notice otherwise that the defaults are in force. /dev/null means
    that no file is wanted.
    """
    file = os.environ.get(CONFIG_FILE, "")
    if file in ("", os.devnull) or config_file().is_file():
        return ""
    return (
        f"{CONFIG_FILE} is {file!r}, and there is no such file: settings are those of options and"
        " variables, and the defaults. Give the place of the file, or leave the variable out."
    )


def variable(name: str) -> str:
    """Name of a setting as a variable: ``cluster.app_id`` gives ``BELFRY_CLUSTER__APP_ID``."""
    return PREFIX + name.replace(".", NESTED).upper()


class _OwnKeys(TomlConfigSettingsSource):
    """The file without the keys of other processes."""

    def __call__(self) -> dict[str, Any]:
        known = self.settings_cls.model_fields
        return {key: value for key, value in super().__call__().items() if key in known}


def file_values(kind: type[BaseSettings]) -> dict[str, Any]:
    """The values of the file for the settings of a process."""
    return _OwnKeys(kind, config_file())()


class Sourced(BaseSettings):
    """Settings of one process: the class without arguments reads the environment and the file.

    Arguments win over variables, and variables over the file. Objects are frozen, so threads share
    them.
    """

    # Extra names are an argument's: the sources give only those that a class knows. An argument is
    # given by code, so an unknown one is a mistake of belfry's and an error.
    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter=NESTED, extra="forbid", frozen=True
    )

    def __init__(self, **given: Any) -> None:
        """Settings from arguments, variables and the file; ValidationError shows no secret."""
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise _without_secrets(error, type(self).model_fields) from None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags win over the environment, the environment over the TOML file."""
        return init_settings, env_settings, _OwnKeys(settings_cls, config_file())


def plain(secrets: Mapping[str, SecretStr]) -> dict[str, str]:
    """Secrets by name, in clear, for the code that uses them."""
    return {name: secret.get_secret_value() for name, secret in secrets.items()}


def is_secret(info: FieldInfo | None) -> bool:
    """Whether a setting's value is kept secret, in whole or in part."""
    return info is not None and (not info.repr or "Secret" in str(info.annotation))


def _without_secrets(error: ValidationError, known: Mapping[str, FieldInfo]) -> ValidationError:
    """The same error, with a blot for each secret that was not accepted."""
    lines: list[Any] = [
        {**line, "input": NOT_SHOWN if is_secret(known.get(str(line["loc"][0]))) else line["input"]}
        for line in error.errors(include_url=False)
    ]
    return ValidationError.from_exception_data(error.title, lines)
