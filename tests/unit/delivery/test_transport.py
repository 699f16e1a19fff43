"""HTTP against a real server that misbehaves, and addresses that must not be reached."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from belfry.delivery.addresses import networks
from belfry.delivery.answers import Answer, End
from belfry.delivery.http_requests import Post
from belfry.delivery.transport import HttpTransport
from belfry.host.clock import SystemClock
from tests.acceptance.harness.receiver import Receiver

LOOPBACK = networks(["127.0.0.0/8"])


class Names(AbstractResolver):
    """Answers with one list of addresses after the other, and stays at the last."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked += 1
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            ResolveResult(hostname=host, host=each, port=port, family=family, proto=0, flags=0)
            for each in found
        ]

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
async def transport() -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(SystemClock(), LOOPBACK)
    yield transport
    await transport.close()


def post(url: str, **fields: Any) -> Post:
    headers = (("content-type", "text/plain"), ("webhook-id", "f"))
    return Post(url, fields.get("headers", headers), b"body", fields.get("timeout_ms", 5_000))


@pytest.mark.parametrize(
    ("path", "end", "code"),
    [
        ("/ok", End.DELIVERED, ""),
        ("/status/200", End.DELIVERED, ""),
        ("/status/404", End.FINAL, "http_status"),
        ("/status/429", End.AGAIN, "http_status"),
        ("/status/503", End.AGAIN, "http_status"),
        ("/redirect", End.FINAL, "redirect"),
        ("/drop", End.AGAIN, "connection"),
        ("/garbage", End.AGAIN, "connection"),
    ],
)
async def test_every_way_to_answer_is_an_answer(
    transport: HttpTransport, receiver: Receiver, path: str, end: End, code: str
) -> None:
    answer = await transport.post(post(receiver.url(path)))
    assert (answer.end, answer.code) == (end, code)
    assert [each.path for each in receiver.received] == [path]
    assert receiver.received[0].body == b"body"
    assert receiver.received[0].headers["webhook-id"] == "f"


MARK = b"internal-banner-8f2c"
# What is no HTTP, or breaks off amid it; all of it with a word that must not get out.
NO_HTTP = {
    "another protocol": b"SSH-2.0-" + MARK + b"\r\n",
    "a mail server": b"220 " + MARK + b" ESMTP\r\n",
    "half a status line": b"HTTP/1.1 200 " + MARK,
    "half a head": b"HTTP/1.1 200 OK\r\nX-Inside: " + MARK + b"\r\n",
    "a status that is none": b"HTTP/1.1 9999 " + MARK + b"\r\n\r\n",
    "a header that is none": b"HTTP/1.1 200 OK\r\n" + MARK + b"\r\n\r\n",
    "a length that is none": b"HTTP/1.1 200 OK\r\nContent-Length: " + MARK + b"\r\n\r\n",
    "two lengths": b"HTTP/1.1 503 " + MARK + b"\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "a phrase": b"HTTP/1.1 418 " + MARK + b"\r\nContent-Length: 0\r\n\r\n",
    "a body": b"HTTP/1.1 400 No\r\nContent-Length: 20\r\n\r\n" + MARK,
    "chunks that are none": b"HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\n"
    + MARK
    + b"\r\n",
    "a redirect": b"HTTP/1.1 302 No\r\nLocation: http://"
    + MARK
    + b"/\r\nContent-Length: 0\r\n\r\n",
    "a retry": b"HTTP/1.1 503 No\r\nRetry-After: " + MARK + b"\r\nContent-Length: 0\r\n\r\n",
    "bytes": bytes(range(256)) + MARK,
}


@pytest.mark.parametrize("kind", NO_HTTP)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_nothing_that_the_other_side_says_is_told(
    transport: HttpTransport, kind: str, scheme: str
) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(NO_HTTP[kind])
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        answer = await transport.post(post(f"{scheme}://127.0.0.1:{port}/"))
    assert answer.end is not End.DELIVERED
    assert answer.reason
    assert MARK.decode() not in answer.reason
    assert "SSH" not in answer.reason


async def test_who_hangs_is_given_up_in_time(transport: HttpTransport, receiver: Receiver) -> None:
    answer = await transport.post(post(receiver.url("/hang"), timeout_ms=200))
    assert (answer.end, answer.code, answer.heard) == (End.AGAIN, "timeout", False)


async def test_an_endless_body_is_not_read(transport: HttpTransport, receiver: Receiver) -> None:
    answer = await transport.post(post(receiver.url("/endless")))
    assert answer.end is End.DELIVERED


async def test_retry_after_is_heard(transport: HttpTransport, receiver: Receiver) -> None:
    answer = await transport.post(post(receiver.url("/later/60")))
    assert answer.end is End.AGAIN
    assert answer.not_before_ms > SystemClock().wall_ms() + 50_000


async def test_nobody_there_and_no_such_name(transport: HttpTransport) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        answer = await transport.post(post(f"http://127.0.0.1:{port}/"))
    assert (answer.end, answer.code) == (End.AGAIN, "connection")
    answer = await transport.post(post("http://no-such-name.invalid/"))
    assert (answer.end, answer.code) == (End.AGAIN, "dns")


async def test_a_server_without_a_certificate_is_no_target_of_https(
    transport: HttpTransport, receiver: Receiver
) -> None:
    answer = await transport.post(post(receiver.url("/ok").replace("http:", "https:")))
    assert answer.end is End.AGAIN
    assert not answer.heard
    assert receiver.received == []


# Ways to write this machine, its neighbours, and a cloud's metadata.
HOSTILE = [
    "http://127.0.0.1:{port}/ok",
    "http://localhost:{port}/ok",
    "http://127.1:{port}/ok",
    "http://0:{port}/ok",
    "http://0.0.0.0:{port}/ok",
    "http://2130706433:{port}/ok",
    "http://0x7f000001:{port}/ok",
    "http://0177.0.0.1:{port}/ok",
    "http://127.0.0.1.:{port}/ok",
    "http://[::1]:{port}/ok",
    "http://[::ffff:127.0.0.1]:{port}/ok",
    "http://[::ffff:7f00:1]:{port}/ok",
    "http://[0:0:0:0:0:ffff:127.0.0.1]:{port}/ok",
    "http://[::127.0.0.1]:{port}/ok",
    "http://[64:ff9b::7f00:1]:{port}/ok",
    "http://[fe80::1]/",
    "http://10.0.0.1/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
]


@pytest.mark.parametrize("url", HOSTILE)
async def test_nothing_private_is_ever_reached(receiver: Receiver, url: str) -> None:
    transport = HttpTransport(SystemClock(), ())
    try:
        answer = await transport.post(post(url.format(port=receiver.port), timeout_ms=3_000))
    finally:
        await transport.close()
    # What is made of some of these is nothing at all, which is as good.
    assert answer.code in ("address_refused", "bad_url", "dns"), answer
    assert receiver.received == []


async def posted_by(names: Names, receiver: Receiver, allowed: Any = ()) -> Answer:
    transport = HttpTransport(SystemClock(), allowed, names)
    try:
        return await transport.post(post(f"http://hooks.example.com:{receiver.port}/ok"))
    finally:
        await transport.close()


async def test_a_name_with_one_private_address_is_refused(receiver: Receiver) -> None:
    answer = await posted_by(Names(["93.184.216.34", "127.0.0.1"]), receiver)
    assert (answer.end, answer.code) == (End.FINAL, "address_refused")
    assert "BELFRY_WEBHOOK_PRIVATE_NETWORKS" in answer.reason
    assert receiver.received == []


async def test_a_name_is_resolved_once_and_what_was_judged_is_dialled(receiver: Receiver) -> None:
    # Who judges the first answer and dials the second one would end at a private address.
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    answer = await posted_by(names, receiver, LOOPBACK)
    assert answer.end is End.DELIVERED
    assert names.asked == 1
    assert receiver.received[0].headers["host"] == f"hooks.example.com:{receiver.port}"


async def test_a_name_that_changes_its_address_is_judged_again(receiver: Receiver) -> None:
    names = Names(["127.0.0.2"], ["127.0.0.1"])
    answer = await posted_by(names, receiver, networks(["127.0.0.2/32"]))
    assert answer.code == "connection"
    answer = await posted_by(names, receiver, networks(["127.0.0.2/32"]))
    assert answer.code == "address_refused"
    assert receiver.received == []


async def test_a_proxy_of_the_environment_is_not_asked(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", receiver.url("/ok"))
    transport = HttpTransport(SystemClock(), ())
    try:
        await transport.post(post("http://10.0.0.1/", timeout_ms=500))
    finally:
        await transport.close()
    assert receiver.received == []
