"""Quotas of a broker for a client id, which librdkafka has no call for: AlterClientQuotas.

Version 0 by its bytes (https://kafka.apache.org/protocol): entries of an entity and of operations,
each a name, a number, and whether it is taken away.
"""

from __future__ import annotations

import socket
from struct import calcsize, pack, unpack_from
from typing import Final

ALTER_CLIENT_QUOTAS: Final = 49
# Correlation, throttle time, entries, and the error of the first one.
ANSWER: Final = ">iiih"
PERCENTAGE: Final = "request_percentage"


def limit_requests(bootstrap: str, client_id: str, percentage: float | None) -> None:
    """Let a client id have so much of the time of a broker's threads; None: as much as it likes.

    A client beyond it is held back for a second at most, each time.
    """
    host, _, port = bootstrap.rpartition(":")
    entity = pack(">i", 1) + _text("client-id") + _text(client_id)
    removes = percentage is None
    change = pack(">i", 1) + _text(PERCENTAGE) + pack(">d?", percentage or 0.0, removes)
    head = pack(">hhi", ALTER_CLIENT_QUOTAS, 0, 7) + _text("tests")
    request = head + pack(">i", 1) + entity + change + pack(">?", False)
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(pack(">i", len(request)) + request)
        answer = b""
        while len(answer) < 4 + calcsize(ANSWER):
            got = connection.recv(4096)
            assert got, "the broker has hung up"
            answer += got
    _, _, entries, error = unpack_from(ANSWER, answer, 4)
    assert (entries, error) == (1, 0), answer


def _text(text: str) -> bytes:
    return pack(">h", len(text)) + text.encode()
