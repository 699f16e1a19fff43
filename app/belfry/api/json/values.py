"""Values as callers give them: instants, durations, bytes and short texts, each in its own form.

Bodies and addresses are made of them, so an instant means the same in a body, in a filter and in a
range:

    Instant        "2026-12-01T09:00:00Z", or epoch milliseconds   ─► epoch milliseconds
    Milliseconds   300000                                          ─► the same
    Base64         "aGVsbG8=", with padding                        ─► the same, known to be good
    Text           1 to 255 characters                             ─► the same

Each of them says in the OpenAPI document what it takes. Types are not guessed at: a text with a
number is not a number (`Strict`).
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as BinasciiError
from typing import Annotated, Final

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from belfry.schedules.instants import parse_instant

# Largest number of ms that JavaScript, and so many a client, holds exactly.
MOST_MS: Final = 2**53
# Characters of names and short texts.
LONGEST_TEXT: Final = 255


def _instant(given: object) -> object:
    """Epoch milliseconds of a text; a number is taken as it is."""
    return parse_instant(given) if isinstance(given, str) else given


def _base64(given: object) -> object:
    """Base64 as it was given; ValueError for any other text. Decoding is left to `fields`."""
    if not isinstance(given, str):
        return given
    try:
        b64decode(given, validate=True)
    except (BinasciiError, ValueError) as error:
        raise ValueError(
            f"it is no base64 ({error}); encode the bytes as RFC 4648 says, with padding, such as"
            " aGVsbG8="
        ) from None
    return given


Instant = Annotated[
    int,
    BeforeValidator(_instant),
    Field(ge=0, le=MOST_MS),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "integer", "minimum": 0, "maximum": MOST_MS},
            ],
            "description": "RFC 3339 with an offset, or epoch milliseconds.",
        }
    ),
]
Milliseconds = Annotated[int, Field(ge=0, le=MOST_MS)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TEXT)]
Base64 = Annotated[
    str,
    BeforeValidator(_base64),
    WithJsonSchema({"type": "string", "contentEncoding": "base64", "format": "byte"}),
]
RequestId = Annotated[
    Text | None, Field(description="Name of the request: a repeat within an hour changes nothing.")
]


class Strict(BaseModel):
    """No unknown names, no guessing at types."""

    model_config = ConfigDict(extra="forbid", strict=True)
