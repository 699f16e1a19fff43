"""The AsyncAPI document is fresh, valid by AsyncAPI's own schema, and says what the code does."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest

from belfry.process import asyncapi
from belfry.wire import catalogue
from belfry.wire.headers import PROTOCOL
from tests.architecture.tree import ROOT

# AsyncAPI's JSON schema of version 3.1.0, as @asyncapi/specs 6.11.1 has it (Apache License 2.0).
SCHEMA: Final = Path(__file__).parent / "asyncapi-3.1.0.json.gz"


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema_rs.Draft7Validator(json.loads(gzip.decompress(SCHEMA.read_bytes())))


def test_the_document_is_fresh() -> None:
    written = (ROOT / "docs" / "asyncapi.json").read_text("utf-8")
    assert written == asyncapi.text(), "Run `make docs`."


def test_the_document_is_valid(validator: Any) -> None:
    found = [
        f"{'/'.join(map(str, e.instance_path))}: {e.message[:200]}"
        for e in validator.iter_errors(asyncapi.document())
    ]
    assert not found


@pytest.mark.parametrize("damage", ["operations", "channels", "asyncapi"])
def test_the_validation_sees_what_it_should(validator: Any, damage: str) -> None:
    broken = asyncapi.document()
    broken[damage] = {"x": {"action": "shout"}} if damage != "asyncapi" else "2.0.0"
    assert list(validator.iter_errors(broken))


def test_every_schema_and_every_reference_is_there() -> None:
    document = asyncapi.document()
    messages = document["components"]["messages"]
    assert set(catalogue.names()) <= messages.keys()
    for channel in document["channels"].values():
        for link in channel["messages"].values():
            assert link["$ref"].removeprefix("#/components/messages/") in messages


def test_every_header_of_a_request_is_told() -> None:
    told = asyncapi.document()["components"]["messages"]["HeaderRequest"]["headers"]["properties"]
    assert told.keys() == PROTOCOL
