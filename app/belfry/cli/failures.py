"""Errors that are expected: one sentence on stderr and an exit code instead of a traceback.

A command raises, and `belfry.cli.entry` tells. There are three sources:

    raised by                        told as                                   exit code
    the command (`CommandError`)     its sentence                              its own
    Typer, pydantic                  what was given, and what is allowed       2
    client, Kafka, registry          the sentence of the error                 1, 3 or 4

Anything else is a bug, and keeps its traceback. Sentences hold what others wrote, so control
characters are shown and not sent. Values of settings that may be secrets are never shown.
"""

from __future__ import annotations

import errno
import re
import sys
from difflib import get_close_matches
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from typer.exceptions import TyperException

from belfry.cli.shown import plain

if TYPE_CHECKING:
    from pydantic import ValidationError


class Exit(IntEnum):
    """Exit codes of every command.

    `ERROR` is also for checks that found something wrong; `CONFLICT` is for what exists already,
    has another version, or has fired.
    """

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4


class CommandError(TyperException):
    """An error that a command found itself; its message is a sentence for people."""

    def __init__(self, message: str, code: Exit = Exit.ERROR) -> None:
        super().__init__(message)
        self.exit_code = code


class WrongUse(CommandError):
    """Options that do not go together, or a value that cannot be: exit code 2, and nothing was
    written.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.USAGE)


# What a disk says that takes no more: nobody's mistake, and no fault of belfry's.
DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_CHOICES: Final = re.compile(r"'(?P<given>[^']*)' is not one of (?P<allowed>'.*')\.")
# Pydantic's names of what is wrong with a number.
_NUMBERS: Final = ("int_", "float_", "greater_than", "less_than")


def tell(error: Exception) -> int | None:
    """Tell an expected error; its exit code, or None for a bug."""
    if isinstance(error, TyperException):
        return _tell_usage(error)
    known = _known(error)
    if known is None:
        return None
    message, code = known
    _say(message)
    return code


def _say(message: str) -> None:
    """A sentence on stderr; stdout is for results alone.  None ends behind its colon."""
    text = plain(message).rstrip()
    cause = f"{text} what failed said nothing more." if text.endswith(":") else text
    print(f"belfry: {cause}", file=sys.stderr)


def _tell_usage(error: TyperException) -> int:
    """Tell what Typer complains of, and where the help is; the exit code."""
    message = error.format_message()
    if message.startswith("Usage: "):
        # A group without a command: the message is its whole help page.
        print(message)
        return Exit.USAGE
    context: Any = getattr(error, "ctx", None)
    _say(_wrong_number(error) or _worded(message))
    if context is not None:
        print(f"Try: {context.command_path} --help", file=sys.stderr)
    return int(error.exit_code)


def _wrong_number(error: TyperException) -> str | None:
    """What was given for a number, and what is allowed; None if it is about something else."""
    from pydantic import ValidationError

    option: Any = getattr(error, "param", None)
    if option is None or not isinstance(error.__cause__, ValidationError):
        return None
    problem = error.__cause__.errors()[0]
    if not problem["type"].startswith(_NUMBERS):
        return None
    least, most = option.min, option.max
    allowed = "a whole number" if problem["type"].startswith("int") else "a number"
    if least is not None:
        bounds = f"{least} or more" if most is None else f"{least} to {most}"
        allowed = f"{allowed}, {bounds}" if "parsing" in problem["type"] else bounds
    # The long form of an option's name is the one that people know.
    name, given = max(option.opts, key=len), str(problem["input"])[:40]
    if option.param_type_name == "argument":
        name = option.metavar or name.upper()
    return f"{name} {given} is not allowed: {allowed}."


def _worded(message: str) -> str:
    """Typer's message in our words, with the nearest allowed value."""
    text = message.replace("Value error, ", "").replace("(Possible options: ", "(did you mean ")
    if text.startswith("No such option") and text.endswith(")"):
        text = text.removesuffix(")") + "?)"
    text = text.replace("Choose from:\n\t", "Choose one of ").replace(",\n\t", ", ")
    choice = _CHOICES.search(text)
    if choice is None:
        return text
    allowed = re.findall(r"'([^']*)'", choice["allowed"])
    near = get_close_matches(choice["given"].lower(), allowed, n=1)
    return f"{text} Did you mean {near[0]!r}?" if near else text


def _known(error: Exception) -> tuple[str, int] | None:
    """Sentence and exit code of an error that libraries raise, or None for a bug."""
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    if isinstance(error, ValidationError):
        return setting_text(error), Exit.USAGE
    if isinstance(error, SettingsError):
        return unparsed_text(error), Exit.USAGE
    if isinstance(error, ConnectionError) and not isinstance(error, BrokenPipeError):
        # Kafka went away amid the work; a pipe that nobody reads is Typer's.
        return f"{str(error).rstrip('.')}. `belfry doctor` says which brokers answer.", Exit.ERROR
    if isinstance(error, OSError) and error.errno in DISK:
        where = f"{error.filename} cannot" if error.filename else "The output cannot"
        told = f"{where} be written: {error.strerror}. What is there of it is cut off."
        return told, Exit.ERROR
    return _of_client(error) or _of_kafka(error) or _of_registry(error)


def _of_client(error: Exception) -> tuple[str, int] | None:
    """The same for errors of belfry's client; the first kind that fits counts."""
    from belfry.client.errors import BadProperty, BelfryError, Conflict, NotFound

    codes: list[tuple[type[Exception], Exit]] = [
        (BadProperty, Exit.USAGE),
        (NotFound, Exit.NOT_FOUND),
        (Conflict, Exit.CONFLICT),
        (BelfryError, Exit.ERROR),
    ]
    return next(((str(error), code) for kind, code in codes if isinstance(error, kind)), None)


def _of_kafka(error: Exception) -> tuple[str, int] | None:
    """The same for errors of confluent-kafka that no command knows more of: its own words."""
    from confluent_kafka import KafkaError, KafkaException

    if not isinstance(error, KafkaException):
        return None
    detail = error.args[0] if error.args else None
    text = detail.str() if isinstance(detail, KafkaError) else str(detail or "it does not say why")
    return f"Kafka refuses: {text.rstrip('.: ')}. `belfry doctor` looks for the cause.", Exit.ERROR


def _of_registry(error: Exception) -> tuple[str, int] | None:
    """The same for errors of the schema registry."""
    # Looked up rather than imported: the registry's client is slow to import, and a command that
    # has not imported it cannot have raised its errors.
    answers = sys.modules.get("belfry.registry.answers")
    if answers is not None and isinstance(error, answers.RegistryError):
        return str(error), Exit.ERROR
    return None


def setting_text(error: ValidationError) -> str:
    """All that is wrong with the values of settings; no secret is shown."""
    lines = [_one_setting(each) for each in error.errors()]
    return "; ".join(lines) + "."


def unparsed_text(error: Exception) -> str:
    """A setting of several values that is no JSON; its text may be a secret, so it is not shown."""
    found = re.search(r'field "(\w+)"', str(error))
    if found is None:
        return f"a setting cannot be read: {error}."
    name = found[1]
    return (
        f"setting {name} (BELFRY_{name.upper()}) is no JSON: give a list as"
        """ '["a", "b"]', and names with values as '{"name": "value"}'."""
    )


def _one_setting(problem: Any) -> str:
    """What is wrong with one setting: its name, its variable, what was given, what is allowed."""
    path = [str(part) for part in problem["loc"]]
    variable = "BELFRY_" + "__".join(path).upper()
    message = str(problem["msg"]).removeprefix("Value error, ")
    return (
        f"setting {'.'.join(path)} ({variable}) is {_input(path[0], problem['input'])}:"
        f" {message[:1].lower()}{message[1:]}"
    )


def _input(setting: str, given: object) -> str:
    """What was given for a setting, unless it may be a secret."""
    from belfry.settings.names import may_hold_secrets

    return "a value that is not shown" if may_hold_secrets(setting) else repr(given)


def confirmed(question: str, unasked: str) -> bool:
    """Whether the person at the terminal says yes; `WrongUse` (`unasked`) without a terminal.

    Ctrl-C and Ctrl-D are a no.
    """
    import typer

    if not sys.stdin.isatty():
        raise WrongUse(unasked)
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        # The cursor still stands behind the question.
        print(file=sys.stderr)
        return False


def ask_to_begin(question: str) -> None:
    """Go on after a yes; raises `CommandError` after a no, and `WrongUse` without a terminal."""
    unasked = "Nobody can be asked here: say --yes to begin, or --dry-run to count alone."
    if not confirmed(question, unasked):
        raise CommandError("Nothing was begun.")
