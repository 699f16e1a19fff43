"""Records with header names that are no UTF-8, as a Java program may write them by mistake.

librdkafka's clients cannot send such names, and aiokafka can only when it is talked into it, in a
process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

_PROGRAM: Final = """
import asyncio, sys
from aiokafka import AIOKafkaProducer

class Raw(str):
    def encode(self, *_):
        return b"\\xff\\xfe" + str(self).encode("latin-1")

async def run(bootstrap, topic, partitions):
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    for partition in range(int(partitions)):
        headers = [(Raw("name"), b"\\xff"), ("belfry-tenant", b"x"), ("belfry-id", b"y")]
        sent = await producer.send_and_wait(topic, b"v", partition=partition, headers=headers)
        print(sent.partition, sent.offset)
    await producer.stop()

asyncio.run(run(*sys.argv[1:]))
"""


def send_raw(bootstrap: str, topic: str, partitions: int) -> list[tuple[int, int]]:
    """Write one to each partition; partition and offset of each."""
    said = subprocess.run(
        [sys.executable, "-c", _PROGRAM, bootstrap, topic, str(partitions)],
        env={**os.environ, "AIOKAFKA_NO_EXTENSIONS": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    places = (line.split() for line in said.splitlines())
    return [(int(partition), int(offset)) for partition, offset in places]
