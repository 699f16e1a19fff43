"""What every command shares: the options that say where belfry is and what output looks like.

A command is a function whose first parameter is a `Session`. `with_session` turns it into one that
Typer understands, with the common options behind its own. A parameter that is a dataclass of
options stands for all of its fields. The common options are taken before the sub-command as well.

    def get(session: Session, tenant: Tenant) -> None: …     what is written
    get(*, context, tenant, output, bootstrap_servers, …)    what Typer sees

The first of these that says something counts:

    options behind the sub-command  >  before it  >  BELFRY_* variables  >  belfry.toml

    belfry -o json schedule get demo a -o text      text: behind the sub-command
    belfry -X a=1 schedule get demo a -X b=2        both properties

Nothing is opened before a command asks for it: settings are read at the first use, and Kafka is
reached by `cluster`, `admin` or `client`. What goes wrong on the way is `WrongUse` for settings
(exit code 2) and `BelfryError` for Kafka (1); `belfry.cli.failures` turns both into a sentence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_type_hints

import typer

from belfry.cli.failures import WrongUse
from belfry.cli.help import EVERYWHERE
from belfry.cli.shown import Output, Printer

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from belfry.client import Client
    from belfry.client.kafka import Cluster
    from belfry.settings import CommandSettings, RoleSettings, SharedSettings

BOOTSTRAP: Final = "bootstrap.servers"

Command = Callable[..., int | None]
_Kind = TypeVar("_Kind", bound="SharedSettings | RoleSettings")


class Names(StrEnum):
    """Names of the common options as parameters."""

    OUTPUT = "output"
    BOOTSTRAP_SERVERS = "bootstrap_servers"
    HTTP_URL = "http_url"
    SCHEMA_REGISTRY_URL = "schema_registry_url"
    PROPERTIES = "properties"


# Their parameters are added to each command; None stands for "not given".
_OPTIONS: Final[dict[str, Any]] = {
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


class Session:
    """One run of a command: its settings, its printer, and the way to Kafka.

    It belongs to the main thread. `given` are the common options by their names, None where one was
    not given.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self.printer = Printer(given.get(Names.OUTPUT) or Output.TEXT)

    @property
    def asks_http(self) -> bool:
        """Whether the command was told which worker to ask."""
        return self._given.get(Names.HTTP_URL) is not None

    @cached_property
    def settings(self) -> CommandSettings:
        """Settings from options, environment and file; read once. Raises `WrongUse`.

        They are those of a command: a name that only a worker has is no mistake, and its value is
        not read.
        """
        from belfry.settings import CommandSettings

        return self.settings_of(CommandSettings, {})

    def settings_of(
        self, kind: type[_Kind], options: Mapping[str, Any], *, all_names: bool = True
    ) -> _Kind:
        """Those of a process, with its own options on top; None stands for "not given".

        Wrong names and wrong values are told at once, all of them, by `WrongUse`. Without
        `all_names` only the values of this class are checked, for what is read before it is known
        which process it is.
        """
        from tomllib import TOMLDecodeError

        given = {**self.options_of(kind), **options}
        given = {key: value for key, value in given.items() if value is not None}
        properties = _properties(self._given.get(Names.PROPERTIES) or [])
        properties.pop(BOOTSTRAP, None)
        try:
            return _made(kind, given, _unknown(properties) if all_names else "")
        except TOMLDecodeError as error:
            raise WrongUse(f"the settings file is no TOML: {error}.") from None

    def options_of(self, kind: type[_Kind]) -> dict[str, Any]:
        """What the common options say of the settings of a process; None for "not given"."""
        kafka = _properties(self._given.get(Names.PROPERTIES) or [])
        names = (Names.BOOTSTRAP_SERVERS, Names.HTTP_URL, Names.SCHEMA_REGISTRY_URL)
        common: dict[str, Any] = {str(name): self._given.get(name) for name in names}
        # -X bootstrap.servers is the same as the option, which wins where both are given.
        by_property = kafka.pop(BOOTSTRAP, None)
        if common[Names.BOOTSTRAP_SERVERS] is None:
            common[Names.BOOTSTRAP_SERVERS] = by_property
        _refuse_empty(common)
        # Variables cannot hold dots; to win over them, a property has to be named as they are.
        common["kafka"] = {key.replace(".", "_"): value for key, value in kafka.items()}
        return {key: value for key, value in common.items() if key in kind.model_fields}

    def as_options(self) -> list[str]:
        """The common options that were given, but for the output, as a command line has them."""
        names = (Names.BOOTSTRAP_SERVERS, Names.HTTP_URL, Names.SCHEMA_REGISTRY_URL)
        found: list[str] = []
        for name in names:
            if (value := self._given.get(name)) is not None:
                found += [f"--{name.replace('_', '-')}", value]
        for each in self._given.get(Names.PROPERTIES) or []:
            found += ["-X", each]
        return found

    def cluster(self) -> Cluster:
        """The Kafka cluster of the settings; nothing is asked of it yet."""
        from belfry.client.kafka import Cluster

        properties = self.settings.kafka_properties()
        return Cluster(properties.pop(BOOTSTRAP), properties)

    def admin(self) -> tuple[Cluster, AdminClient]:
        """An admin client, once a broker has answered; `BelfryError` where none does."""
        cluster = self.cluster()
        admin = cluster.admin()
        cluster.reach(admin)
        return cluster, admin

    def client(self) -> Client:
        """A client of belfry, to be closed by the caller; it connects when it is used."""
        from belfry.client import Client
        from belfry.settings import plain, property_name

        settings = self.settings
        properties = settings.kafka_properties()
        return Client(
            properties.pop(BOOTSTRAP),
            schema_registry_url=settings.schema_registry_url,
            properties=properties,
            registry_properties={property_name(k): v for k, v in settings.registry.items()},
            topic_prefix=settings.cluster.topic_prefix,
            own_topics=settings.own_topics,
            secrets=plain(settings.secrets),
        )


def _refuse_empty(given: Mapping[str, Any]) -> None:
    """An empty option was meant to say something: perhaps its variable is not set in the shell."""
    for name, value in given.items():
        if value is not None and not value.strip():
            option = "--" + name.replace("_", "-")
            raise WrongUse(f"{option} is empty: give it an address, or leave it out.")


def _unknown(properties: Mapping[str, str]) -> str:
    """What is wrong with the names of settings, wherever they were given; empty if nothing is."""
    import os
    import tomllib

    from belfry.settings.names import unknown_names
    from belfry.settings.sources import config_file

    path = config_file()
    file = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    return unknown_names(os.environ, file, properties)


def _made(kind: type[_Kind], given: Mapping[str, Any], unknown: str) -> _Kind:
    """The settings, where nothing is wrong; what is wrong with names comes first."""
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from belfry.cli.failures import setting_text, unparsed_text

    try:
        made = kind(**given)
    except ValidationError as error:
        raise WrongUse(f"{unknown} {setting_text(error)}".strip()) from None
    except SettingsError as error:
        raise WrongUse(f"{unknown} {unparsed_text(error)}".strip()) from None
    # Names are told even where all values are fine: one that nobody knows would change nothing,
    # silently.
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


def _parameters() -> list[inspect.Parameter]:
    """The common options as parameters of a function."""
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _OPTIONS.items()
    ]


def with_session(command: Callable[..., int | None]) -> Command:
    """A command that takes the common options and gets them as a `Session`.

    The result has a signature that Typer reads: the options of each dataclass one by one, then the
    common ones. When it is called it puts the dataclasses together again. Its help is the docstring
    of `command`.
    """
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    groups: dict[str, Any] = {
        each.name: each.annotation for each in own if is_dataclass(each.annotation)
    }
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

    @wraps(command)
    def run(*, context: typer.Context, **options: Any) -> int | None:
        # What stood before the sub-command; None in tests that call a command alone.
        before: dict[str, Any] = context.find_root().obj or {}
        behind = {name: options.pop(name) for name in list(_OPTIONS)}
        session = Session(merged(before, behind))
        for name, group in groups.items():
            options[name] = group(**{each.name: options.pop(each.name) for each in fields(group)})
        return command(session, **options)

    single = [option for each in own for option in _spread(each)]
    keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in single]
    return _shaped(run, [context, *keyword, *_parameters()])


def _spread(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """The options that a parameter stands for: itself, or the fields of its dataclass."""
    group = parameter.annotation
    if not is_dataclass(group):
        yield parameter
        return
    kinds = get_type_hints(group, include_extras=True)
    for each in fields(group):
        kind = kinds[each.name]
        yield parameter.replace(name=each.name, annotation=kind, default=each.default)


def root_options(callback: Callable[[typer.Context], None]) -> Callable[..., None]:
    """The program's callback with the common options, which it keeps for the sub-command.

    They are kept in the object of Typer's context, where `with_session` finds them.
    """

    @wraps(callback)
    def run(*, context: typer.Context, **options: Any) -> None:
        context.obj = {name: options.pop(name) for name in list(_OPTIONS)}
        callback(context, **options)

    own = list(inspect.signature(callback, eval_str=True).parameters.values())
    keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    return _shaped(run, [*keyword, *_parameters()])


def merged(before: Mapping[str, Any], behind: Mapping[str, Any]) -> dict[str, Any]:
    """Options before and behind the sub-command; those behind win, properties add up.

    Of a property that was given in both places the one behind the sub-command wins, as it comes
    later.  An empty option counts as given, and is refused.
    """
    both = {
        name: given if (given := behind.get(name)) is not None else before.get(name)
        for name in _OPTIONS
    }
    properties = [*(before.get(Names.PROPERTIES) or []), *(behind.get(Names.PROPERTIES) or [])]
    return {**both, Names.PROPERTIES: properties}


def _shaped(
    function: Callable[..., Any], parameters: list[inspect.Parameter]
) -> Callable[..., Any]:
    """The function with the signature from which Typer reads the options of a command."""
    shaped: Any = function
    shaped.__signature__ = inspect.Signature(parameters)
    shaped.__annotations__ = {each.name: each.annotation for each in parameters}
    # Typer would follow it to the function as it was written.
    del shaped.__wrapped__
    get_type_hints(shaped)
    return function
