"""Certificates are renewed while a worker runs: its own, and those of whom it believes."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from fastapi import FastAPI
from structlog.testing import capture_logs

from belfry.api.auth.access import Gate
from belfry.api.auth.principal import ANYBODY
from belfry.api.server.server import HttpServer
from belfry.api.workers.internal_token import InternalToken, Target
from belfry.api.workers.peers import Peers, PeerUnreachable
from belfry.host.file_watch import LOOK_S
from belfry.host.tls_files import believed, shown
from tests.unit.kafka.test_security import Signed, signed

HEALTH = Target("GET", "/healthz/live", "")


class Served:
    """A port with TLS whose files can be written anew, and a clock that the test holds."""

    def __init__(self, app: FastAPI, folder: Path) -> None:
        self.authority = signed("authority")
        self.now_s = 0.0
        self.files = folder / "tls.crt", folder / "tls.key"
        self.first = self.write(signed("first", self.authority))
        tls = shown(*self.files, lambda: self.now_s)
        self.server = HttpServer(app, "127.0.0.1", 0, tls=tls)
        self.port = self.server.start()

    def write(self, own: Signed, key: Signed | None = None) -> int:
        """Put a certificate in place, and its key or another one; returns its number."""
        self.files[0].write_text(own.pem)
        self.files[1].write_text((key or own).key_pem())
        return own.certificate.serial_number

    def connection(self) -> HTTPSConnection:
        context = ssl.create_default_context(cadata=self.authority.pem)
        found = HTTPSConnection("127.0.0.1", self.port, timeout=5, context=context)
        found.request("GET", HEALTH.path)
        assert found.getresponse().read()
        return found

    def shows(self) -> int:
        """The number of the certificate that a new connection is shown."""
        found = self.connection()
        number = number_of(found)
        found.close()
        return number


def number_of(connection: HTTPSConnection) -> int:
    assert isinstance(connection.sock, ssl.SSLSocket)
    told = connection.sock.getpeercert()
    assert told is not None
    return int(str(told["serialNumber"]), 16)


@pytest.fixture
def served(app: FastAPI, tmp_path: Path) -> Iterator[Served]:
    found = Served(app, tmp_path)
    yield found
    found.server.stop()


def test_a_new_connection_is_shown_the_certificate_that_is_there_now(served: Served) -> None:
    kept = served.connection()
    second = served.write(signed("second", served.authority))
    assert served.shows() == served.first
    served.now_s += LOOK_S
    assert served.shows() == second
    # Who is connected goes on.
    kept.request("GET", HEALTH.path)
    assert kept.getresponse().status == 200
    assert number_of(kept) == served.first
    kept.close()


def test_files_that_cannot_be_used_change_nothing_and_are_told_of(served: Served) -> None:
    """A certificate whose key is not there yet; then it comes."""
    second = signed("second", served.authority)
    with capture_logs() as logs:
        served.write(second, key=signed("another", served.authority))
        served.now_s += LOOK_S
        assert served.shows() == served.first
        served.now_s += LOOK_S
        assert served.shows() == served.first
        served.write(second)
        served.now_s += LOOK_S
        assert served.shows() == second.certificate.serial_number
    told = [(each["event"], each["files"]) for each in logs if "TLS files" in each["event"]]
    files = ", ".join(map(str, served.files))
    assert told == [("TLS files not read again", files), ("TLS files read again", files)]


async def test_workers_believe_an_authority_of_their_own_and_its_successor(
    served: Served, tmp_path: Path
) -> None:
    url, now_s = f"https://127.0.0.1:{served.port}", [0.0]
    authorities = tmp_path / "ca.crt"
    token = InternalToken((), Gate(), lambda: 0.0)
    strangers = Peers(token)
    with pytest.raises(PeerUnreachable, match="certificate"):
        await strangers.ask(url, HEALTH, ANYBODY, {})
    await strangers.close()

    authorities.write_text(signed("another").pem)
    peers = Peers(token, believed(authorities, lambda: now_s[0]))
    with pytest.raises(PeerUnreachable, match="certificate"):
        await peers.ask(url, HEALTH, ANYBODY, {})
    authorities.write_text(authorities.read_text() + served.authority.pem)
    now_s[0] += LOOK_S
    assert (await peers.ask(url, HEALTH, ANYBODY, {})).status_code == 200
    await peers.close()
