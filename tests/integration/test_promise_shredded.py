"""docs/shredding.md: a tenant is removed, its secret destroyed, and none of it can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from belfry.cli.entry import main
from belfry.client import Encryption, KeyFolder
from tests.acceptance.harness.http import Http
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow

DAY_MS: Final = 86_400_000
SECRET: Final = "0123456789abcdef" * 4
REF: Final = "file:clinic.keys"
Asked = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def site(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> Iterator[Site]:
    (tmp_path / "clinic.keys").write_text(f"{SECRET}\n")
    given = {"SECRETS_DIR": str(tmp_path), "PAYLOAD_STORE": f"file://{tmp_path}/payloads"}
    (tmp_path / "payloads").mkdir()
    with Site(kafka, unique("shredded"), tmp_path, **given) as site:
        yield site


@pytest.fixture
def belfry(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Asked:
    """A command as a program sees it: its exit code, and what it prints."""
    monkeypatch.setenv("BELFRY_BOOTSTRAP_SERVERS", site.bootstrap)
    monkeypatch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", site.prefix)
    monkeypatch.setenv("BELFRY_SECRETS_DIR", str(site.home))
    monkeypatch.setenv("BELFRY_PAYLOAD_STORE", f"file://{site.home}/payloads")

    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = main([*arguments, "--output", "json"])
        shown = capsys.readouterr()
        return code, orjson.loads(shown.out or b"{}") | {"stderr": shown.err}

    return run


def lefts(told: dict[str, Any], site: Site) -> dict[tuple[str, str], int]:
    """How many payloads of each sort are where."""
    found: dict[tuple[str, str], int] = {}
    for each in told["payloads"]:
        place = each["where"].removeprefix(site.prefix), each["left"]
        found[place] = found.get(place, 0) + each["payloads"]
    return found


def let_retention_pass(site: Site, *names: str) -> None:
    """Remove all records of topics, as their retention does in days."""
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    known = admin.list_topics(timeout=10).topics
    places = [
        TopicPartition(site.topic(name), each, -1)
        for name in names
        if site.topic(name) in known
        for each in known[site.topic(name)].partitions
    ]
    for done in admin.delete_records(places).values():
        done.result(20)


def with_payloads(site: Site, http: Http) -> None:
    """A tenant with keys, a schedule that waits, a large one, one that has fired."""
    policy = {"payload_key_ref": REF, "claim_check_over_bytes": 10_000}
    assert http("PUT", "/v1/tenants/clinic", policy)[0] == 200
    site.ask("clinic", "waits", payload=b"card 4711", at=now_ms() + DAY_MS, request_id="r1")
    site.ask("clinic", "large", payload=b"card " * 4000, at=now_ms() + DAY_MS, request_id="r2")
    site.ask("clinic", "fires", payload=b"card 4712", at=now_ms(), request_id="r3")
    for each in ("r1", "r3"):
        assert site.outcome(each)["outcome"] == "ACCEPTED"
    site.wait_fired("clinic", 1)


def test_removed_and_destroyed_nothing_of_it_can_be_read(site: Site, belfry: Asked) -> None:
    worker = site.worker().start().wait_ready()
    with_payloads(site, Http(worker))
    url = f"http://127.0.0.1:{worker.http_port}"
    check = "payloads", "readable", "clinic", "--key-ref", REF, "--http-url", url

    code, told = belfry(*check)
    assert (code, told["shredded"]) == (4, False), told
    assert [each["in_use"] for each in told["workers"]] == [True]
    assert lefts(told, site)["changelog", "decrypted"] >= 1
    assert lefts(told, site)["schedules", "as_sent"] == 3

    code, told = belfry("tenant", "remove", "clinic", "--cancel-pending", "--http-url", url)
    assert code == 0, told
    destroy = told["destroy"]
    assert (destroy["reference"], destroy["shared_with"]) == (REF, [])
    assert f"delete {REF}" in destroy["advice"]
    assert destroy["check"] == " ".join(("belfry", *check[:-2]))

    # Workers have forgotten the keys, and could still read the secret.
    def forgotten() -> bool:
        return not any(each["in_use"] for each in belfry(*check)[1]["workers"])

    wait_for("workers that have forgotten the keys", forgotten)
    code, told = belfry(*check)
    assert code == 4
    assert [each["reference"] for each in told["workers"][0]["readable"]] == [REF]
    assert lefts(told, site)["changelog", "decrypted"] >= 1

    # The operator destroys the secret: ciphertext is dead, and what senders wrote is not.
    (site.home / "clinic.keys").unlink()
    code, told = belfry(*check)
    assert code == 4
    found = lefts(told, site)
    assert found["changelog", "encrypted"] >= 1
    assert ("changelog", "decrypted") not in found
    assert told["workers"][0] == {**told["workers"][0], "in_use": False, "readable": []}
    assert {place for (place, left), _ in found.items() if left == "as_sent"} == {
        "schedules", "fired.clinic",
    }  # fmt: skip

    # Their retention passes.
    let_retention_pass(site, "schedules", "fired.clinic")
    code, told = belfry(*check)
    assert (code, told["shredded"], told["readable"], told["unknown"]) == (0, True, 0, 0), told
    assert sum(each["payloads"] for each in told["payloads"]) >= 2
    assert worker.stop() == 0


def test_what_a_client_has_encrypted_is_gone_with_the_clients_key(
    site: Site, belfry: Asked
) -> None:
    """No retention has to pass: no topic ever held it readable."""
    keys = KeyFolder(site.home / "client-keys")
    keys.add("clinic")
    sealed = Encryption(keys).seal("clinic", b"card 4711")
    worker = site.worker().start().wait_ready()
    http = Http(worker)
    assert http("PUT", "/v1/tenants/clinic", {"payload_key_ref": REF})[0] == 200
    headers = [{"name": n, "value": str(v).encode()} for n, v in sealed["headers"]]
    site.ask("clinic", "fires", payload=sealed["payload"], headers=headers, at=now_ms())
    site.wait_fired("clinic", 1)
    status, answer, _ = http("DELETE", "/v1/tenants/clinic?cancel_pending=true")
    assert (status, answer["destroy"]["reference"]) == (200, REF)
    assert len(answer["destroy"]["key_ids"]) == 1
    (site.home / "clinic.keys").unlink()
    url = f"http://127.0.0.1:{worker.http_port}"
    check = "payloads", "readable", "clinic", "--key-ref", REF, "--http-url", url
    wait_for("workers that have forgotten the keys", lambda: belfry(*check)[0] == 0)
    _, told = belfry(*check)
    assert {left for _, left in lefts(told, site)} == {"encrypted", "by_client"}
    assert worker.stop() == 0


def test_a_secret_that_others_need_is_not_to_be_destroyed(site: Site, belfry: Asked) -> None:
    """Removed through Kafka: the command reads the policies itself."""
    worker = site.worker().start().wait_ready()
    http = Http(worker)
    for tenant in ("clinic", "ward"):
        assert http("PUT", f"/v1/tenants/{tenant}", {"payload_key_ref": REF})[0] == 200
    code, told = belfry("tenant", "remove", "clinic")
    assert (code, told["destroy"]["shared_with"]) == (0, ["ward"])
    assert "not shredded" in told["destroy"]["advice"]
    code, told = belfry("tenant", "remove", "ward")
    assert (code, told["destroy"]["shared_with"]) == (0, [])
    assert worker.stop() == 0

    # No policy is there any more; the topic still has what it was, and so the secret is found.
    check = "payloads", "readable", "clinic", "--no-workers"
    code, told = belfry(*check)
    assert (code, [(each["reference"], each["there"]) for each in told["secrets"]]) == (
        4, [(REF, True)],
    )  # fmt: skip
    (site.home / "clinic.keys").unlink()
    assert belfry(*check)[0] == 0
    # What workers have is not known unless they are asked.
    code, told = belfry(*check[:-1])
    assert (code, told["shredded"], told["workers"]) == (4, False, None)
