"""Kafka's command-line tools as programs on a path: ``kafka-console-consumer.sh`` and others.

A broker needs no tools, so the embedded one comes without them; here they are fetched beside it.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from belfry.devstack.artifacts import kafka_jars
from belfry.devstack.fetching import Pin, fetch_all
from belfry.devstack.java import java

TOOLS: Final = Pin(
    "tools",
    "b88bc6ccc520d648142515526e4042c285612ce94b032434a88e3e936e38b600",
    698_592,
    "org.apache.kafka:kafka-tools:4.3.0",
)
CLASSES: Final = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-features.sh": "org.apache.kafka.tools.FeatureCommand",
    "kafka-transactions.sh": "org.apache.kafka.tools.TransactionsCommand",
}


def tool(name: str, temp_dir: Path) -> list[str]:
    """The beginning of a tool's command line."""
    (tools,) = fetch_all("Kafka's command-line tools", [TOOLS])
    return [*java(128, temp_dir), "-cp", f"{kafka_jars()}/*:{tools}", CLASSES[name]]


def install(folder: Path) -> None:
    """Put all tools into a folder, as scripts of the names that Kafka gives them."""
    for name in CLASSES:
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(tool(name, folder))} "$@"\n')
        script.chmod(0o755)
