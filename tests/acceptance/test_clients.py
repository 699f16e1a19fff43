"""The clients for Java, Go and TypeScript do what their pages say, against a broker and a worker.

Each page under ``docs/how-to/`` is run as a reader would, in a copy of ``clients/``: the client's
own tests, then its example.  All requests have to be signed here, and the example is given a
secret.  What it was for is then looked up in Kafka:

    example ──► an event in a second, a cron and an instant that are cancelled, a cancel of nothing
            ──► an acknowledgement of the event
            ──► a charge that fails three times: two retries, then a dead letter

``docs/first-event.md`` is run in the same copy, against a stack and a worker as ``make run`` starts
them: each way in is a project of its own that takes the client as a stranger's would.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from belfry.devstack import Stack
from belfry.devstack.stack import Worker
from belfry.schedules.identity import partition_of
from tests.acceptance.harness.first_event import Way, ways
from tests.acceptance.harness.http import Http
from tests.acceptance.harness.reading import Record, lifecycle_of
from tests.acceptance.harness.site import Site
from tests.acceptance.test_readme_commands import Shell, Step, ready_worker, steps
from tests.architecture.tree import ROOT, project_files

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

BUILD_S: Final = 150
SECRET: Final = "what the shop shares with belfry"
COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
BLOCK: Final = re.compile(r"^```(java|go|typescript|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Language:
    """One client: its program, what its page calls it, its example, and what that has to hear.

    Its page and its tenant have its name.
    """

    name: str
    program: str
    title: str
    example: str
    code: str
    verdicts: tuple[tuple[str, str], ...]

    @property
    def page(self) -> Path:
        return Path("docs/how-to", f"{self.name}.md")

    def blocks(self) -> list[tuple[str, list[str]]]:
        """The page's blocks of code and output, in lines without indentation."""
        found = BLOCK.findall((ROOT / self.page).read_text("utf-8"))
        return [(kind, stripped(block)) for kind, block in found]


FIRED: Final = (("ACCEPTED", "greeting"), ("ACCEPTED", "retry"), ("ACCEPTED", "retry"))
ALL: Final = (
    *FIRED,
    ("UPDATED", "greeting"),
    *(("ACCEPTED", name) for name in ("report", "closing")),
    *(("CANCELLED", name) for name in ("report", "closing")),
    ("NOT_FOUND", "nothing"),
)
SHOPS: Final = "java/src/test/java/io/belfry/example/"
LANGUAGES: Final = [
    Language("java", "mvn", "Java", SHOPS + "Shop.java", "java", ALL),
    Language("spring", "mvn", "Spring", SHOPS + "SpringShop.java", "java", FIRED),
    Language("go", "go", "Go", "go/example/main.go", "go", ALL),
    Language("typescript", "npm", "TypeScript", "typescript/example/shop.ts", "typescript", ALL),
]
each_language = pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.name)


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A belfry to which every request has to be signed, with a tenant for each language."""
    home = tmp_path_factory.mktemp("clients")
    (home / "shop.secret").write_text(SECRET)
    signing = {
        "CLAIMS": "signed",
        "HTTP_WORKER_SECRET": "what all of the workers know",
        "SECRETS_DIR": str(home),
    }
    with Site(kafka, f"clients-{uuid.uuid4().hex[:8]}", home, **signing) as site:
        http = Http(site.worker().start().wait_ready())
        for language in LANGUAGES:
            policy = {"signing_secret_ref": "file:shop.secret"}
            assert http("PUT", f"/v1/tenants/{language.name}", policy)[0] in (200, 201)
        yield site


@dataclass(frozen=True)
class Checkout:
    """A copy of the clients as they are committed, and where belfry is."""

    folder: Path
    site: Site

    def run(self, step: Step, secret: str = SECRET) -> subprocess.CompletedProcess[str]:
        """Type a command of a page."""
        env = {
            **os.environ,
            "BELFRY_BOOTSTRAP_SERVERS": self.site.bootstrap,
            "BELFRY_CLUSTER__TOPIC_PREFIX": self.site.prefix,
            "BELFRY_SECRET": secret,
        }
        return subprocess.run(
            ["bash", "-c", step.text],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=BUILD_S,
            check=False,
        )


@pytest.fixture(scope="module")
def checkout(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Nothing in it but what a clone has."""
    folder = tmp_path_factory.mktemp("checkout")
    for path in project_files():
        if path.parts[0] == "clients":
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, folder / path)
    return Checkout(folder, site)


def stripped(text: str) -> list[str]:
    """Lines that say something, without their indentation, and without Maven's colours."""
    lines = [line.strip() for line in COLOUR.sub("", text).splitlines()]
    return [line for line in lines if line]


@each_language
def test_what_the_page_says_works(language: Language, checkout: Checkout) -> None:
    if shutil.which(language.program) is None:
        pytest.skip(
            f"{language.program} is not installed, and the {language.title} client needs it"
        )
    typed = list(steps(language.page))
    said = [checkout.run(step) for step in typed]
    for step, answer in zip(typed, said, strict=True):
        assert answer.returncode == 0, f"{step.text}\n{answer.stdout}{answer.stderr}"
    (shown,) = [lines for kind, lines in language.blocks() if kind == "text"]
    prefix = checkout.site.prefix
    assert sorted(stripped(said[-1].stdout)) == sorted(
        line.replace("belfry.", prefix) for line in shown
    )
    requests_are_at_home(checkout.site, language)
    events_have_fired(checkout.site, language)
    verdicts_were_given(checkout.site, language)

    forged = checkout.run(typed[-1], "what somebody else might guess")
    assert forged.returncode != 0
    assert "REJECTED (bad_signature)" in forged.stdout + forged.stderr


def text_of(record: Record, name: str) -> str | None:
    value = record.header(name)
    return None if value is None else value.decode()


def requests_are_at_home(site: Site, language: Language) -> None:
    """All requests lie where belfry wants them, though their keys are others: none was sent on."""
    asked = [
        record
        for record in site.read(site.topic("schedules"))
        if text_of(record, "belfry-tenant") == language.name
    ]
    assert len(asked) == len(language.verdicts)
    home = partition_of(language.name.encode(), 4)
    assert {record.partition for record in asked} == {home}
    assert {record.key for record in asked} >= {b"customer-7", b"order-1"}


def events_have_fired(site: Site, language: Language) -> None:
    """The greeting and both retries, each once, with their own keys, values and headers."""
    fired = site.wait_fired(language.name, 3)
    found = [
        (record.key, record.value, text_of(record, "event-type"), text_of(record, "retry-attempt"))
        for record in fired
    ]
    greeting = (b"customer-7", f"hello from {language.title}".encode(), "greeting", None)
    tries = [(b"order-1", b"card 4711", None, attempt) for attempt in ("1", "2")]
    assert sorted(found, key=repr) == sorted([greeting, *tries], key=repr)
    charges = site.topic(f"example.{language.name}.charges")
    ids = {text_of(record, "belfry-schedule-id") for record in fired}
    assert {"greeting/1", f"retry/{charges}/0/0"} < ids
    (dead,) = site.read(f"{charges}.dead")
    assert (dead.key, dead.value) == (b"order-1", b"card 4711")
    assert text_of(dead, "retry-attempt") == "3"
    assert text_of(dead, "dead-letter-reason") == "the bank is away"


def verdicts_were_given(site: Site, language: Language) -> None:
    """What belfry itself says became of the requests."""
    events = [lifecycle_of(record) for record in site.read(site.topic("lifecycle"))]
    found = [
        (event["outcome"], event["schedule_id"].split("/")[0])
        for event in events
        if event["tenant"] == language.name and event["request_id"]
    ]
    assert sorted(found) == sorted(language.verdicts)


@each_language
def test_the_code_on_the_page_is_that_of_the_example(language: Language) -> None:
    example = stripped((ROOT / "clients" / language.example).read_text("utf-8"))
    blocks = [lines for kind, lines in language.blocks() if kind == language.code]
    assert len(blocks) >= 2
    for block in blocks:
        for part in "\n".join(block).split("\n// …\n"):
            assert f"\n{part}\n" in "\n" + "\n".join(example) + "\n", part


@pytest.fixture(scope="module")
def started(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker with the settings that `make run` gives."""
    with ready_worker(stack, tmp_path_factory.mktemp("worker")) as running:
        yield running


@pytest.mark.parametrize("way", ways(), ids=lambda way: way.title)
def test_a_first_event_fires_by_what_the_page_says(
    way: Way, checkout: Checkout, stack: Stack, started: Worker
) -> None:
    if shutil.which(way.needs) is None and way.needs != "python":
        pytest.skip(f"{way.needs} is not installed, and a first event by {way.title} needs it")
    shell = Shell(checkout.folder, stack, started, BUILD_S)
    for path, text in way.files.items():
        (checkout.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout.folder / path).write_text(shell.addressed(text))
    said = [shell.run(Step(*each)) for each in way.typed]
    assert way.shows in said[-1], said


def test_the_page_has_the_ways_that_it_names() -> None:
    page = (ROOT / "docs/first-event.md").read_text("utf-8")
    named = re.findall(r"\[([\w ]+)\]\(#", page.partition("\n## ")[0])
    assert [way.title for way in ways()] == named
    assert {"curl", "kcat", "Python", "Java", "Go", "TypeScript"} <= {*named}
    assert all(way.typed for way in ways())
