"""Belfry's own Avro schemas, by name and by fingerprint.

One self-contained ``.avsc`` per record lies in `schemas/`; a wheel carries the folder as
``belfry/avro``.  A schema comes in two parsed forms of the same bytes: `parsed`, where instants
are datetimes, and `plain`, where they stay epoch milliseconds. The program uses only `plain`, which
is faster.  Schemas that are returned are shared and cached: never change them.

A schema that a release changes leaves its previous text in ``schemas/earlier/``, so that
single-object records of old clients, which only name a fingerprint, stay readable.

    name ─► text (what a registry gets) ─► JSON ─┬─► parsed, plain     for fastavro
                                                 └─► fingerprint       8 bytes, CRC-64-AVRO

The fingerprint is over the *Parsing Canonical Form* of the Avro specification, in which documents,
defaults and the order of attributes do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import orjson
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import fingerprint as _hex_fingerprint
from fastavro.schema import to_parsing_canonical_form

Schema = dict[str, Any]

NAMESPACE: Final = "io.belfry"
_NAMES: Final = ("ScheduleRequest", "FiredEvent", "LifecycleEvent", "TenantPolicy", "AuditEvent")


class MalformedError(ValueError):
    """Bytes that are not a record of the schema that they name; the message says why."""


def names() -> tuple[str, ...]:
    """Short names of all records: ``ScheduleRequest`` …"""
    return _NAMES


def full_name(name: str) -> str:
    """``ScheduleRequest`` and ``io.belfry.ScheduleRequest`` both give the latter."""
    short = name.removeprefix(NAMESPACE + ".")
    if short not in _NAMES:
        raise KeyError(f"No schema is called {name!r}; there are {', '.join(_NAMES)}.")
    return f"{NAMESPACE}.{short}"


@cache
def text(name: str) -> str:
    """The file of a schema as it is, which is what goes to a registry."""
    return _folder().joinpath(full_name(name) + ".avsc").read_text("utf-8")


@cache
def schema(name: str) -> Schema:
    """The JSON of a schema."""
    found: Schema = orjson.loads(text(name))
    return found


@cache
def parsed(name: str) -> Schema:
    """The schema as fastavro parses it: instants are datetimes."""
    return _parse(schema(name))


@cache
def plain(name: str) -> Schema:
    """The same without logical types: instants are epoch milliseconds."""
    return _parse(without_logical_types(schema(name)))


def without_logical_types(writer: Any) -> Any:
    """A copy of any schema whose values are read as stored; the bytes are the same."""
    if isinstance(writer, list):
        return [without_logical_types(branch) for branch in writer]
    if not isinstance(writer, dict):
        return writer
    return {
        key: value if key == "default" else without_logical_types(value)
        for key, value in writer.items()
        if key != "logicalType"
    }


@cache
def fingerprint(name: str) -> bytes:
    """Eight little-endian bytes of CRC-64-AVRO over the Parsing Canonical Form."""
    return fingerprint_of(schema(name))


def fingerprint_of(writer: Any) -> bytes:
    """`fingerprint` of any schema; raises fastavro's errors if it is not a schema."""
    return bytes.fromhex(_hex_fingerprint(to_parsing_canonical_form(writer), "CRC-64-AVRO"))


def by_fingerprint(wanted: bytes) -> Schema | None:
    """The schema, of this release or of an earlier one, that has this fingerprint."""
    return _all_by_fingerprint().get(wanted)


def encode(name: str, record: dict[str, Any]) -> bytes:
    """Body of a record (no frame); instants are epoch milliseconds."""
    body = BytesIO()
    schemaless_writer(body, plain(name), record)
    return body.getvalue()


class RecordReader:
    """Reads bodies of one writer's schema as belfry's records, instants as epoch milliseconds.

    `writer` has to have passed `safety.unsafe_reason`; None means the present schema of this
    release. Keep one reader per writer's schema: making it costs more than reading with it.
    """

    def __init__(self, name: str, writer: Any = None) -> None:
        self._name = full_name(name)
        same = writer is None or fingerprint_of(writer) == fingerprint(name)
        self._writer = plain(name) if same else _parse(without_logical_types(writer))
        self._reader = None if same else plain(name)

    @property
    def is_own(self) -> bool:
        """Whether the writer's schema is that of this release."""
        return self._reader is None

    def read(self, body: bytes) -> dict[str, Any]:
        """The record in `body`; raises `MalformedError` for anything that is not exactly one."""
        stream = BytesIO(body)
        try:
            record: Any = schemaless_reader(stream, self._writer, self._reader)
        except Exception as error:  # noqa: BLE001  # any error of fastavro's C code
            raise MalformedError(
                f"{len(body)} bytes are no {self._name} of their writer's schema:"
                f" {type(error).__name__}: {str(error)[:200]}"
            ) from None
        left = len(body) - stream.tell()
        if left:
            raise MalformedError(
                f"{left} of {len(body)} bytes follow the {self._name}: the schema id or"
                " fingerprint names another schema than the one it was written with."
            )
        fields: dict[str, Any] = record
        return fields


@cache
def own_reader(name: str) -> RecordReader:
    """The reader of records that this release writes."""
    return RecordReader(name)


def _parse(raw: Any) -> Schema:
    found: Any = parse_schema(raw)
    return dict(found)


@cache
def _folder() -> Traversable:
    bundled = resources.files("belfry") / "avro"
    return bundled if bundled.is_dir() else Path(__file__).parents[3] / "schemas"


@cache
def _all_by_fingerprint() -> dict[bytes, Schema]:
    own = [schema(name) for name in _NAMES]
    return {fingerprint_of(each): each for each in (*_earlier(), *own)}


def _earlier() -> Iterator[Schema]:
    folder = _folder() / "earlier"
    if folder.is_dir():
        for file in folder.iterdir():
            yield orjson.loads(file.read_bytes())
