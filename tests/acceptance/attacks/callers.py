"""Attacks over HTTP: by those that have no key, and by those that have one."""

from __future__ import annotations

import json
import socket
import ssl
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from time import monotonic, sleep
from typing import Any, Final

from tests.acceptance.attacks.attack import Attack
from tests.acceptance.harness.hardened import MALLORY, VICTIM, Hardened, policy_of
from tests.acceptance.harness.site import now_ms

# The address that attacks; the whole of 127/8 is this machine.
ELSEWHERE: Final = "127.0.0.2"
SILENT: Final = 2_500
LOOK_S: Final = 5.0
FLOOD_S: Final = 5.0
LEAP_DAYS: Final = {"cron": "0 0 29 2 SUN#5", "count": 1000}


def victim_is_served(hardened: Hardened) -> None:
    """The victim has its answer, and soon."""
    began = monotonic()
    status, told = hardened.ask("GET", f"/v1/tenants/{VICTIM}/schedules?limit=1", who=VICTIM)
    assert status == 200, told
    assert monotonic() - began < LOOK_S


def silent_connections(hardened: Hardened) -> None:
    """More connections than there may be: some say nothing, some half of a handshake or a head."""
    with ExitStack() as opened:
        for number in range(SILENT):
            address = (f"127.0.0.{2 + number % 8}", 0)
            found = socket.socket()
            opened.callback(found.close)
            found.bind(address)
            found.settimeout(5)
            with suppress(OSError):
                found.connect(("127.0.0.1", hardened.worker.http_port))
                if number % 3 == 1:
                    found.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            if number % 500 == 499:
                victim_is_served(hardened)
        sleep(1)
        victim_is_served(hardened)


def half_requests(hardened: Hardened) -> None:
    """Heads and bodies that never end, behind a handshake that is fine."""
    context = ssl.create_default_context(cadata=hardened.guarded.authority.pem)
    with ExitStack() as opened:
        for number in range(100):
            plain = socket.create_connection(
                ("127.0.0.1", hardened.worker.http_port), 10, (ELSEWHERE, 0)
            )
            found = opened.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1"))
            head = f"POST /v1/tenants/{MALLORY}/schedules HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            if number % 2:
                token = f"Authorization: Bearer {hardened.keys[MALLORY]}\r\n"
                head += f"{token}Content-Type: application/json\r\nContent-Length: 900000\r\n\r\n["
            found.sendall(head.encode())
        victim_is_served(hardened)
        sleep(6)
        victim_is_served(hardened)


def wrong_keys(hardened: Hardened) -> None:
    """Keys that are guessed, as fast as it goes: 401, then 429; whoever has a key is served."""
    told: Counter[int] = Counter()

    def guess(_number: int) -> None:
        until = monotonic() + FLOOD_S
        connection = hardened.connection(ELSEWHERE)
        while monotonic() < until:
            wrong = {"authorization": "Bearer belfry_" + "A" * 43}
            connection.request("GET", f"/v1/tenants/{VICTIM}/schedules", None, wrong)
            with connection.getresponse() as answer:
                answer.read()
                told[answer.status] += 1
        connection.close()

    _side_by_side(hardened, guess, 4)
    assert set(told) <= {401, 429}, told
    assert told[429] > told[401], told


def costly_previews(hardened: Hardened) -> None:
    """Rules that have next to no instant: two are worked on at a time, and for two seconds."""
    told: Counter[int] = Counter()

    def preview(number: int) -> None:
        until = monotonic() + FLOOD_S
        while monotonic() < until:
            source = f"127.0.0.{2 + number}"
            told[hardened.ask("POST", "/v1/preview", LEAP_DAYS, MALLORY, source)[0]] += 1

    _side_by_side(hardened, preview, 6)
    assert set(told) <= {200, 429, 503}, told


def large_bodies(hardened: Hardened) -> None:
    """Bodies that are too large, too deep, or of ten thousand lines that are wrong."""
    home = f"/v1/tenants/{MALLORY}/schedules"
    deep = b'{"payload_json": ' + b"[" * 500_000 + b"]" * 500_000 + b"}"
    line = json.dumps({"schedule_id": "x" * 300, "at": "never"}).encode() + b"\n"
    told: Counter[int] = Counter()

    def send(number: int) -> None:
        for _ in range(3):
            body = (deep, bytes(2_000_000), line * 10_000)[number % 3]
            told[_post(hardened, home, body, lines=number % 3 == 2)] += 1

    _side_by_side(hardened, send, 3)
    assert set(told) <= {200, 400, 413, 422, 429, 503}, told


def inner_addresses(hardened: Hardened) -> None:
    """Targets that lie in the worker's own network: nobody there is ever reached."""
    with socket.create_server(("127.0.0.1", 0)) as inside:
        inside.settimeout(0.1)
        port = inside.getsockname()[1]
        for host in ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"):
            body = {
                "schedule_id": f"inside-{host}",
                "at": now_ms() + 500,
                "http_targets": [{"url": f"http://{host}:{port}/"}],
            }
            home = f"/v1/tenants/{MALLORY}/schedules"
            status, told = hardened.ask("POST", home, body, who=MALLORY)
            assert status in (201, 422), told
        sleep(4)
        with suppress(TimeoutError):
            inside.accept()
            raise AssertionError("somebody has connected")


def hosts_not_allowed(hardened: Hardened) -> None:
    """A tenant whose policy names the hosts that it may have posted to, asks for another one."""
    place = f"/v1/tenants/{MALLORY}"
    only = {**policy_of(MALLORY), "allowed_hosts": ["*.example.com"]}
    assert hardened.ask("PUT", place, only, who=MALLORY)[0] == 403
    assert hardened.ask("PUT", place, only)[0] == 200
    try:
        for host in ("example.net", "example.com.example.net", "example.com", "a.example.com.net"):
            body = {
                "schedule_id": host,
                "at": now_ms() + 500,
                "http_targets": [{"url": f"https://{host}/"}],
            }
            status, told = hardened.ask("POST", f"{place}/schedules", body, who=MALLORY)
            assert (status, told["code"]) == (422, "target_not_allowed"), told
    finally:
        assert hardened.ask("PUT", place, policy_of(MALLORY))[0] == 200


def _side_by_side(hardened: Hardened, attack: Any, count: int) -> None:
    """So many at once, and the victim asks meanwhile."""
    with ThreadPoolExecutor(count) as threads:
        attacking = [threads.submit(attack, number) for number in range(count)]
        while not all(each.done() for each in attacking):
            victim_is_served(hardened)
            sleep(0.5)
        for each in attacking:
            each.result()


def _post(hardened: Hardened, path: str, body: bytes, *, lines: bool) -> int:
    connection = hardened.connection(ELSEWHERE)
    headers = {
        "authorization": f"Bearer {hardened.keys[MALLORY]}",
        "content-type": "application/x-ndjson" if lines else "application/json",
    }
    try:
        connection.request("POST", path, body, headers)
        with connection.getresponse() as answer:
            answer.read()
            return answer.status
    except OSError:
        # The worker does not read on, and says so before all is sent.
        return 413
    finally:
        connection.close()


WORST: Final = (Attack("silent connections", silent_connections),)
MORE: Final = (
    Attack("half requests", half_requests),
    Attack("wrong keys", wrong_keys),
    Attack("costly previews", costly_previews),
    Attack("large bodies", large_bodies),
    Attack("targets inside", inner_addresses),
    Attack("hosts that are not allowed", hosts_not_allowed),
)
