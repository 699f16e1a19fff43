"""The generated parts of ``docs/schemas.md``: field tables and fingerprints, from the schemas.

After a change of a schema: ``python -m tests.compatibility.reference``, with ``app`` on the path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from belfry.schedules.fields import FIELDS
from belfry.wire import catalogue

PAGE = Path(__file__).parents[2] / "docs" / "schemas.md"
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def type_name(avro: Any) -> str:
    """A type as a reader of the page thinks of it: ``long?``, ``array of HttpTarget``."""
    if isinstance(avro, list):
        return type_name(avro[1]) + "?"
    if isinstance(avro, str):
        return avro
    if avro["type"] == "array":
        return f"array of {type_name(avro['items'])}"
    return str(avro.get("logicalType") or avro.get("name") or avro["type"])


def symbols(avro: Any) -> str:
    """The symbols of an enum, optional or not; empty for other types."""
    enum = avro[1] if isinstance(avro, list) else avro
    if not isinstance(enum, dict) or enum["type"] != "enum":
        return ""
    return " Symbols: " + ", ".join(f"`{each}`" for each in enum["symbols"]) + "."


def row(field: dict[str, Any]) -> str:
    """One field as a line of a table."""
    default = f"`{json.dumps(field['default'])}`" if "default" in field else "required"
    return (
        f"| `{field['name']}` | {type_name(field['type'])} | {default} |"
        f" {field['doc']}{symbols(field['type'])} |"
    )


def table(schema: dict[str, Any], level: int) -> str:
    """A record's heading, sentence and fields."""
    head = f"{'#' * level} {schema['name']}\n\n{schema['doc']}\n\n"
    rows = "\n".join(map(row, schema["fields"]))
    return f"{head}| field | type | default | meaning |\n|---|---|---|---|\n{rows}\n"


def inner_records(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Records that stand in arrays of this one, the outer ones first."""
    for field in schema["fields"]:
        avro = field["type"]
        if isinstance(avro, dict) and avro["type"] == "array" and isinstance(avro["items"], dict):
            yield avro["items"]
            yield from inner_records(avro["items"])


def tables() -> str:
    """All records, then the records inside them, each once."""
    schemas = [catalogue.schema(name) for name in catalogue.names()]
    inner = {each["name"]: each for schema in schemas for each in inner_records(schema)}
    parts = [table(each, 2) for each in schemas] + [table(each, 3) for each in inner.values()]
    return "\n".join(parts)


def fingerprints() -> str:
    """Names and fingerprints, in the order of their bytes on the wire."""
    rows = (
        f"| `{catalogue.full_name(name)}` | `{catalogue.fingerprint(name).hex(' ')}` |"
        for name in catalogue.names()
    )
    return "| schema | bytes after `C3 01` |\n|---|---|\n" + "\n".join(rows) + "\n"


def headers() -> str:
    """The header of each field that has one, in the order of the schema."""
    rows = (f"| `{field.name}` | `{field.header}` |" for field in FIELDS.values() if field.header)
    return "| field | header |\n|---|---|\n" + "\n".join(rows) + "\n"


PARTS: dict[str, Callable[[], str]] = {
    "tables": tables,
    "fingerprints": fingerprints,
    "headers": headers,
}


def fresh(page: str) -> str:
    """The page with all generated parts made anew."""
    return PART.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n{found[3]}", page)


if __name__ == "__main__":
    PAGE.write_text(fresh(PAGE.read_text("utf-8")), "utf-8")
