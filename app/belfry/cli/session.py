"""The common part of all commands: options for the place of belfry and for the form of output.

A command is a function whose first parameter is a `Session`. `with_session` turns it into one that
Typer understands, with the common options behind its own. A parameter that is a dataclass of
options stands for all of its fields. The common options are taken before the sub-command as well.

    def get(session: Session, tenant: Tenant) -> None: …     the source
    get(*, context, tenant, output, bootstrap_servers, …)    the signature for Typer

Which options these are, and how they are laid over variables and the file, is told in
`belfry.cli.common_options`.

Settings and connections are opened when a command asks for them: settings are read at the first
use, and Kafka is reached by `cluster`, `admin` or `client`. Wrong settings raise `WrongUse` (exit
code 2), and failures of Kafka raise `BelfryError` (1); `belfry.cli.failures` turns both into a
sentence.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from belfry.cli.common_options import (
    BOOTSTRAP,
    OPTIONS,
    Kind,
    Names,
    merged,
    said_of,
    settings_from,
)
from belfry.cli.shown import Output, Printer

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from belfry.client import Client
    from belfry.client.errors import BelfryError
    from belfry.client.kafka import Cluster
    from belfry.settings import CommandSettings


Command = Callable[..., int | None]


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
        self, kind: type[Kind], options: Mapping[str, Any], *, all_names: bool = True
    ) -> Kind:
        """Those of a process, with its own options on top; None stands for "not given".

        Raises `WrongUse` for wrong names and wrong values, all at once. Without `all_names` only
        the values of this class are checked: that is for settings that are read before the kind of
        the process is known.
        """
        return settings_from(self._given, kind, options, all_names=all_names)

    def options_of(self, kind: type[Kind]) -> dict[str, Any]:
        """What the common options say of the settings of a process; None for "not given"."""
        return said_of(self._given, kind)

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
        """The Kafka cluster of the settings; it is not asked yet."""
        from belfry.client.kafka import Cluster

        properties = self.settings.kafka_properties()
        return Cluster(properties.pop(BOOTSTRAP), properties)

    def admin(self) -> tuple[Cluster, AdminClient]:
        """An admin client, once a broker has answered; `BelfryError` if none answers."""
        cluster = self.cluster()
        admin = cluster.admin()
        cluster.reach(admin)
        return cluster, admin

    def told(self, error: Exception) -> BelfryError | None:
        """An error of Kafka's client, with brokers and user, or with a bad property; else None."""
        if type(error) is TimeoutError and not str(error):
            from belfry.client.errors import Unavailable

            # An answer that an admin client waits for in vain has no reason of its own.
            return Unavailable(
                f"Kafka at {self.settings.bootstrap_servers} gave no answer in time. `belfry"
                " doctor` says which brokers answer; ask again once they do."
            )
        # A command that has not imported the client cannot have raised its errors.
        confluent = sys.modules.get("confluent_kafka")
        if confluent is None or not isinstance(error, confluent.KafkaException):
            return None
        cause = error.args[0] if error.args else None
        if not isinstance(cause, confluent.KafkaError):
            return None
        if "configuration property" in cause.str():
            from belfry.client.faults import bad_property

            return bad_property(cause.str())
        return self.cluster().unavailable(cause)

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


def _parameters() -> list[inspect.Parameter]:
    """The common options as parameters of a function."""
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in OPTIONS.items()
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
        # Options before the sub-command; None in tests that call a command alone.
        before: dict[str, Any] = context.find_root().obj or {}
        behind = {name: options.pop(name) for name in list(OPTIONS)}
        session = Session(merged(before, behind))
        for name, group in groups.items():
            options[name] = group(**{each.name: options.pop(each.name) for each in fields(group)})
        try:
            return command(session, **options)
        except Exception as error:
            if (told := session.told(error)) is None:
                raise
            raise told from error

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
        context.obj = {name: options.pop(name) for name in list(OPTIONS)}
        callback(context, **options)

    own = list(inspect.signature(callback, eval_str=True).parameters.values())
    keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    return _shaped(run, [*keyword, *_parameters()])


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
