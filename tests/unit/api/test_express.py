"""Plain calls go past the framework, and are answered as it would.

GET  …/schedules/a          express      GET  …/schedules/a?next=0         framework
POST …/schedules            express      POST …/schedules?wait=accepted    framework
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from belfry.api.auth.access import Gate
from belfry.api.auth.keys import ApiKeys, digest
from belfry.api.auth.principal import forbidden
from belfry.api.routes.app import create_app
from belfry.api.routes.express import Calls, Express
from belfry.api.workers.holdings import NotHeld
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.client.verdict import Verdict
from belfry.schedules.fields import EMPTY
from belfry.schedules.instants import parse_instant
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rule import encode_rule, rule_of
from belfry.schedules.targets import record_of, target_of
from belfry.store.ordered_map import MemoryMap
from belfry.telemetry.metrics import Metrics
from belfry.tenants.policy import TenantPolicy
from tests.unit.api.conftest import FakeWorker, Leased
from tests.unit.store.test_lookup import NOW_MS, Shelf

READER, WRITER = "belfry_" + "r" * 43, "belfry_" + "w" * 43
HOME = "/v1/tenants/orders/schedules"
LATER = {"schedule_id": "new", "delay_ms": 60_000, "payload_text": "x", "request_id": "r-1"}


class Holdings(Leased):
    """Partition 0, held here, where schedules of tenant `gone` were before 1."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        self.shelf.add("orders", "a", NOW_MS + 60_000)
        self.shelf.add("gone", "a", NOW_MS + 60_000)

    def home_of(self, tenant: str, _schedule_id: str) -> int:
        return int(tenant == "gone")

    def former_homes_of(self, tenant: str, _schedule_id: str) -> list[int]:
        return [0] if tenant == "gone" else []

    def position(self, _partition: int) -> int:
        return 10

    def read(self, partition: int, look: Callable[[Any], Any]) -> Any:
        if partition > 1:
            raise NotHeld(partition)
        return look(self.shelf.rows if partition == 0 else MemoryMap())


class Desk:
    """Accepts what is new and knows `old`."""

    async def ask(self, fields: dict[str, Any], home: int, _timeout_s: float) -> Verdict:
        known = fields["schedule_id"] == "old"
        wrong = fields["expected_version"] not in (None, int(known))
        if wrong:
            return Verdict(
                *(fields["tenant"], fields["schedule_id"], Outcome.CONFLICT),
                fields["request_id"],
                code="wrong_version",
            )
        return Verdict(
            fields["tenant"],
            fields["schedule_id"],
            Outcome.CONFLICT if known else Outcome.ACCEPTED,
            fields["request_id"],
            version=1,
            code="exists" if known else None,
            reason="There is another one of this id." if known else None,
            source_partition=home,
            source_offset=3,
        )


HELD = Holdings()


@pytest.fixture
def keyed() -> FastAPI:
    entries = [
        {"name": "reader", "sha256": digest(READER), "tenants": ["orders", "gone"]},
        {"name": "writer", "sha256": digest(WRITER), "tenants": ["orders"], "role": "schedule"},
    ]
    gate = Gate([ApiKeys(json.dumps(entries), None, lambda: float(NOW_MS))])
    parts = ApiDependencies(gate, (), lambda: float(NOW_MS))
    no_history = SimpleNamespace(store=None, partitions=0)
    opened: Any = (Desk(), HELD, None, no_history, Policies())
    parts.open(Open(*opened))
    return create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts)


class Policies:
    """A tenant with a target."""

    def policy(self, tenant: str) -> TenantPolicy:
        return TenantPolicy(tenant, http_targets=(target_of(record_of(TARGET)),))


def both(app: FastAPI, method: str, path: str, query: str, **more: Any) -> list[Any]:
    """Status, headers and body by both ways."""
    found = []
    for address in (path, path + query):
        client = TestClient(app, base_url="http://127.0.0.1:8700", raise_server_exceptions=False)
        answer = client.request(method, address, **more)
        found.append((answer.status_code, dict(answer.headers), answer.content))
    return found


@pytest.mark.parametrize(
    ("path", "key", "status"),
    [
        (f"{HOME}/a", READER, 200),
        (f"{HOME}/a", WRITER, 200),
        (f"{HOME}/b", READER, 404),
        ("/v1/tenants/gone/schedules/a", READER, 200),
        ("/v1/tenants/gone/schedules/b", READER, 404),
        ("/v1/tenants/others/schedules/a", READER, 403),
        (f"{HOME}/a", None, 401),
        (f"{HOME}/a", "belfry_unknown", 401),
        (f"{HOME}/pause", READER, 404),
        (f"{HOME}/a/pause", READER, 405),
        (f"{HOME}/{'x' * 256}", READER, 422),
        ("/v1/tenants/a..b/schedules/a", READER, 403),
    ],
)
def test_a_read_by_either_way(keyed: FastAPI, path: str, key: str | None, status: int) -> None:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    express, framework = both(keyed, "GET", path, "?next=0", headers=headers)
    assert express == framework
    assert express[0] == status


@pytest.mark.parametrize(
    ("given", "more", "status"),
    [
        (json.dumps(LATER), {}, 201),
        (json.dumps({**LATER, "schedule_id": "old"}), {}, 409),
        (json.dumps({**LATER, "delay": 1}), {}, 422),
        (json.dumps({**LATER, "at": -5, "delay_ms": None}), {}, 422),
        ("{", {}, 400),
        (json.dumps(LATER), {"content-type": "text/plain"}, 415),
        (json.dumps(LATER) + "\n{}\n", {"content-type": "application/x-ndjson"}, 200),
        (json.dumps(LATER), {"authorization": f"Bearer {READER}"}, 403),
        ("x" * 1_200_000, {}, 413),
        (json.dumps(LATER), {"if-match": '"3"'}, 412),
        (json.dumps(LATER), {"if-match": "x"}, 422),
        (json.dumps(LATER), {"if-none-match": "*"}, 201),
        (json.dumps(LATER), {"if-none-match": '"3"'}, 422),
        (json.dumps({**LATER, "schedule_id": "old"}), {"if-match": '"1"'}, 409),
        (
            json.dumps(LATER),
            {"content-type": "application/x-ndjson", "if-match": '"3"'},
            422,
        ),
    ],
)
def test_a_write_by_either_way(
    keyed: FastAPI, given: str, more: dict[str, str], status: int
) -> None:
    headers = {"authorization": f"Bearer {WRITER}", "content-type": "application/json", **more}
    express, framework = both(keyed, "POST", HOME, "?wait=accepted", content=given, headers=headers)
    assert express == framework
    assert express[0] == status


def test_a_worker_that_is_starting_says_so_by_either_way(app: FastAPI) -> None:
    for method, path, query in (
        ("GET", f"{HOME}/a", "?next=0"),
        ("POST", HOME, "?wait=accepted"),
    ):
        express, framework = both(app, method, path, query, json=LATER)
        assert express == framework
        assert express[0] == 503


@pytest.mark.parametrize(
    ("method", "address", "plain"),
    [
        ("GET", f"{HOME}/a", True),
        ("GET", f"{HOME}/order:4711@x", True),
        ("POST", HOME, True),
        ("GET", HOME, False),
        ("POST", f"{HOME}/a", False),
        ("HEAD", f"{HOME}/a", False),
        ("DELETE", f"{HOME}/a", False),
        ("GET", f"{HOME}/a?next=0", False),
        ("GET", f"{HOME}/a/history", False),
        ("GET", f"{HOME}/order%2F4711", False),
        ("GET", f"{HOME}/\N{LATIN SMALL LETTER E WITH ACUTE}", False),
        ("GET", f"{HOME}/", False),
        ("GET", "/v1/tenants/orders", False),
    ],
)
async def test_which_calls_are_plain(method: str, address: str, plain: bool) -> None:
    handed_on = []

    async def framework(scope: Scope, _receive: Receive, _send: Send) -> None:
        handed_on.append(scope["path"])

    async def nothing(_: Any) -> None:
        return None

    path, _, query = address.partition("?")
    scope: Any = {"type": "http", "method": method, "path": path, "query_string": query.encode()}
    scope |= {"headers": [], "scheme": "http", "server": ("127.0.0.1", 8700), "root_path": ""}
    parts: Any = _Refusing()
    calls: Any = Calls(None, None)  # type: ignore[arg-type]
    receive: Any = nothing
    await Express(framework, parts, calls)(scope, receive, nothing)
    assert handed_on == ([] if plain else [path])


class _Refusing:
    """Callers, none of whom may do anything: what they ask for is not reached."""

    async def admit(self, *_: Any) -> None:
        raise forbidden("Nobody may.")


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        (f"{HOME}/a?reqest_id=r", "request_id"),
        (f"{HOME}/a?Reason=paid", "reason"),
        (f"{HOME}/a?wiat=none", "wait"),
    ],
)
def test_an_unknown_parameter_is_refused_with_the_nearest(
    keyed: FastAPI, path: str, nearest: str
) -> None:
    client = TestClient(keyed, base_url="http://127.0.0.1:8700")
    answer = client.delete(path, headers={"authorization": f"Bearer {WRITER}"})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_parameters")
    assert f"; did you mean {nearest}? Known are wait, reason, request_id." in answer.text


def test_a_line_with_a_number_beyond_64_bits_takes_no_other_with_it(keyed: FastAPI) -> None:
    lines = [json.dumps({**LATER, "schedule_id": f"n-{number}"}) for number in range(3)]
    lines[1] = '{"schedule_id":"n-1","delay_ms":1,"payload_json":[18446744073709551616]}'
    client = TestClient(keyed, base_url="http://127.0.0.1:8700", raise_server_exceptions=False)
    headers = {"authorization": f"Bearer {WRITER}", "content-type": "application/x-ndjson"}
    answer = client.post(HOME, content="\n".join(lines), headers=headers)
    assert answer.status_code == 200
    assert [json.loads(line)["status"] for line in answer.text.splitlines()] == [201, 422, 201]
    assert "payload_json" in answer.text


TARGET = {
    "url": "https://h.example/p?token=x",
    "headers": [{"name": "Authorization", "value": "Bearer secret"}],
}


def test_a_rule_is_told_in_english_by_the_names_of_its_schedule(keyed: FastAPI) -> None:
    asked: Any = {**EMPTY, "tenant": "orders", "schedule_id": "nightly", "kind": "CRON"}
    rule = rule_of(asked | {"cron": "H(7-7) 2 15W * *", "timezone": "Europe/Paris"})
    HELD.shelf.add("orders", "nightly", NOW_MS + 1, kind="CRON", extra=encode_rule(rule))
    client = TestClient(keyed, base_url="http://127.0.0.1:8700", raise_server_exceptions=False)
    client.headers["authorization"] = f"Bearer {READER}"
    found = client.get(f"{HOME}/nightly").json()
    assert found["cron"] == "H(7-7) 2 15W * *"
    assert found["words"] == "At 02:07, on the weekday nearest the 15th of the month, Europe/Paris"
    assert client.get(f"{HOME}/a").json()["words"].startswith("Once, at 20")


def test_the_next_occurrences_are_shown_to_who_asks_for_them(keyed: FastAPI) -> None:
    HELD.shelf.add(
        "orders", "hourly", NOW_MS + 60_000, kind="EVERY", extra=encode_rule(rule_of(HOURLY))
    )
    client = TestClient(keyed, base_url="http://127.0.0.1:8700", raise_server_exceptions=False)
    client.headers["authorization"] = f"Bearer {READER}"
    assert "next_occurrences" not in client.get(f"{HOME}/hourly").json()
    found = client.get(f"{HOME}/hourly?next=3").json()["next_occurrences"]
    assert [each["occurrence"] for each in found] == [0, 1, 2]
    times = [parse_instant(each["due_at"]) for each in found]
    assert times == [NOW_MS + 60_000 + number * 3_600_000 for number in range(3)]
    assert len(client.get(f"{HOME}/a?next=3").json()["next_occurrences"]) == 1
    assert client.get(f"{HOME}/a?next=21").status_code == 422


def test_the_last_fires_are_shown_to_who_asks_for_them(keyed: FastAPI) -> None:
    shelf = HELD.shelf
    shelf.add("orders", "fired", NOW_MS, kind="EVERY", extra=encode_rule(rule_of(HOURLY)))
    for number in range(3):
        shelf.fire("orders", "fired", NOW_MS - (3 - number) * 3_600_000, number)
    client = TestClient(keyed, base_url="http://127.0.0.1:8700", raise_server_exceptions=False)
    client.headers["authorization"] = f"Bearer {READER}"
    assert "last_fires" not in client.get(f"{HOME}/fired?next=1").json()
    found = client.get(f"{HOME}/fired?last=2").json()["last_fires"]
    assert [each["late_ms"] for each in found] == [1, 2]
    assert [parse_instant(each["fired_at"]) - NOW_MS for each in found] == [-7_199_999, -3_599_998]
    assert [each["deliveries"] for each in found] == [[], []]
    assert client.get(f"{HOME}/a?last=10").json()["last_fires"] == []
    assert "fires" not in client.get(f"{HOME}/a?last=10").json(), "it fires once"
    counted = client.get(f"{HOME}/fired?last=1").json()["fires"]
    assert counted == {
        "fired": 1, "over_1s": 0, "missed": 0, "latest_ms": 0, "success_rate": 1.0,
        "share_within_1s": 1.0, "words": "1 fired, each within a second",
    }  # fmt: skip
    assert client.get(f"{HOME}/fired?last=11").status_code == 422


def test_fires_of_what_has_targets_have_the_ends_that_a_history_tells(keyed: FastAPI) -> None:
    shelf = HELD.shelf
    asked: Any = {**HOURLY, "http_targets": [TARGET]}
    shelf.add("orders", "posted", NOW_MS, kind="EVERY", extra=encode_rule(rule_of(asked)))
    shelf.fire("orders", "posted", NOW_MS - 3_600_000, 1)
    client = TestClient(keyed, base_url="http://127.0.0.1:8700", raise_server_exceptions=False)
    client.headers["authorization"] = f"Bearer {READER}"
    # There is no history here.
    answer = client.get(f"{HOME}/posted?last=1")
    assert answer.json()["last_fires"][0]["deliveries"] is None
    assert answer.headers["etag"] == client.get(f"{HOME}/posted").headers["etag"]
    assert "last_fires" not in client.get(f"{HOME}/posted").json()


def test_who_may_only_read_sees_no_credentials_of_targets(keyed: FastAPI) -> None:
    """Neither of a schedule nor of a policy; who may set them sees them."""
    shelf = HELD.shelf
    shelf.add("orders", "posts", NOW_MS + 60_000, extra=rule_with(TARGET))
    client = TestClient(keyed, base_url="http://127.0.0.1:8700")
    for path in (f"{HOME}/posts", "/v1/tenants/orders"):
        shown = [
            client.get(path, headers={"authorization": f"Bearer {key}"}).text
            for key in (READER, WRITER)
        ]
        assert "h.example/p?***" in shown[0]
        assert "Authorization" in shown[0]
        assert "Bearer secret" not in shown[0]
        assert "token=x" not in shown[0]
        assert "Bearer secret" in shown[1]
        assert "token=x" in shown[1]


HOURLY: Any = {**EMPTY, "kind": "EVERY", "interval_ms": 3_600_000}


def rule_with(target: dict[str, Any]) -> bytes:
    """The rule of a one-shot that is posted to a target, as it lies in its row."""
    fields: Any = {**EMPTY, "kind": "AT", "http_targets": [record_of(target)]}
    return encode_rule(rule_of(fields))
