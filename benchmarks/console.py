"""How quick the console's pages are while events fire, and what open consoles cost the firing.

    make bench-console PENDING=1000000 FIRES=2000 CONSOLES=10

A belfry of its own, as in `http_load.py`: PENDING schedules wait, and FIRES events a second come
in and fire.  First, before any fires, each view (`console_views.py`) is opened PAGES times for what
a page costs the worker in milliseconds of a core, which holds on a busy machine as well, and
Chromium opens it and tells when it painted the first content.  Then each is opened every two
seconds, ROUNDS times over, and measured from its planned instant, and Chromium opens the views
once more, beside fires.  At last (ONLY=firing does nothing else) events fire alone and beside
CONSOLES open consoles in turn, ROUNDS times: a console opens the views one after the other and
refreshes what it shows every five seconds, as `page.js` does.  Each prints a JSON line with the
load of the machine, for on a busy one nothing else explains a figure; the last are the goals.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from typing import Final

from console_views import JOB, JOBS, VIEWS
from http_client import Client
from http_load import (
    FIRES,
    PENDING,
    SECONDS,
    apart,
    live,
    percentile,
    waiting,
)
from playwright.sync_api import Page, sync_playwright

from belfry.bench.cluster import BenchCluster
from belfry.bench.plan import BenchPlan
from belfry.bench.worker import BenchWorker

CONSOLES: Final = int(os.environ.get("CONSOLES", "10"))
ROUNDS: Final = int(os.environ.get("ROUNDS", "3"))
PAGES: Final = int(os.environ.get("PAGES", "20"))
IDLE_S: Final = 10.0
REFRESH_S: Final = 5.0
EVERY_S: Final = 2.0
PAINTS: Final = 5
PAINTED: Final = """() => new Promise((told) => new PerformanceObserver((list) => {
  const found = list.getEntriesByName("first-contentful-paint");
  if (found.length) told(found[0].startTime);
}).observe({ type: "paint", buffered: true }))"""
Found = dict[str, list[float]]
# Goals in ms, and by how much the firing's p99 may grow beside open consoles.
FIRST_CONTENT_MS: Final = 200.0
VIEW_P95_MS: Final = 300.0
GROWTH: Final = 1.2


async def walk(url: str) -> Found:
    """Open each view every two seconds, one after the other; milliseconds from planned instants."""
    client, found = Client(url), {name: list[float]() for name in VIEWS}
    began = time.perf_counter() + 0.2

    async def one(planned: float, name: str) -> None:
        await asyncio.sleep(max(0.0, planned - time.perf_counter()))
        status = await client.call("GET", VIEWS[name])
        if status != 200:
            print(f"{name}: {status}", file=sys.stderr)
        elif planned - began >= 2:
            found[name].append((time.perf_counter() - planned) * 1000)

    plans = [
        one(began + EVERY_S * (turn + place / len(VIEWS)), name)
        for turn in range(int(SECONDS / EVERY_S))
        for place, name in enumerate(VIEWS)
    ]
    await asyncio.gather(*plans)
    client.close()
    return found


async def consoles(url: str) -> Found:
    """So many open consoles; each goes to another view at every other refresh."""
    client, took = Client(url), list[float]()
    began, addresses = time.perf_counter() + 0.2, list(VIEWS.values())

    async def one(number: int) -> None:
        for turn in range(int(SECONDS / REFRESH_S)):
            planned = began + (turn + number / CONSOLES) * REFRESH_S
            await asyncio.sleep(max(0.0, planned - time.perf_counter()))
            await client.call("GET", addresses[(number + turn // 2) % len(addresses)])
            took.append((time.perf_counter() - planned) * 1000)

    await asyncio.gather(*(one(number) for number in range(CONSOLES)))
    client.close()
    return {"any": took}


async def open_pages(url: str, path: str) -> None:
    """The same page, one after the other."""
    client = Client(url)
    for _ in range(PAGES):
        status = await client.call("GET", path)
        if status != 200:
            print(f"{path}: {status}", file=sys.stderr)
    client.close()


def costs(worker: BenchWorker) -> None:
    """What a page of each view costs the worker, without what it does of itself; one line each."""
    began, (before, _) = time.monotonic(), worker.usage()
    time.sleep(IDLE_S)
    idle = (worker.usage()[0] - before) / (time.monotonic() - began)
    for name, path in VIEWS.items():
        asyncio.run(open_pages(worker.url, path))  # A first time for what is made once.
        began, (before, _) = time.monotonic(), worker.usage()
        asyncio.run(open_pages(worker.url, path))
        own = idle * (time.monotonic() - began)
        cost_ms = max(0.0, worker.usage()[0] - before - own) * 1000 / PAGES
        line = {"phase": f"cost: {name}", "pending": PENDING, "cpu_ms_per_page": round(cost_ms, 1)}
        print(json.dumps(line), flush=True)


def paint(page: Page, url: str) -> float:
    """Milliseconds from the click to the first content of a page."""
    page.goto(url)
    return float(page.evaluate(PAINTED))


def paints(url: str) -> Found:
    """The same of each view; the first one of all, which starts the browser, does not count."""
    found: Found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        paint(page, url)
        for name, path in VIEWS.items():
            found[name] = [paint(page, url + path) for _ in range(PAINTS)]
        browser.close()
    return found


def show(phase: str, took: list[float], late: list[float]) -> None:
    """One line of results."""
    line = {
        "phase": phase,
        "pending": PENDING,
        "fires_per_second": FIRES,
        "pages": len(took),
        "p50_ms": percentile(took, 0.5),
        "p95_ms": percentile(took, 0.95),
        "fired": len(late),
        "lateness_p50_ms": percentile(late, 0.5),
        "lateness_p99_ms": percentile(late, 0.99),
        "load_1_min": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(line), flush=True)


async def begin_job(url: str) -> None:
    """A bulk job that matches nothing, so that its page has something to show."""
    client = Client(url)
    status = await client.call("POST", JOBS, json.dumps(JOB).encode())
    if status != 201:
        print(f"{JOBS}: {status}", file=sys.stderr)
    client.close()


def goal(name: str, most: float, found: Mapping[str, float]) -> None:
    """One line of a goal: whether it is met, and what missed it."""
    missed = {each: value for each, value in found.items() if not 0 <= value <= most}
    line = {"goal": name, "most": most, "met": not missed, "of": len(found), "missed": missed}
    print(json.dumps(line | {"load_1_min": round(os.getloadavg()[0], 1)}), flush=True)


def walks(cluster: BenchCluster, plan: BenchPlan, url: str) -> Found:
    """Each view, opened again and again while events fire."""
    found: Found = {name: [] for name in VIEWS}
    late: list[float] = []
    for _ in range(ROUNDS):
        round_late, took = live(cluster, plan, lambda: apart(walk, url))
        late += round_late
        for name, each in took.items():
            found[name] += each
    for name, took in found.items():
        show(name, took, late)
    return found


def firing(cluster: BenchCluster, plan: BenchPlan, url: str) -> None:
    """How late events fire alone and beside open consoles, in turn."""
    alone, beside, pages = list[float](), list[float](), list[float]()
    for _ in range(ROUNDS):
        alone += live(cluster, plan, lambda: None)[0]
        late, found = live(cluster, plan, lambda: apart(consoles, url))
        beside += late
        pages += found["any"]
    show("fires alone", [], alone)
    show(f"{CONSOLES} consoles", pages, beside)
    grown = percentile(beside, 0.99) / max(percentile(alone, 0.99), 0.1)
    goal(f"firing's p99 beside {CONSOLES} consoles, by its own", GROWTH, {"p99": round(grown, 2)})


def measure(cluster: BenchCluster, plan: BenchPlan) -> None:
    """All phases."""
    url = cluster.workers[0].url
    asyncio.run(begin_job(url))
    if os.environ.get("ONLY") == "firing":
        live(cluster, plan, lambda: apart(consoles, url))
        firing(cluster, plan, url)
        return
    costs(cluster.workers[0])
    quiet = paints(url)
    for name, took in quiet.items():
        show(f"first content, nothing fires: {name}", took, [])
    live(cluster, plan, lambda: apart(consoles, url))
    walked = walks(cluster, plan, url)
    late, found = live(cluster, plan, lambda: paints(url))
    for name, took in found.items():
        show(f"first content: {name}", took, late)
    firing(cluster, plan, url)
    medians = {name: percentile(took, 0.5) for name, took in quiet.items()}
    goal("first content, p50, ms", FIRST_CONTENT_MS, medians)
    nearly = {name: percentile(took, 0.95) for name, took in walked.items()}
    goal("view beside fires, p95, ms", VIEW_P95_MS, nearly)


def main() -> int:
    """Fill, and measure."""
    with waiting() as (cluster, plan):
        measure(cluster, plan)
    return 0


if __name__ == "__main__":
    sys.exit(main())
