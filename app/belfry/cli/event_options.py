"""Options of the event that a schedule sends.

`schedule create` and `schedule update` share them. An option is declared once, as an annotated
type, and `EventOptions` gathers the values as they were typed. Its methods turn them into what the
client takes:

    --payload hi --header color=green --webhook https://example.org/hook
    ─► {"payload": b"hi", "headers": [("color", b"green")],
        "http_targets": [{"url": "https://example.org/hook", …}], …}

Payload, key and values of headers are bytes. Typed text becomes bytes as the system would hand it
to another program (`os.fsencode`), so that text that is not UTF-8 arrives as it was typed. A
payload that is large or binary comes from a file, byte for byte.

There are three payloads that look alike: no option is a null value, which compacted topics read as
a deletion; ``--payload ''`` is an empty value; ``--payload null`` is a text of four bytes.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from belfry.cli.failures import WrongUse
from belfry.cli.options import EVENT

Payload = Annotated[
    str | None,
    typer.Option(
        "--payload",
        metavar="TEXT",
        help="Value of the event.  [default: a null value]",
        rich_help_panel=EVENT,
    ),
]
# The size is not checked here: a worker knows the tenant's limit and refuses what is larger.
PayloadFile = Annotated[
    Path | None,
    typer.Option(
        "--payload-file",
        metavar="PATH",
        help="The same from a file, byte for byte (-: standard input).",
        rich_help_panel=EVENT,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="TEXT",
        help="Key of the event.  [default: the group, else ID]",
        rich_help_panel=EVENT,
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="TEXT",
        help="Events of one group keep their order.",
        rich_help_panel=EVENT,
    ),
]
Headers = Annotated[
    list[str] | None,
    typer.Option(
        "--header",
        metavar="NAME=VALUE",
        help="Header of the event; repeatable.",
        rich_help_panel=EVENT,
    ),
]
EventType = Annotated[
    str | None,
    typer.Option("--event-type", metavar="TEXT", help="Type of the event.", rich_help_panel=EVENT),
]
Webhooks = Annotated[
    list[str] | None,
    typer.Option(
        "--webhook",
        metavar="URL",
        help="Post the event there as well; repeatable.",
        rich_help_panel=EVENT,
    ),
]
# The names of secrets travel, never their values: the process that delivers fills them in.
WebhookHeaders = Annotated[
    list[str] | None,
    typer.Option(
        "--webhook-header",
        metavar="NAME=VALUE",
        help="Header of what is posted, where ${env:BELFRY_SECRET_NAME} and ${file:PATH} stand for"
        " secrets of the process that delivers; repeatable.",
        rich_help_panel=EVENT,
    ),
]
WebhookSecret = Annotated[
    str | None,
    typer.Option(
        "--webhook-secret",
        metavar="NAME",
        help="Name of the secret that signs what is posted.",
        rich_help_panel=EVENT,
    ),
]


@dataclass(frozen=True, slots=True)
class EventOptions:
    """The options of the event, as they were typed; None stands for "not given".

    `webhook_secret` and `webhook_header` go with each `webhook`: targets that differ in these are
    given by `belfry apply`, or over HTTP.
    """

    payload: Payload = None
    payload_file: PayloadFile = None
    key: Key = None
    group: Group = None
    header: Headers = None
    event_type: EventType = None
    webhook: Webhooks = None
    webhook_secret: WebhookSecret = None
    webhook_header: WebhookHeaders = None

    def arguments(self) -> dict[str, Any]:
        """What the client's `schedule` takes.

        It reads the file of the payload, or standard input, so call it once. Raises `WrongUse` for
        options that contradict, a header without ``=``, and a file that cannot be read.
        """
        return {
            "payload": self._payload(),
            "key": None if self.key is None else os.fsencode(self.key),
            "group": self.group,
            "event_type": self.event_type,
            # The headers are those that were typed, and no others.
            "tell_type": False,
            "headers": [_header(each) for each in self.header or ()],
            "http_targets": self._targets(),
        }

    def warning(self) -> str | None:
        """What to tell of headers that seem to hold a credential as it is, or None.

        Such a value lies readable in Kafka. The command tells people so on stderr, and goes on.
        """
        from belfry.schedules.header_secrets import literal_credentials, literal_warning

        return literal_warning(literal_credentials(self._webhook_headers()))

    def _targets(self) -> list[dict[str, Any]]:
        """The targets that were typed: all of them sign and are told the same."""
        headers = [{"name": name, "value": value} for name, value in self._webhook_headers()]
        if headers and not self.webhook:
            raise WrongUse("--webhook-header belongs to what is posted: give --webhook URL too.")
        return [
            {"url": url, "secret_ref": self.webhook_secret, "headers": headers}
            for url in self.webhook or ()
        ]

    def _webhook_headers(self) -> list[tuple[str, str]]:
        """Names and values of the headers of what is posted; `WrongUse` for one without ``=``."""
        return [_pair("--webhook-header", each) for each in self.webhook_header or ()]

    def _payload(self) -> bytes | None:
        """The value of the event: None is a null value, and an empty text is an empty value."""
        text, path = self.payload, self.payload_file
        if text is not None and path is not None:
            raise WrongUse("--payload and --payload-file both give the event's value: keep one.")
        if path is None:
            return None if text is None else os.fsencode(text)
        try:
            return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        except OSError as error:
            raise WrongUse(f"--payload-file {path} cannot be read: {error.strerror}.") from None


def _header(given: str) -> tuple[str, bytes]:
    """Name and value of a header of the event; only the value is bytes."""
    name, value = _pair("--header", given)
    return name, os.fsencode(value)


def _pair(option: str, given: str) -> tuple[str, str]:
    """NAME and VALUE of an option; only the first ``=`` divides them."""
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise WrongUse(f"{option} {given!r} is no header: give NAME=VALUE, such as color=green.")
    return name, value
