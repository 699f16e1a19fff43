"""Options of every command: which there are, and what they say of the settings.

Each command has them behind its own options, and the program has them before the sub-command. What
stands behind wins, and properties add up (`merged`). Then they are laid over the settings of the
process that is meant:

    options behind the sub-command  >  before it  >  BELFRY_* variables  >  belfry.toml

    belfry -o json schedule get demo a -o text      text: behind the sub-command
    belfry -X a=1 schedule get demo a -X b=2        both properties

Names and values that are wrong are told by `WrongUse`, all at once, wherever they were given. An
unknown name is refused even if all values are fine: otherwise it would have no effect, and nobody
would notice.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from belfry.cli.failures import WrongUse, setting_text, unparsed_text
from belfry.cli.help import EVERYWHERE
from belfry.cli.shown import Output

if TYPE_CHECKING:
    from belfry.settings import RoleSettings, SharedSettings

Kind = TypeVar("Kind", bound="SharedSettings | RoleSettings")

BOOTSTRAP: Final = "bootstrap.servers"


class Names(StrEnum):
    """Names of the common options as parameters."""

    OUTPUT = "output"
    BOOTSTRAP_SERVERS = "bootstrap_servers"
    HTTP_URL = "http_url"
    SCHEMA_REGISTRY_URL = "schema_registry_url"
    PROPERTIES = "properties"


# Their parameters are added to each command; None stands for "not given".
OPTIONS: Final[dict[str, Any]] = {
    Names.OUTPUT: Annotated[
        Output | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FORM",
            help="text for people (default), json or jsonl (an object a line) for programs.",
            rich_help_panel=EVERYWHERE,
        ),
    ],
    Names.BOOTSTRAP_SERVERS: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers",
            metavar="HOSTS",
            help="Kafka brokers, host:port, with commas.  [default: 127.0.0.1:9092]",
            rich_help_panel=EVERYWHERE,
        ),
    ],
    Names.HTTP_URL: Annotated[
        str | None,
        typer.Option(
            "--http-url",
            metavar="URL",
            help="Address of a worker.  [default: http://127.0.0.1:8700]",
            rich_help_panel=EVERYWHERE,
        ),
    ],
    Names.SCHEMA_REGISTRY_URL: Annotated[
        str | None,
        typer.Option(
            "--schema-registry-url",
            metavar="URL",
            help="Schema registry; none is needed.",
            rich_help_panel=EVERYWHERE,
        ),
    ],
    Names.PROPERTIES: Annotated[
        list[str] | None,
        typer.Option(
            "-X",
            metavar="NAME=VALUE",
            help="Any property of librdkafka, such as security.protocol=SASL_SSL; repeatable.",
            rich_help_panel=EVERYWHERE,
        ),
    ],
}


def merged(before: Mapping[str, Any], behind: Mapping[str, Any]) -> dict[str, Any]:
    """Options before and behind the sub-command; those behind win, properties add up.

    Of a property that was given in both places the one behind the sub-command wins, as it comes
    later.  An empty option counts as given, and is refused.
    """
    both = {
        name: given if (given := behind.get(name)) is not None else before.get(name)
        for name in OPTIONS
    }
    properties = [*(before.get(Names.PROPERTIES) or []), *(behind.get(Names.PROPERTIES) or [])]
    return {**both, Names.PROPERTIES: properties}


def settings_from(
    given: Mapping[str, Any], kind: type[Kind], own: Mapping[str, Any], *, all_names: bool
) -> Kind:
    """The settings of a process, with its own options on top of the common ones that were given.

    None stands for "not given". Wrong names and wrong values are told at once, by `WrongUse`.
    Without `all_names` only values are checked.
    """
    from tomllib import TOMLDecodeError

    options = {**said_of(given, kind), **own}
    options = {key: value for key, value in options.items() if value is not None}
    properties = _properties(given.get(Names.PROPERTIES) or [])
    properties.pop(BOOTSTRAP, None)
    try:
        return _made(kind, options, _unknown(properties) if all_names else "")
    except TOMLDecodeError as error:
        raise WrongUse(f"the settings file is no TOML: {error}.") from None


def said_of(given: Mapping[str, Any], kind: type[Kind]) -> dict[str, Any]:
    """What the common options say of the settings of a process; None for "not given"."""
    kafka = _properties(given.get(Names.PROPERTIES) or [])
    names = (Names.BOOTSTRAP_SERVERS, Names.HTTP_URL, Names.SCHEMA_REGISTRY_URL)
    common: dict[str, Any] = {str(name): given.get(name) for name in names}
    # -X bootstrap.servers is the same as the option, which wins where both are given.
    by_property = kafka.pop(BOOTSTRAP, None)
    if common[Names.BOOTSTRAP_SERVERS] is None:
        common[Names.BOOTSTRAP_SERVERS] = by_property
    _refuse_empty(common)
    # Variables cannot hold dots; to win over them, a property has to be named as they are.
    common["kafka"] = {key.replace(".", "_"): value for key, value in kafka.items()}
    return {key: value for key, value in common.items() if key in kind.model_fields}


def _refuse_empty(given: Mapping[str, Any]) -> None:
    """An empty option was meant to say something: perhaps its variable is not set in the shell."""
    for name, value in given.items():
        if value is not None and not value.strip():
            option = "--" + name.replace("_", "-")
            raise WrongUse(f"{option} is empty: give it an address, or leave it out.")


def _unknown(properties: Mapping[str, str]) -> str:
    """The mistakes in names of settings, wherever they were given; empty if there is none."""
    import os
    import tomllib

    from belfry.settings.names import unknown_names
    from belfry.settings.sources import config_file

    path = config_file()
    file = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    return unknown_names(os.environ, file, properties)


def _made(kind: type[Kind], given: Mapping[str, Any], unknown: str) -> Kind:
    """The settings, if all are right; mistakes in names are told first."""
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    try:
        made = kind(**given)
    except ValidationError as error:
        raise WrongUse(f"{unknown} {setting_text(error)}".strip()) from None
    except SettingsError as error:
        raise WrongUse(f"{unknown} {unparsed_text(error)}".strip()) from None
    # Names are checked even if all values are fine: an unknown one would silently have no effect.
    if unknown:
        raise WrongUse(unknown)
    return made


def _properties(given: list[str]) -> dict[str, str]:
    """Properties of librdkafka by name; of a name that comes twice the last value counts."""
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise WrongUse(
                f"-X {each!r} is no property: give NAME=VALUE with a name of librdkafka's, such as"
                " -X security.protocol=SASL_SSL."
            )
        found[name.strip()] = value
    return found
