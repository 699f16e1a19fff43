"""A worker does its main job with exactly the rights that `belfry acls worker` prints.

The broker's authorizer lets nobody do anything unasked.  The topics are there, so the worker may
create none, and it has no right on the cluster.  It says who it is in each of three ways:

    password      SASL_SSL and SCRAM       User:by-password
    token         SASL_SSL and OAUTHBEARER User:by-token
    certificate   SSL                      User:CN=user     the printed lines are run as they are
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from belfry.kafka import topics
from belfry.settings import Settings
from tests.acceptance.harness import java_tools
from tests.acceptance.harness.guarded import (
    CERTIFIED,
    KINDS,
    OPERATIONS,
    Guarded,
    guarded_broker,
    known,
)
from tests.acceptance.harness.issuer import token_issuer, token_properties
from tests.acceptance.harness.site import Site, now_ms

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WAYS: Final = ("password", "token", "certificate")
# A name that a shell takes apart, unless it is quoted.
OTHER: Final = "CN=some body,O=a b"


class Known(NamedTuple):
    """Who a worker is to the broker, where it connects, and what its clients give."""

    user: str
    servers: str
    properties: dict[str, str]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A broker whose authorizer lets nobody do anything unasked, but those who look."""
    strict = {
        "allow_everyone_if_no_acl_found": "false",
        "super_users": "User:admin;User:ANONYMOUS",
    }
    with guarded_broker(tmp_path_factory.mktemp("strict"), **strict) as found:
        yield found


@pytest.fixture(params=WAYS)
def who(request: pytest.FixtureRequest, guarded: Guarded) -> Iterator[Known]:
    """One who is known in this way, and has no right yet."""
    way = request.param
    if way == "certificate":
        yield Known(CERTIFIED, guarded.certified, guarded.certificate_properties())
        return
    user = f"by-{way}"
    given = guarded.properties(user)
    if way == "password":
        known(guarded, user)
        yield Known(user, guarded.secure, given)
        return
    with token_issuer() as address:
        for name in ("sasl.username", "sasl.password"):
            del given[name]
        yield Known(user, guarded.secure, given | token_properties(address, user))


def printed(user: str, cluster: dict[str, str], servers: str, *more: str) -> list[str]:
    """What `belfry acls worker` prints for this user; `more` are further options."""
    variables = {f"BELFRY_CLUSTER__{name.upper()}": each for name, each in cluster.items()}
    variables |= {"BELFRY_BOOTSTRAP_SERVERS": servers, "PATH": os.environ["PATH"]}
    command = [sys.executable, "-m", "belfry.cli", "acls", "worker", "--user", user, *more]
    told = subprocess.run(
        command, capture_output=True, text=True, check=True, env=variables, timeout=60
    )
    return told.stdout.splitlines()


def give_by_kafkas_tool(lines: list[str], folder: Path) -> None:
    """Carry the printed lines out, all at once."""
    folder.mkdir()
    java_tools.install(folder)
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    commands = [each for each in lines if each and not each.startswith("#")]
    assert commands
    running = [
        subprocess.Popen(
            ["sh", "-c", each], env={**os.environ, **path}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for each in commands
    ]  # fmt: skip
    for line, process in zip(commands, running, strict=True):
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0, f"{line}\n{said}"


def give(guarded: Guarded, lines: list[str]) -> None:
    """The same from the output for programs."""
    patterns = (ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED)
    bindings = [
        AclBinding(
            KINDS[each["kind"]], each["name"], patterns[each["prefixed"]],
            f"User:{each['user']}", "*", OPERATIONS[operation], AclPermissionType.ALLOW,
        )
        for each in map(json.loads, lines) for operation in each["operations"]
    ]  # fmt: skip
    # A client that nobody holds ends with what it was asked for.
    admin = guarded.admin
    for answer in admin.create_acls(bindings).values():
        answer.result(20)


def allowed(guarded: Guarded, user: str) -> set[tuple[str, str]]:
    """What the broker lets this user do, and with what."""
    any_of = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, f"User:{user}", "*", AclOperation.ANY,  # type: ignore[arg-type]  # any name
        AclPermissionType.ALLOW,
    )  # fmt: skip
    admin = guarded.admin
    names = {operation: name for name, operation in OPERATIONS.items()}
    return {(names[each.operation], each.name) for each in admin.describe_acls(any_of).result(20)}


def test_the_printed_rights_are_enough(guarded: Guarded, who: Known, tmp_path: Path) -> None:
    given = {
        f"KAFKA__{name.replace('.', '_').upper()}": each for name, each in who.properties.items()
    }
    name = who.user.lower().replace("=", "-")
    with Site(guarded.open, f"least-{name}", tmp_path) as site:
        worker = site.worker(
            BOOTSTRAP_SERVERS=who.servers, CREATE_TOPICS="false", WORKER_NAME="one", **given
        )
        cluster = {
            name.removeprefix("BELFRY_CLUSTER__").lower(): each
            for name, each in worker.settings.items()
            if name.startswith("BELFRY_CLUSTER__")
        }
        if who.user == CERTIFIED:
            lines = printed(who.user, cluster, guarded.open)
            more = printed(OTHER, cluster, guarded.open, "--name-transactions")
            # What the worker has no right to: the cluster, and all transactional ids.
            for_other = [each for each in more if "--cluster" in each or "'*'" in each]
            give_by_kafkas_tool([*lines, *for_other], tmp_path / "bin")
            assert allowed(guarded, OTHER) == {("Describe", "kafka-cluster"), ("Describe", "*")}
        else:
            give(guarded, printed(who.user, cluster, guarded.open, "-o", "jsonl"))
        topics.create(guarded.admin, Settings(cluster=cluster))
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
