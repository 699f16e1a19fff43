"""``make connect-demo``: fired events flow into a file and, where it is installed, PostgreSQL.

Broker, registry, a belfry worker and a Connect worker start on free ports; the sinks are the files
beside this one.  The tenants are created after the sinks, as in life.  It shows what arrived and
ends; nothing stays but the cache of downloads.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from belfry.client import Client
from belfry.client.tenants import TenantPolicies
from belfry.devstack import Connect, DevStackError, Postgres, Stack, free_port, open_stack
from belfry.devstack.postgres import programs
from belfry.devstack.stack import Worker
from belfry.tenants.policy import TenantPolicy

HERE = Path(__file__).parent
EVENTS = 500
WAIT_S = 180.0


def say(text: str) -> None:
    """Tell the user who watches."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Run it; 0 where everything arrived once."""
    with ExitStack() as ends:
        home = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="belfry-connect-")))
        say("Starting broker and registry …")
        stack = ends.enter_context(open_stack(home / "stack"))
        worker = Worker(stack, home / "worker", free_port())
        ends.callback(worker.stop)
        database = ends.enter_context(Postgres()) if programs() is not None else None
        worker.wait_ready(WAIT_S, lambda: False)
        say("Starting Kafka Connect …")
        connect = Connect(
            home / "connect", HERE / "worker.properties", given(stack, home, database)
        )
        ends.callback(connect.kill)
        connect.start().wait_ready(WAIT_S)
        sinks = ["files"] if database is None else ["files", "fired-events-to-postgresql"]
        for sink in sinks:
            connect.put_file(sink, HERE / "sinks" / f"{sink}.json")
        schedule(stack)
        return shown(home / "events.txt", database)


def given(stack: Stack, home: Path, database: Postgres | None) -> dict[str, str]:
    """What the files ask of the environment."""
    address = {
        "CONNECT_BOOTSTRAP_SERVERS": stack.bootstrap_servers,
        "CONNECT_REGISTRY_URL": stack.schema_registry_url.replace("ccompat/v7", "registry/v2"),
        "CONNECT_FLUSH_MS": "5000",
        "CONNECT_TOPICS_TEXT": r"belfry\.fired\.text-.*",
        "CONNECT_TOPICS_ENVELOPE": r"belfry\.fired\.book-.*",
        "CONNECT_OUTPUT_FILE": str(home / "events.txt"),
    }
    if database is None:
        say("PostgreSQL is not installed: the file sink alone is shown.")
        return address
    return {
        **address,
        "CONNECT_JDBC_URL": database.jdbc_url,
        "CONNECT_JDBC_USER": "belfry",
        "CONNECT_JDBC_PASSWORD": database.password,
    }


def schedule(stack: Stack) -> None:
    """Two tenants that nobody knew: one sends texts, one has its events wrapped."""
    say(f"Scheduling {EVENTS} events of each of two tenants …")
    with Client(stack.bootstrap_servers) as belfry:
        policies = TenantPolicies(belfry.cluster, "belfry.")
        policies.put(TenantPolicy("book-demo", delivery="ENVELOPE"))
        belfry.schedule("book-demo", "first", in_="3s", payload="first", timeout_s=WAIT_S)
        for number in range(1, EVENTS):
            belfry.schedule("book-demo", f"s{number}", in_="3s", payload=str(number), wait=False)
        for number in range(EVENTS):
            line = f"line {number}"
            belfry.schedule("text-demo", f"s{number}", in_="3s", payload=line, wait=False)


def shown(file: Path, database: Postgres | None) -> int:
    """Wait for what has to arrive, and show it."""
    lines = arrived(lambda: len(set(file.read_text("utf-8").split("\n"))) - 1)
    say(f"{file.name}: {lines} different lines")
    if database is None:
        return 0 if lines == EVENTS else 1
    count = "SELECT count(*), count(DISTINCT fire_id) FROM fired_events"
    arrived(lambda: int(database.query(count)[0][0]))
    rows, fires = database.query(count)[0]
    say(f"PostgreSQL: count(*) = {rows}, count(DISTINCT fire_id) = {fires}")
    return 0 if lines == EVENTS and rows == fires == str(EVENTS) else 1


def arrived(count: Callable[[], int]) -> int:
    """How many there are, once there are all or time is up."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            found = count()
        except (OSError, DevStackError):
            found = 0
        if found >= EVENTS or time.monotonic() > deadline:
            return found
        time.sleep(0.3)


if __name__ == "__main__":
    sys.exit(main())
