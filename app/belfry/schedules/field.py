"""One field of a request: everything that a door has to know to read it or to show it.

A request comes in by five doors: as an Avro record, as headers of a record, as JSON over HTTP, as
options of the command line, and as arguments of the client.  Each door asks the field for its name
there and for its form, so that a field is described once (`fields.FIELDS`).

    name        in Avro, in `Request`, and in JSON, where bytes add ``_text`` and ``_base64``
    header      in the header protocol
    flag        on the command line
    argument    of the client's `schedule`
                a name is empty where the door has no such field
    check       the function that refuses a bad value; None where every value of the type is good

One instant, as each of the five doors takes it:

    Avro            {"at": 1796115600000}                  timestamp-millis
    headers         belfry-at: 2026-12-01T09:00:00Z        text, or epoch milliseconds as text
    HTTP            {"at": "2026-12-01T09:00:00Z"}
    command line    --at 2026-12-01T09:00:00Z
    client          at=datetime(2026, 12, 1, 9, tzinfo=UTC)

Behind its door all of them are the same `Request`, so checks and engine know one form only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

# A check is called with arguments of its own, so the table only names it.
Check = Callable[..., Any]


class Form(StrEnum):
    """The type of a value, whichever door it comes by.

    The form decides how a door reads the value and shows it; `AVRO` says which type it has in the
    schema.  A new form needs a reader and a writer at each door, a new field of a known form none.
    """

    TEXT = "text"
    SYMBOL = "symbol"  # One of `Field.symbols`.
    INSTANT = "instant"  # Epoch milliseconds; RFC 3339 where people write it.
    DURATION = "duration"  # Milliseconds; ``5m`` or ``PT5M`` where people write it.
    NUMBER = "number"
    FLAG = "flag"
    BYTES = "bytes"
    HEADERS = "headers"
    TARGETS = "targets"
    STANDING = "standing"


# The branch of Avro that holds each form, without the null of an optional field.
AVRO: Final = {
    Form.TEXT: "string",
    Form.SYMBOL: "enum",
    Form.INSTANT: "timestamp-millis",
    Form.DURATION: "long",
    Form.NUMBER: "long",
    Form.FLAG: "boolean",
    Form.BYTES: "bytes",
    Form.HEADERS: "array",
    Form.TARGETS: "array",
    Form.STANDING: "record",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a request; `doc` is the sentence that its schema has for it.

    `default` is the value of a request that does not have the field; it counts only where the
    field is not `required`.  `symbols` are the values that a `SYMBOL` may have, in the order of
    the schema's enum.  `header`, `flag` and `argument` are empty where a door has no such field.
    """

    name: str
    form: Form
    doc: str
    default: Any = None
    required: bool = False
    symbols: tuple[str, ...] = ()
    header: str = ""
    # What others call it, without ``belfry-``: a header of such a name is a slip, and told so.
    also: tuple[str, ...] = ()
    flag: str = ""
    # How the command line shows its value, and the sentence of its help.
    metavar: str = ""
    help: str = ""
    argument: str = ""
    check: Check | None = None

    @property
    def json_names(self) -> tuple[str, ...]:
        """The names that the HTTP API has for it.

        JSON has no bytes, so a field of bytes has two names and a body gives one of them: text that
        is encoded as UTF-8, or base64 for bytes that are no text.
        """
        if self.form is not Form.BYTES:
            return (self.name,)
        return tuple(f"{self.name}_{form}" for form in ("text", "base64"))
