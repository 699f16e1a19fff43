"""The embedded registry speaks Confluent's API, and schema ids never change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from belfry.devstack import Apicurio


def record_schema(name: str) -> Schema:
    return Schema(f'{{"type": "record", "name": "{name}", "fields": []}}', "AVRO")


def register(url: str, subject: str) -> int:
    with SchemaRegistryClient({"url": url}) as client:
        schema_id: int = client.register_schema(subject, record_schema(subject))
    return schema_id


def test_a_registered_schema_is_found_by_its_id(
    schema_registry: str, unique: Callable[[str], str]
) -> None:
    subject = unique("orders").replace("-", "_")
    schema_id = register(schema_registry, subject)
    with SchemaRegistryClient({"url": schema_registry}) as client:
        assert subject in (client.get_schema(schema_id).schema_str or "")


@pytest.mark.slow
def test_schema_ids_are_the_same_after_a_restart_and_after_a_kill(tmp_path: Path) -> None:
    registry = Apicurio(tmp_path).start().wait_ready()
    try:
        ids = [register(registry.url, name) for name in ("first", "second")]
        registry.stop()
        registry.start().wait_ready()
        assert [register(registry.url, name) for name in ("first", "second")] == ids
        ids.append(register(registry.url, "third"))
        registry.kill()
        registry.start().wait_ready()
        assert [register(registry.url, name) for name in ("third", "second", "first")] == ids[::-1]
        assert register(registry.url, "fourth") not in ids
    finally:
        registry.stop()
