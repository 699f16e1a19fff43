"""Asks Flink what is in the tables that `belfry sql flink` prints, and compares.

    broker, registry, worker ◄── two events of `demo`, one of `shop` (ENVELOPE), a cancel
            │
            └── belfry sql flink ─► CREATE TABLE … ─► Flink in a process of its own ─► rows

Flink comes from its packages (154 MB the first time).  Not a part of `make test`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from belfry.client import Client
from belfry.devstack.ports import free_port
from belfry.devstack.stack import Stack, Worker, open_stack

HERE: Final = Path(__file__).parent
# It runs for half a minute, which the second compiler would spend on code that is used once.
JVM: Final = (
    *("--add-opens=java.base/java.util=ALL-UNNAMED", "-Xmx1g"),
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
)
# A bounded scan ends where the topics end now.
BOUNDED: Final = "/*+ OPTIONS('scan.bounded.mode'='latest-offset') */"
QUERIES: Final = f"""
SELECT tenant, schedule_id, CAST(payload AS STRING), occurrence, CHAR_LENGTH(fire_id) > 0,
       scheduled_at <= CAST(written_at AS TIMESTAMP(3))
FROM belfry_fired {BOUNDED};
SELECT tenant, schedule_id, due_at <= fired_at FROM belfry_envelopes {BOUNDED};
SELECT tenant, outcome, COUNT(DISTINCT schedule_id)
FROM belfry_lifecycle {BOUNDED} WHERE tenant = 'demo' GROUP BY tenant, outcome;
"""
EXPECTED: Final = {
    "+I[demo, one, first, 0, true, true]",
    "+I[demo, two, second, 0, true, true]",
    "+I[shop, three, true]",
    "+I[demo, CANCELLED, 1]",
}
# A count that grows is told again; the last one counts.
ACCEPTED: Final = re.compile(r"\+(?:I|U)\[demo, ACCEPTED, 3\]")


def main() -> None:
    """Exits with what differs, or 0."""
    subprocess.run(
        ["mvn", "-q", "-B", "compile", "dependency:build-classpath", "-Dmdep.outputFile=target/cp"],
        cwd=HERE,
        check=True,
    )
    with (
        tempfile.TemporaryDirectory(prefix="belfry-flink-") as folder,
        open_stack(Path(folder, "stack")) as stack,
    ):
        worker = Worker(stack, Path(folder, "worker"), free_port(0))
        try:
            worker.wait_ready(120, lambda: False)
            events(stack)
            began = time.monotonic()
            rows = asked(stack, Path(folder))
            print(*rows, f"Flink took {time.monotonic() - began:.0f} s", sep="\n")
        finally:
            worker.stop()
    missing = EXPECTED - set(rows)
    if missing or not any(ACCEPTED.fullmatch(each) for each in rows):
        sys.exit(f"Flink does not say {missing or 'that three were accepted'}: {rows}")


def events(stack: Stack) -> None:
    """Three events that fire, and a cancel."""
    belfry(stack, "tenant", "set", "shop", "delivery=ENVELOPE")
    with (
        Client(stack.bootstrap_servers) as client,
        client.events("demo") as demo,
        client.events("shop") as shop,
    ):
        client.schedule("demo", "one", in_="1s", payload="first")
        client.schedule("demo", "two", in_="1s", payload="second")
        client.schedule("demo", "never", in_="1h", payload="never")
        client.cancel("demo", "never")
        client.schedule("shop", "three", in_="1s", payload="third")
        for each in (demo, demo, shop):
            next(each)


def asked(stack: Stack, folder: Path) -> list[str]:
    """Rows of all queries, as Flink prints them."""
    tables = belfry(stack, "sql", "flink", "--envelope", "shop")
    Path(folder, "tables.sql").write_text(tables, "utf-8")
    Path(folder, "queries.sql").write_text(QUERIES, "utf-8")
    classes = f"{HERE / 'target/classes'}:{(HERE / 'target/cp').read_text('utf-8')}"
    told = subprocess.run(
        ["java", *JVM, "-cp", classes, "io.belfry.flink.Check", "tables.sql", "queries.sql"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    if told.returncode:
        sys.exit(told.stdout[-2_000:] + told.stderr[-4_000:])
    return [line[4:] for line in told.stdout.splitlines() if line.startswith("row ")]


def belfry(stack: Stack, *words: str) -> str:
    """What a command prints."""
    environment = {
        **os.environ,
        "BELFRY_BOOTSTRAP_SERVERS": stack.bootstrap_servers,
        "BELFRY_SCHEMA_REGISTRY_URL": stack.schema_registry_url,
    }
    command = [sys.executable, "-m", "belfry.cli", *words]
    return subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


if __name__ == "__main__":
    main()
