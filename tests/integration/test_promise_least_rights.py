"""A worker does its main job with exactly the rights that `belfry acls worker` prints.

The broker's authorizer lets nobody do anything unasked.  The topics are there, so the worker may
create none, and it has no right on the cluster.  The rights are read from the command's own output.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AclBinding,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
)

from belfry.kafka import topics
from belfry.settings import Settings
from tests.acceptance.harness.guarded import KINDS, OPERATIONS, Guarded, guarded_broker, known
from tests.acceptance.harness.site import Site, now_ms

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A broker whose authorizer lets nobody do anything unasked, but those who look."""
    strict = {
        "allow_everyone_if_no_acl_found": "false",
        "super_users": "User:admin;User:ANONYMOUS",
    }
    with guarded_broker(tmp_path_factory.mktemp("strict"), **strict) as found:
        yield found


def printed(prefix: str, app_id: str) -> list[dict[str, Any]]:
    """What `belfry acls worker` prints."""
    variables = {"BELFRY_CLUSTER__TOPIC_PREFIX": prefix, "BELFRY_CLUSTER__APP_ID": app_id}
    told = subprocess.run(
        [sys.executable, "-m", "belfry.cli", "-o", "jsonl", "acls", "worker"],
        capture_output=True, text=True, check=True, env=variables, timeout=60,
    )  # fmt: skip
    return [json.loads(line) for line in told.stdout.splitlines()]


def bindings(rights: list[dict[str, Any]]) -> list[AclBinding]:
    """The same as the broker takes them."""
    patterns = (ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED)
    return [
        AclBinding(
            KINDS[each["kind"]], each["name"], patterns[each["prefixed"]],
            f"User:{each['user']}", "*", OPERATIONS[operation], AclPermissionType.ALLOW,
        )
        for each in rights for operation in each["operations"]
    ]  # fmt: skip


def give(admin: AdminClient, rights: list[dict[str, Any]]) -> None:
    for answer in admin.create_acls(bindings(rights)).values():
        answer.result(20)


def test_the_printed_rights_are_enough(guarded: Guarded, tmp_path: Path) -> None:
    properties = guarded.properties("least")
    given = {f"KAFKA__{name.replace('.', '_').upper()}": each for name, each in properties.items()}
    with Site(guarded.open, "least", tmp_path) as site:
        worker = site.worker(
            BOOTSTRAP_SERVERS=guarded.secure, CREATE_TOPICS="false", WORKER_NAME="one", **given
        )
        cluster = {
            name.removeprefix("BELFRY_CLUSTER__").lower(): each
            for name, each in worker.settings.items()
            if name.startswith("BELFRY_CLUSTER__")
        }
        known(guarded, "least")
        admin = guarded.admin
        rights = printed(cluster["topic_prefix"], cluster["app_id"])
        give(admin, [{**each, "user": "least"} for each in rights])
        topics.create(admin, Settings(cluster=cluster))
        site.fired_topics(["demo"])
        worker.start().wait_ready()
        due_ms = now_ms() + 500
        site.ask("demo", "one", at=due_ms, payload=b"fired")
        (fired,) = site.wait_fired("demo", 1)
        assert fired.value == b"fired"
        assert fired.timestamp_ms >= due_ms
        assert worker.stop() == 0
        denied = [each for each in worker.log.read_text().splitlines() if "AUTHORIZATION" in each]
        assert not denied, denied
