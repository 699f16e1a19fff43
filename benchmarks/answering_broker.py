"""A broker that answers a writer of transactions at once, and keeps nothing.

    metadata, coordinator     this very broker leads and coordinates everything
    InitProducerId, EndTxn    the epoch that was asked for, or the next one
    Produce                   each batch was appended, at the offset after the one before

It is a process of its own, so that what a worker's own part of a transaction costs can be counted.
"""

from __future__ import annotations

import io
import socket
import struct
import threading
from collections import defaultdict
from multiprocessing.connection import Connection
from typing import Any, Final

from aiokafka.protocol.coordination import FindCoordinatorResponse_v1
from aiokafka.protocol.metadata import MetadataRequest_v5, MetadataResponse_v5
from aiokafka.protocol.types import CompactString, UnsignedVarInt32

NODE: Final = 1
PARTITIONS: Final = 4
VERSIONS: Final = {0: 12, 3: 5, 10: 1, 18: 3, 22: 4, 24: 3, 26: 5}
_TEXT: Final = CompactString("utf-8")
_EPOCH: Final = struct.Struct(">ihqhb")
_APPENDED: Final = struct.Struct(">ihqqq")
# The finalized feature transaction.version, at level 2: a compact array with one entry.
_FEATURES: Final = b"\x02" + _TEXT.encode("transaction.version") + struct.pack(">hhb", 2, 2, 0)
_offsets: defaultdict[tuple[str, int], int] = defaultdict(int)


def serve(told: Connection) -> None:
    """Answer until the process is ended; the port is told first."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        told.send(port)
        while True:
            connection, _ = listening.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_answer_all, args=(connection, port), daemon=True).start()


def _answer_all(connection: socket.socket, port: int) -> None:
    stream = connection.makefile("rb")
    while size := stream.read(4):
        request = io.BytesIO(stream.read(int.from_bytes(size, "big")))
        key, version, correlation = struct.unpack(">hhi", request.read(8))
        request.read(int.from_bytes(request.read(2), "big"))
        body = _answer(key, version, request, port)
        # The new header has tagged fields, but for who asks for versions.
        tags = b"\0" if key in {0, 22, 24, 26} else b""
        answer = struct.pack(">i", correlation) + tags + body
        connection.sendall(len(answer).to_bytes(4, "big") + answer)


def _answer(key: int, version: int, request: Any, port: int) -> bytes:
    if key == 18:
        return _versions() if version < 3 else _versions_and_features()
    if key == 3:
        return _metadata(request, port)
    if key == 10:
        found: bytes = FindCoordinatorResponse_v1(0, 0, None, NODE, "127.0.0.1", port).encode()
        return found
    request.read(1)
    if key == 0:
        return _appended(request)
    _TEXT.decode(request)
    producer, epoch = struct.unpack(">qh", request.read(10) if key == 26 else b"\0" * 9 + b"\1")
    return _EPOCH.pack(0, 0, producer or 7, (epoch + 1) % 30_000, 0)


def _versions() -> bytes:
    each = b"".join(struct.pack(">hhh", key, 0, most) for key, most in VERSIONS.items())
    return struct.pack(">hi", 0, len(VERSIONS)) + each


def _versions_and_features() -> bytes:
    each = b"".join(struct.pack(">hhhb", key, 0, most, 0) for key, most in VERSIONS.items())
    head = struct.pack(">h", 0) + UnsignedVarInt32.encode(len(VERSIONS) + 1) + each
    return head + struct.pack(">i", 0) + b"\x01\x02" + bytes([len(_FEATURES)]) + _FEATURES


def _metadata(request: Any, port: int) -> bytes:
    topics = MetadataRequest_v5.decode(request).topics or []
    parts = [(0, number, NODE, [NODE], [NODE], []) for number in range(PARTITIONS)]
    told = [(0, topic, False, parts) for topic in topics]
    brokers = [(NODE, "127.0.0.1", port, None)]
    answer: bytes = MetadataResponse_v5(0, brokers, "answering", NODE, told).encode()
    return answer


def _appended(request: Any) -> bytes:
    _TEXT.decode(request)
    request.read(6)
    varint, parts = UnsignedVarInt32, list[bytes]()
    topics = varint.decode(request)
    for _ in range(topics - 1):
        topic = _TEXT.decode(request)
        places = varint.decode(request)
        parts += [_TEXT.encode(topic), varint.encode(places)]
        for _ in range(places - 1):
            partition = int.from_bytes(request.read(4), "big")
            batch = request.read(varint.decode(request) - 1)
            offset = _offsets[topic, partition]
            # The number of records stands behind 57 bytes of a batch.
            _offsets[topic, partition] += int.from_bytes(batch[57:61], "big") + 1
            request.read(1)
            parts.append(_APPENDED.pack(partition, 0, offset, -1, 0) + b"\x01\0\0")
        request.read(1)
        parts.append(b"\0")
    return varint.encode(topics) + b"".join(parts) + b"\0\0\0\0\0"
